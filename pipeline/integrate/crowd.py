"""The first phase of a trajectory of very many tokens: from t = 0 until few atoms are left.

The same Runge-Kutta steps of order 8 as in `pipeline.integrate.adaptive`, but nothing here costs n². The
clock is a plain one, since in this phase close pairs abound: the strongest pair is as strong as can be. All
atoms move. Tokens coalesce, and when at most `FEW` atoms are left, `adaptive.solve` takes over.

Clusters are counted at the end of each step. If they are others than at its start and so few that their times
are kept, they are counted at three moments between, and each fall of their number is pinned down on the
interpolant by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.integrate import runge_kutta as rk
from pipeline.integrate.adaptive import DONE, NOT_FINITE, STEP_UNDERFLOW, TOO_MANY_EVALUATIONS

FEW = 1024  # so many atoms are left to sums over pairs
MANY = 32768  # more atoms than this are never left to them: their pairs would take a gigabyte
INACCURATE = 4  # an outcome, beside those of `adaptive`
HANDED_OVER = -1

_SAFETY, _SHRINK, _GROW, _PATIENCE = 0.9, 0.2, 8.0, 60
_WORTH = 0.98  # atoms coalesce when this share of them or less would be left
_FINE = 2.0**-26  # of a step: how finely a change of the number of clusters is pinned down


@dataclass(frozen=True)
class Task:
    """What is asked of a crowd, whatever its equation.

    ``velocity(crowd, place, out)`` writes velocities and returns a bound on their error. Times are on the
    clock; ``offset`` is added to its logarithm for what is reported. ``on_save(index, crowd, place,
    clusters)`` and ``on_clusters(log_time, before, after)`` record.
    """

    velocity: Callable[[Any, NDArray[Any], NDArray[Any]], float]
    tolerance: float
    chord: float
    max_evaluations: int
    delta: float
    clusters_kept: int
    log_times: NDArray[np.float64]
    log_horizon: float
    offset: float
    steepness: float
    on_save: Callable[[int, Any, NDArray[Any], int], None]
    on_clusters: Callable[[float, int, int], None]


@dataclass(frozen=True)
class Reached:
    """Where the crowd phase ended, and why."""

    outcome: int
    crowd: Any
    place: NDArray[np.float64]
    log_clock: float
    clusters: int
    saved: int
    evaluations: int
    steps: int


@dataclass(frozen=True)
class Step:
    """The continuous solution over one step; ``place`` is overwritten by the next look."""

    crowd: Any
    start: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    out: NDArray[np.float64]
    delta: float

    def place(self, theta: float) -> NDArray[np.float64]:
        """Where the atoms are at a fraction theta of the step."""
        rk.evaluate_all(self.coefficients, self.start, self.start.size, theta, self.out)
        self.crowd.settle(self.out)
        return self.out

    def clusters(self, theta: float) -> int:
        """How many clusters there are then."""
        return int(self.crowd.clusters(self.place(theta), self.delta)[0])


def follow(crowd: Any, place: NDArray[np.float64], task: Task) -> Reached:
    """Move a crowd (`pipeline.sphere.crowd`) until few atoms are left, the horizon, or a failure."""
    with np.errstate(over="ignore"):
        saves, horizon = np.exp(task.log_times - task.offset), float(np.exp(task.log_horizon - task.offset))
    crowd, start = crowd.coalesced(place, task.chord, 0.0)
    size = start.size
    row = rk.apart(size)
    slopes, coefficients = np.zeros(rk.ALL_STAGES * row), np.empty(rk.DEGREE * row)
    end, trial = np.zeros(size), np.zeros(size)
    rates = np.ones(rk.ALL_STAGES)
    clusters, signature = crowd.clusters(start, task.delta)
    task.on_clusters(-math.inf, 0, clusters)
    clock, h, bound = 0.0, 0.0, 0.0
    index = evaluations = steps = refusals = 0
    stirred = True
    outcome = HANDED_OVER
    while index < saves.size and saves[index] == 0.0:
        task.on_save(index, crowd, start, clusters)
        index += 1

    while crowd.atoms > FEW and clock < horizon:
        if evaluations >= task.max_evaluations:
            outcome = TOO_MANY_EVALUATIONS
            break
        if stirred:
            bound = task.velocity(crowd, start, slopes[:size])
            evaluations += 1
            stirred = False
        if not bound <= task.tolerance:
            outcome = HANDED_OVER if crowd.atoms <= MANY else INACCURATE
            break
        if h == 0.0:
            h = 0.1 / (rk.top_speed(slopes, size) * (1.0 + task.steepness) + 1e-100)

        # one trial step
        for stage in range(1, rk.STAGES):
            _stage(crowd, start, slopes, stage, h, trial, task)
        evaluations += rk.STAGES - 1
        miss = rk.error(slopes, rates, crowd.stride, crowd.coordinates, h, clock, h) / task.tolerance
        if not miss <= 1.0:
            h *= max(_SHRINK, _SAFETY * miss**-0.125) if miss < np.inf else _SHRINK
            refusals += 1
            if refusals > _PATIENCE:
                outcome = STEP_UNDERFLOW
                break
            continue

        # accepted
        bound = _stage(crowd, start, slopes, rk.LAST, h, end, task)
        evaluations += 1
        steps += 1
        refusals = 0
        if not np.isfinite(end).all():
            outcome = NOT_FINITE
            break
        after, signature_after = crowd.clusters(end, task.delta)
        due = index
        while due < saves.size and saves[due] <= clock + h:
            due += 1
        until = min(1.0, (horizon - clock) / h)
        changed = signature_after != signature and min(clusters, after) <= task.clusters_kept
        if due > index or changed or until < 1.0:
            for stage in rk.EXTRA:
                _stage(crowd, start, slopes, stage, h, trial, task)
            evaluations += len(rk.EXTRA)
            rk.interpolant(start, end, slopes, size, h, coefficients)
            step = Step(crowd, start, coefficients, trial, task.delta)
            if until < 1.0:
                after = step.clusters(until)
            for theta, before, then in changes(step.clusters, until, clusters, after, task.clusters_kept):
                task.on_clusters(math.log(clock + theta * h) + task.offset, before, then)
            while index < due:
                theta = (saves[index] - clock) / h
                count = step.clusters(theta)
                task.on_save(index, crowd, step.place(theta), count)
                index += 1
            if until < 1.0:
                end[:] = step.place(until)
        elif after != clusters:
            task.on_clusters(math.log(clock + h) + task.offset, clusters, after)
        clusters, signature = after, signature_after
        clock = clock + h if until == 1.0 else horizon

        # the next step begins where this one ended
        start, end = end, start
        rk.begin_next(slopes, size)
        h *= min(_GROW, max(_SHRINK, _SAFETY * max(miss, 1e-30) ** -0.125))
        fewer, place = crowd.coalesced(start, task.chord, (steps * 0.6180339887498949) % 1.0)
        if fewer.atoms <= max(_WORTH * crowd.atoms, FEW):
            crowd, start = fewer, place
            size = start.size
            end, trial = np.zeros(size), np.zeros(size)
            row = rk.apart(size)
            slopes, coefficients = slopes[: rk.ALL_STAGES * row], coefficients[: rk.DEGREE * row]
            slopes[:] = 0.0
            signature = crowd.clusters(start, task.delta)[1]
            stirred = True
    if clock >= horizon:
        outcome = DONE
        while index < saves.size:
            task.on_save(index, crowd, start, clusters)
            index += 1
    log_clock = math.log(clock) if clock > 0.0 else -math.inf
    return Reached(outcome, crowd, start, log_clock, clusters, index, evaluations, steps)


def _stage(
    crowd: Any,
    start: NDArray[Any],
    slopes: NDArray[Any],
    stage: int,
    h: float,
    place: NDArray[Any],
    task: Task,
) -> float:
    """Evaluate one stage of a step, at ``place``; return the bound on the velocities' error."""
    size = start.size
    rk.combine(start, slopes, size, stage, h, place)
    crowd.settle(place)
    at = stage * rk.apart(size)
    return task.velocity(crowd, place, slopes[at : at + size])


