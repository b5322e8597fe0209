"""The first phase of a trajectory of very many tokens: from t = 0 until few atoms are left.

The same Runge-Kutta steps of order 8 as in `pipeline.integrate.adaptive`, but nothing here costs n². The
clock is a plain one, since in this phase close pairs abound: the strongest pair is as strong as can be. All
atoms move. Tokens coalesce, and when at most `FEW` atoms are left, `adaptive.solve` takes over.

Clusters are found at the end of each step. If they are others than at its start and so few that their times
are kept, they are found at three moments between, too, and each fall of their number is pinned down on the
interpolant: to the moment at which the first two atoms of two clusters meet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from pipeline.integrate import runge_kutta as rk
from pipeline.integrate.adaptive import DONE, NOT_FINITE, STEP_UNDERFLOW, TOO_MANY_EVALUATIONS

FEW = 1024  # so many atoms are left to sums over pairs
MANY = 32768  # more atoms than this are never left to them: their pairs would take a gigabyte
INACCURATE = 4  # an outcome, beside those of `adaptive`
HANDED_OVER = -1

Partition = tuple[int, NDArray[np.int64]]  # how many clusters, and in which each atom is

_WORTH = 0.98  # atoms coalesce when this share of them or less would be left
_FINE = 2.0**-26  # of a step: how finely a change of the number of clusters is pinned down
_SINGLY = 8  # if so many clusters or fewer are lost, they are followed one by one


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

    def clusters(self, theta: float) -> Partition:
        """The clusters then."""
        return self.crowd.clusters(self.place(theta), self.delta)  # type: ignore[no-any-return]

    def meeting(self, theta: float, labels: NDArray[np.int64]) -> tuple[int, int] | None:
        """The closest two atoms that are together then though their labels differ, if there are any."""
        return self.crowd.meeting(self.place(theta), labels, self.delta)  # type: ignore[no-any-return]

    def first_meeting(
        self, low: float, labels: NDArray[np.int64], high: float, pair: tuple[int, int]
    ) -> float:
        """When the first two atoms of different ``labels``, all apart at ``low``, meet.

        ``pair``: the closest two at ``high``, which have met.
        Whoever is closest at the end of an interval met within it; before that meeting others may have met.
        """
        earlier: tuple[int, int] | None = pair
        met = high
        while earlier is not None:
            met = self._meeting(earlier, low, high)
            high = met - _FINE
            earlier = self.meeting(high, labels) if high > low else None
        return met

    def _meeting(self, pair: tuple[int, int], low: float, high: float) -> float:
        i, j = pair

        def excess(theta: float) -> float:
            gap = self.crowd.gap(self._atom(i, theta), self._atom(j, theta))
            return math.log(max(gap, 1e-300) / self.delta)

        if excess(low) <= 0.0 or excess(high) > 0.0:  # a rounding error off
            return low if excess(low) <= 0.0 else high
        return float(brentq(excess, low, high, xtol=1e-15, rtol=1e-14))

    def _atom(self, i: int, theta: float) -> NDArray[np.float64]:
        """The coordinates of one atom at a fraction theta of the step."""
        crowd, row = self.crowd, rk.apart(self.start.size)
        at = range(i, crowd.coordinates * crowd.stride, crowd.stride)
        return np.array([self.start[r] + rk.evaluate(self.coefficients, row, r, theta) for r in at])


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
    clusters, labels = crowd.clusters(start, task.delta)
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
            h = rk.shorter(h, miss)
            refusals += 1
            if refusals > rk.PATIENCE:
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
        after, labels_after = crowd.clusters(end, task.delta)
        due = index
        while due < saves.size and saves[due] <= clock + h:
            due += 1
        until = min(1.0, (horizon - clock) / h)
        changed = min(clusters, after) <= task.clusters_kept and not np.array_equal(labels_after, labels)
        if due > index or changed or until < 1.0:
            for stage in rk.EXTRA:
                _stage(crowd, start, slopes, stage, h, trial, task)
            evaluations += len(rk.EXTRA)
            rk.interpolant(start, end, slopes, size, h, coefficients)
            step = Step(crowd, start, coefficients, trial, task.delta)
            if until < 1.0:
                after, labels_after = step.clusters(until)
            ends = (clusters, labels), (after, labels_after)
            for theta, before, then in changes(step, until, *ends, task.clusters_kept):
                task.on_clusters(math.log(clock + theta * h) + task.offset, before, then)
            while index < due:
                theta = (saves[index] - clock) / h
                count, _ = step.clusters(theta)
                task.on_save(index, crowd, step.place(theta), count)
                index += 1
            if until < 1.0:
                end[:] = step.place(until)
        elif after != clusters:
            task.on_clusters(math.log(clock + h) + task.offset, clusters, after)
        clusters, labels = after, labels_after
        clock = clock + h if until == 1.0 else horizon

        # the next step begins where this one ended
        start, end = end, start
        rk.begin_next(slopes, size)
        h = rk.following(h, miss)
        fewer, place = crowd.coalesced(start, task.chord, (steps * 0.6180339887498949) % 1.0)
        if fewer.atoms <= max(_WORTH * crowd.atoms, FEW):
            crowd, start = fewer, place
            size = start.size
            end, trial = np.zeros(size), np.zeros(size)
            row = rk.apart(size)
            slopes, coefficients = slopes[: rk.ALL_STAGES * row], coefficients[: rk.DEGREE * row]
            slopes[:] = 0.0
            labels = crowd.clusters(start, task.delta)[1]
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
    step: Step, until: float, before: Partition, after: Partition, kept: int
) -> list[tuple[float, int, int]]:
    """Changes (theta, before, after) of the number of clusters within a step, in order of time.

    Falls to at most ``kept`` are exact if later moments that are looked at show no more clusters; other
    changes are dated to the end of their interval. Unseen are only clusters that part and rejoin between two
    moments.
    """
    moments = [0.0, 0.25 * until, 0.5 * until, 0.75 * until, until]
    seen = [before, *(step.clusters(theta) for theta in moments[1:-1]), after]
    found: list[tuple[float, int, int]] = []
    most = 0  # from here on there are no more clusters than this
    for q in reversed(range(len(seen) - 1)):
        (more, _), (fewer, _) = seen[q], seen[q + 1]
        most = max(most, fewer)
        if max(more, fewer) >= most:
            found = _between(step, moments[q], moments[q + 1], seen[q], seen[q + 1], kept) + found
        elif more != fewer:
            found = [(moments[q + 1], more, fewer), *found]
    return found


def _between(
    step: Step, low: float, high: float, before: Partition, after: Partition, kept: int
) -> list[tuple[float, int, int]]:
    """Pin changes down to single moments: by halves while clusters both meet and part, or many meet."""
    (more, labels), (fewer, labels_after) = before, after
    at_the_end = [(high, more, fewer)] if more != fewer else []
    if np.array_equal(labels, labels_after) or min(more, fewer) > kept or high - low < _FINE:
        return at_the_end
    pair = step.meeting(high, labels)
    if pair is None:
        return at_the_end
    if more - fewer > _SINGLY or step.meeting(low, labels_after) is not None:
        middle = 0.5 * (low + high)
        between = step.clusters(middle)
        return _between(step, low, middle, before, between, kept) + _between(
            step, middle, high, between, after, kept
        )
    met = step.first_meeting(low, labels, high, pair)
    then = min(met + _FINE, high)
    joined = step.clusters(then)
    change = [(met, more, joined[0])] if joined[0] != more else []
    return change + _between(step, then, high, joined, after, kept)
