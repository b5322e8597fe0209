"""Many trajectories at a time, for sweeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive, Layers, layers
from pipeline.integrate.workspace import Workspace
from pipeline.observe import crowd, record
from pipeline.sphere import in_span


def observe_cells(
    tokens: NDArray[np.float64],
    beta: NDArray[np.float64],
    *,
    dynamics: Dynamics,
    integrator: Adaptive | Layers,
    log_times: NDArray[np.float64],
    log_horizon: float,
    tolerance: float,
    variables: Iterable[str],
    clusters_kept: int,
) -> dict[str, NDArray[Any]]:
    """Follow many trajectories of equal weights and record their observables.

    Runs on the calling thread and holds no lock while it does: spread cells over threads by calling it from
    each. The result of a cell depends on nothing but its own arguments.

    Parameters
    ----------
    tokens : ndarray of float64, shape (c, n, d)
        Unit rows, one set of tokens per cell.
    beta : ndarray of float64, shape (c,)
        Inverse temperatures, >= 0.
    dynamics : Dynamics
    integrator : Adaptive or Layers
    log_times : ndarray of float64, shape (T,)
        Natural logarithms of the save times, ascending; the first may be -inf.
    log_horizon : float
        Natural logarithm of the last time simulated; inf: until one cluster is left.
    tolerance : float
        Cluster tolerance delta.
    variables : iterable of str
        Which of `TIME_RESOLVED` and `MERGERS` to compute.
    clusters_kept : int
        Length of the last axis of ``log_time_to_clusters``.

    Returns
    -------
    dict of ndarray
        ``log_time_to_clusters`` (c, clusters_kept), each time-resolved variable (c, T) in float64,
        ``evaluations``, ``steps`` and ``outcome`` (c,). Where the outcome is not `DONE` (see `OUTCOMES`) the
        rest means nothing.

    Raises
    ------
    ValueError
        If the integrator's settings do not fit the tolerance, a matrix does not exist in dimension d, or n is
        too large for the sums that there are.
    """
    wanted = np.array([name in set(variables) for name in record.TIME_RESOLVED])
    cells, n, d = tokens.shape
    if dynamics.span_invariant and d > n:
        # cells of different beta share their tokens: reduce each set once
        keys = [cell.tobytes() for cell in tokens]
        reduced = {key: in_span(cell) for key, cell in zip(keys, tokens, strict=True)}
        tokens = np.stack([reduced[key] for key in keys])
        d = n
    field = dynamics.field(d)
    log_times = np.ascontiguousarray(log_times, dtype=np.float64)
    series = np.zeros((cells, log_times.size, len(record.TIME_RESOLVED)))
    last = record.cluster_record(cells, clusters_kept)
    outcome, evaluations, steps = (
        np.zeros(cells, np.int8),
        np.zeros(cells, np.int64),
        np.zeros(cells, np.int64),
    )
    found: tuple[NDArray[Any], ...] = (series, last, outcome, evaluations, steps)
    betas, which = np.unique(beta, return_inverse=True)
    begins = [crowd.chosen(integrator, dynamics, n, d, float(b), tolerance) for b in betas]
    spectral = np.array(begins, np.bool_)[which]
    for cell in np.flatnonzero(spectral):
        outcome[cell], evaluations[cell], steps[cell] = crowd.follow(
            tokens[cell],
            np.ones(n),
            float(beta[cell]),
            dynamics=dynamics,
            integrator=integrator,
            log_times=log_times,
            log_horizon=log_horizon,
            tolerance=tolerance,
            wanted=wanted,
            series=series[cell],
            last=last[cell],
        )
    if not spectral.all():
        equal = np.ones(n)
        atoms: tuple[NDArray[Any], ...] = (equal,)
        if isinstance(integrator, Layers):
            sweep = record.layer_sweep()
            work: Any = layers.Workspace.of(n, d)
        else:
            sweep = record.adaptive_sweep(field.velocity, field.reference)
            work, atoms = Workspace.of(n, d, n), (equal, equal * equal, np.arange(n))
        parts = [array[~spectral] for array in found]
        sweep(
            work,
            np.ascontiguousarray(tokens[~spectral], dtype=np.float64),
            *atoms,
            np.ascontiguousarray(beta[~spectral], dtype=np.float64),
            *record.method_arguments(field, integrator, tolerance),
            tolerance,
            log_times,
            log_horizon,
            wanted,
            *parts,
        )
        for array, part in zip(found, parts, strict=True):
            array[~spectral] = part
    result: dict[str, NDArray[Any]] = {
        name: series[:, :, q] for q, name in enumerate(record.TIME_RESOLVED) if wanted[q]
    }
    if "cluster_count" in result:
        result["cluster_count"] = result["cluster_count"].astype(np.int64)
    for q, name in enumerate(record.MERGERS):
        if name in set(variables):
            result[name] = last[:, :, 1 + q] / n
    return result | {
        "log_time_to_clusters": last[:, :, 0],
        "evaluations": evaluations,
        "steps": steps,
        "outcome": outcome,
    }