def changes(
    count_at: Callable[[float], int], until: float, before: int, after: int, kept: int
) -> list[tuple[float, int, int]]:
    """Changes (theta, before, after) of the number of clusters within a step, in order of time.

    Exact for the last fall below each number of at most ``kept`` that shows at one of the moments looked at;
    other changes are dated to the end of their interval.
    """
    moments = [0.0, 0.25 * until, 0.5 * until, 0.75 * until, until]
    counts = [before, *(count_at(theta) for theta in moments[1:-1]), after]
    found: list[tuple[float, int, int]] = []
    most = after  # from here on there are no more clusters than this
    for low, high, more, fewer in reversed(
        list(zip(moments[:-1], moments[1:], counts[:-1], counts[1:], strict=True))
    ):
        if more > max(most, fewer) and fewer <= kept:
            found = _falls(count_at, low, high, more, fewer, kept) + found
        elif more != fewer:
            found = [(high, more, fewer), *found]
        most = max(most, more)
    return found


def _falls(
    count_at: Callable[[float], int], low: float, high: float, more: int, fewer: int, kept: int
) -> list[tuple[float, int, int]]:
    """Bisect a fall of the number of clusters down to single moments."""
    if more == fewer:
        return []
    if more < fewer or fewer > kept or high - low < _FINE:
        return [(high, more, fewer)]
    middle = 0.5 * (low + high)
    count = count_at(middle)
    return _falls(count_at, low, middle, more, count, kept) + _falls(
        count_at, middle, high, count, fewer, kept
    )
