"""Slow references, written from the formulae alone and sharing no code with the package.

Three kinds: textbook NumPy fields driven by scipy's DOP853; 50-digit integrations and quadratures in mpmath;
brute force (union-find, dense sampling, a spanning tree). ``physics/test_reference.py`` checks each against
the others, closed forms and golden numbers, so that a disagreement points at the package.

Shapes: tokens (n, d), rows of norm 1; weights (n,), summing to 1. Tokens are rows, so "Qx" is ``x @ Q.T``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import mpmath as mp
import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.spatial.distance import pdist, squareform

Field = Callable[[np.ndarray], np.ndarray]

# ----------------------------------------------------------------------------------------------------
# Tokens
# ----------------------------------------------------------------------------------------------------


def normalise(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def random_tokens(n: int, d: int, seed: int) -> np.ndarray:
    """Uniform points, from a stream that has nothing to do with the sampler under test."""
    return normalise(np.random.default_rng([seed, n, d]).standard_normal((n, d)))


def random_weights(n: int, seed: int) -> np.ndarray:
    w = np.random.default_rng([seed, n]).uniform(0.2, 1.0, n)
    return w / w.sum()


def equal_weights(n: int) -> np.ndarray:
    return np.full(n, 1 / n)


def random_rotation(d: int, seed: int) -> np.ndarray:
    q, r = np.linalg.qr(np.random.default_rng([seed, d]).standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def circle(angles: Sequence[float] | np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def equiangular_frame(n: int, d: int, rho: float) -> np.ndarray:
    """n unit vectors of R^d (d >= n) with ⟨xᵢ,xⱼ⟩ = ρ: rows of the symmetric root of (1-ρ)I + ρ11ᵀ.

    The symmetric root treats all tokens alike; a Cholesky factor would be as good."""
    a = math.sqrt(1 - rho)
    b = (math.sqrt(1 + (n - 1) * rho) - a) / n
    x = np.zeros((n, d))
    x[:, :n] = a * np.eye(n) + b
    return x


def latitude_ring(n: int, z: float) -> np.ndarray:
    phi = 2 * np.pi * np.arange(n) / n
    r = math.sqrt(1 - z * z)
    return np.stack([r * np.cos(phi), r * np.sin(phi), np.full(n, z)], axis=-1)


# ----------------------------------------------------------------------------------------------------
# Fields (physics §1) and scipy
# ----------------------------------------------------------------------------------------------------


def attention(
    x: np.ndarray,
    beta: float,
    weights: np.ndarray,
    *,
    softmax: bool,
    query: np.ndarray | None = None,
    key: np.ndarray | None = None,
    value: np.ndarray | None = None,
) -> np.ndarray:
    """Σⱼ wᵢⱼ V xⱼ, wᵢⱼ = mⱼ e^{β⟨Qxᵢ,Kxⱼ⟩}, divided by its row sum if ``softmax``: not projected."""
    q = x if query is None else x @ query.T
    k = x if key is None else x @ key.T
    v = x if value is None else x @ value.T
    logits = beta * (q @ k.T)
    if softmax:
        logits = logits - logits.max(axis=1, keepdims=True)
    w = weights * np.exp(logits)
    if softmax:
        w = w / w.sum(axis=1, keepdims=True)
    return w @ v


def tangent(x: np.ndarray, a: np.ndarray) -> np.ndarray:
    return a - np.sum(x * a, axis=-1, keepdims=True) * x


def textbook(beta: float, weights: np.ndarray, *, softmax: bool, **matrices: np.ndarray | None) -> Field:
    """The field as the papers print it: average, then projection."""

    def field(x: np.ndarray) -> np.ndarray:
        x = normalise(x)  # a trial stage of the solver may lie far off the sphere
        return tangent(x, attention(x, beta, weights, softmax=softmax, **matrices))

    return field


def without_self_term(beta: float, weights: np.ndarray, *, softmax: bool) -> Field:
    """The same for Q=K=V=I with relative accuracy: vᵢ = Σ_{j≠i} wᵢⱼ[(xⱼ-xᵢ) + hᵢⱼxᵢ], hᵢⱼ = |xᵢ-xⱼ|²/2."""

    def field(x: np.ndarray) -> np.ndarray:
        x = normalise(x)
        difference = x[None, :, :] - x[:, None, :]
        h = 0.5 * np.sum(difference**2, axis=-1)
        w = weights * np.exp(-beta * h)
        w = w / w.sum(axis=1, keepdims=True) if softmax else w * math.exp(beta)
        np.fill_diagonal(w, 0.0)
        return np.einsum("ij,ijk->ik", w, difference) + np.sum(w * h, axis=1)[:, None] * x

    return field


@dataclass(frozen=True)
class Solution:
    """Tokens as a function of time between 0 and ``end``, by DOP853 and its dense output of order 7."""

    end: float
    shape: tuple[int, int]
    dense: Any
    steps: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        return normalise(self.dense(t).reshape(self.shape))


def solve(field: Field, x0: np.ndarray, end: float, *, rtol: float = 1e-11, atol: float = 1e-13) -> Solution:
    shape = x0.shape
    result = solve_ivp(
        lambda _, y: field(y.reshape(shape)).ravel(),
        (0.0, end),
        x0.ravel(),
        method="DOP853",
        rtol=rtol,
        atol=atol,
        dense_output=True,
    )
    if not result.success:
        raise RuntimeError(result.message)
    return Solution(end, shape, result.sol, result.t)


def tokens_at(field: Field, x0: np.ndarray, times: np.ndarray, *, rtol: float = 1e-11) -> np.ndarray:
    """Tokens (t, n, d) at the given times, the first may be 0; stepped onto, not interpolated."""
    shape = x0.shape
    y, t, saved = x0.ravel(), 0.0, []
    for end in times:
        if end > t:
            y = solve_ivp(
                lambda _, y: field(y.reshape(shape)).ravel(),
                (t, end),
                y,
                method="DOP853",
                rtol=rtol,
                atol=1e-13,
            ).y[:, -1]
            t = float(end)
        saved.append(normalise(y.reshape(shape)))
    return np.array(saved)


def layers(x: np.ndarray, beta: float, step: float, count: int, *, softmax: bool) -> np.ndarray:
    """The paper's own scheme, x ← normalise(x + η A(x)), A not projected: all iterates, (count+1, n, d)."""
    m = equal_weights(len(x))
    iterates = [x]
    for _ in range(count):
        x = normalise(x + step * attention(x, beta, m, softmax=softmax))
        iterates.append(x)
    return np.array(iterates)


