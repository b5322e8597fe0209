"""Attention sums over pairs of tokens: the inner loops of every field.

Layout. The positions of ``a`` atoms in d dimensions are one flat array ``x`` of length d * stride:
component k of atom i is ``x[k * stride + i]``, stride the next multiple of eight. The lanes a .. stride-1
are padding: mass 0, and position `padding(d)`.

Notation. c_ij = <x_i, x_j>, gap h_ij = 1 - c_ij = |x_i - x_j|²/2, relative weight E_ij = exp(ref - beta
h_ij). ``ref`` makes the strongest pair of order 1, so nothing that matters underflows whatever beta is; all
sums leave out the self-term j = i, so nothing of order 1 is cancelled and an exponentially slow drift keeps
its relative accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pipeline.sphere.lanes import each, exp, fma, fnma, load, replace, splat, store, total

FAR = 1e3  # where padding lies when pairs are compared by differences: no token is near it


@njit(nogil=True)
def padding(dimension: int) -> float:
    """Coordinate of the padding lanes: far away where sums use differences, 0 where they use products."""
    return FAR if dimension <= 3 else 0.0


@njit(nogil=True)
def stride_of(atoms: int) -> int:
    """The next multiple of eight: how many lanes ``atoms`` atoms take."""
    return (atoms + 7) // 8 * 8


@njit(nogil=True, error_model="numpy")
def pair_sums_2(
    x: Any, m: Any, atoms: int, stride: int, dimension: int, beta: float, ref: float, force: Any, weight: Any
) -> None:
    """On the circle: force_i = sum_{j != i} m_j E_ij (x_j - c_ij x_i), weight_i = sum_{j != i} m_j E_ij.

    The force is tangent, so one number describes it: sum_j m_j E_ij (x_i cross x_j), which is exactly zero
    for exactly antipodal tokens. Each exponential serves both tokens of a pair; rows go two at a time.
    ``force`` and ``weight`` are written, padding included (there it means nothing).
    """
    zero, half = splat(0.0), 0.5 * beta
    for j in range(0, stride, 8):
        store(force, j, zero)
        store(weight, j, zero)
    for i in range(0, atoms, 2):
        block = i // 8 * 8
        p0, p1, mp = each(x, i), each(x, stride + i), each(m, i)
        q0, q1, mq = each(x, i + 1), each(x, stride + i + 1), each(m, i + 1)
        x0, x1, mass = load(x, block), load(x, stride + block), load(m, block)
        # the block on the diagonal: rows only, every partner but the token itself
        u0, u1 = x0 - p0, x1 - p1
        e = replace(mass * exp(fnma(fma(u0, u0, u1 * u1), half, ref)), i - block, 0.0)
        turn_p, weight_p = e * fnma(u0, p1, u1 * p0), e
        v0, v1 = x0 - q0, x1 - q1
        e = replace(mass * exp(fnma(fma(v0, v0, v1 * v1), half, ref)), i + 1 - block, 0.0)
        turn_q, weight_q = e * fnma(v0, q1, v1 * q0), e
        for j in range(block + 8, stride, 8):
            x0, x1, mass = load(x, j), load(x, stride + j), load(m, j)
            u0, u1 = x0 - p0, x1 - p1
            v0, v1 = x0 - q0, x1 - q1
            e = exp(fnma(fma(u0, u0, u1 * u1), half, ref))
            f = exp(fnma(fma(v0, v0, v1 * v1), half, ref))
            s = fnma(u0, p1, u1 * p0) * e
            t = fnma(v0, q1, v1 * q0) * f
            turn_p, weight_p = fma(mass, s, turn_p), fma(mass, e, weight_p)
            turn_q, weight_q = fma(mass, t, turn_q), fma(mass, f, weight_q)
            store(force, j, fnma(t, mq, fnma(s, mp, load(force, j))))
            store(weight, j, fma(f, mq, fma(e, mp, load(weight, j))))
        force[i] += total(turn_p)
        weight[i] += total(weight_p)
        force[i + 1] += total(turn_q)
        weight[i + 1] += total(weight_q)
    for j in range(0, stride, 8):
        turn = load(force, j)
        store(force, j, zero - turn * load(x, stride + j))
        store(force, stride + j, turn * load(x, j))


@njit(nogil=True, error_model="numpy")
def pair_sums_3(
    x: Any, m: Any, atoms: int, stride: int, dimension: int, beta: float, ref: float, force: Any, weight: Any
) -> None:
    """On S²: the sums of `pair_sums_2` as vectors, with x_j - c_ij x_i = (x_j - x_i) + h_ij x_i."""
    zero = splat(0.0)
    for j in range(0, stride, 8):
        store(weight, j, zero)
        store(force, j, zero)
        store(force, stride + j, zero)
        store(force, 2 * stride + j, zero)
    for i in range(atoms):
        block = i // 8 * 8
        p0, p1, p2, mp = each(x, i), each(x, stride + i), each(x, 2 * stride + i), each(m, i)
        u0 = load(x, block) - p0
        u1 = load(x, stride + block) - p1
        u2 = load(x, 2 * stride + block) - p2
        h = fma(u0, u0, fma(u1, u1, u2 * u2)) * 0.5
        e = replace(load(m, block) * exp(fnma(h, beta, ref)), i - block, 0.0)
        row_weight, row_gap = e, e * h
        row0, row1, row2 = e * u0, e * u1, e * u2
        for j in range(block + 8, stride, 8):
            x0, x1, x2, mass = load(x, j), load(x, stride + j), load(x, 2 * stride + j), load(m, j)
            u0, u1, u2 = x0 - p0, x1 - p1, x2 - p2
            h = fma(u0, u0, fma(u1, u1, u2 * u2)) * 0.5
            e = exp(fnma(h, beta, ref))
            g = mass * e
            row_weight, row_gap = row_weight + g, fma(g, h, row_gap)
            row0, row1, row2 = fma(g, u0, row0), fma(g, u1, row1), fma(g, u2, row2)
            g = e * mp
            store(weight, j, load(weight, j) + g)
            store(force, j, fma(g, fma(h, x0, zero - u0), load(force, j)))
            store(force, stride + j, fma(g, fma(h, x1, zero - u1), load(force, stride + j)))
            store(force, 2 * stride + j, fma(g, fma(h, x2, zero - u2), load(force, 2 * stride + j)))
        weight[i] += total(row_weight)
        gap = total(row_gap)
        force[i] += total(row0) + gap * x[i]
        force[stride + i] += total(row1) + gap * x[stride + i]
        force[2 * stride + i] += total(row2) + gap * x[2 * stride + i]


@njit(nogil=True, error_model="numpy")
def pair_sums_d(
    x: Any, m: Any, atoms: int, stride: int, dimension: int, beta: float, ref: float, force: Any, weight: Any
) -> None:
    """In any dimension: the sums of `pair_sums_2` as vectors, eight targets (lanes) by eight sources.

    Two passes over the components per block: inner products, then the weighted sum of the sources; nothing of
    size n² is stored. c_ij comes from a product, so force_i carries an absolute error of 1e-16 weight_i.
    """
    zero = splat(0.0)
    for i in range(0, stride, 8):
        for k in range(dimension):
            store(force, k * stride + i, zero)
        weights, cosines = zero, zero
        for j in range(0, stride, 8):
            c0, c1, c2, c3, c4, c5, c6, c7 = zero, zero, zero, zero, zero, zero, zero, zero
            for k in range(dimension):
                at = k * stride
                target = load(x, at + i)
                c0 = fma(target, each(x, at + j), c0)
                c1 = fma(target, each(x, at + j + 1), c1)
                c2 = fma(target, each(x, at + j + 2), c2)
                c3 = fma(target, each(x, at + j + 3), c3)
                c4 = fma(target, each(x, at + j + 4), c4)
                c5 = fma(target, each(x, at + j + 5), c5)
                c6 = fma(target, each(x, at + j + 6), c6)
                c7 = fma(target, each(x, at + j + 7), c7)
            shift = ref - beta
            e0 = exp(fma(c0, beta, shift)) * each(m, j)
            e1 = exp(fma(c1, beta, shift)) * each(m, j + 1)
            e2 = exp(fma(c2, beta, shift)) * each(m, j + 2)
            e3 = exp(fma(c3, beta, shift)) * each(m, j + 3)
            e4 = exp(fma(c4, beta, shift)) * each(m, j + 4)
            e5 = exp(fma(c5, beta, shift)) * each(m, j + 5)
            e6 = exp(fma(c6, beta, shift)) * each(m, j + 6)
            e7 = exp(fma(c7, beta, shift)) * each(m, j + 7)
            if i == j:
                e0, e1, e2, e3 = (
                    replace(e0, 0, 0.0),
                    replace(e1, 1, 0.0),
                    replace(e2, 2, 0.0),
                    replace(e3, 3, 0.0),
                )
                e4, e5, e6, e7 = (
                    replace(e4, 4, 0.0),
                    replace(e5, 5, 0.0),
                    replace(e6, 6, 0.0),
                    replace(e7, 7, 0.0),
                )
            weights = weights + (((e0 + e1) + (e2 + e3)) + ((e4 + e5) + (e6 + e7)))
            even = fma(e0, c0, fma(e2, c2, fma(e4, c4, fma(e6, c6, cosines))))
            cosines = even + fma(e1, c1, fma(e3, c3, fma(e5, c5, e7 * c7)))
            for k in range(dimension):
                at = k * stride
                f = fma(e0, each(x, at + j), fma(e2, each(x, at + j + 2), load(force, at + i)))
                g = fma(e1, each(x, at + j + 1), e3 * each(x, at + j + 3))
                f = fma(e4, each(x, at + j + 4), fma(e6, each(x, at + j + 6), f))
                g = fma(e5, each(x, at + j + 5), fma(e7, each(x, at + j + 7), g))
                store(force, at + i, f + g)
        store(weight, i, weights)
        for k in range(dimension):
            at = k * stride + i
            store(force, at, fnma(cosines, load(x, at), load(force, at)))


@njit(nogil=True, error_model="numpy")
def attention_sums(
    x: Any,
    probe: Any,
    value: Any,
    m: Any,
    atoms: int,
    stride: int,
    dimension: int,
    beta: float,
    with_self: bool,
    force: Any,
    weight: Any,
    log_scale: Any,
    log_total: Any,
    scores: Any,
) -> None:
    """Attention with general matrices, a row at a time, relative to the largest score of the row.

    Scores s_ij = beta <probe_i, x_j>; j runs over all atoms but i itself, or over all if ``with_self``:
        log_scale_i = max_j s_ij,
        force_i     = sum_j m_j exp(s_ij - log_scale_i) value_j     (not projected),
        weight_i    = sum_j m_j exp(s_ij - log_scale_i),
        log_total_i = ln sum_j m_j exp(s_ij), always with j = i.
    ``scores`` is scratch of ``stride`` float64. Rows of ``value`` must be finite in the padding.
    """
    for i in range(atoms):
        own = 0.0
        best = -np.inf
        for j in range(stride):
            s = 0.0
            for k in range(dimension):
                s += probe[k * stride + i] * x[k * stride + j]
            s *= beta
            scores[j] = s
            if j == i:
                own = s
            if j < atoms and s > best and (with_self or j != i):
                best = s
        weights = splat(0.0)
        for j in range(0, stride, 8):
            e = exp(load(scores, j) - best) * load(m, j)
            if not with_self:
                e = replace(e, i - j, 0.0)
            store(scores, j, e)
            weights = weights + e
        weight[i] = total(weights)
        log_scale[i] = best
        if with_self:
            log_total[i] = best + np.log(weight[i])
        else:
            top = max(own, best)
            log_total[i] = top + np.log(m[i] * np.exp(own - top) + weight[i] * np.exp(best - top))
        for k in range(dimension):
            row = splat(0.0)
            for j in range(0, stride, 8):
                row = fma(load(scores, j), load(value, k * stride + j), row)
            force[k * stride + i] = total(row)
