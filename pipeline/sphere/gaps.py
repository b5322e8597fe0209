"""Gaps h_ij = 1 - <x_i, x_j> = |x_i - x_j|²/2: neighbours, clusters, and what is observed of them.

Positions are laid out as in `pairs`, but padding always lies at `pairs.FAR`: gaps are always taken from
differences, so those of close tokens keep their relative accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.sphere.exponential import exp
from pipeline.sphere.lanes import (
    each,
    fma,
    kernel,
    load,
    lowest,
    replace,
    smaller,
    splat,
    store,
    summed,
    total,
    transposed,
    where_not_above,
    which_not_above,
)

_NEVER = 1e300


@kernel
def _gaps(x: Any, i: int, j: int, stride: int, dimension: int) -> Any:
    """Gaps between atom i and the eight atoms from j on."""
    even = load(x, j) - each(x, i)
    odd = load(x, stride + j) - each(x, stride + i)
    even, odd = even * even, odd * odd  # two sums, so that neither waits for the other
    for k in range(2, dimension - 1, 2):
        u = load(x, k * stride + j) - each(x, k * stride + i)
        w = load(x, (k + 1) * stride + j) - each(x, (k + 1) * stride + i)
        even, odd = fma(u, u, even), fma(w, w, odd)
    if dimension % 2 == 1:
        u = load(x, (dimension - 1) * stride + j) - each(x, (dimension - 1) * stride + i)
        even = fma(u, u, even)
    return (even + odd) * 0.5


@kernel
def _rows(i: int) -> Any:
    return i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7


@kernel
def _block(x: Any, rows: Any, j: int, stride: int, dimension: int) -> Any:
    """Gaps between each of eight atoms (``rows``) and the eight from j on, a tuple of lanes."""
    zero = splat(0.0)
    h0, h1, h2, h3, h4, h5, h6, h7 = zero, zero, zero, zero, zero, zero, zero, zero
    for at in range(0, dimension * stride, stride):
        column = load(x, at + j)
        u0, u1 = column - each(x, at + rows[0]), column - each(x, at + rows[1])
        u2, u3 = column - each(x, at + rows[2]), column - each(x, at + rows[3])
        u4, u5 = column - each(x, at + rows[4]), column - each(x, at + rows[5])
        u6, u7 = column - each(x, at + rows[6]), column - each(x, at + rows[7])
        h0, h1, h2, h3 = fma(u0, u0, h0), fma(u1, u1, h1), fma(u2, u2, h2), fma(u3, u3, h3)
        h4, h5, h6, h7 = fma(u4, u4, h4), fma(u5, u5, h5), fma(u6, u6, h6), fma(u7, u7, h7)
    return h0 * 0.5, h1 * 0.5, h2 * 0.5, h3 * 0.5, h4 * 0.5, h5 * 0.5, h6 * 0.5, h7 * 0.5


@kernel
def _but_own(h: Any, rows: Any, j: int) -> Any:
    """A block in which no atom is near itself."""
    return (
        replace(h[0], rows[0] - j, _NEVER),
        replace(h[1], rows[1] - j, _NEVER),
        replace(h[2], rows[2] - j, _NEVER),
        replace(h[3], rows[3] - j, _NEVER),
        replace(h[4], rows[4] - j, _NEVER),
        replace(h[5], rows[5] - j, _NEVER),
        replace(h[6], rows[6] - j, _NEVER),
        replace(h[7], rows[7] - j, _NEVER),
    )


@kernel
def _least(h: Any) -> Any:
    """Per lane the smallest of eight."""
    return smaller(
        smaller(smaller(h[0], h[1]), smaller(h[2], h[3])),
        smaller(smaller(h[4], h[5]), smaller(h[6], h[7])),
    )


@kernel
def nearest_gaps(x: Any, atoms: int, stride: int, dimension: int, nearest: Any) -> float:
    """Write each atom's smallest gap to another; return the smallest of all (that of one atom is large)."""
    never, least = splat(_NEVER), _NEVER
    for j in range(0, stride, 8):
        low = never
        for i in range(0, stride, 8):
            low = smaller(low, _least(_but_own(_block(x, _rows(i), j, stride, dimension), _rows(i), j)))
        store(nearest, j, low)
    for i in range(atoms):
        least = min(least, nearest[i])
    return least


