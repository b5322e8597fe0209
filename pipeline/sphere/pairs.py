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

from pipeline.sphere.exponential import LOG2_E, exp2
from pipeline.sphere.lanes import (
    each,
    fma,
    fnma,
    keep_rolled,
    kernel,
    load,
    mixed,
    opposite,
    replace,
    splat,
    store,
    summed,
    transposed,
    turned,
)

FAR = 1e3  # where padding lies when tokens are compared by differences: none is near it


@kernel
def padding(dimension: int) -> float:
    """Coordinate of the padding lanes: far away where the sums use differences, 0 where they use products."""
    return FAR if dimension == 2 else 0.0


@kernel
def stride_of(atoms: int) -> int:
    """The next multiple of eight: how many lanes ``atoms`` atoms take."""
    return (atoms + 7) // 8 * 8


def scratch_size(stride: int, dimension: int) -> int:
    """Float64s of scratch that any field over these sums needs."""
    return 12 * stride + 3 * dimension * stride


# ln2 of the least relative weight: times a mass and a distance it must not become subnormal, which is slow.
_LEAST = -900.0


@kernel
def _doubled(x: Any, m: Any, stride: int, dimension: int, out: Any) -> None:
    """Each eight positions and masses twice in a row, so that any rotation of them is one load.

    Component k of the eight from j on is at ``out[2 * (k * stride + j)]``, their masses where component
    ``dimension`` would be.
    """
    for r in range(0, dimension * stride, 8):
        store(out, 2 * r, load(x, r))
        store(out, 2 * r + 8, load(x, r))
    for j in range(0, stride, 8):
        at = 2 * (dimension * stride + j)
        store(out, at, load(m, j))
        store(out, at + 8, load(m, j))


@kernel
def _turns(p: Any, q: Any, half: float, ref: float, sums_p: Any, sums_q: Any) -> Any:
    """Lane by lane the pair (p, q) on the circle: (turn, weight) of both after it."""
    p0, p1, mp = p
    q0, q1, mq = q
    u0, u1 = q0 - p0, q1 - p1
    e = exp2(fnma(fma(u0, u0, u1 * u1), half, ref), _LEAST)
    turn = fnma(u0, p1, u1 * p0) * e
    return (
        (fma(mq, turn, sums_p[0]), fma(mq, e, sums_p[1])),
        (fnma(mp, turn, sums_q[0]), fma(mp, e, sums_q[1])),
    )


@kernel
def circle_sums(
    x: Any,
    m: Any,
    atoms: int,
    stride: int,
    dimension: int,
    beta: float,
    ref: float,
    force: Any,
    weight: Any,
    scratch: Any,
) -> None:
    """On the circle: force_i = sum_{j != i} m_j E_ij (x_j - c_ij x_i), weight_i = sum_{j != i} m_j E_ij.

    The force is tangent, so one number describes it: sum_j m_j E_ij (x_i cross x_j). Eight tokens meet eight
    others in eight rotations, so that each exponential serves both tokens of a pair and nothing is summed
    across lanes. ``force`` and ``weight`` are written, padding included (there it means nothing).
    ``scratch``: at least 2 * (dimension + 1) * stride.
    """
    eight = min(stride, 8)  # always 8, but the compiler does not know: see `keep_rolled`
    zero, half, ref = splat(0.0), 0.5 * LOG2_E * beta, LOG2_E * ref
    if stride > 8:
        _doubled(x, m, stride, 2, scratch)
    for j in range(0, stride, 8):
        store(force, j, zero)
        store(weight, j, zero)
    for i in range(0, stride, 8):
        p = load(x, i), load(x, stride + i), load(m, i)
        # among themselves: at rotation 4 both lanes of a pair meet, then 5, 6, 7
        q = opposite(p[0]), opposite(p[1]), opposite(p[2])
        sums_q = zero, zero
        sums_p, _ = _turns(p, q, half, ref, (load(force, i), load(weight, i)), sums_q)
        for _ in range(3):
            q = turned(q[0]), turned(q[1]), turned(q[2])
            sums_p, sums_q = _turns(p, q, half, ref, sums_p, sums_q)
            sums_q = turned(sums_q[0]), turned(sums_q[1])
        sums_p = sums_p[0] + sums_q[0], sums_p[1] + sums_q[1]
        for j in range(i + 8, stride, 8):
            sums_q = zero, zero
            for at in range(2 * j, 2 * j + eight):
                keep_rolled()
                q = load(scratch, at), load(scratch, 2 * stride + at), load(scratch, 4 * stride + at)
                sums_p, sums_q = _turns(p, q, half, ref, sums_p, sums_q)
                sums_q = turned(sums_q[0]), turned(sums_q[1])
            store(force, j, load(force, j) + sums_q[0])
            store(weight, j, load(weight, j) + sums_q[1])
        store(force, i, sums_p[0])
        store(weight, i, sums_p[1])
    for j in range(0, stride, 8):
        turn = load(force, j)
        store(force, j, zero - turn * load(x, stride + j))
        store(force, stride + j, turn * load(x, j))


