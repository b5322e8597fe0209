"""Gaps h_ij = 1 - <x_i, x_j> = |x_i - x_j|²/2: neighbours, clusters, and what is observed of them.

Positions are laid out as in `pairs`, but padding always lies at `pairs.FAR`: gaps are always taken from
differences, so those of close tokens keep their relative accuracy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.sphere.lanes import (
    each,
    exp,
    fma,
    kernel,
    load,
    lowest,
    replace,
    smaller,
    splat,
    total,
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
def gap(x: Any, i: int, j: int, stride: int, dimension: int) -> float:
    """The gap of one pair."""
    squares = 0.0
    for k in range(dimension):
        u = x[k * stride + i] - x[k * stride + j]
        squares += u * u
    return 0.5 * squares


@kernel
def nearest_gaps(x: Any, atoms: int, stride: int, dimension: int, nearest: Any) -> float:
    """Write each atom's smallest gap to another; return the smallest of all (1e300 for a single atom)."""
    least = _NEVER
    for i in range(atoms):
        low = splat(_NEVER)
        for j in range(0, stride, 8):
            low = smaller(low, replace(_gaps(x, i, j, stride, dimension), i - j, _NEVER))
        nearest[i] = lowest(low)
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
    """What is around the ``count`` atoms listed in ``moving``.

    Returns the smallest gap among moving atoms and the smallest between a moving atom and a resting one, and
    writes a signature of each moving atom, the sum of the marks of those within delta, so that for each pair
    that comes together or parts the signature of a moving one changes. ``aside`` is 1e300 for resting atoms
    and padding, 0 for moving ones; ``mark`` holds integers below 2**20, 0 in the padding, so sums are exact.
    """
    among, across = splat(_NEVER), splat(_NEVER)
    for q in range(count):
        i = moving[q]
        own = i // 8 * 8
        h = replace(_gaps(x, i, own, stride, dimension), i - own, _NEVER)
        apart = load(aside, own)
        among, across = smaller(among, h + apart), smaller(across, h + (_NEVER - apart))
        marks = where_not_above(h, delta, load(mark, own))
        # if all move, a pair beyond the block on the diagonal is met once: from one side
        for j in range(own + 8 if count == atoms else 0, stride, 8):
            if j == own:
                continue
            h = _gaps(x, i, j, stride, dimension)
            apart = load(aside, j)
            among, across = smaller(among, h + apart), smaller(across, h + (_NEVER - apart))
            marks = marks + where_not_above(h, delta, load(mark, j))
        signatures[q] = total(marks)
    return lowest(among), lowest(across)


@kernel
def mass_together(x: Any, m: Any, atoms: int, stride: int, dimension: int, delta: float) -> float:
    """Sum of m_i m_j over ordered pairs i != j of atoms with gap at most delta."""
    result = splat(0.0)
    for i in range(atoms):
        own = i // 8 * 8
        h = replace(_gaps(x, i, own, stride, dimension), i - own, _NEVER)
        row = where_not_above(h, delta, load(m, own))
        for j in range(own + 8, stride, 8):
            # beyond the block on the diagonal each pair is met once and stands for both orders
            close = where_not_above(_gaps(x, i, j, stride, dimension), delta, load(m, j))
            row = fma(close, 2.0, row)
        result = fma(row, each(m, i), result)
    return total(result)  # type: ignore[no-any-return]


@kernel
def interaction(x: Any, m: Any, atoms: int, stride: int, dimension: int, beta: float) -> float:
    """Sum over all ordered pairs, i = j included, of m_i m_j exp(-beta h_ij)."""
    result = splat(0.0)
    for i in range(atoms):
        own = i // 8 * 8
        row = load(m, own) * exp(_gaps(x, i, own, stride, dimension) * -beta)
        for j in range(own + 8, stride, 8):
            row = fma(load(m, j) * 2.0, exp(_gaps(x, i, j, stride, dimension) * -beta), row)
        result = fma(row, each(m, i), result)
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
    for i in range(atoms):
        for block in range(0, atoms, 8):
            near = within(x, i, block, stride, dimension, delta)
            for j in range(block, min(block + 8, atoms)):
                together[i, j] = near >> (j - block) & 1 == 1


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