@kernel
def survey(
    x: Any,
    atoms: int,
    stride: int,
    dimension: int,
    moving: Any,
    count: int,
    aside: Any,
    mark: Any,
    delta: float,
    signatures: Any,
) -> tuple[float, float]:
    """What is around the ``count`` atoms listed in ``moving``, which names one of them wherever it is longer.

    Returns the smallest gap among moving atoms and the smallest between a moving atom and a resting one, and
    writes a signature of each moving atom, the sum of the marks of those within delta, so that for each pair
    that comes together or parts the signature of a moving one changes. ``aside`` is 1e300 for resting atoms
    and padding, 0 for moving ones; ``mark`` holds integers below 2**20, 0 in the padding, so sums are exact.
    """
    zero, among, across = splat(0.0), splat(_NEVER), splat(_NEVER)
    for q in range(0, count, 8):
        rows = (
            moving[q],
            moving[q + 1],
            moving[q + 2],
            moving[q + 3],
            moving[q + 4],
            moving[q + 5],
            moving[q + 6],
            moving[q + 7],
        )
        s0, s1, s2, s3, s4, s5, s6, s7 = zero, zero, zero, zero, zero, zero, zero, zero
        # if all move, a pair beyond the block on the diagonal is met once: from one side
        for j in range(q if count == atoms else 0, stride, 8):
            h = _but_own(_block(x, rows, j, stride, dimension), rows, j)
            least, apart, marks = _least(h), load(aside, j), load(mark, j)
            among, across = smaller(among, least + apart), smaller(across, least + (_NEVER - apart))
            s0, s1 = s0 + where_not_above(h[0], delta, marks), s1 + where_not_above(h[1], delta, marks)
            s2, s3 = s2 + where_not_above(h[2], delta, marks), s3 + where_not_above(h[3], delta, marks)
            s4, s5 = s4 + where_not_above(h[4], delta, marks), s5 + where_not_above(h[5], delta, marks)
            s6, s7 = s6 + where_not_above(h[6], delta, marks), s7 + where_not_above(h[7], delta, marks)
        store(signatures, q, summed(transposed((s0, s1, s2, s3, s4, s5, s6, s7))))
    return lowest(among), lowest(across)


@kernel
def mass_together(x: Any, m: Any, atoms: int, stride: int, dimension: int, delta: float) -> float:
    """Sum of m_i m_j over ordered pairs i != j of atoms with gap at most delta."""
    result = splat(0.0)
    for i in range(0, atoms, 8):
        rows = _rows(i)
        for j in range(i, stride, 8):
            h = _block(x, rows, j, stride, dimension)
            if i == j:
                h = _but_own(h, rows, j)
            near = (
                where_not_above(h[0], delta, each(m, i)),
                where_not_above(h[1], delta, each(m, i + 1)),
                where_not_above(h[2], delta, each(m, i + 2)),
                where_not_above(h[3], delta, each(m, i + 3)),
                where_not_above(h[4], delta, each(m, i + 4)),
                where_not_above(h[5], delta, each(m, i + 5)),
                where_not_above(h[6], delta, each(m, i + 6)),
                where_not_above(h[7], delta, each(m, i + 7)),
            )
            # beyond the block on the diagonal each pair is met once and stands for both orders
            result = fma(summed(near), load(m, j) * (1.0 if i == j else 2.0), result)
    return total(result)  # type: ignore[no-any-return]


