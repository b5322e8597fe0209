"""When clusters join and part: crossings of the tolerance by single pairs, found on the continuous solution.

Clusters are the connected components of "together" (gap at most delta). Their number changes only when some
pair crosses delta, so each step lists the pairs whose state differs between its ends, finds each crossing on
the interpolant, and replays them in order of time. A pair that crosses and returns within one step is not
seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.integrate.runge_kutta import DEGREE, apart, evaluate
from pipeline.sphere import gaps
from pipeline.sphere.lanes import kernel


@kernel
def crossing(
    coefficients: Any,
    start: Any,
    stride: int,
    dimension: int,
    slot: int,
    other: int,
    rest: Any,
    delta: float,
    terms: Any,
) -> float:
    """Fraction of the step at which the gap of a pair crosses delta.

    The other atom moves too if ``other`` >= 0, else it rests at ``rest``. The root of ln(gap / delta), nearly
    linear when close tokens contract, by the Illinois method. ``terms`` (8 * dimension) is scratch.
    """
    row = apart(stride * dimension)
    for k in range(dimension):
        r, q = k * stride + slot, k * stride + other
        terms[k] = start[r] - (start[q] if other >= 0 else rest[k])
        for p in range(DEGREE):
            away = coefficients[p * row + q] if other >= 0 else 0.0
            terms[(p + 1) * dimension + k] = coefficients[p * row + r] - away

    f_low, f_high = _log_gap(terms, dimension, 0.0, delta), _log_gap(terms, dimension, 1.0, delta)
    if (f_low > 0.0) == (f_high > 0.0):
        return 0.0  # the state at the start was a rounding error off: the crossing is here
    low, high, theta, side = 0.0, 1.0, 0.5, 0
    for _ in range(100):
        theta = (low * f_high - high * f_low) / (f_high - f_low)
        if not low < theta < high:
            theta = 0.5 * (low + high)
        f = _log_gap(terms, dimension, theta, delta)
        if abs(f) < 1e-13 or high - low < 1e-15:
            break
        if (f > 0.0) == (f_low > 0.0):
            low, f_low = theta, f
            if side == -1:
                f_high *= 0.5
            side = -1
        else:
            high, f_high = theta, f
            if side == 1:
                f_low *= 0.5
            side = 1
    return theta


@kernel
def _log_gap(terms: Any, dimension: int, theta: float, delta: float) -> float:
    """ln(gap / delta) of `crossing`'s pair at a fraction theta of the step."""
    square = 0.0
    for k in range(dimension):
        away = terms[k] + evaluate(terms, dimension, dimension + k, theta)
        square += away * away
    return np.log(max(0.5 * square, 1e-300) / delta)  # type: ignore[no-any-return]


@kernel
def time_fraction(coefficients: Any, duration: float, target: float) -> float:
    """Fraction of the step at which its elapsed time is ``target``; monotone, by the Illinois method."""
    low, high = 0.0, 1.0
    f_low, f_high = -target, duration - target
    if f_low >= 0.0:
        return 0.0
    if f_high <= 0.0:
        return 1.0
    theta, side = 0.5, 0
    for _ in range(100):
        theta = (low * f_high - high * f_low) / (f_high - f_low)
        if not low < theta < high:
            theta = 0.5 * (low + high)
        f = evaluate(coefficients, 1, 0, theta) - target
        if abs(f) <= 1e-15 * duration or high - low < 1e-15:
            break
        if f < 0.0:
            low, f_low = theta, f
            if side == -1:
                f_high *= 0.5
            side = -1
        else:
            high, f_high = theta, f
            if side == 1:
                f_low *= 0.5
            side = 1
    return theta