# ----------------------------------------------------------------------------------------------------
# Observables by their definitions
# ----------------------------------------------------------------------------------------------------


def half_squared_distances(x: np.ndarray) -> np.ndarray:
    """1 - ⟨xᵢ,xⱼ⟩ without cancellation, (n, n)."""
    return squareform(0.5 * pdist(x, "sqeuclidean"))


def energy(x: np.ndarray, beta: float, weights: np.ndarray) -> float:
    return float(weights @ np.exp(-beta * half_squared_distances(x)) @ weights)


def order_parameter(x: np.ndarray, weights: np.ndarray) -> float:
    return float(np.linalg.norm(weights @ x))


def pair_sync_fraction(x: np.ndarray, delta: float, weights: np.ndarray) -> float:
    i, j = np.triu_indices(len(x), 1)
    together = half_squared_distances(x)[i, j] <= delta
    pair = weights[i] * weights[j]
    return float(np.sum(pair * together) / np.sum(pair))


def components(x: np.ndarray, delta: float) -> list[set[int]]:
    """Connected components of 'together', by union-find over all pairs."""
    parent = list(range(len(x)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    h = half_squared_distances(x)
    for i, j in itertools.combinations(range(len(x)), 2):
        if h[i, j] <= delta:
            parent[root(i)] = root(j)
    groups: dict[int, set[int]] = {}
    for i in range(len(x)):
        groups.setdefault(root(i), set()).add(i)
    return list(groups.values())


def spanning_tree(x: np.ndarray) -> np.ndarray:
    """Edges 1-⟨x,y⟩ of Prim's minimal spanning tree, descending: more than k clusters iff edge[k-1] > δ."""
    h = half_squared_distances(x)
    n = len(x)
    reach = h[0].copy()
    inside = np.zeros(n, bool)
    inside[0] = True
    edges = []
    for _ in range(n - 1):
        j = int(np.argmin(np.where(inside, np.inf, reach)))
        edges.append(reach[j])
        inside[j] = True
        reach = np.minimum(reach, h[j])
    return np.sort(np.array(edges))[::-1]


def log_time_to_clusters(solution: Solution, delta: float, *, samples: int = 6000) -> np.ndarray:
    """(n,) log of the last moment with more than k = 1 … n clusters, by dense sampling and root finding.

    Samples lie on the solver's own steps and on linear and logarithmic grids between; +inf at k if there are
    still more than k at the end, -inf if there never were."""
    n = solution.shape[0]
    end = solution.end
    grid = np.unique(
        np.concatenate(
            [
                solution.steps,
                np.linspace(0, end, samples // 2),
                np.geomspace(min(1e-6, 1e-6 * end), end, samples // 2),
            ]
        )
    )
    edges = np.array([spanning_tree(solution(t)) for t in grid])
    found = np.full(n, -np.inf)
    for k in range(1, n):
        apart = np.flatnonzero(edges[:, k - 1] > delta)
        if len(apart) == 0:
            continue
        last = apart[-1]
        if last == len(grid) - 1:
            found[k - 1] = np.inf
        else:
            excess = partial(_excess, solution, k, delta)
            found[k - 1] = math.log(brentq(excess, grid[last], grid[last + 1], xtol=1e-14, rtol=1e-14))
    return found


def _excess(solution: Solution, k: int, delta: float, t: float) -> float:
    return float(spanning_tree(solution(t))[k - 1] - delta)


# ----------------------------------------------------------------------------------------------------
# Two clusters (physics §4)
# ----------------------------------------------------------------------------------------------------


@cache
def two_cluster_log_time(
    beta: float, u0: float, delta: float, m1: float, m2: float, softmax: bool, digits: int = 30
) -> float:
    """Natural log of t = ∫_δ^{1-u₀} ds / ((a₁₂+a₂₁) s (2-s)), s = 1-⟨x,y⟩, at any β.

    The integrand grows like e^{βs}/s: the interval is cut at δ times powers of two, at multiples of 4/β from
    its upper end and towards the pole at s=2, so that Gauss-Legendre sees a smooth function on each piece."""
    with mp.workdps(digits):
        b, d, top = mp.mpf(beta), mp.mpf(delta), 1 - mp.mpf(u0)
        p, q = mp.mpf(m1), mp.mpf(m2)

        def integrand(s: mp.mpf) -> mp.mpf:
            e = mp.exp(-b * s)
            rate = q * e / (p + q * e) + p * e / (q + p * e) if softmax else (p + q) * e * mp.exp(b)
            return 1 / (rate * s * (2 - s))

        cuts = {d, top}
        s = 2 * d
        while s < top:
            cuts.add(s)
            s = 2 * s
        if b > 1:
            width = 4 / b
            cuts.update(top - i * width for i in range(1, 60) if top - i * width > d)
        s = 2 - top  # the other pole, s = 2, of a nearly antipodal start
        while 2 - 2 * s > d and s < 1:
            cuts.add(2 - 2 * s)
            s = 2 * s
        ordered = sorted(cuts)
        total = mp.quad(integrand, ordered, method="gauss-legendre", maxdegree=5)
        return float(mp.log(total))


def two_cluster_inner_product(t: float, beta: float, u0: float, m1: float, m2: float, softmax: bool) -> float:
    """u(t) from the scalar ODE u̇ = (a₁₂+a₂₁)(1-u²)."""

    def rate(_: float, u: np.ndarray) -> np.ndarray:
        e = np.exp(-beta * (1 - u))
        a = m2 * e / (m1 + m2 * e) + m1 * e / (m2 + m1 * e) if softmax else (m1 + m2) * e * math.exp(beta)
        return a * (1 - u * u)

    return float(solve_ivp(rate, (0, t), [u0], method="DOP853", rtol=1e-13, atol=1e-15).y[0, -1])


# ----------------------------------------------------------------------------------------------------
# Equiangular frames (physics §3) and the latitude ring
# ----------------------------------------------------------------------------------------------------


def equiangular_rate(rho: Any, beta: Any, n: int, softmax: bool, exp: Callable[[Any], Any] = mp.exp) -> Any:
    growth = (1 - rho) * ((n - 1) * rho + 1)
    if softmax:
        e = exp(beta * (rho - 1))
        return 2 * e * growth / (1 + (n - 1) * e)
    return 2 * exp(beta * rho) * growth / n


@cache
def equiangular_time(
    beta: float, n: int, delta: float, rho0: float, softmax: bool, digits: int = 30
) -> mp.mpf:
    """Time from ρ₀ to 1-δ: the quadrature of dρ / ρ̇."""
    with mp.workdps(digits):
        d, top = mp.mpf(delta), 1 - mp.mpf(rho0)
        cuts, s = [d], 2 * d
        while s < top:
            cuts.append(s)
            s = 2 * s
        gap = mp.mpf(n) / (n - 1) - top  # distance from the pole at the simplex
        s = 2 * gap
        while top - s > d and s < top:
            cuts.append(top - s)
            s = 2 * s
        cuts.append(top)
        return mp.quad(
            lambda s: 1 / equiangular_rate(1 - s, mp.mpf(beta), n, softmax),
            sorted(cuts),
            method="gauss-legendre",
            maxdegree=5,
        )


def equiangular_closed_form(beta: float, n: int, delta: float, softmax: bool, digits: int = 40) -> mp.mpf:
    """The same from an orthonormal start by exponential integrals."""
    with mp.workdps(digits):
        b, d = mp.mpf(beta), mp.mpf(delta)
        star = mp.mpf(n) / (n - 1)
        t0 = mp.log((n - (n - 1) * d) / d) / 2
        if b == 0:
            return t0
        e1 = partial(mp.expint, 1)
        bracket = mp.ei(b) - mp.ei(b * d) + mp.exp(b * star) * (e1(b / (n - 1)) - e1(b * (star - d)))
        usa = mp.exp(-b) * bracket / 2
        return mp.mpf(n - 1) / n * t0 + mp.exp(b) / n * usa if softmax else usa


def equiangular_rho(times: np.ndarray, beta: float, n: int, rho0: float, softmax: bool) -> np.ndarray:
    """ρ at the given times by Taylor series of 18 digits (mpmath's odefun)."""
    with mp.workdps(18):
        solution = mp.odefun(
            lambda _, y: [equiangular_rate(y[0], mp.mpf(beta), n, softmax)], 0, [mp.mpf(rho0)]
        )
        return np.array([float(solution(mp.mpf(float(t)))[0]) for t in times])


def published_scheme_rho(rho: float, beta: float, n: int, step: float) -> float:
    """One layer of the published scheme on an equiangular frame (physics §3, the exact scalar recursion)."""
    e = math.exp(beta * (rho - 1))
    z = 1 + (n - 1) * e
    a, b = 1 + step / z, step * e / z
    top = a * a * rho + 2 * a * b * (1 + (n - 2) * rho) + b * b * ((n - 2) + ((n - 1) ** 2 - (n - 2)) * rho)
    return top / (a * a + 2 * a * b * (n - 1) * rho + b * b * ((n - 1) + (n - 1) * (n - 2) * rho))


def ring_height(times: np.ndarray, beta: float, n: int, z0: float, softmax: bool) -> np.ndarray:
    """Height of the latitude ring: ż = z(1-z²) Σ_k a_k (1-cos φ_k)."""
    cos = np.cos(2 * np.pi * np.arange(n) / n)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        z = y[0]
        a = np.exp(beta * (z * z + (1 - z * z) * cos)) / n
        if softmax:
            a = a / a.sum()
        return np.array([z * (1 - z * z) * np.sum(a * (1 - cos))])

    return solve_ivp(rate, (0, times[-1]), [z0], method="DOP853", rtol=1e-13, atol=1e-15, t_eval=times).y[0]


# ----------------------------------------------------------------------------------------------------
# Few atoms on the circle, 50 digits, any time (mpmath has no largest number)
# ----------------------------------------------------------------------------------------------------


def circle_velocity(angles: list[mp.mpf], weights: list[mp.mpf], beta: mp.mpf, softmax: bool) -> list[mp.mpf]:
    """θ̇ᵢ = Σⱼ mⱼ e^{β cos(θⱼ-θᵢ)} sin(θⱼ-θᵢ), over Zᵢ for SA: in angles the self-term is exactly zero."""
    n = len(angles)
    force = [mp.mpf(0)] * n
    z = list(weights)
    for i in range(n):
        for j in range(i + 1, n):
            c, s = mp.cos_sin(angles[j] - angles[i])
            e = mp.exp(beta * (c - 1))
            force[i] += weights[j] * e * s
            force[j] -= weights[i] * e * s
            z[i] += weights[j] * e
            z[j] += weights[i] * e
    if softmax:
        return [f / s for f, s in zip(force, z, strict=True)]
    scale = mp.exp(beta)
    return [f * scale for f in force]


def _midpoint(
    rate: Callable[[list[mp.mpf]], list[mp.mpf]], y: list[mp.mpf], h: mp.mpf, n: int
) -> list[mp.mpf]:
    """Gragg's modified midpoint rule with n substeps: its error is a series in (h/n)²."""
    k = h / n
    before, now = y, [a + k * f for a, f in zip(y, rate(y), strict=True)]
    for _ in range(n - 1):
        before, now = now, [a + 2 * k * f for a, f in zip(before, rate(now), strict=True)]
    return [(a + b + k * f) / 2 for a, b, f in zip(before, now, rate(now), strict=True)]


COLUMNS = 8


def _extrapolated(
    rate: Callable[[list[mp.mpf]], list[mp.mpf]], y: list[mp.mpf], h: mp.mpf
) -> tuple[list[mp.mpf], mp.mpf]:
    """One Gragg-Bulirsch-Stoer step of order 2·COLUMNS and an estimate of its error."""
    table: list[list[list[mp.mpf]]] = []
    for column in range(COLUMNS):
        row = [_midpoint(rate, y, h, 2 * (column + 1))]
        for k in range(1, column + 1):
            factor = (mp.mpf(column + 1) / (column + 1 - k)) ** 2 - 1
            row.append([a + (a - b) / factor for a, b in zip(row[k - 1], table[-1][k - 1], strict=True)])
        table.append(row)
    best, second = table[-1][-1], table[-1][-2]
    return best, max(abs(a - b) for a, b in zip(best, second, strict=True))


def circle_merge_log_times(
    angles: Sequence[float],
    weights: Sequence[float],
    beta: float,
    delta: float,
    *,
    softmax: bool,
    digits: int = 50,
    tolerance: float = 1e-18,
) -> np.ndarray:
    """Natural logs of the times from which there are at most k = 1 … n clusters, n atoms on the circle.

    Plain time t, 50 digits, extrapolation of order 16, step control. Atoms closer than 1e-15 become one at
    their weighted mean (an error of 1e-30), else an explicit method could not step past their fast mode; the
    tolerance lies well below, or they would hover at it. A gap's crossing of δ is found by the secant rule on
    the length of a step, so nothing is interpolated."""
    with mp.workdps(digits):
        order = sorted(range(len(angles)), key=lambda i: angles[i])
        theta = [mp.mpf(angles[i]) for i in order]
        mass = [mp.mpf(weights[i]) for i in order]
        b = mp.mpf(beta)
        limit = 2 * mp.asin(mp.sqrt(mp.mpf(delta) / 2))  # the angle at which 1-cos = δ
        power = mp.mpf(1) / (2 * COLUMNS - 1)
        t, h = mp.mpf(0), None
        open_at_start = sum(g > limit for g in _gaps(theta))
        crossings: list[mp.mpf] = []
        while len(crossings) < open_at_start - 1:
            rate = partial(circle_velocity, weights=mass, beta=b, softmax=softmax)
            if h is None:
                h = mp.mpf("0.05") / (max(map(abs, rate(theta))) * (1 + b))
            new, error = _extrapolated(rate, theta, h)
            if error > tolerance:
                h *= max(mp.mpf("0.2"), mp.mpf("0.9") * (tolerance / error) ** power)
                continue
            for i, (old, now) in enumerate(zip(_gaps(theta), _gaps(new), strict=True)):
                if old > limit >= now:
                    log_gap = partial(_log_gap, rate, theta, h, i, limit)
                    guess = ((old - limit) / (old - now), 1)
                    crossings.append(t + h * mp.findroot(log_gap, guess, tol=mp.mpf(10) ** -30, maxsteps=30))
                elif old <= limit < now:
                    raise RuntimeError("a gap opened again: choose another start")
            t += h
            theta = new
            grow = mp.mpf("0.9") * (tolerance / max(error, mp.mpf(10) ** -45)) ** power
            h *= min(max(grow, mp.mpf("0.3")), 4)
            while len(theta) > 1 and min(_gaps(theta)) < mp.mpf(10) ** -15:
                i = int(np.argmin([float(g) for g in _gaps(theta)]))
                j = (i + 1) % len(theta)
                next_angle = theta[j] + (2 * mp.pi if j == 0 else 0)
                total = mass[i] + mass[j]
                theta[i], mass[i] = (mass[i] * theta[i] + mass[j] * next_angle) / total, total
                del theta[j], mass[j]
                h = None
        # With k > 1 clusters k gaps are open, with one cluster at most one: k clusters after G-k crossings.
        logs = sorted(float(mp.log(c)) for c in crossings)
        return np.array(
            [logs[open_at_start - k - 1] if k < open_at_start else -np.inf for k in range(1, len(angles) + 1)]
        )


def _gaps(y: list[mp.mpf]) -> list[mp.mpf]:
    return [y[i + 1] - y[i] for i in range(len(y) - 1)] + [y[0] + 2 * mp.pi - y[-1]]


def _log_gap(rate: Any, theta: list[mp.mpf], h: mp.mpf, i: int, limit: mp.mpf, fraction: mp.mpf) -> mp.mpf:
    """Log of gap i over the limit after a fraction of a step: nearly linear in the fraction."""
    return mp.log(_gaps(_extrapolated(rate, theta, fraction * h)[0])[i] / limit)
