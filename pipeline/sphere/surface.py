"""Many tokens on S², as rows (3, n): neighbours by a grid of cubic cells, never by all pairs.

Tokens are sorted into the cells that they occupy by a hash table. Cells are so small that tokens in one cell
are neighbours; whether two cells hold a pair of neighbours is decided by bounding boxes, halved until they
tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_EMPTY = -1
_SMALL = 12  # boxes of at most so many tokens are compared pair by pair


@njit(nogil=True, cache=True)
def _probe(table: Any, corner: Any, a: int, b: int, c: int) -> int:
    """The slot of cell (a, b, c) in the table, or the empty slot where it belongs."""
    mixed = a * 73856093 ^ b * 19349663 ^ c * 83492791
    mixed ^= mixed >> 17
    mixed *= 0x2545F4914F6CDD1D
    mixed ^= mixed >> 29
    slot = mixed & (table.size - 1)
    while table[slot] != _EMPTY:
        cell = table[slot]
        if corner[cell, 0] == a and corner[cell, 1] == b and corner[cell, 2] == c:
            break
        slot = (slot + 1) & (table.size - 1)
    return slot  # type: ignore[no-any-return]


@njit(nogil=True, cache=True)
def _neighbour(table: Any, corner: Any, cell: int, a: int, b: int, c: int) -> int:
    """The cell that lies so many cells from this one, or _EMPTY."""
    slot = _probe(table, corner, corner[cell, 0] + a, corner[cell, 1] + b, corner[cell, 2] + c)
    return table[slot]  # type: ignore[no-any-return]


@njit(nogil=True, cache=True)
def _cells(x: Any, side: float, shift: float) -> tuple[Any, Any, Any, int]:
    """Number the occupied cells of the grid in order of their first token.

    Returns the hash table, the corners of the cells, the cell of each token, and how many cells there are.
    The table grows with the cells, not with the tokens, so that it stays in the caches.
    """
    table = np.full(1024, _EMPTY, np.int64)
    corner, cell_of = np.empty((x.shape[1], 3), np.int64), np.empty(x.shape[1], np.int64)
    found = 0
    for i in range(x.shape[1]):
        a = int(np.floor((x[0, i] + shift) / side))
        b = int(np.floor((x[1, i] + shift) / side))
        c = int(np.floor((x[2, i] + shift) / side))
        slot = _probe(table, corner, a, b, c)
        if table[slot] == _EMPTY:
            if 2 * found >= table.size:
                table = np.full(2 * table.size, _EMPTY, np.int64)
                for cell in range(found):
                    place = _probe(table, corner, corner[cell, 0], corner[cell, 1], corner[cell, 2])
                    table[place] = cell
                slot = _probe(table, corner, a, b, c)
            table[slot] = found
            corner[found, 0], corner[found, 1], corner[found, 2] = a, b, c
            found += 1
        cell_of[i] = table[slot]
    return table, corner, cell_of, found


@njit(nogil=True, cache=True)
def _merge(x: Any, mass: Any, squares: Any, atom: Any, cells: int) -> None:
    """Put each cell's tokens together at their mean, atoms in the order of cells."""
    lead = np.full(cells, -1)
    for i in range(mass.size):
        cell = atom[i]
        if lead[cell] == -1:
            # cells are numbered by their first token, so this place has been read
            lead[cell] = cell
            x[0, cell], x[1, cell], x[2, cell] = x[0, i], x[1, i], x[2, i]
            mass[cell], squares[cell] = mass[i], squares[i]
        else:
            whole = mass[cell] + mass[i]
            for k in range(3):
                x[k, cell] += (mass[i] / whole) * (x[k, i] - x[k, cell])
            mass[cell] = whole
            squares[cell] += squares[i]
    for cell in range(cells):
        inverse = 1.0 / np.sqrt(x[0, cell] ** 2 + x[1, cell] ** 2 + x[2, cell] ** 2)
        for k in range(3):
            x[k, cell] *= inverse


def coalesce(
    x: NDArray[np.float64],
    mass: NDArray[np.float64],
    squares: NDArray[np.float64],
    atom: NDArray[np.int64],
    chord: float,
    shift: float,
) -> int:
    """Make one atom of the tokens in a cell of diagonal ``chord``, at their mean; return how many are left.

    ``atom[i]`` becomes where i went. ``shift`` moves the grid, so that its walls do not lie where they lay
    before.
    """
    _, _, atom[:], left = _cells(x, chord / np.sqrt(3.0), 2.0 + shift * chord)
    if left < mass.size:
        _merge(x, mass, squares, atom, left)
    return int(left)


