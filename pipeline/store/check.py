"""Every fault to be found in a dataset by reading all of it: metadata, checksums, values, completeness."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from pipeline import schema
from pipeline.store import blocks, layout

_ROUNDING = 1e-6  # of float32 at 1


def faults(path: str | Path, expected: layout.Layout) -> Iterator[str]:
    """One line for each fault of the dataset at `path`, which should have the layout `expected`.

    Metadata against the schema, every chunk decoded and so its checksum compared, values against their
    range and against `status`, failed cells against the record of failures, and whether all cells are done.
    """
    stored = layout.inspect(path)
    metadata = list(_metadata_faults(stored))
    yield from metadata
    if metadata:
        return
    group = zarr.open_group(str(path), mode="r", use_consolidated=True)
    structure = [*_attribute_faults(stored), *_array_faults(group, expected)]
    yield from structure
    if any(name not in group for name in (*expected.coordinates, *(v.name for v in expected.variables))):
        return
    recorded = Counter(_key(cell) for cell in blocks.failures(path))
    counts: Counter[int] = Counter({schema.MISSING: int(np.prod(stored.shape))})
    there = blocks.written(path)
    for position in np.argwhere(there):
        n, d, beta, seed = (int(v) for v in position)
        yield from _block_faults(group, expected, stored.path, (n, d, beta, seed), recorded, counts)
    for key in recorded:
        yield f"failures: {key} is recorded as failed, but its status is not"
    drafts = sum(1 for _ in stored.path.rglob("*.partial"))
    if drafts:
        yield f"{drafts} drafts (*.partial) left by interrupted writers; the next run removes them"
    cells = sum(counts.values())
    for status in (schema.MISSING, schema.FAILED):
        if counts[status]:
            yield f"incomplete: {counts[status]} of {cells} cells are {schema.STATUS_MEANINGS[status]}"


def _key(cell: dict[str, Any]) -> str:
    return ", ".join(f"{dim}={cell[dim]!r}" for dim in schema.CELL_DIMS)


def _strict(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _metadata_faults(stored: layout.Stored) -> Iterator[str]:
    """Files of metadata that are not strict JSON, or that differ from their consolidated copies."""
    try:
        root = json.loads((stored.path / "zarr.json").read_text(encoding="utf-8"), parse_constant=_strict)
    except ValueError as error:
        yield f"zarr.json: {error}"
        return
    copies = root["consolidated_metadata"]["metadata"]
    for folder in sorted(p.name for p in stored.path.iterdir() if p.is_dir() and p.name != layout.FOLDER):
        if folder not in copies:
            yield f"{folder}: an array or folder that is not in the consolidated metadata"
    for name, copy in copies.items():
        try:
            own = json.loads(
                (stored.path / name / "zarr.json").read_text(encoding="utf-8"), parse_constant=_strict
            )
        except ValueError as error:
            yield f"{name}/zarr.json: {error}"
            continue
        if own != copy:
            differing = sorted(key for key in own.keys() | copy.keys() if own.get(key) != copy.get(key))
            yield f"{name}/zarr.json: {', '.join(differing)} differ from the consolidated metadata"


def _attribute_faults(stored: layout.Stored) -> Iterator[str]:
    for name, meaning in schema.GROUP_ATTRS.items():
        if stored.attrs.get(name) in (None, ""):
            yield f"attribute {name} is missing ({meaning})"
    for name in ("sweep", "spectral", "config", "software", "platform"):
        try:
            json.loads(stored.attrs.get(name) or "{}", parse_constant=_strict)
        except ValueError as error:
            yield f"attribute {name}: {error}"


def _array_faults(group: zarr.Group, expected: layout.Layout) -> Iterator[str]:
    """Arrays that are missing, unknown, or not as the schema says."""
    arrays = dict(group.arrays())
    records: dict[str, schema.Variable] = {name: schema.COORDINATES[name] for name in expected.coordinates}
    records |= {v.name: v for v in expected.variables}
    for name in sorted(arrays.keys() - records.keys()):
        yield f"{name}: not a variable of the schema"
    for name, record in records.items():
        if name not in arrays:
            yield f"{name}: missing"
            continue
        array = arrays[name]
        attrs = dict(array.attrs)
        found: dict[str, Any] = {
            "dtype": str(array.dtype),
            "dimensions": tuple(array.metadata.dimension_names or ()),  # type: ignore[union-attr]
            **{key: attrs.get(key) for key in record.attrs},
        }
        wanted: dict[str, Any] = {"dtype": record.dtype, "dimensions": record.dims, **record.attrs}
        if name in expected.coordinates:
            try:
                values = np.asarray(array[...])
            except Exception as error:
                yield f"{name}: cannot be read: {error}"
                continue
            if not np.array_equal(values, np.asarray(expected.coordinates[name], dtype=record.dtype)):
                yield f"{name}: other values than the attribute sweep says"
        else:
            found |= {"shape": array.shape, "shard": array.shards}
            wanted |= {"shape": expected.shape(record), "shard": expected.shard(record)}
        if "crc32c" not in json.dumps(array.metadata.to_dict(), default=str):
            yield f"{name}: stored without checksums"
        for key, value in wanted.items():
            if found[key] != value:
                yield f"{name}: {key} is {found[key]!r}, and should be {value!r}"


def _block_faults(
    group: zarr.Group,
    expected: layout.Layout,
    path: Path,
    index: blocks.Index,
    recorded: Counter[str],
    counts: Counter[int],
) -> Iterator[str]:
    """Faults of one block that is there; takes its failed cells off `recorded`, counts cells by status."""
    steps = (1, 1, *expected.block)
    region = tuple(slice(i * step, (i + 1) * step) for i, step in zip(index, steps, strict=True))
    where = f"block {'.'.join(map(str, index))}"
    data: dict[str, NDArray[Any]] = {}
    for variable in expected.variables:
        file = blocks.shard_file(path, variable.name, index)
        if not file.exists() or file.stat().st_size == 0:
            yield f"{variable.name}, {where}: its file {file.relative_to(path)} is missing or empty"
            continue
        try:
            data[variable.name] = np.asarray(group[variable.name][region])  # type: ignore[index]
        except Exception as error:
            yield f"{variable.name}, {where}: cannot be decoded: {error}"
    if schema.STATUS not in data:
        return
    status = data[schema.STATUS]
    for value, count in zip(*np.unique(status, return_counts=True), strict=True):
        counts[int(value)] += int(count)
        counts[schema.MISSING] -= int(count)
    if not np.isin(status, (schema.DONE, schema.FAILED)).all():
        yield f"status, {where}: a block is written whole, but not every cell is done or failed"
    tokens = int(expected.coordinates[schema.N][index[0]])
    for name, values in data.items():
        for fault, bad in _value_faults(name, values, status, tokens).items():
            if bad.any():
                yield f"{name}, {where}: {int(bad.sum())} values {fault}"
    axes = [expected.coordinates[dim][part] for dim, part in zip(schema.CELL_DIMS, region, strict=True)]
    for position in np.argwhere(status == schema.FAILED):
        cell = {dim: axis[i] for dim, axis, i in zip(schema.CELL_DIMS, axes, position, strict=True)}
        if recorded.pop(_key(cell), 0) != 1:
            yield f"status, {where}: {_key(cell)} failed, but no error is recorded for it"


def _value_faults(
    name: str, values: NDArray[Any], status: NDArray[Any], tokens: int
) -> dict[str, NDArray[np.bool_]]:
    """Which values of a variable contradict the status of their cell or the range of the variable."""
    record = schema.VARIABLES[name]
    spread = status.reshape(status.shape + (1,) * (values.ndim - status.ndim))
    done = np.broadcast_to(spread == schema.DONE, values.shape)
    if name == schema.STATUS:
        return {}
    if name in (schema.EVALUATIONS, schema.STEPS):
        return {"are negative": values < 0}
    missing = np.isnan(values) if record.is_float else values == 0
    found = {
        "are missing in cells that are done": missing & done,
        "are set in failed cells": ~missing & ~done,
    }
    if name == schema.LOG_TIME_TO_CLUSTERS:
        rising = np.zeros(values.shape, dtype=bool)
        rising[..., 1:] = values[..., 1:] > values[..., :-1]
        beyond = np.zeros(values.shape, dtype=bool)
        beyond[..., tokens - 1 :] = values[..., tokens - 1 :] != -np.inf  # n tokens are at most n clusters
        found |= {"increase with k": rising & done, "of k >= n are not -inf": beyond & done}
    else:
        most = tokens if name == schema.CLUSTER_COUNT else 1 + _ROUNDING
        found["are out of range"] = done & ((values < 0) | (values > most))
    return found
