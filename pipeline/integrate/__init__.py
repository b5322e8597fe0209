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
MOST_STEPS = 10**12
FINEST_CHORD = 1e-9  # of coalescence: well above the rounding of positions
USUAL_DELTA = 1e-3
SPECTRAL_FROM = {2: 4096, 3: 4096}  # tokens from which spectral sums are cheaper, by dimension


@dataclass(frozen=True)
class Adaptive:
    """The coalescing integrator: Runge-Kutta steps of order 8 on the running clock.

    Parameters
    ----------
    tolerance : float
        Largest local error of a token's position (a chord) and of the time, relative to the time elapsed;
        where clusters are told at a finer distance than usual, a tenth of the coalescence.
    coalescence : float or None
        Chord below which tokens become one atom. It shifts the moment at which others come within sqrt(2
        delta) of them, delta being the cluster tolerance, so None makes it ``100 * tolerance``, times
        sqrt(delta / 1e-3) below 1e-3; at least 1e-9 and at most sqrt(2 delta) / 100.
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
        if not 1 <= self.max_evaluations <= MOST_STEPS:
            raise ValueError(
                f"integrator.max_evaluations: got {self.max_evaluations!r}; allowed: integers from 1 to "
                f"{MOST_STEPS}"
            )
        if self.sum not in SUMS:
            raise ValueError(f"integrator.sum: got {self.sum!r}; allowed: {', '.join(SUMS)}")
        if self.sum_threads < 1:
            raise ValueError(f"integrator.sum_threads: got {self.sum_threads!r}; allowed: integers >= 1")

    def spectral(self, n: int, d: int, beta: float, symmetric: bool, delta: float) -> bool:
        """Whether a cell begins with spectral sums: a rule in its parameters, the same on every machine.

        Parameters
        ----------
        n, d, beta : int, int, float
            The cell's, d after reduction to the span.
        symmetric : bool
            Whether Q = K = V = identity.
        delta : float
            The cluster tolerance.

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
            allowed = self.local_error(delta)
            error = spectral.ERROR * spectral.epsilon_for(allowed)
            sound = 100 * error <= allowed * spectral.mean_weight(beta, d)
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
        most = widest if self.coalescence is None else self.coalescence
        if most > widest * (1 + 1e-12):
            raise ValueError(
                f"integrator.coalescence: got {most:g}; allowed: at most sqrt(2 tolerance) / 100 = {widest:g}"
            )
        if self.tolerance > 0.1 * most:
            raise ValueError(
                f"integrator.tolerance: got {self.tolerance:g}; allowed: at most a tenth of the distance of "
                f"coalescence, {most:g} at cluster tolerance {delta:g}"
            )
        if self.coalescence is not None:
            return self.coalescence
        scale = min(1.0, math.sqrt(delta / USUAL_DELTA))
        return min(widest, max(FINEST_CHORD, 100 * self.tolerance * scale))

    def local_error(self, delta: float) -> float:
        """The largest local error allowed for cluster tolerance ``delta``: well below the coalescence."""
        return min(self.tolerance, self.chord(delta) / 10)


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

    def check(self, horizon: float) -> None:
        """Raise ValueError where a horizon takes more layers than can be counted in a lifetime."""
        if not horizon / self.step <= MOST_STEPS:
            raise ValueError(
                f"integrator.step: got {self.step!r}; allowed: at least {horizon / MOST_STEPS:g}, so that no "
                f"more than {MOST_STEPS} layers are taken"
            )
