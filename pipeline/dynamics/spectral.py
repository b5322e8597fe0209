"""The velocities of SA and USA with Q = K = V = identity from spectral sums, for crowds.

The clock is t for SA and e^beta t for USA, on which no velocity exceeds order 1 and no weight 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.sphere import spectral

Velocity = Callable[[Any, NDArray[Any], NDArray[Any]], float]


def velocity(normalised: bool, beta: float, epsilon: float, threads: int = 1) -> Velocity:
    """``velocity(crowd, place, out)``: writes dx/ds, returns a bound on the error of every component of it.

    For SA the force of a token is divided by its weight, so the bound is that of the sums over the least
    weight.
    """

    def move(crowd: Any, place: NDArray[Any], out: NDArray[Any]) -> float:
        weight, force = crowd.sums(place, beta, epsilon, threads)
        rows = crowd.rows(out)
        if not normalised:
            rows[:] = force
            return spectral.ERROR * epsilon
        np.divide(force, weight, out=rows)
        least = float(weight.min())
        return spectral.ERROR * epsilon / least if least > 0.0 else np.inf

    return move
