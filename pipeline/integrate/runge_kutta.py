"""The Dormand-Prince method of order 8 with its error estimate and its interpolant of order 7.

E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary Differential Equations I", 2nd ed. (Springer, 1993),
section II.5 and II.6 (DOP853). The coefficients are scipy's. Stages live in one flat array ``slopes``: stage
q is the ``size`` numbers from ``q * apart(size)`` on, size a multiple of eight; likewise the coefficients of
the interpolant. Beside the positions each method carries the elapsed time of a step, whose slope at stage q
is ``rates[q]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import DOP853

from pipeline.sphere.lanes import fma, highest, kernel, larger, load, splat, store, total

STAGES = 12
LAST = STAGES  # the slope at the end of the step, which is the next step's first stage
EXTRA = (13, 14, 15)  # stages that only the interpolant needs
ALL_STAGES = 16
DEGREE = 7
PATIENCE = 60  # refusals in a row before a step counts as impossible
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 8.0
_TINY = 1e-300  # keeps 0 / 0 out of atoms at rest

_A = np.zeros((ALL_STAGES, ALL_STAGES))
_A[:STAGES, :STAGES] = DOP853.A[:STAGES, :STAGES]
_A[LAST, :STAGES] = DOP853.B
_A[list(EXTRA)] = DOP853.A_EXTRA
_B = np.array(DOP853.B)
_E3, _E5 = np.array(DOP853.E3), np.array(DOP853.E5)
_D = np.array(DOP853.D)
if not (np.allclose(_A.sum(axis=1)[:STAGES], DOP853.C[:STAGES]) and np.isclose(_B.sum(), 1.0)):
    raise ImportError("scipy's DOP853 coefficients are not a consistent Runge-Kutta table")

# the stages that each stage, the error and the interpolant take, without those whose coefficient is 0
_COUNT = np.count_nonzero(_A, axis=1)
_FROM = np.argsort(_A == 0.0, axis=1, kind="stable")
_BY = np.take_along_axis(_A, _FROM, axis=1)
_CHECKED = np.flatnonzero((_E3 != 0.0) | (_E5 != 0.0))
_DENSE = np.flatnonzero((_D != 0.0).any(axis=0))
_HIGHER = np.ascontiguousarray(_D[:, _DENSE].T)


@kernel
def apart(size: int) -> int:
    """From one stage to the next: a little more than ``size``.

    Stages that lie a multiple of 4096 bytes apart would drive each other out of the nearest cache.
    """
    return size + 8


@kernel
def combine(x: Any, slopes: Any, size: int, stage: int, h: float, out: Any) -> None:
    """Write x + h sum_{q < stage} A[stage, q] slope_q."""
    row, whole = apart(size), size // 32 * 32
    for r in range(0, whole, 32):  # four at a time, so that no sum waits for itself
        a, b, c, d = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        for q in range(_COUNT[stage]):
            at, by = _FROM[stage, q] * row + r, _BY[stage, q]
            a, b = fma(load(slopes, at), by, a), fma(load(slopes, at + 8), by, b)
            c, d = fma(load(slopes, at + 16), by, c), fma(load(slopes, at + 24), by, d)
        store(out, r, fma(a, h, load(x, r)))
        store(out, r + 8, fma(b, h, load(x, r + 8)))
        store(out, r + 16, fma(c, h, load(x, r + 16)))
        store(out, r + 24, fma(d, h, load(x, r + 24)))
    for r in range(whole, size, 8):
        y = splat(0.0)
        for q in range(_COUNT[stage]):
            y = fma(load(slopes, _FROM[stage, q] * row + r), _BY[stage, q], y)
        store(out, r, fma(y, h, load(x, r)))


@kernel
def elapsed(rates: Any, h: float) -> float:
    """H sum_q B[q] rate_q: the time that the step takes."""
    t = 0.0
    for q in range(STAGES):
        t += _B[q] * rates[q]
    return h * t


@kernel
def error(
    slopes: Any, rates: Any, stride: int, dimension: int, h: float, before: float, duration: float
) -> float:
    """Local error: the worst atom's (a distance) or that of the time, relative to all time so far.

    Estimates of order 5 and 3 are combined as in DOP853: e = e5² / sqrt(e5² + 0.01 e3²). ``before`` is the
    time at the start of the step (inf if beyond comparison with the step), ``duration`` that of the step.
    """
    row = apart(stride * dimension)
    worst, everything = splat(0.0), splat(0.0)
    for i in range(0, stride, 8):
        five, three = splat(_TINY), splat(0.0)
        for k in range(dimension):
            e5, e3 = splat(0.0), splat(0.0)
            for q in _CHECKED:
                slope = load(slopes, q * row + k * stride + i)
                e5 = fma(slope, _E5[q], e5)
                e3 = fma(slope, _E3[q], e3)
            five = fma(e5, e5, five)
            three = fma(e3, e3, three)
        worst = larger(worst, five * five / (five + three * 0.01))
        everything = everything + five
    if not np.isfinite(total(everything)):
        return np.inf
    e5, e3 = 0.0, 0.0
    for stage in range(STAGES):
        e5 += _E5[stage] * rates[stage]
        e3 += _E3[stage] * rates[stage]
    lapse = 0.0
    if e5 != 0.0 or e3 != 0.0:
        lapse = e5 * e5 / np.sqrt(e5 * e5 + 0.01 * e3 * e3)
    return h * max(np.sqrt(highest(worst)), lapse / (before + duration))  # type: ignore[no-any-return]


@kernel
def shorter(h: float, miss: float) -> float:
    """The step to try after one that was refused, its error ``miss`` times what is allowed."""
    return h * max(_SHRINK, _SAFETY * miss**-0.125) if miss < np.inf else h * _SHRINK


@kernel
def following(h: float, miss: float) -> float:
    """The step to try after one that was accepted."""
    return h * min(_GROW, max(_SHRINK, _SAFETY * miss**-0.125)) if miss > 0.0 else h * _GROW


@kernel
def interpolant(start: Any, end: Any, slopes: Any, size: int, h: float, out: Any) -> None:
    """Write the coefficients of the continuous solution, DEGREE times ``size`` of them."""
    row = apart(size)
    for r in range(0, size, 8):
        rise = load(end, r) - load(start, r)
        first, last = load(slopes, r) * h, load(slopes, LAST * row + r) * h
        store(out, r, rise)
        store(out, row + r, first - rise)
        store(out, 2 * row + r, rise * 2.0 - (last + first))
        c3, c4, c5, c6 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        for q in range(_DENSE.size):
            each_slope = load(slopes, _DENSE[q] * row + r)
            c3, c4 = fma(each_slope, _HIGHER[q, 0], c3), fma(each_slope, _HIGHER[q, 1], c4)
            c5, c6 = fma(each_slope, _HIGHER[q, 2], c5), fma(each_slope, _HIGHER[q, 3], c6)
        store(out, 3 * row + r, c3 * h)
        store(out, 4 * row + r, c4 * h)
        store(out, 5 * row + r, c5 * h)
        store(out, 6 * row + r, c6 * h)


@kernel
def time_interpolant(rates: Any, h: float, duration: float, out: Any) -> None:
    """The same for the time since the start of the step; ``out`` has DEGREE entries."""
    out[0] = duration
    out[1] = h * rates[0] - duration
    out[2] = 2.0 * duration - h * (rates[LAST] + rates[0])
    for p in range(DEGREE - 3):
        y = 0.0
        for q in range(ALL_STAGES):
            y += _D[p, q] * rates[q]
        out[3 + p] = h * y


@kernel
def evaluate(coefficients: Any, row: int, r: int, theta: float) -> float:
    """The change of one entry since the start of the step, at a fraction theta of it.

    Its coefficients are at r, row + r, 2 row + r, ...
    """
    y = 0.0
    for p in range(DEGREE - 1, -1, -1):
        y += coefficients[p * row + r]
        y *= theta if p % 2 == 0 else 1.0 - theta
    return y


@kernel
def evaluate_all(coefficients: Any, start: Any, size: int, theta: float, out: Any) -> None:
    """Write the continuous solution at a fraction theta of the step."""
    row = apart(size)
    for r in range(0, size, 8):
        y = splat(0.0)
        for p in range(DEGREE - 1, -1, -1):
            y = (y + load(coefficients, p * row + r)) * (theta if p % 2 == 0 else 1.0 - theta)
        store(out, r, load(start, r) + y)


@kernel
def begin_next(slopes: Any, size: int) -> None:
    """Make the slope at the end of a step the first stage of the next."""
    for r in range(0, size, 8):
        store(slopes, r, load(slopes, LAST * apart(size) + r))


@kernel
def top_speed(slopes: Any, size: int) -> float:
    """Largest component of the first stage's slope; NaN stays NaN."""
    speed = 0.0
    for r in range(size):
        if not abs(slopes[r]) <= speed:
            speed = abs(slopes[r])
    return speed
