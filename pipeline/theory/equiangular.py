"""The equiangular model: ⟨xᵢ, xⱼ⟩ = ρ for all i ≠ j, equal weights, one ordinary differential equation.

    SA:  ρ̇ = 2e^{βρ}(1−ρ)((n−1)ρ+1) / (e^β + (n−1)e^{βρ})      USA:  ρ̇ = (2/n) e^{βρ}(1−ρ)((n−1)ρ+1)

Exact in any dimension that holds the frame (d ≥ n). From ρ(0) = 0, orthonormal tokens, it is the γ_β(t) of
MPT (Theorem 6.9 and §6.2), the limit of random starts as d → ∞; for d < n it predicts nothing.

With s = 1 − ρ, s* = n/(n−1) and h, B as in `dwell` the times are closed forms (derived by partial fractions):

    t_SA = (n−1)/(2n) h + B/(2n),      t_USA = e^{−β} B/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise

from pipeline.theory.dwell import Array, Dynamics, log_dwell

# ln h of no motion, and of a gap of e⁻⁶⁹⁰: outside, the start and consensus are exact in double precision.
_STILL, _MET = -700.0, math.log(690.0)


def equiangular_log_time(
    tolerance: ArrayLike,
    beta: ArrayLike,
    n: ArrayLike,
    *,
    dynamics: Dynamics = "sa",
    start: float = 0.0,
) -> Array:
    """Log of the time at which equiangular tokens reach ⟨xᵢ, xⱼ⟩ = 1 − δ.

    With ``start=0`` this is the curve {(t, β): γ_β(t) = 1 − δ} that lies over the paper's phase diagrams.

    Parameters
    ----------
    tolerance : array_like
        δ > 0. Where δ ≥ 1 − ρ₀ the tokens are together from the start and the answer is −inf.
    beta : array_like
        Inverse temperature, ≥ 0. At β = 0 both fields take t = h/2.
    n : array_like
        Number of tokens, ≥ 2.
    dynamics : {"sa", "usa"}
        The field.
    start : float
        ρ₀ in (−1/(n−1), 1).

    Returns
    -------
    ndarray of float
        ln t, of the broadcast shape.
    """
    δ, β, n = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (tolerance, beta, n)))
    s0, w0 = _frame(n, start)
    moving = δ < s0
    end = np.where(moving, δ, s0 / 2)
    h = np.log1p((s0 - end) / end) + np.log1p((s0 - end) / w0)
    return np.where(moving, _log_clock(h, β, n, s0, w0, dynamics), -np.inf)


def equiangular(
    log_time: ArrayLike,
    beta: ArrayLike,
    n: ArrayLike,
    *,
    dynamics: Dynamics = "sa",
    start: float = 0.0,
) -> Array:
    """Inner product γ_β(t) of equiangular tokens, the inverse function of `equiangular_log_time`.

    For two tokens at β = 0 it is tanh t. Arguments as there; ``log_time`` may be ±inf. The answer lies in
    [ρ₀, 1] and is late or early by about 1e-13 of ln t at most; NaN stays NaN.
    """
    log_t, β, n = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (log_time, beta, n)))
    s0, w0 = _frame(n, start)
    known, log_t = ~np.isnan(log_t), np.where(np.isnan(log_t), 0.0, log_t)
    # 1 ≤ e^{βs} ≤ e^{βs₀} brackets h; the margin is for rounding.
    if dynamics == "sa":
        fastest, slowest = np.log(2 * n) - np.logaddexp(np.log(n - 1), β * s0), np.full_like(β, math.log(2))
    else:
        fastest, slowest = math.log(2) + β * (1 - s0), math.log(2) + β
    low = np.clip(log_t + fastest - 1e-6, _STILL, _MET)
    high = np.clip(log_t + slowest + 1e-6, _STILL, _MET)

    def late(z: Array, log_t: Array, β: Array, n: Array, s0: Array, w0: Array) -> Array:
        return _log_clock(np.exp(z), β, n, s0, w0, dynamics) - log_t

    args = (β, n, s0, w0)
    early, met = late(low, log_t, *args) >= 0, late(high, log_t, *args) <= 0
    inside = ~(early | met)
    some = late((low + high) / 2, np.zeros_like(β), *args)  # a time inside the bracket, where none is sought
    h = np.exp(_root(late, low, high, np.where(inside, log_t, some), *args))
    with np.errstate(under="ignore"):
        ρ = start + s0 * w0 * -np.expm1(-h) / (s0 * np.exp(-h) + w0)
    ρ = np.where(inside, np.minimum(ρ, 1.0), np.where(early, start, 1.0))
    return np.where(known, ρ, np.nan)


def equiangular_beta(log_time: ArrayLike, tolerance: float, n: int, *, dynamics: Dynamics = "sa") -> Array:
    """The β at which orthonormal tokens reach 1 − δ just at the given time: where the curve leaves a diagram.

    Below it SA has synchronised; above it USA has, whose clock runs up to e^β faster. NaN where no β ≥ 0
    takes just that long.
    """
    log_t = np.asarray(log_time, dtype=float)
    sign = 1.0 if dynamics == "sa" else -1.0

    def late(β: Array, log_t: Array) -> Array:
        return sign * (equiangular_log_time(tolerance, β, n, dynamics=dynamics) - log_t)

    low, high = np.zeros_like(log_t), np.ones_like(log_t)
    exists = np.isfinite(log_t) & (late(low, log_t) <= 0)
    log_t = np.where(exists, log_t, equiangular_log_time(tolerance, 0.5, n, dynamics=dynamics))
    for _ in range(60):
        high = np.where(late(high, log_t) < 0, 2 * high, high)
    return np.where(exists, _root(late, low, high, log_t), np.nan)


def _frame(n: Array, start: float) -> tuple[Array, Array]:
    """The gap s₀ of the start and w₀, its distance from the simplex, neither by a cancelling difference."""
    if not (np.all(n >= 2) and start < 1 and np.all(start * (n - 1) > -1)):
        raise ValueError(f"start: got {start!r}; allowed: -1/(n-1) < start < 1, with n >= 2")
    return np.full_like(n, 1 - start), 1 / (n - 1) + start


def _log_clock(h: Array, β: Array, n: Array, s0: Array, w0: Array, dynamics: Dynamics) -> Array:
    log_b = log_dwell(β, s0, w0, h)
    if dynamics == "usa":
        return log_b - β - math.log(2)
    return np.asarray(np.logaddexp(np.log(n - 1) + np.log(h), log_b) - np.log(2 * n))


def _root(function: Callable[..., Array], low: Array, high: Array, *args: Array) -> Array:
    """Root of a function that changes sign over each bracket, to the last bits (Chandrupatla's method)."""
    tolerances = {"xatol": 1e-15, "xrtol": 1e-15}
    found = elementwise.find_root(function, (low, high), args=args, tolerances=tolerances)
    return np.asarray(found.x, dtype=float)
