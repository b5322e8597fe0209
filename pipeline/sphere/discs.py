"""How much mass lies in discs around tokens on S²: pairs of neighbours, counted by boxes in boxes.

A balanced tree of boxes; two boxes wholly within reach of each other, or wholly out of it, are settled at
once, so only pairs of small boxes at the edge of a disc are looked at token by token.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_LEAF = 32


@njit(nogil=True, cache=True)
def _swap(y: Any, m: Any, i: int, j: int) -> None:
    for k in range(3):
        y[k, i], y[k, j] = y[k, j], y[k, i]
    m[i], m[j] = m[j], m[i]


@njit(nogil=True, cache=True)
def _split(y: Any, m: Any, first: int, last: int, axis: int) -> int:
    """Order the tokens so that none before the middle exceeds one behind it (Hoare's selection)."""
    middle = (first + last) // 2
    low, high = first, last - 1
    while low < high:
        pivot = y[axis, (low + high) // 2]
        i, j = low, high
        while i <= j:
            while y[axis, i] < pivot:
                i += 1
            while y[axis, j] > pivot:
                j -= 1
            if i <= j:
                _swap(y, m, i, j)
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            break
    return middle


@njit(nogil=True, cache=True)
def _build(y: Any, m: Any, part: Any, child: Any, box: Any, total: Any) -> None:
    """Node 0 is all; ``child``: the first of a node's two halves, -1 for a leaf; ``total``: sums of m, m²."""
    part[0, 0], part[0, 1] = 0, m.size
    nodes, node = 1, 0
    while node < nodes:
        first, last = part[node, 0], part[node, 1]
        axis, wide = 0, -1.0
        for k in range(3):
            low, high = y[k, first], y[k, first]
            for i in range(first, last):
                low, high = min(low, y[k, i]), max(high, y[k, i])
            box[node, 0, k], box[node, 1, k] = low, high
            if high - low > wide:
                axis, wide = k, high - low
        for i in range(first, last):
            total[node, 0] += m[i]
            total[node, 1] += m[i] * m[i]
        child[node] = -1
        if last - first > _LEAF:
            middle = _split(y, m, first, last, axis)
            child[node] = nodes
            part[nodes, 0], part[nodes, 1] = first, middle
            part[nodes + 1, 0], part[nodes + 1, 1] = middle, last
            nodes += 2
        node += 1


@njit(nogil=True, cache=True)
def _count(y: Any, m: Any, part: Any, child: Any, box: Any, total: Any, square: float) -> float:
    """Sum of m_i m_j over unordered pairs within sqrt(``square``)."""
    stack = np.empty((4096, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, 0
    depth, result = 1, 0.0
    while depth > 0:
        depth -= 1
        a, b = stack[depth, 0], stack[depth, 1]
        near, far = 0.0, 0.0
        for k in range(3):
            near += max(0.0, box[a, 0, k] - box[b, 1, k], box[b, 0, k] - box[a, 1, k]) ** 2
            far += max(box[a, 1, k] - box[b, 0, k], box[b, 1, k] - box[a, 0, k]) ** 2
        if near > square:
            continue
        if far <= square:
            if a == b:
                result += 0.5 * (total[a, 0] ** 2 - total[a, 1])
            else:
                result += total[a, 0] * total[b, 0]
        elif child[a] == -1 and child[b] == -1:
            for i in range(part[a, 0], part[a, 1]):
                row = 0.0
                for j in range(i + 1 if a == b else part[b, 0], part[b, 1]):
                    s = (y[0, i] - y[0, j]) ** 2 + (y[1, i] - y[1, j]) ** 2 + (y[2, i] - y[2, j]) ** 2
                    row += m[j] if s <= square else 0.0
                result += m[i] * row
        elif a == b:
            left = child[a]
            stack[depth, 0], stack[depth, 1] = left, left
            stack[depth + 1, 0], stack[depth + 1, 1] = left, left + 1
            stack[depth + 2, 0], stack[depth + 2, 1] = left + 1, left + 1
            depth += 3
        else:
            if child[a] == -1 or (child[b] != -1 and part[b, 1] - part[b, 0] > part[a, 1] - part[a, 0]):
                a, b = b, a
            stack[depth, 0], stack[depth, 1] = child[a], b
            stack[depth + 1, 0], stack[depth + 1, 1] = child[a] + 1, b
            depth += 2
    return result


def mass_together(x: NDArray[np.float64], mass: NDArray[np.float64], delta: float) -> float:
    """Sum of m_i m_j over ordered pairs i != j of tokens ``x`` (3, n) with gap at most delta."""
    y, m = x.copy(), mass.copy()
    nodes = 2 * (2 * mass.size // _LEAF + 1)
    part, child = np.empty((nodes, 2), np.int64), np.empty(nodes, np.int64)
    box, total = np.empty((nodes, 2, 3)), np.zeros((nodes, 2))
    _build(y, m, part, child, box, total)
    return 2.0 * float(_count(y, m, part, child, box, total, 2.0 * delta))
