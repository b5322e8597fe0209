"""Instabilities: which modes leave the uniform measure, polygons and antipodal pairs, and how fast.

Rates are eigenvalues of the linearised flow, positive when unstable; a gap s ~ |x − y|²/2 grows at twice the
rate. At a critical point both fields have the Hessian's signature (MPT App. B); only the clocks differ.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from pipeline.theory.dwell import Array, Dynamics


def mode_rates(beta: ArrayLike, d: int, degrees: int, *, dynamics: Dynamics = "sa") -> Array:
    """Growth rates of the spherical harmonics of degree 1 … `degrees` around the uniform measure.

    With ν = d/2 − 1 (BPA find the maximiser as that of a Gegenbauer coefficient; the formula is derived):

        SA:   λ_k = k(k+d−2) I_{k+ν}(β) / (β I_ν(β))
        USA:  λ_k = Γ(d/2)(2/β)^ν I_ν(β) times that

    Ratios of Bessel functions come from their continued fraction, so that d = 1024 does not underflow. USA
    rates are inf once they pass the largest double (β > 709).

    Parameters
    ----------
    beta : array_like
        β ≥ 0, shape (…).
    d, degrees : int
        Dimension, ≥ 2, and the highest degree wanted.
    dynamics : {"sa", "usa"}
        The field.

    Returns
    -------
    ndarray of float
        Shape (…, degrees).
    """
    β = np.asarray(beta, dtype=float)
    k = np.arange(1, degrees + 1)
    ratio = np.cumprod(_bessel_ratios(β, d / 2 - 1, degrees), axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = k * (k + d - 2) * ratio / β[..., None]
    rates = np.where(β[..., None] > 0, rates, np.where(k == 1, (d - 1) / d, 0.0))
    if dynamics == "usa":
        with np.errstate(over="ignore"):
            rates = rates * np.exp(_log_partition(β, d))[..., None]
    return rates


def fastest_mode(beta: ArrayLike, d: int) -> NDArray[np.int64]:
    """Degree k* of the harmonic that grows fastest around the uniform measure, under SA and USA alike.

    On the circle it predicts k* clusters on the first plateau (random starts give k* minus 0 to 3). For large
    β, k* ≈ √(2β + ν²) − ν.
    """
    β = np.asarray(beta, dtype=float)
    degrees = math.ceil(math.sqrt(2 * float(np.max(β, initial=0.0)))) + 3
    return np.asarray(np.argmax(mode_rates(β, d, degrees), axis=-1) + 1, dtype=np.int64)


def polygon_eigenvalues(n: int, beta: float, *, dynamics: Dynamics = "sa") -> Array:
    """Growth rates λ₀ … λₙ₋₁ of the Fourier modes of a regular n-gon on the circle, equal weights.

        USA:  λⱼ = (1/n) Σ_{k≥1} f'(2πk/n) (cos(2πjk/n) − 1),    f'(θ) = e^{β cos θ}(cos θ − β sin² θ)
        SA:   the same over Z = (1/n) Σ_k e^{β cos(2πk/n)}

    Derived from the Hessian of MPT App. B.
    """
    θ = 2 * np.pi * np.arange(n) / n
    kernel = np.exp(beta * (np.cos(θ) - 1))
    slope = kernel * (np.cos(θ) - beta * np.sin(θ) ** 2)
    λ = (np.cos(np.outer(np.arange(n), θ)) - 1) @ slope / n
    return np.asarray(λ * math.exp(beta) if dynamics == "usa" else λ / kernel.mean())


def antipodal_rates(beta: float, share: float, *, dynamics: Dynamics = "sa") -> tuple[float, float, float]:
    """Rates of two antipodal clusters with shares p and q = 1 − p of the tokens: escape, inside p, inside q.

        USA:  e^{−β},   q e^{−β} − p e^β,   p e^{−β} − q e^β
        SA:   q e^{−β}/Z_p + p e^{−β}/Z_q,   (q e^{−β} − p e^β)/Z_p,   (p e^{−β} − q e^β)/Z_q

    with Z_p = p e^β + q e^{−β} and Z_q = q e^β + p e^{−β}. The angle between the clusters leaves π at the
    escape rate: 2/(1 + e^{2β}) for balanced SA, which contracts inside at tanh β. Derived from the Hessian of
    MPT App. B.
    """
    p, q, e = share, 1 - share, math.exp(-2 * beta)
    if dynamics == "usa":
        return math.exp(-beta), (q * e - p) * math.exp(beta), (p * e - q) * math.exp(beta)
    z_p, z_q = p + q * e, q + p * e  # in units of e^β
    return q * e / z_p + p * e / z_q, (q * e - p) / z_p, (p * e - q) / z_q


def hemisphere_probability(n: int, d: int) -> float:
    """Probability that n uniform points of S^{d−1} lie in an open hemisphere: 2^{1−n} Σ_{k<d} C(n−1, k).

    Wendel's theorem (MPT §6.1), 1 for n ≤ d. From such a start consensus is exponential (MPT Lemma 6.4).
    """
    return float(special.bdtr(d - 1, n - 1, 0.5)) if n > d else 1.0


def _bessel_ratios(x: Array, order: float, count: int) -> Array:
    """Ratios r_μ = I_{μ+1}(x)/I_μ(x) for μ = order + j, j = 0 … count − 1, on a new last axis.

    The recurrence r_μ = 1/(2(μ+1)/x + r_{μ+1}) runs downwards from Amos's bound, whose error it forgets.
    """
    last = count + int(np.max(x, initial=0.0)) + 60
    ratio = x / (order + last + 0.5 + np.hypot(order + last + 1.5, x))
    ratios = np.empty((*x.shape, count))
    for j in range(last - 1, -1, -1):
        ratio = x / (2 * (order + j + 1) + x * ratio)
        if j < count:
            ratios[..., j] = ratio
    return ratios


def _log_partition(β: Array, d: int) -> Array:
    """Log of the mean of e^{β⟨x,y⟩} over the sphere, ₀F₁(; d/2; β²/4), by its positive series."""
    k = np.arange(int(np.max(β, initial=0.0)) + 60)
    powers = special.xlogy(2 * k, β[..., None] / 2)
    factorials = special.gammaln(k + 1) + special.gammaln(k + d / 2) - special.gammaln(d / 2)
    return np.asarray(special.logsumexp(powers - factorials, axis=-1))
