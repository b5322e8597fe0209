"""Clusters as heavy particles: how long two of them take to meet, and the energy of a plateau."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pipeline.theory.dwell import Array, Dynamics, log_dwell, saturation


def two_cluster_log_time(
    beta: ArrayLike,
    cosine: ArrayLike,
    tolerance: ArrayLike,
    *,
    weights: tuple[ArrayLike, ArrayLike] = (0.5, 0.5),
    dynamics: Dynamics = "sa",
) -> Array:
    """Log of the time in which two isolated clusters come from ⟨x, y⟩ = u₀ to 1 − δ.

    u̇ = (a₁₂ + a₂₁)(1 − u²), with a₁₂ = m₂e^{βu}/(m₁e^β + m₂e^{βu}) for SA and a₁₂ = m₂e^{βu} for USA. With
    s = 1 − u, s* = 2, E = e^{βs}, R = m₁/m₂ + m₂/m₁ and h, B = ∫ E dh as in `dwell`,

        t_SA  = ½ ∫ (1 + RE + E²)/(2 + RE) dh = B/(2R) + (1 − 2/R²) h/2 − ½ (1 − 4/R²) ∫ dh/(2 + RE),
        t_USA = e^{−β} B / (2(m₁ + m₂)).

    The last integral is bounded, absent for equal weights, and the only one that is not a closed form.

    Parameters
    ----------
    beta, cosine, tolerance : array_like
        β ≥ 0, u₀ in [−1, 1], δ in (0, 2). From u₀ = −1, an equilibrium, the answer is +inf; from
        u₀ ≥ 1 − δ it is −inf.
    weights : pair of array_like
        m₁, m₂ > 0. SA depends on their ratio alone, USA on their sum alone.
    dynamics : {"sa", "usa"}
        The field.

    Returns
    -------
    ndarray of float
        ln t, of the broadcast shape.
    """
    given = (np.asarray(a, dtype=float) for a in (beta, cosine, tolerance, *weights))
    β, u, δ, m1, m2 = np.broadcast_arrays(*given)
    apart = δ < 1 - u
    moving = apart & (u > -1)
    s0, w0, end = (np.where(moving, a, b) for a, b in ((1 - u, 1.0), (1 + u, 1.0), (δ, 0.5)))
    h = np.log1p((s0 - end) / end) + np.log1p((s0 - end) / w0)
    log_b = log_dwell(β, s0, w0, h)
    if dynamics == "usa":
        log_t = log_b - β - np.log(2 * (m1 + m2))
    else:
        R = m1 / m2 + m2 / m1
        rest = (1 - 2 / R**2) * h / 2
        if np.any(m1 != m2):
            rest = rest - (1 - 4 / R**2) / 2 * saturation(β, R, s0, w0, h)
        log_t = np.logaddexp(log_b - np.log(2 * R), np.log(rest))
    return np.where(moving, log_t, np.where(apart, np.inf, -np.inf))


def two_cluster_log_time_laplace(
    beta: ArrayLike,
    cosine: ArrayLike,
    *,
    weights: tuple[ArrayLike, ArrayLike] = (0.5, 0.5),
    dynamics: Dynamics = "sa",
) -> Array:
    """Large-β limit of `two_cluster_log_time`, for β(1 − u₀²) ≫ 1 (Laplace's method; δ drops out).

        SA:   t ≈ e^{β(1−u₀)} / [β (m₁/m₂ + m₂/m₁)(1 − u₀²)]
        USA:  t ≈ e^{−βu₀} / [β (m₁ + m₂)(1 − u₀²)], for u₀ < 1 and up to O(e^{−β})

    So ln t grows like (1 − u₀)β under SA: the slope of a merge time names the angle that had to be crossed.
    """
    β, u, m1, m2 = (np.asarray(a, dtype=float) for a in (beta, cosine, *weights))
    with np.errstate(divide="ignore"):
        shared = -np.log(β) - np.log1p(-(u**2))
    if dynamics == "usa":
        return np.asarray(shared - β * u - np.log(m1 + m2))
    return np.asarray(shared + β * (1 - u) - np.log(m1 / m2 + m2 / m1))


def plateau_energy(weights: ArrayLike, beta: float = math.inf, cosines: ArrayLike | None = None) -> float:
    """Energy Σᵢⱼ mᵢmⱼ e^{−β(1−⟨xᵢ,xⱼ⟩)} of clusters, in (0, 1] (DM §2; 2βe^{−β}E for the E of MPT §3).

    Without `cosines`, an array (k, k), the clusters count as far apart: Σ mᵢ², the level of a plateau. A
    merger of i and j raises that by 2mᵢmⱼ, and its inverse is the effective number of clusters.
    """
    m = np.asarray(weights, dtype=float)
    if cosines is None:
        return float(m @ m)
    return float(m @ np.exp(-beta * (1 - np.asarray(cosines, dtype=float))) @ m)


def metastable_log_time(beta: ArrayLike, n: int, width: float, cosine: float) -> Array:
    """Log of the proved bound T₂ = (ε/n) e^{(1−α)β} below the life of a clustered state (DM, main theorem).

    Tokens that start in caps ⟨x, w_q⟩ ≥ 1 − ε do not leave the caps of 2ε before T₂: under SA, and under USA
    in the clock of e^{β(⟨x,y⟩−1)}. α is the largest inner product between the caps of 2ε of two different q.
    −inf where the theorem is silent: ε outside (0, 1/16), or its γ = 1 − α − 8ε − ln(2n²/ε)/β not positive.
    """
    β = np.asarray(beta, dtype=float)
    if not 0 < width < 1 / 16:
        return np.full_like(β, -np.inf)
    with np.errstate(divide="ignore"):
        γ = 1 - cosine - 8 * width - math.log(2 * n**2 / width) / β
    return np.where(γ > 0, math.log(width / n) + (1 - cosine) * β, -np.inf)
