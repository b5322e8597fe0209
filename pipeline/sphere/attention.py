"""Attention sums with general matrices, a row at a time; the layout is that of `pipeline.sphere.pairs`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.sphere.lanes import each, exp, fma, kernel, load, replace, splat, store, total


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
    """Attention with general matrices, a row at a time, relative to the largest score of the row.

    Scores s_ij = beta <probe_i, x_j>; j runs over all atoms but i itself, or over all if ``with_self``:
        log_scale_i = max_j s_ij,
        force_i     = sum_j m_j exp(s_ij - log_scale_i) value_j     (not projected),
        weight_i    = sum_j m_j exp(s_ij - log_scale_i),
        log_total_i = ln sum_j m_j exp(s_ij), always with j = i.
    ``scores`` is scratch of ``stride`` float64. Rows of ``value`` must be finite in the padding.
    """
    for i in range(atoms):
        for j in range(0, stride, 8):
            s = splat(0.0)
            for k in range(dimension):
                s = fma(load(x, k * stride + j), each(probe, k * stride + i), s)
            store(scores, j, s * beta)
        own = scores[i]
        best = -np.inf
        for j in range(atoms):
            if scores[j] > best and (with_self or j != i):
                best = scores[j]
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