@kernel
def _scaled(e: Any, m: Any, j: int) -> Any:
    """Each of eight lanes times the mass of its atom, the eight from j on."""
    return (
        e[0] * each(m, j),
        e[1] * each(m, j + 1),
        e[2] * each(m, j + 2),
        e[3] * each(m, j + 3),
        e[4] * each(m, j + 4),
        e[5] * each(m, j + 5),
        e[6] * each(m, j + 6),
        e[7] * each(m, j + 7),
    )


@kernel
def sphere_sums(
    x: Any,
    m: Any,
    atoms: int,
    stride: int,
    dimension: int,
    beta: float,
    ref: float,
    force: Any,
    weight: Any,
    scratch: Any,
) -> None:
    """In any dimension: the sums of `circle_sums` as vectors, eight tokens (lanes) by eight others.

    Two passes over the components per block: inner products, then the weighted sums for both sides; nothing
    of size n² is stored. c_ij comes from a product, so force_i carries an absolute error of 1e-16 weight_i.
    """
    zero = splat(0.0)
    beta, shift = LOG2_E * beta, LOG2_E * (ref - beta)
    for i in range(0, stride, 8):
        store(weight, i, zero)
        for k in range(dimension):
            store(force, k * stride + i, zero)
    for i in range(0, stride, 8):
        for j in range(i, stride, 8):
            c0, c1, c2, c3, c4, c5, c6, c7 = zero, zero, zero, zero, zero, zero, zero, zero
            for k in range(dimension):
                at = k * stride
                own = load(x, at + i)
                c0 = fma(own, each(x, at + j), c0)
                c1 = fma(own, each(x, at + j + 1), c1)
                c2 = fma(own, each(x, at + j + 2), c2)
                c3 = fma(own, each(x, at + j + 3), c3)
                c4 = fma(own, each(x, at + j + 4), c4)
                c5 = fma(own, each(x, at + j + 5), c5)
                c6 = fma(own, each(x, at + j + 6), c6)
                c7 = fma(own, each(x, at + j + 7), c7)
            e = (
                exp2(fma(c0, beta, shift), _LEAST),
                exp2(fma(c1, beta, shift), _LEAST),
                exp2(fma(c2, beta, shift), _LEAST),
                exp2(fma(c3, beta, shift), _LEAST),
                exp2(fma(c4, beta, shift), _LEAST),
                exp2(fma(c5, beta, shift), _LEAST),
                exp2(fma(c6, beta, shift), _LEAST),
                exp2(fma(c7, beta, shift), _LEAST),
            )
            if i == j:
                e = (
                    replace(e[0], 0, 0.0),
                    replace(e[1], 1, 0.0),
                    replace(e[2], 2, 0.0),
                    replace(e[3], 3, 0.0),
                    replace(e[4], 4, 0.0),
                    replace(e[5], 5, 0.0),
                    replace(e[6], 6, 0.0),
                    replace(e[7], 7, 0.0),
                )
                e = _scaled(e, m, j)
                store(weight, i, load(weight, i) + summed(e))
                for k in range(dimension):
                    at = k * stride
                    store(force, at + i, mixed(e, x, at + j, load(force, at + i)))
            else:
                back = _scaled(transposed(e), m, i)
                e = _scaled(e, m, j)
                store(weight, i, load(weight, i) + summed(e))
                store(weight, j, load(weight, j) + summed(back))
                for k in range(dimension):
                    at = k * stride
                    store(force, at + i, mixed(e, x, at + j, load(force, at + i)))
                    store(force, at + j, mixed(back, x, at + i, load(force, at + j)))
    for i in range(0, stride, 8):
        along = zero
        for r in range(i, dimension * stride, stride):
            along = fma(load(force, r), load(x, r), along)
        for r in range(i, dimension * stride, stride):
            store(force, r, fnma(along, load(x, r), load(force, r)))
