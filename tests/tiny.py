"""A sweep small enough to be computed in every test, and what its dataset must equal bit for bit."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from pipeline import dynamics, integrate, schema, sweep


def tiny_sweep(**changes: Any) -> sweep.Sweep:
    """84 cells in blocks of 2 betas and 3 seeds: with edges that are not whole along both."""
    given: dict[str, Any] = {
        "n": (3, 5),
        "d": (2, 4),
        "beta": (0.5, 1.0, 4.0),
        "seed": range(7),
        "root_seed": 11,
        "dynamics": dynamics.Dynamics(),
        "integrator": integrate.Adaptive(),
        "horizon": 8.0,
        "times": sweep.Times((0.0, 1.0, 2.0, 8.0)),
        "variables": schema.OPTIONAL,
        "block": (2, 3),
    }
    return sweep.Sweep(**{**given, **changes})


def bits(path: str | Path) -> dict[str, str]:
    """A digest of every decoded array and coordinate of a dataset."""
    with xr.open_zarr(path, chunks=None) as dataset:
        arrays = {str(name): np.ascontiguousarray(dataset[name].to_numpy()) for name in dataset.variables}
    return {
        name: f"{a.dtype} {a.shape} {hashlib.sha256(a.tobytes()).hexdigest()}" for name, a in arrays.items()
    }


def made_block(whole: sweep.Sweep, index: tuple[int, int, int, int], failed: int = 0) -> xr.Dataset:
    """A block that could have been computed, made of its labels alone; its first `failed` cells failed."""
    block = sweep.block_at(whole, index)
    layout = whole.layout
    shape = (1, 1, len(block.beta), len(block.seed))
    status = np.full(shape, schema.DONE)
    status.reshape(-1)[:failed] = schema.FAILED
    error = np.full(shape, "", dtype=object)
    error.reshape(-1)[:failed] = "made to fail"
    here = block.n + 0.25 * block.d + np.array(block.beta)[:, None] + 0.125 * np.array(block.seed)
    cells = np.where(status == schema.DONE, 1 / (1 + here), np.nan)
    data: dict[str, Any] = {schema.ERROR: (schema.CELL_DIMS, error)}
    for v in layout.variables:
        tail = layout.shape(v)[len(schema.CELL_DIMS) :]
        values = np.broadcast_to(cells.reshape(*shape, *(1 for _ in tail)), (*shape, *tail)).copy()
        if v.name == schema.STATUS:
            values = status
        elif v.name == schema.LOG_TIME_TO_CLUSTERS:
            values[..., block.n - 1 :] = np.where(status == schema.DONE, -np.inf, np.nan)[..., None]
        elif not v.is_float:
            values = np.where(np.isnan(values), 0, np.floor(values) + 1)
        data[v.name] = (v.dims, values.astype(v.dtype))
    labels = {
        "n": [block.n],
        "d": [block.d],
        "beta": list(block.beta),
        "seed": list(block.seed),
        "clusters": list(whole.clusters),
    }
    return xr.Dataset(data, coords=labels)
