"""The coalescing integrator: from t = 0 to consensus, however long it takes.

One trajectory is a sequence of explicit Runge-Kutta steps of order 8 on the running clock s of its field (see
`pipeline.dynamics.fields`), on which the strongest pair moves at speed 1 whatever beta is. Three things keep
it there:

- Time is one more integrated quantity, with its own error control, joined to ln t by log-add-exp.
- Tokens closer than ``coalescence`` become one weighted atom (exact to second order), which removes the fast
  modes.
- Atoms whose strongest pair is weaker than the strongest of all by more than exp(-window) rest: in the time
  that the
  strong pairs need they would move by less than the tolerance. Work follows the atoms that move.

Save times and crossings of the cluster tolerance are read off the interpolant; steps are never cut to hit
them.

`solve` is a template for `pipeline.integrate.compiled.bind`: `velocity`, `reference`, `on_save`,
`on_clusters` are bound there. It knows neither which equation it steps nor what is recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.integrate import events, pair
from pipeline.integrate import runge_kutta as rk
from pipeline.integrate.atoms import choose, clear, coalesce, duplicate, normalise, pack, unpack
from pipeline.integrate.workspace import Workspace
from pipeline.sphere import gaps, pairs

# outcomes
DONE, TOO_MANY_EVALUATIONS, STEP_UNDERFLOW, NOT_FINITE = 0, 1, 2, 3

# ln of the clock's time, clusters, save times seen to, evaluations and steps before the first token moves
FROM_THE_START = (-np.inf, 0, 0, 0, 0)

_SLACK = 4.0  # atoms are taken along this many e-folds before they count
_SHED = 6.0  # after so many e-folds of the strongest pair, look again who may rest


# Bound by `compiled.bind`: a field, and a recorder that is called at save times with
# (record, index, x, mass, squares, member, atoms, stride, dimension, beta, clusters)
# and when the number of clusters changes with (record, log_time, before, after, labels, member,
# less, more), the last two being the weights of the clusters that joined, 0 when one parted.
velocity: Any = None
reference: Any = None
on_save: Any = None
on_clusters: Any = None
pass_pair: Any = None  # `pipeline.integrate.pair`, bound to the same


def solve(
    work: Workspace,
    tokens: Any,
    weights: Any,
    shares: Any,
    tokens_in: Any,
    beta: float,
    normalised: float,
    decays: float,
    coalesces: bool,
    geodesic: bool,
    clock_offset: float,
    matrices: Any,
    tolerance: float,
    coalescence: float,
    max_evaluations: int,
    delta: float,
    log_times: Any,
    log_horizon: float,
    record: Any,
    begin: Any,
) -> Any:
    """Follow one trajectory in ``work``; returns (outcome, evaluations, steps).

    tokens: (n, dimension) unit rows; weights, shares: (n,), and tokens_in: what `atoms` calls mass, squares
    and member. ``decays``, ``coalesces``, ``geodesic``, ``clock_offset``: as the field declares them.
    ``coalescence``: a chord. ``log_times``: ascending natural logarithms, at most ``log_horizon`` (inf:
    until one atom is left). ``begin``: `FROM_THE_START`, or the same five of the method that came this far.
    """
    n, dimension = tokens.shape
    stride = pairs.stride_of(n)
    size = dimension * stride
    row = rk.apart(size)
    offset = clock_offset * beta
    closeness = 0.5 * coalescence * coalescence
    window = 12.0 - np.log(tolerance)
    decay = decays * beta

    # all atoms
    x, shown = work.x, work.shown  # ``shown``: positions at a save time
    mass, squares, mark, aside, nearest = work.mass, work.squares, work.mark, work.aside, work.nearest
    member, labels, queue, together = work.member, work.labels, work.queue, work.together
    x[:] = pairs.FAR
    mass[:], squares[:] = 0.0, 0.0
    for token in range(member.size):
        member[token] = tokens_in[token]
    total_mass = 0.0
    bits = 12345
    for i in range(n):
        for k in range(dimension):
            x[k * stride + i] = tokens[i, k]
        mass[i] = weights[i]
        squares[i] = shares[i]
        total_mass += weights[i]
        bits = (bits * 1103515245 + 12345) % 2147483648
        mark[i] = float(bits // 4096 + 1)
    atoms = n
    normalise(x, atoms, stride, dimension)
    if coalesces and gaps.nearest_gaps(x, atoms, stride, dimension, nearest) <= closeness:
        atoms = coalesce(x, mass, squares, member, labels, together, atoms, stride, dimension, closeness)
    gaps.adjacency(x, atoms, stride, dimension, delta, together)
    clusters = gaps.components(together, atoms, labels, queue)
    log_clock, clusters_before, index, evaluations, steps = begin
    on_clusters(record, log_clock + offset, clusters_before, clusters, labels, member, 0.0, 0.0)

    # the atoms that move, packed
    moving, slot_of = work.moving, work.slot_of
    count, packed = atoms, stride
    start, end, trial, m, weight = work.start, work.end, work.trial, work.m, work.weight
    slopes, coefficients, scratch = work.slopes, work.coefficients, work.scratch
    rates, lapse, one, p = work.rates, work.lapse, work.one, work.p
    p[0], p[1], p[2] = beta, normalised, 1.0 / total_mass

    refusals = 0
    ref, least, least_aside, least_then = 0.0, 0.0, 0.0, 0.0
    before, after = work.before, work.after  # who is near a moving atom, at both ends of a step
    first, second, theta = work.first, work.second, work.theta  # pairs that cross
    h = 0.0
    stirred = True
    outcome = DONE
    while index < log_times.size and log_times[index] == -np.inf:
        on_save(record, index, x, mass, squares, member, atoms, stride, dimension, beta, clusters)
        index += 1

    while True:
        if atoms == 1 and coalesces:
            break
        if log_clock + offset >= log_horizon:
            break
        if evaluations >= max_evaluations:
            outcome = TOO_MANY_EVALUATIONS
            break
        if stirred:
            # choose who moves, and restart
            stirred = False
            chosen = np.inf
            least = gaps.nearest_gaps(x, atoms, stride, dimension, nearest)
            if decay > 0.0:
                chosen = least + (window + _SLACK) / decay
            count, least_aside = choose(nearest, chosen, atoms, stride, moving, slot_of, aside, mark)
            packed = pairs.stride_of(count)
            size = dimension * packed
            row = rk.apart(size)
            pack(x, mass, stride, dimension, moving, count, start, m, packed)
            least_then = least
            gaps.survey(x, atoms, stride, dimension, moving, count, aside, mark, delta, before)

            ref_before = ref
            ref = reference(start, m, count, packed, dimension, p, matrices, scratch, least)
            slope = slopes[:size]
            k0 = velocity(start, m, count, packed, dimension, ref, p, matrices, slope, weight, scratch)
            evaluations += 1
            if not (k0 > 0.0 and k0 < np.inf):
                outcome = NOT_FINITE
                break
            ref -= np.log(k0)
            rates[0] = 1.0
            speed = rk.top_speed(slopes, size)
            if speed == 0.0:
                break  # every token rests: nothing will ever move
            if not speed < np.inf:
                outcome = NOT_FINITE
                break
            if geodesic and count == 2:
                i, j = moving[0], moving[1]
                y = pair.frame(x, stride, dimension, i, j, one)
                clear_by = pair.clearance(x, atoms, stride, dimension, i, j, one, pair.angle(y))
                if atoms == 2 or (clear_by > delta and decay * (clear_by - least) > window):
                    log_clock, index, clusters, cost = pass_pair(
                        work,
                        atoms,
                        stride,
                        dimension,
                        i,
                        j,
                        y,
                        closeness,
                        matrices,
                        tolerance,
                        delta,
                        offset,
                        log_times,
                        log_horizon,
                        record,
                        index,
                        log_clock,
                        clusters,
                    )
                    evaluations += cost
                    steps += 1
                    atoms = coalesce(
                        x, mass, squares, member, labels, together, atoms, stride, dimension, closeness
                    )
                    stirred = True
                    continue
            # the last step in the same time or, if the clock now runs slower, one that changes weights by a
            # third
            h *= np.exp(min(ref_before - ref, 0.0))
            if h == 0.0 or ref_before - ref < -0.1:
                h = max(h, 0.3 / (speed * (1.0 + 2.0 * beta * np.sqrt(2.0 * least))))

        # one trial step
        base = np.exp(min(log_clock - ref, 700.0))
        if log_clock - ref > 700.0:
            base = np.inf
        sound = True
        for stage in range(1, rk.STAGES):
            rk.combine(start, slopes, size, stage, h, trial)
            slope = slopes[stage * row : stage * row + size]
            rate = velocity(trial, m, count, packed, dimension, ref, p, matrices, slope, weight, scratch)
            evaluations += 1
            if not (rate > 0.0 and rate < np.inf):
                sound = False
                break
            rates[stage] = 1.0 / rate
        miss = np.inf
        duration = 0.0
        if sound:
            duration = rk.elapsed(rates, h)
            if duration > 0.0 and duration < np.inf:
                miss = rk.error(slopes, rates, packed, dimension, h, base, duration) / tolerance
        if not miss <= 1.0:
            h = rk.shorter(h, miss)
            refusals += 1
            if refusals > rk.PATIENCE:
                outcome = STEP_UNDERFLOW
                break
            continue

        # accepted: the end of the step
        rk.combine(start, slopes, size, rk.LAST, h, end)
        clear(end, m, count, packed, dimension, pairs.padding(dimension))
        normalise(end, count, packed, dimension)
        slope = slopes[rk.LAST * row : rk.LAST * row + size]
        rate = velocity(end, m, count, packed, dimension, ref, p, matrices, slope, weight, scratch)
        evaluations += 1
        steps += 1
        refusals = 0
        log_after = np.logaddexp(log_clock, ref + np.log(duration))
        if not (rate > 0.0 and rate < np.inf and log_after < np.inf):
            outcome = NOT_FINITE
            break
        rates[rk.LAST] = 1.0 / rate
        unpack(end, packed, dimension, moving, count, x, stride)
        among, across = gaps.survey(x, atoms, stride, dimension, moving, count, aside, mark, delta, after)

        # what happened within the step
        saves = 0
        while index + saves < log_times.size and log_times[index + saves] - offset <= log_after:
            saves += 1
        crossings = events.list_crossings(
            x, atoms, stride, dimension, moving, count, slot_of, before, after, together, delta, first, second
        )
        if saves > 0 or crossings > 0:
            for stage in rk.EXTRA:
                rk.combine(start, slopes, size, stage, h, trial)
                slope = slopes[stage * row : stage * row + size]
                extra = velocity(trial, m, count, packed, dimension, ref, p, matrices, slope, weight, scratch)
                evaluations += 1
                rates[stage] = 1.0 / extra
            rk.interpolant(start, end, slopes, size, h, coefficients)
            rk.time_interpolant(rates, h, duration, lapse)
            pending = 0
            if crossings > 0:
                parting = False
                for q in range(crossings):
                    parting = parting or together[first[q], second[q]]
                for q in range(crossings):
                    i, j = first[q], second[q]
                    if not parting and labels[i] == labels[j]:
                        together[i, j] = True  # joins what is joined already: when does not matter
                        together[j, i] = True
                        continue
                    for k in range(dimension):
                        one[k] = x[k * stride + j]
                    first[pending], second[pending] = i, j
                    theta[pending] = events.crossing(
                        coefficients,
                        start,
                        packed,
                        dimension,
                        slot_of[i],
                        slot_of[j],
                        one,
                        delta,
                        work.terms,
                    )
                    pending += 1
                events.sort_by(theta, pending, first, second)
            event = 0
            for s in range(saves + 1):
                target = (log_times[index] if s < saves else log_horizon) - offset
                at = events.fraction_at(target, lapse, duration, base, ref, log_clock, log_after)
                while event < pending and theta[event] <= at:
                    i, j = first[event], second[event]
                    clusters_before = clusters
                    less, more = events.weights_joining(together, labels, mass, atoms, i, j)
                    clusters = events.flip(together, atoms, labels, queue, i, j, clusters)
                    if clusters != clusters_before:
                        moment = rk.evaluate(lapse, 1, 0, theta[event])
                        log_moment = log_clock
                        if moment > 0.0:
                            log_moment = np.logaddexp(log_clock, ref + np.log(moment))
                        on_clusters(
                            record, log_moment + offset, clusters_before, clusters, labels, member, less, more
                        )
                    event += 1
                if s < saves:
                    rk.evaluate_all(coefficients, start, size, at, trial)
                    normalise(trial, count, packed, dimension)
                    duplicate(x, dimension * stride, shown)
                    unpack(trial, packed, dimension, moving, count, shown, stride)
                    on_save(
                        record, index, shown, mass, squares, member, atoms, stride, dimension, beta, clusters
                    )
                    index += 1
            before, after = after, before

        # the next step begins where this one ended
        log_clock = log_after
        start, end = end, start
        rk.begin_next(slopes, size)
        ref -= np.log(rate)
        rates[0] = 1.0
        h = rk.following(h, miss)

        least = among
        if coalesces and least <= closeness:
            left = coalesce(x, mass, squares, member, labels, together, atoms, stride, dimension, closeness)
            stirred = left != atoms
            atoms = left
        if decay > 0.0 and not stirred:
            if decay * (min(across, least_aside) - least) < window:
                stirred = True  # somebody at rest must move now
            elif count > 2 and decay * (least_then - least) > _SHED:
                stirred = True  # somebody may come to rest
            if stirred:
                least_then = least

    if outcome == DONE:
        while index < log_times.size:
            on_save(record, index, x, mass, squares, member, atoms, stride, dimension, beta, clusters)
            index += 1
    return outcome, evaluations, steps
