"""Attention sums over all tokens at once, in O(n), on the circle and on S².

The kernel exp(beta (c - 1)), c = <x, y>, is smooth: it has few harmonics, about sqrt(beta). So the sums over
j of every token i,

    weight_i = sum_j m_j exp(beta (c_ij - 1)),
    force_i  = sum_j m_j exp(beta (c_ij - 1)) (x_j - c_ij x_i) = (gradient of weight at x_i) / beta,

are two non-uniform transforms: the masses' harmonic moments, times the kernel's coefficients, evaluated at
the tokens (circle: finufft; S²: ducc0). The self-term is part of the weight; its force is zero.

Error. The coefficients are positive and sum to 1. Harmonics are kept until those left out sum to less than
``epsilon``, for weights and forces alike, and each transform is asked for ``epsilon`` relative to the sum of
its input. With masses of sum 1, then,

    |error of weight_i|, |error of force_i| <= ERROR * epsilon,

relative to 1, the largest weight possible, not to weight_i: a token far from all mass has a force with few
digits or none. Transforms run on one thread unless told otherwise: their last digits depend on the number.
"""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import Any

import ducc0
import finufft
import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import special

ERROR = 4.0  # two transforms and the harmonics left out, with one part to spare
FINEST = 2e-13  # the smallest epsilon that both libraries reach


def epsilon_for(tolerance: float) -> float:
    """The accuracy that sums are asked for when velocities shall be good to ``tolerance``."""
    return max(FINEST, 1e-5 * tolerance)


def mean_weight(beta: float, dimension: int) -> float:
    """The weight of a token among uniform ones: exp(-beta) I_0(beta) or exp(-beta) sinh(beta) / beta."""
    if dimension == 2:
        return float(special.ive(0, beta))
    return float(special.ive(0.5, beta) * np.sqrt(0.5 * np.pi / beta)) if beta > 0.0 else 1.0


@lru_cache(maxsize=64)
def circle_coefficients(beta: float, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fourier coefficients k = -K ... K of the kernel and, divided by i, of its derivative over beta.

    exp(beta (cos t - 1)) = sum_k a_k exp(i k t) with a_k = exp(-beta) I_k(beta) (DLMF 10.35.2); the force has
    i b_k with b_k = k a_k / beta = (a_{k-1} - a_{k+1}) / 2, good at beta = 0 too.
    """
    order = np.arange(32 + int(10 * np.sqrt(beta)))
    a = special.ive(order, beta)
    b = 0.5 * (np.concatenate([a[1:2], a[:-2]]) - a[1:])  # b_0 = 0
    last = _last(a[:-1] + b, 0.5 * epsilon)
    a, b = a[: last + 1], b[: last + 1]
    return np.concatenate([a[:0:-1], a]), np.concatenate([-b[:0:-1], b])


@lru_cache(maxsize=64)
def sphere_coefficients(beta: float, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Factors l = 0 ... L by which spherical harmonic moments become those of the weight and of the force.

    exp(beta c) = sum_l (2 l + 1) i_l(beta) P_l(c) with the modified spherical Bessel functions i_l (DLMF
    10.60.8), and P_l(<x, y>) = 4 pi / (2 l + 1) sum_m Y_lm(x) conj(Y_lm(y)). The factors are 4 pi exp(-beta)
    times i_l and i_l / beta = (i_{l-1} - i_{l+1}) / (2 l + 1).
    """
    degree = np.arange(32 + int(10 * np.sqrt(beta)))
    if beta > 0.0:
        i = special.ive(degree + 0.5, beta) * np.sqrt(0.5 * np.pi / beta)
    else:
        i = np.where(degree == 0, 1.0, 0.0)
    slope = (np.concatenate([i[1:2], i[:-2]]) - i[1:]) / (2 * degree[:-1] + 1)
    if beta > 1.0:
        slope = i[:-1] / beta  # no cancellation
    size = (2 * degree[:-1] + 1) * (i[:-1] + degree[:-1] * slope)
    last = _last(size, epsilon)
    return 4 * np.pi * i[: last + 1], 4 * np.pi * slope[: last + 1]


def _last(size: NDArray[np.float64], epsilon: float) -> int:
    """The first index beyond which the sizes sum to less than ``epsilon``; 2 at least."""
    tail = np.concatenate([np.cumsum(size[::-1])[::-1], [0.0]])[1:]
    return max(2, int(np.flatnonzero(tail < epsilon)[0]))


def circle_sums(
    angles: NDArray[np.float64], mass: NDArray[np.float64], beta: float, epsilon: float, threads: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights, and forces as the component towards growing angle, of tokens at ``angles`` in ascending order.

    Weight and force are both real, so one complex transform carries both.
    """
    a, b = circle_coefficients(beta, epsilon)
    how = {"eps": epsilon, "nthreads": threads, "spread_sort": 0, "upsampfac": 2.0, "showwarn": 0}
    moments = finufft.nufft1d1(angles, mass.astype(np.complex128), a.size, isign=-1, **how)
    both = finufft.nufft1d2(angles, moments * (a - b), isign=1, **how)
    return both.real, both.imag


_making = Lock()


def _make_threads(threads: int) -> None:
    """See to it that ducc0 has so many: it takes no more than OMP_NUM_THREADS, which Dask sets to 1."""
    with _making:
        if threads > ducc0.misc.thread_pool_size():
            ducc0.misc.resize_thread_pool(threads)


def sphere_sums(
    x: NDArray[np.float64], mass: NDArray[np.float64], beta: float, epsilon: float, threads: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights (n,) and forces (3, n), tangent vectors, of tokens ``x`` (3, n) on S²."""
    weight_factor, force_factor = sphere_coefficients(beta, epsilon)
    _make_threads(threads)
    degree = weight_factor.size - 1
    how = {"lmax": degree, "loc": _polar(x), "epsilon": epsilon, "nthreads": threads}
    moments = ducc0.sht.adjoint_synthesis_general(map=mass[None], spin=0, **how)
    # l of each entry in the order m = 0, 1, ..., l = m ... L
    l_of = np.concatenate([np.arange(m, degree + 1) for m in range(degree + 1)])
    weight = ducc0.sht.synthesis_general(alm=moments * weight_factor[l_of], spin=0, **how)
    slope = ducc0.sht.synthesis_general(alm=moments * force_factor[l_of], spin=1, mode="DERIV1", **how)
    force = np.empty_like(x)
    _cartesian(x, slope, force)
    return weight[0], force


def _polar(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Colatitude and longitude in [0, 2 pi] of each token."""
    place = np.empty((x.shape[1], 2))
    np.arctan2(np.sqrt(x[0] * x[0] + x[1] * x[1]), x[2], out=place[:, 0])
    np.arctan2(x[1], x[0], out=place[:, 1])
    place[:, 1] += np.where(place[:, 1] < 0.0, 2.0 * np.pi, 0.0)
    return place


@njit(nogil=True, cache=True)
def _cartesian(x: Any, slope: Any, force: Any) -> None:
    """Tangent vectors from their components along colatitude and longitude."""
    for i in range(x.shape[1]):
        sine = np.sqrt(x[0, i] ** 2 + x[1, i] ** 2)
        c, s = 1.0, 0.0  # at a pole the longitude is 0
        if sine > 0.0:
            c, s = x[0, i] / sine, x[1, i] / sine
        force[0, i] = slope[0, i] * x[2, i] * c - slope[1, i] * s
        force[1, i] = slope[0, i] * x[2, i] * s + slope[1, i] * c
        force[2, i] = -slope[0, i] * sine
