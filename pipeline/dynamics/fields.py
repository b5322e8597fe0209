"""Compiled velocities on the running clock.

A field is a pair of compiled functions over flat positions (layout in `pipeline.sphere.pairs`).

``reference(x, m, atoms, stride, dimension, p, matrices, scratch, least)`` returns, given the smallest gap, a
number ``ref`` that makes the strongest pair of order 1.

``velocity(x, m, atoms, stride, dimension, ref, p, matrices, v, weight, scratch)`` writes v = dx/ds and
returns K = exp(ref) ds/dt, where s is the running clock: ds/dt = sum_{i != j} w_ij, the whole attention that
tokens pay to others. This is a smooth version of the strongest pair's weight: velocities are of order 1 on
every time scale, and

    dx/ds = v,     dt/ds = exp(ref) / K

hold whatever ``ref`` is, so a stepper may recentre it at will and keep t as a logarithm. Fields whose
self-term does not vanish run on t itself (K = 1, ref = 0).

``p`` holds beta, 1 if rows are normalised (SA) else 0 (USA), and 1 / (total mass), which USA multiplies by.
USA runs in e^beta t where the clock runs. A velocity below the rounding error of its own sum is zero: the
token rests. Padding gets velocity 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.sphere import pairs
from pipeline.sphere.attention import attention_sums
from pipeline.sphere.lanes import fma, kernel, load, splat, store, total, where_above

_ROUNDING = 4 * float(np.finfo(np.float64).eps)


@kernel
def _settle(
    m: Any, stride: int, dimension: int, ref: float, normalised: float, share: float, v: Any, weight: Any
) -> float:
    """Turn pair sums (forces in ``v``, weights) into velocities on the running clock; return K."""
    scale, zero, attention = np.exp(-ref), splat(0.0), splat(0.0)
    for i in range(0, stride, 8):
        mass, w = load(m, i), load(weight, i)
        factor = 1.0 / fma(w, scale, mass) if normalised > 0.0 else splat(share)
        factor = where_above(mass, zero, factor)  # none for the padding
        attention = attention + where_above(mass, zero, w * factor)
        square = zero
        for k in range(dimension):
            force = load(v, k * stride + i)
            square = fma(force, force, square)
        rounding = w * _ROUNDING
        factor = where_above(square, rounding * rounding, factor)
        store(weight, i, factor)
    whole = total(attention)
    inverse = 1.0 / whole
    for i in range(0, stride, 8):
        factor = load(weight, i) * inverse
        for k in range(dimension):
            at = k * stride + i
            store(v, at, where_above(factor, zero, load(v, at) * factor))
    return whole  # type: ignore[no-any-return]


def _identity_velocity(sums: Any, name: str) -> Any:
    def velocity(
        x: Any,
        m: Any,
        atoms: int,
        stride: int,
        dimension: int,
        ref: float,
        p: Any,
        matrices: Any,
        v: Any,
        weight: Any,
        scratch: Any,
    ) -> float:
        sums(x, m, atoms, stride, dimension, p[0], ref, v, weight, scratch)
        return _settle(m, stride, dimension, ref, p[1], p[2], v, weight)  # type: ignore[no-any-return]

    # numba names symbols by qualified name: two fields loaded from caches must not share one
    velocity.__name__ = velocity.__qualname__ = name
    return kernel(velocity)


circle_velocity = _identity_velocity(pairs.circle_sums, "circle_velocity")
sphere_velocity = _identity_velocity(pairs.sphere_sums, "sphere_velocity")


@kernel
def identity_reference(
    x: Any, m: Any, atoms: int, stride: int, dimension: int, p: Any, matrices: Any, scratch: Any, least: float
) -> float:
    """Beta times the smallest gap: the strongest pair of the Q = K = V = identity fields."""
    return p[0] * least  # type: ignore[no-any-return]


@kernel
def _apply(matrix: Any, x: Any, atoms: int, stride: int, dimension: int, out: Any) -> None:
    """Matrix times each position; padding becomes 0."""
    for k in range(dimension):
        for i in range(0, stride, 8):
            row = splat(0.0)
            for q in range(dimension):
                row = fma(load(x, q * stride + i), matrix[k, q], row)
            store(out, k * stride + i, row)
        for i in range(atoms, stride):
            out[k * stride + i] = 0.0


@kernel
def _general_sums(
    x: Any,
    m: Any,
    atoms: int,
    stride: int,
    dimension: int,
    p: Any,
    matrices: Any,
    with_self: bool,
    v: Any,
    weight: Any,
    scratch: Any,
) -> None:
    """`attention_sums` with probe K'Q x and value V x; log_scale and log_total stay in ``scratch``.

    No matrices: all are the identity. Fields without the self-term have no other V.
    """
    size = dimension * stride
    probe, value = x, x
    if matrices.shape[0] > 0:
        probe = scratch[10 * stride : 10 * stride + size]
        _apply(matrices[0], x, atoms, stride, dimension, probe)
        if with_self:
            value = scratch[10 * stride + size : 10 * stride + 2 * size]
            _apply(matrices[1], x, atoms, stride, dimension, value)
    attention_sums(
        x,
        probe,
        value,
        m,
        atoms,
        stride,
        dimension,
        p[0],
        with_self,
        v,
        weight,
        scratch[:stride],
        scratch[stride : 2 * stride],
        scratch[2 * stride : 10 * stride],
    )


@kernel
def _log_factor(p: Any, stride: int, scratch: Any, i: int) -> float:
    """Ln of what turns row i's relative sums into attention weights, on USA's own clock e^beta t."""
    if p[1] > 0.0:
        return scratch[i] - scratch[stride + i]  # type: ignore[no-any-return]
    return scratch[i] - p[0] + np.log(p[2])  # type: ignore[no-any-return]


@kernel
def attention_velocity(
    x: Any,
    m: Any,
    atoms: int,
    stride: int,
    dimension: int,
    ref: float,
    p: Any,
    matrices: Any,
    v: Any,
    weight: Any,
    scratch: Any,
) -> float:
    """General Q and K, V = identity: the self-term vanishes and the clock follows sum_{i != j} w_ij."""
    _general_sums(x, m, atoms, stride, dimension, p, matrices, False, v, weight, scratch)
    attention = 0.0
    for i in range(atoms):
        factor = np.exp(_log_factor(p, stride, scratch, i) + ref)
        along, square = 0.0, 0.0
        for k in range(dimension):
            along += x[k * stride + i] * v[k * stride + i]
        for k in range(dimension):
            tangent = v[k * stride + i] - along * x[k * stride + i]
            square += tangent * tangent
            v[k * stride + i] = tangent * factor
        if square <= (_ROUNDING * weight[i]) ** 2:
            for k in range(dimension):
                v[k * stride + i] = 0.0
        attention += factor * weight[i]
    for k in range(dimension):
        for i in range(atoms):
            v[k * stride + i] /= attention
        for i in range(atoms, stride):
            v[k * stride + i] = 0.0
    return attention


@kernel
def attention_reference(
    x: Any, m: Any, atoms: int, stride: int, dimension: int, p: Any, matrices: Any, scratch: Any, least: float
) -> float:
    """Minus the logarithm of the strongest row's largest weight on another token, up to masses."""
    size = dimension * stride
    spare = scratch[10 * stride + 2 * size :]  # `_general_sums` needs what is before
    v, weight = spare[:size], spare[size : size + stride]
    _general_sums(x, m, atoms, stride, dimension, p, matrices, False, v, weight, scratch)
    best = -np.inf
    for i in range(atoms):
        best = max(best, _log_factor(p, stride, scratch, i))
    return -best