@njit(nogil=True, cache=True)
def _box(y: Any, first: int, last: int, low: Any, high: Any) -> None:
    for k in range(3):
        low[k], high[k] = y[k, first], y[k, first]
    for i in range(first + 1, last):
        for k in range(3):
            low[k], high[k] = min(low[k], y[k, i]), max(high[k], y[k, i])


@njit(nogil=True, cache=True)
def _halve(y: Any, token: Any, first: int, last: int, axis: int, middle: float) -> int:
    """Bring the tokens below ``middle`` to the front of their part; return where the others begin."""
    i, j = first, last - 1
    while i <= j:
        if y[axis, i] <= middle:
            i += 1
        else:
            for k in range(3):
                y[k, i], y[k, j] = y[k, j], y[k, i]
            token[i], token[j] = token[j], token[i]
            j -= 1
    return i


@njit(nogil=True, cache=True)
def _nearest(
    y: Any, token: Any, parts: tuple[int, int, int, int], square: float, any_will_do: bool, stack: Any
) -> tuple[float, int, int]:
    """The closest two tokens, one of parts[0] ... parts[1] - 1 and one of parts[2] ... parts[3] - 1.

    If they, or with ``any_will_do`` any two, lie within sqrt(``square``): the square of their distance (or an
    upper bound of it) and who they are. Else ``square`` and nobody (-1).
    """
    low, high, bottom, top = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = parts
    depth, one, two = 1, -1, -1
    while depth > 0:
        depth -= 1
        first, last, begin, end = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        _box(y, first, last, low, high)
        _box(y, begin, end, bottom, top)
        near, far, wide, axis, wide_other, axis_other = 0.0, 0.0, 0.0, 0, 0.0, 0
        for k in range(3):
            near += max(0.0, low[k] - top[k], bottom[k] - high[k]) ** 2
            far += max(high[k] - bottom[k], top[k] - low[k]) ** 2
            if high[k] - low[k] > wide:
                wide, axis = high[k] - low[k], k
            if top[k] - bottom[k] > wide_other:
                wide_other, axis_other = top[k] - bottom[k], k
        if near > square or (one >= 0 and near == square):
            continue
        if any_will_do and far <= square:
            return far, token[first], token[begin]
        if (last - first <= _SMALL and end - begin <= _SMALL) or depth + 2 > stack.shape[0]:
            for i in range(first, last):
                for j in range(begin, end):
                    s = (y[0, i] - y[0, j]) ** 2 + (y[1, i] - y[1, j]) ** 2 + (y[2, i] - y[2, j]) ** 2
                    if s <= square:
                        square, one, two = s, token[i], token[j]
            if any_will_do and one >= 0:
                return square, one, two
            continue
        if wide >= wide_other and last - first > 1:
            cut = _halve(y, token, first, last, axis, 0.5 * (low[axis] + high[axis]))
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = first, cut, begin, end
            stack[depth + 1, 0], stack[depth + 1, 1] = cut, last
            stack[depth + 1, 2], stack[depth + 1, 3] = begin, end
        else:
            cut = _halve(y, token, begin, end, axis_other, 0.5 * (bottom[axis_other] + top[axis_other]))
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = first, last, begin, cut
            stack[depth + 1, 0], stack[depth + 1, 1] = first, last
            stack[depth + 1, 2], stack[depth + 1, 3] = cut, end
        depth += 2
    return square, one, two


