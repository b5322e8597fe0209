"""Methods that follow trajectories, apart from the equation that they step.

`Adaptive` is the coalescing integrator on the running clock, `Layers` the discrete transformer. Both are
descriptions; `solver` binds one to a field and a recorder and returns the compiled loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipeline.integrate.adaptive import DONE, NOT_FINITE, STEP_UNDERFLOW, TOO_MANY_EVALUATIONS
from pipeline.integrate.crowd import FEW, INACCURATE, MANY
from pipeline.sphere import spectral

__all__ = ["DONE", "MANY", "OUTCOMES", "Adaptive", "Layers"]

OUTCOMES: dict[int, str] = {
    DONE: "done",
    TOO_MANY_EVALUATIONS: "max_evaluations exhausted before the horizon",
    STEP_UNDERFLOW: "step size underflow: sixty steps in a row were rejected",
    NOT_FINITE: "velocities or times are no longer finite",
    INACCURATE: "spectral sums fell short of the tolerance with too many atoms left for sums over pairs",
}

SUMS = ("auto", "direct", "spectral")
SPECTRAL_FROM = {2: 4096, 3: 4096}  # tokens from which spectral sums are cheaper, by dimension


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
    sum : {"auto", "direct", "spectral"}
        How the attention of many tokens is summed on the circle and on S²: over pairs, or in O(n) until few
        atoms are left. "auto": by the rule of `spectral`.
    sum_threads : int
        Threads of a spectral sum. With more than one, results depend on their number in the last digits.

    Raises
    ------
    ValueError
        If a value is out of range.
    """

    tolerance: float = 1e-8
    coalescence: float | None = None
    max_evaluations: int = 10_000_000
    sum: str = "auto"
    sum_threads: int = 1

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
        if self.sum not in SUMS:
            raise ValueError(f"integrator.sum: got {self.sum!r}; allowed: {', '.join(SUMS)}")
        if self.sum_threads < 1:
            raise ValueError(f"integrator.sum_threads: got {self.sum_threads!r}; allowed: integers >= 1")

    def spectral(self, n: int, d: int, beta: float, symmetric: bool) -> bool:
        """Whether a cell begins with spectral sums: a rule in its parameters, the same on every machine.

        Parameters
        ----------
        n, d, beta : int, int, float
            The cell's, d after reduction to the span.
        symmetric : bool
            Whether Q = K = V = identity.

        Raises
        ------
        ValueError
            If spectral sums are asked for where there are none, or n is too large for any other.
        """
        possible = d in SPECTRAL_FROM and symmetric and n > FEW
        if self.sum == "spectral" and not possible:
            raise ValueError(
                f"integrator.sum: got spectral with n = {n}, d = {d}; allowed: auto, direct (spectral needs "
                f"n > {FEW}, d = 2 or 3, and Q = K = V = identity)"
            )
        chosen = self.sum == "spectral"
        if self.sum == "auto" and possible:
            # sums that would be a hundred times too coarse for uniform tokens are not begun
            error = spectral.ERROR * spectral.epsilon_for(self.tolerance)
            sound = 100 * error <= self.tolerance * spectral.mean_weight(beta, d)
            chosen = n > MANY or (sound and n >= SPECTRAL_FROM[d])
        if n > MANY and not chosen:
            raise ValueError(f"grid.n: got {n}; allowed: at most {MANY} where attention is summed over pairs")
        return chosen

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
