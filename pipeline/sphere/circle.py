"""Many tokens on the circle, as angles in ascending order: it never changes, so neighbours are known.

Angles are lifted, so that the last is less than a turn beyond the first. All here is O(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


def wedge(delta: float) -> float:
    """The angle between two tokens with gap delta."""
    return 2.0 * float(np.arcsin(np.sqrt(0.5 * delta)))


@njit(nogil=True, cache=True)
def count_clusters(angles: Any, wedge: float) -> tuple[int, int]:
    """How many clusters, and a signature that changes with the set of neighbours that are together."""
    n = angles.size
    apart, signature = 0, 0
    for i in range(n):
        ahead = angles[i + 1] if i + 1 < n else angles[0] + 2.0 * np.pi
        if ahead - angles[i] > wedge:
            apart += 1
            signature += (i + 1) * (i + 1)
    return max(apart, 1), signature


@njit(nogil=True, cache=True)
def coalesce(angles: Any, mass: Any, squares: Any, atom: Any, closest: float) -> int:
    """Make one atom of tokens within ``closest``, at their mean; return how many are left.

    The first of the group counts: an atom never gathers tokens from a wider arc. ``atom[i]`` becomes where i
    went.
    """
    left = 0
    lead = 0
    for i in range(angles.size):
        if i > 0 and angles[i] - angles[lead] <= closest:
            whole = mass[left - 1] + mass[i]
            angles[left - 1] += (mass[i] / whole) * (angles[i] - angles[left - 1])
            mass[left - 1] = whole
            squares[left - 1] += squares[i]
        else:
            lead = i
            angles[left], mass[left], squares[left] = angles[i], mass[i], squares[i]
            left += 1
        atom[i] = left - 1
    return left


@njit(nogil=True, cache=True)
def mass_together(angles: Any, mass: Any, wedge: float) -> float:
    """Sum of m_i m_j over ordered pairs i != j at most ``wedge`` < pi apart."""
    n = angles.size
    result, ahead, end = 0.0, 0.0, 0
    for i in range(n):
        if end <= i:
            end, ahead = i, 0.0  # ``ahead`` is the mass of i + 1 ... end
        while end + 1 < i + n:
            following = end + 1
            angle = angles[following] if following < n else angles[following - n] + 2.0 * np.pi
            if angle - angles[i] > wedge:
                break
            end = following
            ahead += mass[end] if end < n else mass[end - n]
        result += mass[i] * ahead
        if end > i:
            ahead -= mass[i + 1] if i + 1 < n else mass[i + 1 - n]
    return 2.0 * result


def to_positions(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tokens as users see them, shape (n, 2)."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
