"""When clusters join and part: crossings of the tolerance by single pairs, found on the continuous solution.

Clusters are the connected components of "together" (gap at most delta). Their number changes only when some
pair crosses delta, so each step lists the pairs whose state differs between its ends, finds each crossing on
the interpolant, and replays them in order of time. A pair that crosses and returns within one step is not
seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pipeline.integrate.runge_kutta import DEGREE, evaluate
from pipeline.sphere import gaps


@njit(nogil=True, error_model="numpy")
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
    products: Any,
) -> float:
    """Fraction of the step at which the gap of a pair crosses delta.

    The other atom moves too if ``other`` >= 0, else it rests at ``rest``. On the interpolant the difference
    of the positions is a combination of eight vectors, so the gap is a quadratic form of their inner
    products. The root of ln(gap / delta), nearly linear when close tokens contract, by the Illinois method.
    ``terms`` (8 * dimension) and ``products`` (64) are scratch.
    """
    size = stride * dimension
    for k in range(dimension):
        r, q = k * stride + slot, k * stride + other
        terms[k] = start[r] - (start[q] if other >= 0 else rest[k])
        for p in range(DEGREE):
            away = coefficients[p * size + q] if other >= 0 else 0.0
            terms[(p + 1) * dimension + k] = coefficients[p * size + r] - away
    for p in range(DEGREE + 1):
        for q in range(p + 1):
            product = 0.0
            for k in range(dimension):
                product += terms[p * dimension + k] * terms[q * dimension + k]
            products[p * 8 + q] = product if p == q else 2.0 * product

    f_low, f_high = _log_gap(products, 0.0, delta), _log_gap(products, 1.0, delta)
    if (f_low > 0.0) == (f_high > 0.0):
        return 0.0  # the state at the start was a rounding error off: the crossing is here
    low, high, theta, side = 0.0, 1.0, 0.5, 0
    for _ in range(100):
        theta = (low * f_high - high * f_low) / (f_high - f_low)
        if not low < theta < high:
            theta = 0.5 * (low + high)
        f = _log_gap(products, theta, delta)
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


@njit(nogil=True)
def _log_gap(products: Any, theta: float, delta: float) -> float:
    """ln(gap / delta) of `crossing`'s pair, with the interpolant's basis 1, θ, θ(1-θ), θ²(1-θ), ..."""
    square = products[0]
    basis = np.ones(8)
    for p in range(1, 8):
        basis[p] = basis[p - 1] * (theta if p % 2 == 1 else 1.0 - theta)
        for q in range(p + 1):
            square += products[p * 8 + q] * basis[p] * basis[q]
    return np.log(max(0.5 * square, 1e-300) / delta)  # type: ignore[no-any-return]


@njit(nogil=True, error_model="numpy")
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


@njit(nogil=True, error_model="numpy")
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
        return time_fraction(coefficients, duration, np.exp(target - ref))
    return time_fraction(coefficients, duration, base * np.expm1(target - log_clock))


@njit(nogil=True)
def list_crossings(
    x: Any,
    atoms: int,
    stride: int,
    dimension: int,
    moving: Any,
    count: int,
    slot_of: Any,
    together: Any,
    delta: float,
    first: Any,
    second: Any,
) -> int:
    """List each pair with a moving atom whose state at ``x`` is not the one in ``together``; return how many.

    ``first`` is moving. What does not fit into the lists is counted all the same.
    """
    found = 0
    for a in range(count):
        i = moving[a]
        for j in range(atoms):
            if j == i or (slot_of[j] >= 0 and j < i):
                continue
            if (gaps.gap(x, i, j, stride, dimension) <= delta) != together[i, j]:
                if found < first.size:
                    first[found] = i
                    second[found] = j
                found += 1
    return found


@njit(nogil=True)
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


@njit(nogil=True)
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


@njit(nogil=True)
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
    # does j still reach i? a fresh label for what j reaches tells
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