@kernel
def valued_velocity(
    x: Any,
    m: Any,
    atoms: int,
    stride: int,
    dimension: int,
    ref: float,
    p: Any,
    matrices: Any,
    v: Any,
    weight: Any,
    scratch: Any,
) -> float:
    """General V: the self-term stays and the clock is t itself (K = 1)."""
    _general_sums(x, m, atoms, stride, dimension, p, matrices, True, v, weight, scratch)
    for i in range(atoms):
        factor = np.exp(scratch[i] - scratch[stride + i]) if p[1] > 0.0 else p[2] * np.exp(scratch[i])
        along = 0.0
        for k in range(dimension):
            along += x[k * stride + i] * v[k * stride + i]
        for k in range(dimension):
            v[k * stride + i] = (v[k * stride + i] - along * x[k * stride + i]) * factor
    for k in range(dimension):
        for i in range(atoms, stride):
            v[k * stride + i] = 0.0
    return 1.0


@kernel
def no_reference(
    x: Any, m: Any, atoms: int, stride: int, dimension: int, p: Any, matrices: Any, scratch: Any, least: float
) -> float:
    """Zero: the clock is t."""
    return 0.0


@kernel
def layer_average(
    x: Any,
    m: Any,
    atoms: int,
    stride: int,
    dimension: int,
    p: Any,
    matrices: Any,
    v: Any,
    weight: Any,
    scratch: Any,
) -> None:
    """What one layer adds: sum_j w_ij V x_j, self included and not projected.

    For USA the weights are m_j exp(score).
    """
    _general_sums(x, m, atoms, stride, dimension, p, matrices, True, v, weight, scratch)
    for i in range(atoms):
        factor = np.exp(scratch[i] - scratch[stride + i]) if p[1] > 0.0 else p[2] * np.exp(scratch[i])
        for k in range(dimension):
            v[k * stride + i] *= factor
