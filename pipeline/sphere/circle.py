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


def _ahead(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """From each token to the next; from the last to the first."""
    return np.diff(angles, append=angles[0] + 2.0 * np.pi)


def clusters(angles: NDArray[np.float64], wedge: float) -> tuple[int, NDArray[np.int64]]:
    """How many clusters there are, and in which each token is; they are numbered by their first token."""
    apart = _ahead(angles) > wedge
    labels = np.zeros(angles.size, np.int64)
    np.cumsum(apart[:-1], out=labels[1:])
    found = int(labels[-1]) + 1
    if not apart[-1] and found > 1:
        found -= 1
        labels[labels == found] = 0
    return found, labels


def meeting(angles: NDArray[np.float64], labels: NDArray[np.int64], wedge: float) -> tuple[int, int] | None:
    """The closest two neighbours that are together though their labels differ, if there are any."""
    ahead = np.where(labels != np.roll(labels, -1), _ahead(angles), np.inf)
    closest = int(np.argmin(ahead))
    return (closest, (closest + 1) % angles.size) if ahead[closest] <= wedge else None


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
