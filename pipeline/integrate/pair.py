"""Two atoms alone: their motion in closed form, their time as a quadrature.

While all others rest, two atoms approach along the great circle through them. On the running clock, ds/dt =
w_12 + w_21, the angle phi between them obeys dphi/ds = -sin phi for every beta and all weights, so tan(phi/2)
= tan(phi_0/2) exp(-s). What is left are two integrals along this known path, the time (dt/ds) and the angle
that the first atom covers, by Gauss-Legendre panels whose length follows from the error wanted. A whole
merger costs some ten panels.

`pass_pair` is a template for `pipeline.integrate.compiled.bind`; only fields that declare ``geodesic`` come
here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.integrate import events
from pipeline.integrate.atoms import duplicate
from pipeline.sphere import pairs
from pipeline.sphere.lanes import kernel

# bound by `compiled.bind`, as in `pipeline.integrate.adaptive`
velocity: Any = None
on_save: Any = None
on_clusters: Any = None

_NODES, _WEIGHTS = (np.array(a) for a in np.polynomial.legendre.leggauss(8))
_POLE = 0.75  # how near the real axis the integrands have poles, in units of s


@kernel
def angle(y: float) -> float:
    """The angle phi with tan(phi / 2) = exp(y)."""
    return 2.0 * np.arctan(np.exp(y))  # type: ignore[no-any-return]


@kernel
def gap_at(y: float) -> float:
    """1 - cos(phi) = 2 / (1 + exp(-2 y))."""
    return 2.0 / (1.0 + np.exp(-2.0 * y))  # type: ignore[no-any-return]


@kernel
def half_log(gap: float) -> float:
    """The y = ln tan(phi / 2) of a gap in (0, 2)."""
    return 0.5 * np.log(gap / (2.0 - gap))  # type: ignore[no-any-return]


@kernel
def clearance(
    x: Any, atoms: int, stride: int, dimension: int, i: int, j: int, tangent: Any, phi: float
) -> float:
    """Smallest gap between a third atom and the arc of ``phi`` from i along ``tangent`` to j; 2 if none."""
    top = -1.0
    sine, cosine = np.sin(phi), np.cos(phi)
    for q in range(atoms):
        if q in (i, j):
            continue
        a, b = 0.0, 0.0
        for k in range(dimension):
            a += x[k * stride + q] * x[k * stride + i]
            b += x[k * stride + q] * tangent[k]
        if b >= 0.0 and a * sine >= b * cosine:  # nearest to the arc's inside
            top = max(top, np.sqrt(a * a + b * b))
        else:
            top = max(top, a, a * cosine + b * sine)
    return 1.0 - top


@kernel
def frame(x: Any, stride: int, dimension: int, i: int, j: int, tangent: Any) -> float:
    """Write the unit tangent at i towards j; return y = ln tan(phi / 2), +inf if exactly antipodal."""
    difference, summed = 0.0, 0.0
    for k in range(dimension):
        difference += (x[k * stride + j] - x[k * stride + i]) ** 2
        summed += (x[k * stride + j] + x[k * stride + i]) ** 2
    # x_j - <x_i, x_j> x_i without cancellation at either end of the range
    norm = 0.0
    for k in range(dimension):
        if difference < summed:
            tangent[k] = x[k * stride + j] - x[k * stride + i] + 0.5 * difference * x[k * stride + i]
        else:
            tangent[k] = x[k * stride + j] + x[k * stride + i] - 0.5 * summed * x[k * stride + i]
        norm += tangent[k] * tangent[k]
    if norm == 0.0:
        return np.inf
    for k in range(dimension):
        tangent[k] /= np.sqrt(norm)
    return 0.5 * np.log(difference / summed)  # type: ignore[no-any-return]


@kernel
def panel_length(left: float, steepness: float, share: float, phi: float, tolerance: float) -> float:
    """Length over which eight Gauss nodes are accurate enough.

    The relative error is rho**-16 for poles on the ellipse of parameter rho, and (rate * length)**16 / 6e22
    for an exponential. Both are measured against what is at stake: ``share``, the part of all time that this
    panel may add, and the angle still to cover.
    """
    stake = min(max(share, phi, 2.0 * tolerance), 4.0) / tolerance
    rho = max(stake, 2.0) ** 0.0625
    # ... and weights must stay representable, even squared, over the whole panel
    length = min(left, 4.0 * _POLE / (rho - 1.0 / rho), 300.0 / max(steepness, 1e-300))
    if share > tolerance:
        length = min(length, (6e22 * tolerance / share) ** 0.0625 / max(steepness, 1e-300))
    return length  # type: ignore[no-any-return]


def panel(
    y: float,
    length: float,
    ref: float,
    m: Any,
    dimension: int,
    p: Any,
    matrices: Any,
    place: Any,
    v: Any,
    weight: Any,
    scratch: Any,
) -> Any:
    """Time (in units of exp(ref)) and angle of the first atom over ``length`` from y downward."""
    time, turn = 0.0, 0.0
    for q in range(8):
        phi = angle(y - 0.5 * length * (1.0 + _NODES[q]))
        place[0], place[1] = 1.0, np.cos(phi)
        place[8], place[9] = 0.0, np.sin(phi)
        rate = velocity(place, m, 2, 8, dimension, ref, p, matrices, v, weight, scratch)
        time += _WEIGHTS[q] / rate
        turn += _WEIGHTS[q] * v[8]
    return 0.5 * length * time, 0.5 * length * turn


advance: Any = None  # `panel`, bound


def pass_pair(
    work: Any,
    atoms: int,
    stride: int,
    dimension: int,
    i: int,
    j: int,
    y: float,
    closeness: float,
    matrices: Any,
    tolerance: float,
    delta: float,
    offset: float,
    log_times: Any,
    log_horizon: float,
    record: Any,
    index: int,
    log_clock: float,
    clusters: int,
) -> Any:
    """Bring atoms i and j together, down to the gap ``closeness`` or to the horizon.

    ``work`` is a `pipeline.integrate.workspace.Workspace`; ``y`` and the tangent at i, work.one, come from
    `frame`. Positions, saves and clusters are seen to on the way; returns (log_clock, index, clusters,
    evaluations).
    """
    x, mass, squares, member = work.x, work.mass, work.squares, work.member
    labels, queue, together = work.labels, work.queue, work.together
    tangent, p, scratch = work.one, work.p, work.scratch
    # the two alone: nothing that is packed is needed again
    place, v, m, weight, origin, shown = work.trial, work.end, work.m, work.weight, work.terms, work.shown
    beta = p[0]
    place[: 8 * dimension] = pairs.padding(dimension)
    m[:8] = 0.0
    m[0], m[1] = mass[i], mass[j]
    for k in range(dimension):
        place[8 * k], place[8 * k + 1] = 0.0, 0.0
    duplicate(x, dimension * stride, shown)
    for k in range(dimension):
        origin[k] = x[k * stride + i]
    turn, evaluations = 0.0, 0
    last = half_log(0.9 * closeness)  # surely within reach of coalescence, rounding included
    meets = -np.inf  # where the pair comes together, a panel's end
    if not together[i, j]:
        meets = half_log(delta)
    while y > last:
        left = max(y - max(last, meets), 0.0)
        phi = angle(y)
        obtuse = phi > 0.5 * np.pi
        # how fast ln(dt/ds) falls, at its steepest on the panel: beta sin(phi)²
        steepness = beta * min(1.0, np.e * np.sin(phi)) ** 2 if obtuse else beta * np.sin(phi) ** 2
        # time that this panel may add, against all time so far
        ahead = beta * gap_at(y) + np.log(min(left, 1.0 / max(steepness, 1e-300)) + 1e-300)
        share = 1.0 if log_clock == -np.inf else np.exp(min(0.0, ahead - log_clock))
        length = panel_length(min(left, 1.0) if obtuse else left, steepness, share, phi, tolerance)
        ends = length >= left
        ref = beta * gap_at(y - length)  # no weight on the panel is larger, so none overflows
        time, step = advance(y, length, ref, m, dimension, p, matrices, place, v, weight, scratch)
        evaluations += 8
        log_after = np.logaddexp(log_clock, ref + np.log(time))
        finished = log_after + offset >= log_horizon
        while True:
            # the next save time in this panel, or the horizon
            final = not (index < log_times.size and log_times[index] - offset <= log_after)
            if final and not finished:
                break
            target = (log_horizon if final else log_times[index]) - offset
            base = np.exp(min(log_clock - ref, 700.0))
            wanted = np.exp(target - ref) if log_clock == -np.inf else base * np.expm1(target - log_clock)
            low, high, cut = 0.0, length, length * min(1.0, wanted / time)
            part, part_turn = time, step
            for _ in range(60):
                part, part_turn = advance(y, cut, ref, m, dimension, p, matrices, place, v, weight, scratch)
                evaluations += 8
                if part < wanted:
                    low = cut
                else:
                    high = cut
                # Newton's step, with the rate at the end of the part
                phi_cut = angle(y - cut)
                place[0], place[1], place[8], place[9] = 1.0, np.cos(phi_cut), 0.0, np.sin(phi_cut)
                change = (wanted - part) * velocity(
                    place, m, 2, 8, dimension, ref, p, matrices, v, weight, scratch
                )
                evaluations += 1
                if abs(part - wanted) <= 1e-14 * wanted or high - low <= 1e-15 * length:
                    break
                cut = cut + change if low < cut + change < high else 0.5 * (low + high)
            near, far = turn + part_turn, angle(y - cut) + turn + part_turn
            target_x = x if final else shown
            for k in range(dimension):
                target_x[k * stride + i] = np.cos(near) * origin[k] + np.sin(near) * tangent[k]
                target_x[k * stride + j] = np.cos(far) * origin[k] + np.sin(far) * tangent[k]
            if final:
                return log_after, index, clusters, evaluations
            on_save(record, index, shown, mass, squares, member, atoms, stride, dimension, beta, clusters)
            index += 1
        turn += step
        y = max(last, meets) if ends else y - length
        log_clock = log_after
        if ends and y == meets:
            before = clusters
            less, more = events.weights_joining(together, labels, mass, atoms, i, j)
            clusters = events.flip(together, atoms, labels, queue, i, j, clusters)
            if clusters != before:
                on_clusters(record, log_clock + offset, before, clusters, labels, member, less, more)
            meets = -np.inf
    near, far = turn, angle(last) + turn
    for k in range(dimension):
        x[k * stride + i] = np.cos(near) * origin[k] + np.sin(near) * tangent[k]
        x[k * stride + j] = np.cos(far) * origin[k] + np.sin(far) * tangent[k]
    return log_clock, index, clusters, evaluations