@kernel
def interaction(x: Any, m: Any, atoms: int, stride: int, dimension: int, beta: float) -> float:
    """Sum over all ordered pairs, i = j included, of m_i m_j exp(-beta h_ij)."""
    result = splat(0.0)
    for i in range(0, atoms, 8):
        for j in range(i, stride, 8):
            h = _block(x, _rows(i), j, stride, dimension)
            weighted = (
                exp(h[0] * -beta) * each(m, i),
                exp(h[1] * -beta) * each(m, i + 1),
                exp(h[2] * -beta) * each(m, i + 2),
                exp(h[3] * -beta) * each(m, i + 3),
                exp(h[4] * -beta) * each(m, i + 4),
                exp(h[5] * -beta) * each(m, i + 5),
                exp(h[6] * -beta) * each(m, i + 6),
                exp(h[7] * -beta) * each(m, i + 7),
            )
            result = fma(summed(weighted), load(m, j) * (1.0 if i == j else 2.0), result)
    return total(result)  # type: ignore[no-any-return]


@kernel
def resultant(x: Any, m: Any, atoms: int, stride: int, dimension: int) -> float:
    """|sum_i m_i x_i|."""
    squares = 0.0
    for k in range(dimension):
        s = 0.0
        for i in range(atoms):
            s += m[i] * x[k * stride + i]
        squares += s * s
    return float(np.sqrt(squares))


@kernel
def within(x: Any, i: int, block: int, stride: int, dimension: int, distance: float) -> int:
    """Which of the eight atoms from ``block`` on have a gap to atom i of at most ``distance``, as bits."""
    return which_not_above(_gaps(x, i, block, stride, dimension), distance)  # type: ignore[no-any-return]


@kernel
def next_within(x: Any, i: int, first: int, atoms: int, stride: int, dimension: int, distance: float) -> int:
    """The first atom from ``first`` on whose gap to atom i is at most ``distance``, or ``atoms``."""
    block = first // 8 * 8
    bits = -1 << (first - block)
    while block < atoms:
        bits &= within(x, i, block, stride, dimension, distance)
        if bits:
            while not bits & 1:
                bits >>= 1
                block += 1
            return block
        block += 8
        bits = -1
    return atoms


@kernel
def adjacency(x: Any, atoms: int, stride: int, dimension: int, delta: float, together: Any) -> None:
    """Write together[i, j] = (h_ij <= delta), the diagonal included, for all pairs of atoms."""
    for i in range(0, atoms, 8):
        for j in range(i, atoms, 8):
            h = _block(x, _rows(i), j, stride, dimension)
            near = (
                which_not_above(h[0], delta),
                which_not_above(h[1], delta),
                which_not_above(h[2], delta),
                which_not_above(h[3], delta),
                which_not_above(h[4], delta),
                which_not_above(h[5], delta),
                which_not_above(h[6], delta),
                which_not_above(h[7], delta),
            )
            for row in range(min(8, atoms - i)):
                for column in range(min(8, atoms - j)):
                    close = near[row] >> column & 1 == 1
                    together[i + row, j + column] = close
                    together[j + column, i + row] = close


@kernel
def spread_label(together: Any, atoms: int, start: int, label: int, labels: Any, queue: Any) -> int:
    """Give ``label`` to the connected component of ``start``; return its number of atoms."""
    old = labels[start]
    labels[start] = label
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        i = queue[head]
        head += 1
        for j in range(atoms):
            if together[i, j] and labels[j] == old:
                labels[j] = label
                queue[tail] = j
                tail += 1
    return tail


@kernel
def components(together: Any, atoms: int, labels: Any, queue: Any) -> int:
    """Write the connected component of each atom, numbered by its first atom; return how many there are."""
    for i in range(atoms):
        labels[i] = -1
    found = 0
    for i in range(atoms):
        if labels[i] == -1:
            spread_label(together, atoms, i, i, labels, queue)
            found += 1
    return found
