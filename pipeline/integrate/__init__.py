"""Methods that follow trajectories, apart from the equation that they step.

`Adaptive` is the coalescing integrator on the running clock, `Layers` the discrete transformer. Both are
descriptions; `solver` binds one to a field and a recorder and returns the compiled loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipeline.integrate.adaptive import DONE, NOT_FINITE, STEP_UNDERFLOW, TOO_MANY_EVALUATIONS

__all__ = ["DONE", "OUTCOMES", "Adaptive", "Layers"]

OUTCOMES: dict[int, str] = {
    DONE: "done",
    TOO_MANY_EVALUATIONS: "max_evaluations exhausted before the horizon",
    STEP_UNDERFLOW: "step size underflow: sixty steps in a row were rejected",
    NOT_FINITE: "velocities or times are no longer finite",
}


@dataclass(frozen=True)
class Adaptive:
    """The coalescing integrator: Runge-Kutta steps of order 8 on the running clock.

    Parameters
    ----------
    tolerance : float
        Largest local error of a token's position (a chord) and of the time, relative to the time elapsed.
    coalescence : float or None
        Chord below which tokens become one atom. None: ``max(1e-6, 100 * tolerance)``, but at most sqrt(2
        delta) / 100, delta being the cluster tolerance.
    max_evaluations : int
        A trajectory that needs more evaluations of the field fails.

    Raises
    ------
    ValueError
        If a value is out of range.
    """

    tolerance: float = 1e-8
    coalescence: float | None = None
    max_evaluations: int = 10_000_000

    def __post_init__(self) -> None:
        if not 1e-14 <= self.tolerance <= 1e-3:
            raise ValueError(f"integrator.tolerance: got {self.tolerance!r}; allowed: 1e-14 to 1e-3")
        if self.coalescence is not None and not 1e-9 <= self.coalescence <= 1e-2:
            raise ValueError(
                f"integrator.coalescence: got {self.coalescence!r}; allowed: 1e-9 to 1e-2, or null"
            )
        if self.max_evaluations < 1:
            raise ValueError(
                f"integrator.max_evaluations: got {self.max_evaluations!r}; allowed: integers >= 1"
            )

    def chord(self, delta: float) -> float:
        """The distance of coalescence for cluster tolerance ``delta``.

        Raises
        ------
        ValueError
            If it is not well below the cluster tolerance, or the local error not well below it.
        """
        widest = math.sqrt(2 * delta) / 100
        chord = min(max(1e-6, 100 * self.tolerance), widest) if self.coalescence is None else self.coalescence
        if chord > widest * (1 + 1e-12):
            raise ValueError(
                f"integrator.coalescence: got {chord:g}; allowed: at most sqrt(2 tolerance) / 100 = "
                f"{widest:g}"
            )
        if self.tolerance > 0.1 * chord:
            raise ValueError(
                f"integrator.tolerance: got {self.tolerance:g}; allowed: at most a tenth of the distance of "
                f"coalescence, {chord:g} at cluster tolerance {delta:g}"
            )
        return chord


@dataclass(frozen=True)
class Layers:
    """The discrete transformer: x <- normalise(x + step * attention).

    Parameters
    ----------
    step : float
        Time that a layer stands for.

    Raises
    ------
    ValueError
        If the step is not a positive number.
    """

    step: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.step < math.inf:
            raise ValueError(f"integrator.step: got {self.step!r}; allowed: finite numbers > 0")
