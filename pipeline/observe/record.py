"""What is recorded of a trajectory, and the compiled loops with these recorders bound in.

Observables at a save time (weights m_i, total M, delta the cluster tolerance):

    pair_sync_fraction   sum_{i<j} m_i m_j [h_ij <= delta] / sum_{i<j} m_i m_j
    cluster_count        connected components of h_ij <= delta
    energy               sum_{i,j} m_i m_j exp(-beta h_ij) / M²     (in (0, 1], 1 at consensus)
    order_parameter      |sum_i m_i x_i| / M

with h_ij = 1 - <x_i, x_j>. log_time_to_clusters[k - 1] is the natural logarithm of the last moment with more
than k clusters: +inf if there are still more at the horizon, -inf if there never were.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pipeline.dynamics import Field, fields
from pipeline.integrate import Adaptive, Layers, adaptive, compiled, layers, pair
from pipeline.sphere import gaps
from pipeline.sphere.lanes import kernel

MERGERS = ("merger_smaller_share", "merger_larger_share")
TIME_RESOLVED = ("pair_sync_fraction", "cluster_count", "energy", "order_parameter")


@kernel
def _measure(
    wanted: Any,
    x: Any,
    mass: Any,
    squares: Any,
    atoms: int,
    stride: int,
    dimension: int,
    beta: float,
    delta: float,
    clusters: int,
    out: Any,
) -> None:
    """Write the time-resolved observables that are wanted, in the order of TIME_RESOLVED."""
    whole, own = 0.0, 0.0  # total mass; sum over atoms of the squared weights of their tokens
    within = 0.0  # pairs inside atoms, twice
    for i in range(atoms):
        whole += mass[i]
        own += squares[i]
        within += mass[i] * mass[i] - squares[i]
    if wanted[0]:
        close = within + gaps.mass_together(x, mass, atoms, stride, dimension, delta)
        out[0] = min(1.0, close / (whole * whole - own))
    if wanted[1]:
        out[1] = clusters
    if wanted[2]:
        out[2] = min(1.0, gaps.interaction(x, mass, atoms, stride, dimension, beta) / (whole * whole))
    if wanted[3]:
        out[3] = min(1.0, gaps.resultant(x, mass, atoms, stride, dimension) / whole)


@kernel
def note_clusters(last: Any, log_time: float, before: int, after: int, less: float, more: float) -> None:
    """Keep in ``last[k - 1]`` the last moment with more than k clusters and the weights that joined then.

    +inf and no weights while there are more than k, -inf if there never were.
    """
    for k in range(max(after, 1), min(before, len(last) + 1)):
        last[k - 1, 0], last[k - 1, 1], last[k - 1, 2] = log_time, less, more
    for k in range(max(before, 1), min(after, len(last) + 1)):
        last[k - 1, 0], last[k - 1, 1], last[k - 1, 2] = np.inf, 0.0, 0.0


def cluster_record(*shape: int) -> Any:
    """Room for `note_clusters`, shape (..., 3): never more than k clusters, nothing joined."""
    last = np.zeros((*shape, 3))
    last[..., 0] = -np.inf
    return last


@kernel
def save_observables(
    record: Any,
    index: int,
    x: Any,
    mass: Any,
    squares: Any,
    member: Any,
    atoms: int,
    stride: int,
    dimension: int,
    beta: float,
    clusters: int,
) -> None:
    """Recorder of sweeps: observables only. ``record`` is (wanted, delta, series (T, 4), last)."""
    _measure(
        record[0], x, mass, squares, atoms, stride, dimension, beta, record[1], clusters, record[2][index]
    )


@kernel
def note_observables(
    record: Any, log_time: float, before: int, after: int, labels: Any, member: Any, less: float, more: float
) -> None:
    """Recorder of sweeps: cluster times and the weights that joined."""
    note_clusters(record[3], log_time, before, after, less, more)


@kernel
def save_states(
    record: Any,
    index: int,
    x: Any,
    mass: Any,
    squares: Any,
    member: Any,
    atoms: int,
    stride: int,
    dimension: int,
    beta: float,
    clusters: int,
) -> None:
    """Recorder of single trajectories: observables, and positions of all tokens in record[4] (T, n, d)."""
    save_observables(record, index, x, mass, squares, member, atoms, stride, dimension, beta, clusters)
    for token in range(member.size):
        for k in range(dimension):
            record[4][index, token, k] = x[k * stride + member[token]]


@kernel
def note_partitions(
    record: Any, log_time: float, before: int, after: int, labels: Any, member: Any, less: float, more: float
) -> None:
    """Recorder of single trajectories: cluster times and who is in which cluster after each change.

    record[5] counts the changes, record[6] holds their ln times, record[7] the tokens' labels; what does not
    fit is counted.
    """
    note_clusters(record[3], log_time, before, after, less, more)
    change = record[5][0]
    if change < record[6].size:
        record[6][change] = log_time
        for token in range(member.size):
            record[7][change, token] = labels[member[token]]
    record[5][0] = change + 1


# bound by `compiled.bind`
solve: Any = None


def _sweep_adaptive(
    work: Any,
    tokens: Any,
    weights: Any,
    shares: Any,
    member: Any,
    beta: Any,
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
    wanted: Any,
    series: Any,
    last: Any,
    outcome: Any,
    evaluations: Any,
    steps: Any,
) -> None:
    for c in range(beta.size):
        record = (wanted, delta, series[c], last[c])
        outcome[c], evaluations[c], steps[c] = solve(
            work,
            tokens[c],
            weights,
            shares,
            member,
            beta[c],
            normalised,
            decays,
            coalesces,
            geodesic,
            clock_offset,
            matrices,
            tolerance,
            coalescence,
            max_evaluations,
            delta,
            log_times,
            log_horizon,
            record,
            adaptive.FROM_THE_START,
        )


def _sweep_layers(
    work: Any,
    tokens: Any,
    weights: Any,
    beta: Any,
    normalised: float,
    matrices: Any,
    step: float,
    delta: float,
    log_times: Any,
    log_horizon: float,
    wanted: Any,
    series: Any,
    last: Any,
    outcome: Any,
    evaluations: Any,
    steps: Any,
) -> None:
    for c in range(beta.size):
        record = (wanted, delta, series[c], last[c])
        outcome[c], evaluations[c], steps[c] = solve(
            work,
            tokens[c],
            weights,
            beta[c],
            normalised,
            matrices,
            step,
            delta,
            log_times,
            log_horizon,
            record,
        )


@cache
def adaptive_solver(velocity: Any, reference: Any, with_states: bool) -> Any:
    """`adaptive.solve` for a field, with the recorder of single trajectories or that of sweeps."""
    recorder = {
        "on_save": save_states if with_states else save_observables,
        "on_clusters": note_partitions if with_states else note_observables,
    }
    advance = compiled.bind(pair.panel, velocity=velocity)
    pass_pair = compiled.bind(pair.pass_pair, velocity=velocity, advance=advance, **recorder)
    return compiled.bind(
        adaptive.solve, velocity=velocity, reference=reference, pass_pair=pass_pair, **recorder
    )


@cache
def layer_solver(with_states: bool) -> Any:
    """`layers.solve_layers` with the recorder of single trajectories or that of sweeps."""
    return compiled.bind(
        layers.solve_layers,
        average=fields.layer_average,
        on_save=save_states if with_states else save_observables,
        on_clusters=note_partitions if with_states else note_observables,
    )


@cache
def adaptive_sweep(velocity: Any, reference: Any) -> Any:
    """The loop over cells of `adaptive.solve` for a field."""
    return compiled.bind(_sweep_adaptive, solve=adaptive_solver(velocity, reference, False))


@cache
def layer_sweep() -> Any:
    """The loop over cells of `layers.solve_layers`."""
    return compiled.bind(_sweep_layers, solve=layer_solver(False))


def method_arguments(field: Field, integrator: Adaptive | Layers, delta: float) -> tuple[Any, ...]:
    """The part of a solver's arguments between beta and delta."""
    if isinstance(integrator, Layers):
        return float(field.normalised), field.matrices, integrator.step
    return (
        float(field.normalised),
        float(field.decays),
        field.coalesces,
        field.geodesic,
        field.clock_offset,
        field.matrices,
        integrator.local_error(delta),
        integrator.chord(delta),
        integrator.max_evaluations,
    )
