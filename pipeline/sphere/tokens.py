"""Tokens as users see them: (n, d) arrays of unit rows; where they start, and the space that they span."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


def initial_tokens(root_seed: int, n: int, d: int, seed: int) -> NDArray[np.float64]:
    """Independent uniform tokens on S^{d-1}, a function of the four numbers alone.

    Gaussian rows from Philox seeded with ``SeedSequence(root_seed, spawn_key=(n, d, seed))``, each divided by
    its Euclidean norm. They depend neither on beta nor on how a sweep is cut up or scheduled, and anyone can
    regenerate them with NumPy alone.

    Parameters
    ----------
    root_seed : int
        Seed of the whole sweep, >= 0.
    n, d : int
        Number of tokens and dimension.
    seed : int
        Index of the realisation, >= 0.

    Returns
    -------
    ndarray of float64, shape (n, d)
        Rows of norm 1.
    """
    stream = np.random.SeedSequence(root_seed, spawn_key=(n, d, seed))
    rows = np.random.Generator(np.random.Philox(stream)).standard_normal((n, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def in_span(tokens: NDArray[np.float64]) -> NDArray[np.float64]:
    """The tokens in an orthonormal basis of a space of min(n, d) dimensions that contains them.

    The motion with Q = K = V = identity stays in the span of the tokens and commutes with rotations, so these
    coordinates have the same inner products for all time (Geshkovski et al., arXiv:2312.10794, section 3).
    For d <= n the tokens themselves are returned.

    Parameters
    ----------
    tokens : ndarray of float64, shape (n, d)

    Returns
    -------
    ndarray of float64, shape (n, min(n, d))
        Lower triangular for d > n: row i lies in the first i + 1 directions.
    """
    n, d = tokens.shape
    if d <= n:
        return tokens
    return np.asarray(_triangular(np.ascontiguousarray(tokens, dtype=np.float64)))


@njit(nogil=True, cache=True)
def _triangular(tokens: Any) -> Any:
    """Coordinates by Householder reflections, compiled so that no BLAS thread count can change a bit."""
    n, d = tokens.shape
    work = tokens.copy()
    result = np.zeros((n, n))
    mirror = np.empty(d)
    for p in range(n):
        norm = 0.0
        for k in range(p, d):
            norm += work[p, k] * work[p, k]
        norm = np.sqrt(norm)
        if norm > 0.0:
            if work[p, p] > 0.0:
                norm = -norm
            square = 0.0
            for k in range(p, d):
                mirror[k] = work[p, k]
            mirror[p] -= norm
            for k in range(p, d):
                square += mirror[k] * mirror[k]
            for i in range(p, n):
                along = 0.0
                for k in range(p, d):
                    along += mirror[k] * work[i, k]
                along *= 2.0 / square
                for k in range(p, d):
                    work[i, k] -= along * mirror[k]
        for i in range(p, n):
            result[i, p] = work[i, p]
    return result
