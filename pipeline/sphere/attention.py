"""Attention sums with general matrices; the layout is that of `pipeline.sphere.pairs`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.sphere.exponential import exp
from pipeline.sphere.lanes import each, fma, kernel, larger, load, mixed, replace, splat, store


@kernel
def _scores(x: Any, probe: Any, i: int, stride: int, dimension: int, beta: float, out: Any) -> None:
    """Write s_ij for eight rows from i on (lanes) and all j: ``out[8 * j : 8 * j + 8]``."""
    zero = splat(0.0)
    for j in range(0, stride, 8):
        c0, c1, c2, c3, c4, c5, c6, c7 = zero, zero, zero, zero, zero, zero, zero, zero
        for at in range(0, dimension * stride, stride):
            own = load(probe, at + i)
            c0, c1 = fma(own, each(x, at + j), c0), fma(own, each(x, at + j + 1), c1)
            c2, c3 = fma(own, each(x, at + j + 2), c2), fma(own, each(x, at + j + 3), c3)
            c4, c5 = fma(own, each(x, at + j + 4), c4), fma(own, each(x, at + j + 5), c5)
            c6, c7 = fma(own, each(x, at + j + 6), c6), fma(own, each(x, at + j + 7), c7)
        store(out, 8 * j, c0 * beta)
        store(out, 8 * j + 8, c1 * beta)
        store(out, 8 * j + 16, c2 * beta)
        store(out, 8 * j + 24, c3 * beta)
        store(out, 8 * j + 32, c4 * beta)
        store(out, 8 * j + 40, c5 * beta)
        store(out, 8 * j + 48, c6 * beta)
        store(out, 8 * j + 56, c7 * beta)


@kernel
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
    """Attention with general matrices, eight rows at a time, relative to the largest score of each row.

    Scores s_ij = beta <probe_i, x_j>; j runs over all atoms but i itself, or over all if ``with_self``:
        log_scale_i = max_j s_ij,
        force_i     = sum_j m_j exp(s_ij - log_scale_i) value_j     (not projected),
        weight_i    = sum_j m_j exp(s_ij - log_scale_i),
        log_total_i = ln sum_j m_j exp(s_ij), always with j = i.
    ``scores`` is scratch of 8 * ``stride`` float64. Rows of ``probe`` and ``value`` must be finite in the
    padding, where what is written means nothing.
    """
    for i in range(0, stride, 8):
        _scores(x, probe, i, stride, dimension, beta, scores)
        best, weights = splat(-np.inf), splat(0.0)
        for j in range(atoms):
            s = load(scores, 8 * j)
            best = larger(best, s if with_self else replace(s, j - i, -np.inf))
        store(log_scale, i, best)
        for row in range(8):
            log_total[i + row] = scores[8 * (i + row) + row]  # for now its own score
        for j in range(atoms):
            e = exp(load(scores, 8 * j) - best) * each(m, j)
            if not with_self:
                e = replace(e, j - i, 0.0)
            store(scores, 8 * j, e)
            weights = weights + e
        store(weight, i, weights)
        for j in range(atoms, stride):
            store(scores, 8 * j, splat(0.0))
        for at in range(i, dimension * stride, stride):
            store(force, at, splat(0.0))
        for j in range(0, stride, 8):
            e = (
                load(scores, 8 * j),
                load(scores, 8 * j + 8),
                load(scores, 8 * j + 16),
                load(scores, 8 * j + 24),
                load(scores, 8 * j + 32),
                load(scores, 8 * j + 40),
                load(scores, 8 * j + 48),
                load(scores, 8 * j + 56),
            )
            for at in range(0, dimension * stride, stride):
                store(force, at + i, mixed(e, value, at + j, load(force, at + i)))
    for i in range(atoms):
        own, best = log_total[i], log_scale[i]
        if with_self:
            log_total[i] = best + np.log(weight[i])
        else:
            top = max(own, best)
            log_total[i] = top + np.log(m[i] * np.exp(own - top) + weight[i] * np.exp(best - top))