@njit(nogil=True, cache=True)
def _root(parent: Any, i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(nogil=True, cache=True)
def _gathered(x: Any, cell_of: Any, cells: int, order: Any) -> tuple[Any, Any, Any]:
    """Tokens cell by cell, within a cell in the given order: where cells begin, who, and positions."""
    start = np.zeros(cells + 1, np.int64)
    for i in range(cell_of.size):
        start[cell_of[i] + 1] += 1
    for cell in range(cells):
        start[cell + 1] += start[cell]
    filled = start[:-1].copy()
    token, y = np.empty(cell_of.size, np.int64), np.empty_like(x)
    for i in order:
        place = filled[cell_of[i]]
        filled[cell_of[i]] += 1
        token[place] = i
        for k in range(3):
            y[k, place] = x[k, i]
    return start, token, y


@njit(nogil=True, cache=True)
def _joined(x: Any, table: Any, corner: Any, cell_of: Any, cells: int, square: float) -> tuple[int, Any]:
    """Connect the cells that hold neighbours; return how many clusters there are, and each token's."""
    start, token, y = _gathered(x, cell_of, cells, range(cell_of.size))
    parent = np.arange(cells)
    stack = np.empty((256, 4), np.int64)
    # those next to each other first: few of the others are still apart then
    for beyond in (False, True):
        for cell in range(cells):
            for a in range(-2, 3):
                for b in range(-2, 3):
                    for c in range(-2, 3):
                        if (a, b, c) <= (0, 0, 0) or (max(abs(a), abs(b), abs(c)) > 1) != beyond:
                            continue
                        other = _neighbour(table, corner, cell, a, b, c)
                        if other == _EMPTY:
                            continue
                        p, q = _root(parent, cell), _root(parent, other)
                        if p == q:
                            continue
                        parts = start[cell], start[cell + 1], start[other], start[other + 1]
                        if _nearest(y, token, parts, square, True, stack)[1] >= 0:
                            parent[max(p, q)] = min(p, q)
    found = 0
    number = np.empty(cells, np.int64)
    for cell in range(cells):
        # cells are numbered by their first token, and a cluster's first cell is its root
        if parent[cell] == cell:
            number[cell] = found
            found += 1
        else:
            number[cell] = number[_root(parent, cell)]
    labels = np.empty(cell_of.size, np.int64)
    for i in range(cell_of.size):
        labels[i] = number[cell_of[i]]
    return found, labels


@njit(nogil=True, cache=True)
def _run(labels: Any, token: Any, first: int, last: int) -> int:
    """Where the run of equal labels that begins at ``first`` ends."""
    end = first + 1
    while end < last and labels[token[end]] == labels[token[first]]:
        end += 1
    return end


@njit(nogil=True, cache=True)
def _met(
    x: Any, labels: Any, order: Any, table: Any, corner: Any, cell_of: Any, cells: int, square: float
) -> tuple[int, int]:
    """The closest two tokens within sqrt(``square``) that differ in their labels; -1 if there are none."""
    start, token, y = _gathered(x, cell_of, cells, order)
    stack = np.empty((256, 4), np.int64)
    one, two = -1, -1
    for cell in range(cells):
        first, last = start[cell], start[cell + 1]
        for a in range(-2, 3):
            for b in range(-2, 3):
                for c in range(-2, 3):
                    if (a, b, c) < (0, 0, 0):
                        continue
                    other = _neighbour(table, corner, cell, a, b, c)
                    if other == _EMPTY:
                        continue
                    # in a cell labels ascend: it has one label if its first and last token have
                    begin, end = start[other], start[other + 1]
                    if (
                        labels[token[first]] == labels[token[end - 1]]
                        and labels[token[begin]] == labels[token[last - 1]]
                    ):
                        continue
                    p = first
                    while p < last:
                        p_end = _run(labels, token, p, last)
                        q = p_end if other == cell else begin
                        while q < end:
                            q_end = _run(labels, token, q, end)
                            if labels[token[p]] != labels[token[q]]:
                                square, i, j = _nearest(y, token, (p, p_end, q, q_end), square, False, stack)
                                if i >= 0:
                                    one, two = i, j
                            q = q_end
                        p = p_end
    return one, two


def _grid(x: NDArray[np.float64], delta: float) -> tuple[Any, Any, Any, int, float]:
    """A grid of cells in which all are together, and the square of the distance that delta means."""
    # a hair smaller, so that rounding never puts tokens apart into one cell
    side = float(np.sqrt(2.0 * delta)) / np.sqrt(3.0) * (1.0 - 1e-9)
    return *_cells(x, side, 2.0), 2.0 * delta


def along_a_curve(x: NDArray[np.float64]) -> NDArray[np.int64]:
    """An order in which neighbours are mostly near each other (Morton's), which memory rewards."""
    place = ((x + 1.0) * 511.5).astype(np.int64)
    code = np.zeros(x.shape[1], np.int64)
    for bit in range(10):
        for k in range(3):
            code |= (place[k] >> bit & 1) << 3 * bit + k
    return np.argsort(code, kind="stable")


def clusters(x: NDArray[np.float64], delta: float) -> tuple[int, NDArray[np.int64]]:
    """How many clusters there are, and in which each token is; they are numbered by their first token."""
    found, labels = _joined(x, *_grid(x, delta))
    return int(found), labels


def meeting(x: NDArray[np.float64], labels: NDArray[np.int64], delta: float) -> tuple[int, int] | None:
    """The closest two tokens that are together though their labels differ, if there are any."""
    order = np.argsort(labels.astype(np.min_scalar_type(labels.max())), kind="stable")  # few bits: faster
    one, two = _met(x, labels, order, *_grid(x, delta))
    return (int(one), int(two)) if one >= 0 else None
