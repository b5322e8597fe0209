"""Atoms: tokens, or groups of coalesced tokens that move as one weighted particle.

Arrays have room for the first number of atoms; ``stride`` never changes. Positions are flat (see
`pipeline.sphere.pairs`), padding at `pairs.FAR`. ``mass`` is the sum of the tokens' weights, ``squares`` the
sum of their squares, ``member[token]`` the atom that a token belongs to. Weights are kept as given, so counts
stay exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.sphere import gaps, pairs
from pipeline.sphere.lanes import fma, kernel, load, root, splat, store


@kernel
def normalise(x: Any, atoms: int, stride: int, dimension: int) -> None:
    """Put positions back on the sphere."""
    whole = atoms // 8 * 8
    for i in range(0, whole, 8):
        squares = splat(0.0)
        for k in range(dimension):
            c = load(x, k * stride + i)
            squares = fma(c, c, squares)
        inverses = 1.0 / root(squares)
        for k in range(dimension):
            store(x, k * stride + i, load(x, k * stride + i) * inverses)
    for i in range(whole, atoms):
        square = 0.0
        for k in range(dimension):
            square += x[k * stride + i] * x[k * stride + i]
        inverse = 1.0 / np.sqrt(square)
        for k in range(dimension):
            x[k * stride + i] *= inverse


@kernel
def duplicate(x: Any, size: int, out: Any) -> None:
    """Write the first ``size`` entries of ``x`` to ``out``."""
    for r in range(0, size, 8):
        store(out, r, load(x, r))


@kernel
def clear(x: Any, mass: Any, atoms: int, stride: int, dimension: int, away: float) -> None:
    """Make the lanes from ``atoms`` on padding."""
    for i in range(atoms, stride):
        mass[i] = 0.0
        for k in range(dimension):
            x[k * stride + i] = away


@kernel
def choose(
    nearest: Any, chosen: float, atoms: int, stride: int, moving: Any, slot_of: Any, aside: Any, mark: Any
) -> tuple[int, float]:
    """Let the atoms move whose nearest gap is at most ``chosen``, the others rest.

    Writes who moves (beyond them the first again, up to ``stride``), in which slot (-1: rests), and
    `gaps.survey`'s view of it; returns how many move and the smallest gap of those at rest.
    """
    count, least = 0, 1e300
    for i in range(stride):
        moves = i < atoms and nearest[i] <= chosen
        aside[i] = 0.0 if moves else 1e300
        if i >= atoms:
            mark[i] = 0.0
        elif moves:
            moving[count] = i
            slot_of[i] = count
            count += 1
        else:
            slot_of[i] = -1
            least = min(least, nearest[i])
    for q in range(count, stride):
        moving[q] = moving[0]
    return count, least


@kernel
def pack(
    x: Any,
    mass: Any,
    stride: int,
    dimension: int,
    moving: Any,
    count: int,
    packed_x: Any,
    m: Any,
    packed: int,
) -> None:
    """Gather the moving atoms, with the padding that pair sums expect."""
    for a in range(count):
        m[a] = mass[moving[a]]
        for k in range(dimension):
            packed_x[k * packed + a] = x[k * stride + moving[a]]
    clear(packed_x, m, count, packed, dimension, pairs.padding(dimension))


@kernel
def unpack(packed_x: Any, packed: int, dimension: int, moving: Any, count: int, x: Any, stride: int) -> None:
    """Put the moving atoms back among all."""
    if moving[count - 1] == count - 1:  # the first ``count``, in order
        whole = count // 8 * 8
        for k in range(dimension):
            for a in range(0, whole, 8):
                store(x, k * stride + a, load(packed_x, k * packed + a))
            for a in range(whole, count):
                x[k * stride + a] = packed_x[k * packed + a]
        return
    for k in range(dimension):
        for a in range(count):
            x[k * stride + moving[a]] = packed_x[k * packed + a]


@kernel
def coalesce(
    x: Any,
    mass: Any,
    squares: Any,
    member: Any,
    labels: Any,
    together: Any,
    atoms: int,
    stride: int,
    dimension: int,
    closeness: float,
) -> int:
    """Make one atom of each group with gaps at most ``closeness``, at its mean; return how many are left.

    Exact to second order in the distance: linearised, a close group contracts onto its weighted mean, which
    moves as one particle of the whole mass. The new atom is together with whatever any of its parts was
    together with.
    """
    i = 0
    while i < atoms:
        j = gaps.next_within(x, i, i + 1, atoms, stride, dimension, closeness)
        while j < atoms:
            whole = mass[i] + mass[j]
            square = 0.0
            for k in range(dimension):
                # from the difference, so that two equal positions stay exactly where they are
                x[k * stride + i] += (mass[j] / whole) * (x[k * stride + j] - x[k * stride + i])
                square += x[k * stride + i] * x[k * stride + i]
            inverse = 1.0 / np.sqrt(square)
            for k in range(dimension):
                x[k * stride + i] *= inverse
            mass[i] = whole
            squares[i] += squares[j]
            for q in range(atoms):
                if together[j, q]:
                    together[i, q] = True
                    together[q, i] = True
            last = atoms - 1
            if j != last:  # the last atom takes the free place
                for k in range(dimension):
                    x[k * stride + j] = x[k * stride + last]
                mass[j], squares[j], labels[j] = mass[last], squares[last], labels[last]
                for q in range(atoms):
                    together[j, q] = together[last, q]
                for q in range(atoms):
                    together[q, j] = together[q, last]
                together[j, j] = True
            for token in range(member.size):
                if member[token] == j:
                    member[token] = i
                elif member[token] == last:
                    member[token] = j
            for k in range(dimension):
                x[k * stride + last] = pairs.FAR
            mass[last] = 0.0
            atoms = last
            # the mean may have come within reach of others
            j = gaps.next_within(x, i, i + 1, atoms, stride, dimension, closeness)
        i += 1
    return atoms
