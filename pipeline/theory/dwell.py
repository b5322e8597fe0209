"""The integral behind every closed-form time: how long a gap stays where it is, weighted by e^{βs}.

Both models of this package close a gap s (of a pair, or of all pairs at once) along a logistic curve in h,

    s = s*·s₀ / (s₀ + w₀eʰ),    w = s* − s,    dh = −ds (1/s + 1/w),

from s₀ = s(0), w₀ = s* − s₀ on, and differ in how fast time runs along it. s* is the gap at the unstable end:
2 for an antipodal pair, n/(n−1) for a regular simplex.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
Dynamics = Literal["sa", "usa"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def log_dwell(β: Array, s0: Array, w0: Array, h: Array) -> Array:
    """Natural logarithm of B = ∫₀ʰ e^{βs} dh'.

        B = Ei(βs₀) − Ei(βs₁) + e^{βs*} [E₁(βw₀) − E₁(βw₁)]

    is evaluated relative to e^{βs₀}, so that no β overflows. Where its two ends lie so close that they
    cancel, a Gauss–Legendre rule is exact to rounding. Needs 0 < h < 690: beyond that the gap is no double.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        s1 = (s0 + w0) * s0 / (s0 + w0 * np.exp(h))
        w1 = (s0 + w0) * w0 / (s0 * np.exp(-h) + w0)
        left, right = (_scaled_ei(β * s) + _scaled_e1(β * w) for s, w in ((s0, w0), (s1, w1)))
        closed = β * s0 + np.log(left - np.exp(-β * (s0 - s1)) * right)

        at = h[..., None] * (_NODES + 1) / 2
        closed_by = (
            s0[..., None] * w0[..., None] * np.expm1(at) / (s0[..., None] + w0[..., None] * np.exp(at))
        )
        short = β * s0 + np.log(h) + np.log(np.exp(-β[..., None] * closed_by) @ _WEIGHTS / 2)
        return np.where(β > 0, np.where(h * np.maximum(1.0, β * s0) < 2, short, closed), np.log(h))


def saturation(β: Array, R: Array, s0: Array, w0: Array, h: Array) -> Array:
    """The bounded integral ∫₀ʰ dh' / (2 + R e^{βs}).

    On panels no longer than one half the integrand is analytic and mild: it saturates where βs > 40, and
    below that βs changes by at most its own size per unit of h.
    """
    panels = max(1, int(np.ceil(2 * np.max(h))))
    at = h[..., None] * ((np.arange(panels)[:, None] + (_NODES + 1) / 2).ravel() / panels)
    β, R, s0, w0 = β[..., None], R[..., None], s0[..., None], w0[..., None]
    with np.errstate(over="ignore"):
        values = 1 / (2 + R * np.exp(β * ((s0 + w0) * s0 / (s0 + w0 * np.exp(at)))))
    return np.asarray(values @ np.tile(_WEIGHTS, panels) * h / (2 * panels))


def _scaled_ei(x: Array) -> Array:
    """Exponential integral e^{−x} Ei(x), x ≥ 0; beyond 50 its asymptotic series, good to 1e-17 there."""
    near = np.minimum(x, 50.0)
    return np.where(x < 50, special.expi(near) * np.exp(-near), _asymptotic(x, 1.0))


def _scaled_e1(x: Array) -> Array:
    """Exponential integral e^{x} E₁(x), x ≥ 0, in the same way."""
    near = np.minimum(x, 50.0)
    return np.where(x < 50, special.exp1(near) * np.exp(near), _asymptotic(x, -1.0))


def _asymptotic(x: Array, sign: float) -> Array:
    """(1/x) Σ_{k≤25} k! (±1/x)ᵏ by Horner's scheme."""
    x = np.maximum(x, 50.0)
    total = np.ones_like(x)
    for k in range(25, 0, -1):
        total = 1 + sign * k / x * total
    return total / x