@kernel
def fraction_at(
    target: float,
    coefficients: Any,
    duration: float,
    base: float,
    ref: float,
    log_clock: float,
    log_after: float,
) -> float:
    """Fraction of the step at which ln time is ``target``, between ``log_clock`` and ``log_after``.

    ``base`` is the time at the start of the step in units of exp(ref), in which ``duration`` is given; inf if
    the step adds less than a rounding error to it.
    """
    if target >= log_after:
        return 1.0
    if base == np.inf:
        return (target - log_clock) / (log_after - log_clock)
    if log_clock == -np.inf:
        return time_fraction(coefficients, duration, np.exp(target - ref))  # type: ignore[no-any-return]
    return time_fraction(coefficients, duration, base * np.expm1(target - log_clock))  # type: ignore[no-any-return]


@kernel
def list_crossings(
    x: Any,
    atoms: int,
    stride: int,
    dimension: int,
    moving: Any,
    count: int,
    slot_of: Any,
    before: Any,
    after: Any,
    together: Any,
    delta: float,
    first: Any,
    second: Any,
) -> int:
    """List each pair whose state at ``x`` is not the one in ``together``; return how many.

    ``first`` is moving. Pairs are sought around the atoms whose signature in `gaps.survey` was ``before`` and
    is now ``after``.
    """
    found = 0
    for a in range(count):
        if before[a] == after[a]:
            continue
        i = moving[a]
        for block in range(0, atoms, 8):
            near = gaps.within(x, i, block, stride, dimension, delta)
            for j in range(block, min(block + 8, atoms)):
                if (near >> (j - block) & 1 == 1) == together[i, j]:
                    continue
                b = slot_of[j]
                if b >= 0 and j < i and before[b] != after[b]:
                    continue  # listed from the other side
                first[found], second[found] = i, j
                found += 1
    return found


@kernel
def sort_by(key: Any, count: int, first: Any, second: Any) -> None:
    """Sort the first ``count`` entries by key (Shell's method: thousands may cross together)."""
    step = 1
    while step < count // 3:
        step = 3 * step + 1
    while step > 0:
        for i in range(step, count):
            k, f, s = key[i], first[i], second[i]
            j = i - step
            while j >= 0 and key[j] > k:
                key[j + step], first[j + step], second[j + step] = key[j], first[j], second[j]
                j -= step
            key[j + step], first[j + step], second[j + step] = k, f, s
        step //= 3


@kernel
def weights_joining(together: Any, labels: Any, mass: Any, atoms: int, i: int, j: int) -> tuple[float, float]:
    """Weights of the two clusters that the pair (i, j) would join, the smaller first; 0, 0 if none."""
    if together[i, j] or labels[i] == labels[j]:
        return 0.0, 0.0
    one, two = 0.0, 0.0
    for q in range(atoms):
        if labels[q] == labels[i]:
            one += mass[q]
        elif labels[q] == labels[j]:
            two += mass[q]
    return min(one, two), max(one, two)


@kernel
def flip(together: Any, atoms: int, labels: Any, queue: Any, i: int, j: int, clusters: int) -> int:
    """Change the state of the pair (i, j); keep ``labels`` up to date and return the number of clusters."""
    if not together[i, j]:
        together[i, j] = True
        together[j, i] = True
        if labels[i] != labels[j]:
            old, new = labels[j], labels[i]
            for q in range(atoms):
                if labels[q] == old:
                    labels[q] = new
            return clusters - 1
        return clusters
    together[i, j] = False
    together[j, i] = False
    # does j still reach i? mostly by somebody near both
    for q in range(atoms):
        if together[i, q] and together[j, q]:
            return clusters
    # else a fresh label for what j reaches tells
    old, fresh = labels[i], labels.size
    gaps.spread_label(together, atoms, j, fresh, labels, queue)
    parted = labels[i] != fresh
    if not parted:
        for q in range(atoms):
            if labels[q] == fresh:
                labels[q] = old
        return clusters
    # name the new component by a label that no other has
    for label in range(labels.size):
        used = False
        for q in range(atoms):
            if labels[q] == label:
                used = True
                break
        if not used:
            for q in range(atoms):
                if labels[q] == fresh:
                    labels[q] = label
            break
    return clusters + 1
