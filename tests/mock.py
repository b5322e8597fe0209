"""Datasets that are legal and look real, without running anything: for tests of analysis and figures.

Every cell is a coalescent of its own: n tokens merge pairwise at increasing log times, fast ones at t of
order one, slow ones at times that grow like exp(c beta), and every variable follows from the partition. For
d >= n all tokens meet on the equiangular curve.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from pipeline import schema, theory

# Growth of the time to consensus, as on the circle, the sphere and beyond; roughly what is measured.
GROWTH = {2: 1.93, 3: 1.62, 8: 1.15}


def dataset(
    *,
    n: Sequence[int] = (32,),
    d: Sequence[int] = (2,),
    beta: Sequence[float] = (1.0, 4.0, 9.0),
    seeds: int = 8,
    times: Sequence[float] | None = None,
    log_times: Sequence[float] | None = None,
    horizon: float | None = None,
    tolerance: float = 1e-3,
    dynamics: str = "sa",
    variables: Sequence[str] = schema.TIME_RESOLVED,
    clusters_kept: int = 64,
    missing: float = 0.0,
    failed: float = 0.0,
) -> xr.Dataset:
    """A dataset of schema version 1; `missing` and `failed` are shares of cells, the rest as in a sweep."""
    log_t = (
        np.asarray(log_times)
        if log_times is not None
        else _log(np.linspace(0, 30, 61) if times is None else times)
    )
    rng = np.random.default_rng([7, seeds])
    log_horizon = math.inf if horizon is None else math.log(horizon)
    kept = min(max(n), clusters_kept)
    shape = (len(n), len(d), len(beta), seeds)
    cells = {
        v.name: np.zeros(shape + _tail(v, log_t.size, kept), v.dtype)
        for v in schema.variables_kept(tuple(variables))
    }
    for i, tokens in enumerate(n):
        for j, dimension in enumerate(d):
            events = merger_log_times(rng, tokens, dimension, np.asarray(beta), seeds, tolerance, dynamics)
            first = np.full((*events.shape[:-1], 1), -np.inf)
            from_then = np.concatenate([events[..., ::-1], first], axis=-1)  # k = 1, 2, ... n
            padded = np.full((*events.shape[:-1], kept), -np.inf)
            width = min(kept, tokens)
            padded[..., :width] = np.where(from_then > log_horizon, np.inf, from_then)[..., :width]
            cells[schema.LOG_TIME_TO_CLUSTERS][i, j] = padded
            for name, values in partition_statistics(rng, events, log_t, np.asarray(beta)).items():
                if name in cells:
                    cells[name][i, j] = values
            cells[schema.EVALUATIONS][i, j] = 60 * tokens
            cells[schema.STEPS][i, j] = 10 * tokens
    fate = rng.random(shape)
    status = np.where(
        fate < missing, schema.MISSING, np.where(fate < missing + failed, schema.FAILED, schema.DONE)
    )
    for v in schema.variables_kept(tuple(variables)):
        cells[v.name][status != schema.DONE] = v.fill
    cells[schema.STATUS][...] = status
    coordinates: dict[str, Any] = {
        schema.N: np.asarray(n, dtype=np.int64),
        schema.D: np.asarray(d, dtype=np.int64),
        schema.BETA: np.asarray(beta, dtype=np.float64),
        schema.SEED: np.arange(seeds),
        schema.CLUSTERS: np.arange(1, kept + 1),
    }
    if log_times is None:
        coordinates[schema.TIME] = np.exp(log_t) if times is None else np.asarray(times, dtype=float)
    return xr.Dataset(
        {
            name: (schema.VARIABLES[name].dims, values, dict(schema.VARIABLES[name].attrs))
            for name, values in cells.items()
        },
        coords={
            **{
                name: (name, values, dict(schema.COORDINATES[name].attrs))
                for name, values in coordinates.items()
            },
            schema.LOG_TIME: (schema.TIME, log_t, dict(schema.COORDINATES[schema.LOG_TIME].attrs)),
        },
        attrs={
            "title": "mock sweep",
            "schema_version": schema.VERSION,
            "sweep": json.dumps(
                {
                    "dynamics": {
                        "name": dynamics,
                        **{role: {"kind": "identity"} for role in ("query", "key", "value")},
                    },
                    "horizon": "consensus" if horizon is None else horizon,
                    "tolerance": tolerance,
                }
            ),
        },
    )


def merger_log_times(
    rng: np.random.Generator,
    n: int,
    d: int,
    beta: np.ndarray,
    seeds: int,
    tolerance: float,
    dynamics: str,
) -> np.ndarray:
    """Log times of the n - 1 mergers, ascending, (beta, seed, n - 1); a seed draws alike for every beta."""
    clusters_left = np.arange(n - 1, 0, -1)
    noise = rng.standard_normal((seeds, n - 1))
    if d >= n:
        curve = theory.equiangular_log_time(tolerance, beta, n, dynamics=dynamics)
        times = curve[:, None, None] + noise * 0.6 / math.sqrt(d)
        return np.sort(times, axis=-1)
    plateau = np.clip(np.sqrt(2 * beta * (d - 1)), 1, n / 2)[:, None, None]
    fast = np.log(0.5 + 0.7 * math.log(n)) + 0.3 * noise - 0.6 * clusters_left / n
    growth = GROWTH.get(d, 1.05) * (1 + 0.04 * rng.standard_normal((seeds, 1)))
    depth = np.clip(1 - (clusters_left - 1) / plateau, 0, None) ** 0.7
    slow = (
        beta[:, None, None] * growth * depth * np.exp(-0.12 * np.abs(noise))
        - 0.5 * np.log1p(beta)[:, None, None]
    )
    times = np.sort(np.logaddexp(fast, np.where(depth > 0, slow, -50)), axis=-1)
    return times - beta[:, None, None] if dynamics == "usa" else times


def partition_statistics(
    rng: np.random.Generator, events: np.ndarray, log_t: np.ndarray, beta: np.ndarray
) -> dict[str, np.ndarray]:
    """Time-resolved variables of coalescents: at each merger two clusters, drawn at random, become one."""
    mergers = events.shape[-1]
    n = mergers + 1
    sizes = np.ones((*events.shape[:-1], n))
    past = np.sum(events[..., None, :] <= log_t[:, None], axis=-1)  # (beta, seed, time)
    squares = np.empty((*events.shape[:-1], mergers + 1))
    squares[..., 0] = n
    draw = rng.random((mergers, events.shape[-2], n))
    for step in range(mergers):
        picked = np.argsort(np.where(sizes > 0, draw[step], 2), axis=-1)[..., :2]
        pair = np.take_along_axis(sizes, picked, axis=-1)
        np.put_along_axis(sizes, picked, np.stack([pair.sum(axis=-1), 0 * pair[..., 0]], axis=-1), axis=-1)
        squares[..., step + 1] = np.sum(sizes**2, axis=-1)
    now = np.take_along_axis(squares, past, axis=-1)
    spread = np.exp(-beta)[:, None, None] * (1 - now / n**2) * 0.5
    return {
        schema.PAIR_SYNC_FRACTION: (now - n) / (n * n - n),
        schema.CLUSTER_COUNT: n - past,
        schema.ENERGY: now / n**2 + spread,
        schema.ORDER_PARAMETER: np.sqrt(now / n**2),
    }


def _tail(variable: schema.Variable, times: int, clusters: int) -> tuple[int, ...]:
    lengths = {schema.TIME: times, schema.CLUSTERS: clusters}
    return tuple(lengths[dim] for dim in variable.dims if dim in lengths)


def _log(times: Sequence[float] | np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(times, dtype=float))
