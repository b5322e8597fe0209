"""A trajectory of very many tokens: spectral sums first, then sums over pairs of the few atoms left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import dynamics as equations
from pipeline.dynamics import spectral as velocities
from pipeline.integrate import MANY, Adaptive, Layers
from pipeline.integrate import crowd as crowds
from pipeline.integrate.workspace import Workspace
from pipeline.observe import record as recorders
from pipeline.sphere import crowd as geometry
from pipeline.sphere import spectral


def chosen(
    integrator: Adaptive | Layers, dynamics: equations.Dynamics, n: int, d: int, beta: float, delta: float
) -> bool:
    """Whether a cell begins with spectral sums.

    Raises
    ------
    ValueError
        If there are no sums for it.
    """
    if isinstance(integrator, Adaptive):
        return integrator.spectral(n, d, beta, dynamics.symmetric, delta)
    if n > MANY:
        raise ValueError(f"grid.n: got {n}; allowed: at most {MANY} with integrator=layers")
    return False


def follow(
    tokens: NDArray[np.float64],
    weights: NDArray[np.float64],
    beta: float,
    *,
    dynamics: equations.Dynamics,
    integrator: Adaptive | Layers,
    log_times: NDArray[np.float64],
    log_horizon: float,
    tolerance: float,
    wanted: NDArray[np.bool_],
    series: NDArray[np.float64],
    last: NDArray[np.float64],
    states: NDArray[np.float64] | None = None,
) -> tuple[int, int, int]:
    """Follow (n, 2) or (n, 3) unit rows; returns (outcome, evaluations, steps).

    ``series`` (T, 4), ``last`` (clusters, 3) and, if given, ``states`` (T, n, d) are written, as the
    recorders of `pipeline.observe.record` do.
    """
    if not isinstance(integrator, Adaptive):
        raise TypeError("layers are never summed spectrally")
    dimension = tokens.shape[1]
    field = dynamics.field(dimension)
    epsilon = spectral.epsilon_for(integrator.local_error(tolerance))
    threads = integrator.sum_threads

    def save(index: int, crowd: geometry.Crowd, place: NDArray[np.float64], clusters: int) -> None:
        if wanted[0]:
            within = float(np.sum(crowd.mass**2 - crowd.squares))
            close = within + crowd.mass_together(place, tolerance)
            series[index, 0] = min(1.0, close / (1.0 - float(crowd.squares.sum())))
        if wanted[1]:
            series[index, 1] = clusters
        if wanted[2]:
            weight, _ = crowd.sums(place, beta, epsilon, threads)
            series[index, 2] = min(1.0, float(np.sum(crowd.mass * weight)))
        if wanted[3] or states is not None:
            positions = crowd.positions(place)
            series[index, 3] = min(1.0, float(np.sqrt(np.sum(np.sum(crowd.mass * positions.T, axis=1) ** 2))))
            if states is not None:
                states[index] = positions[crowd.member]

    def note(log_time: float, before: int, after: int) -> None:
        recorders.note_clusters(last, log_time, before, after, np.nan, np.nan)

    crowd, place = geometry.Crowd.of(tokens, weights)
    reached = crowds.follow(
        crowd,
        place,
        crowds.Task(
            velocity=velocities.velocity(field.normalised, beta, epsilon, threads),
            tolerance=integrator.local_error(tolerance),
            chord=integrator.chord(tolerance),
            max_evaluations=integrator.max_evaluations,
            delta=tolerance,
            clusters_kept=len(last),
            log_times=log_times,
            log_horizon=log_horizon,
            offset=field.clock_offset * beta,
            steepness=float(np.sqrt(beta)),
            on_save=save,
            on_clusters=note,
        ),
    )
    if reached.outcome != crowds.HANDED_OVER:
        return reached.outcome, reached.evaluations, reached.steps
    crowd = reached.crowd
    record: tuple[Any, ...] = (wanted, tolerance, series, last)
    member = np.arange(crowd.atoms)
    if states is not None:
        member = crowd.member
        record += (states, np.zeros(1, np.int64), np.empty(0), np.empty((0, member.size), np.int64))
    outcome, evaluations, steps = recorders.adaptive_solver(
        field.velocity, field.reference, states is not None
    )(
        Workspace.of(crowd.atoms, dimension, len(member)),
        crowd.positions(reached.place),
        crowd.mass,
        crowd.squares,
        member,
        beta,
        *recorders.method_arguments(field, integrator, tolerance),
        tolerance,
        log_times,
        log_horizon,
        record,
        (reached.log_clock, reached.clusters, reached.saved, reached.evaluations, reached.steps),
    )
    return int(outcome), int(evaluations), int(steps)
