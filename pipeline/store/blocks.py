"""Blocks going to disk and coming back: whole shards, `status` last.

A block counts as written when its shard of `status` is there. It is put there last and by rename, so a
crash at any instant loses no more than the blocks in flight, and nobody has to read data to know what is
missing.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray
from zarr.storage import MemoryStore

from pipeline import schema
from pipeline.store import layout

Index = tuple[int, int, int, int]


@dataclass(frozen=True)
class _Opened:
    """A dataset opened for writing: its layout, the coordinates of its cells, and a mould for each variable.

    A mould is an array in memory of the shape of one shard, coded as the dataset's is: what is written to
    it comes out as the bytes of a shard, which are put into place as one file.
    """

    stored: layout.Stored
    labels: Mapping[str, NDArray[Any]]
    moulds: Mapping[str, tuple[dict[str, Any], zarr.Array[Any]]]
    lock: threading.Lock


def _open(path: str | Path) -> _Opened:
    """The dataset at `path`, opened once per process for as long as its zarr.json stays the same file."""
    target = Path(os.path.abspath(path))
    mark = (target / "zarr.json").stat()
    return _open_marked(target, mark.st_ino, mark.st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _open_marked(target: Path, inode: int, changed: int) -> _Opened:
    del inode, changed  # only to open again after a change
    arrays = dict(zarr.open_group(str(target), mode="r", use_consolidated=True).arrays())
    moulds = {name: _mould(array) for name, array in arrays.items() if name in schema.VARIABLES}
    return _Opened(layout.inspect(target), labels(target), moulds, threading.Lock())


def labels(path: str | Path) -> dict[str, NDArray[Any]]:
    """The coordinates of the cells; ValueError, in one line, where one cannot be read."""
    found: dict[str, NDArray[Any]] = {}
    for dim in schema.CELL_DIMS:
        try:
            found[dim] = np.asarray(zarr.open_array(str(Path(path) / dim), mode="r")[...])
        except Exception as error:  # whatever zarr raises about damage
            raise ValueError(
                f"store.path: got {str(path)!r}, a dataset whose coordinate {dim} cannot be read ({error}); "
                "allowed: a dataset made by spheresweep"
            ) from error
    return found


def _mould(array: zarr.Array[Any]) -> tuple[dict[str, Any], zarr.Array[Any]]:
    held: dict[str, Any] = {}
    made = zarr.create_array(
        MemoryStore(held),
        shape=array.shards or array.chunks,
        dtype=array.dtype,
        chunks=array.chunks,
        shards=array.shards,
        compressors=array.compressors,
        fill_value=array.fill_value,
        chunk_key_encoding={"name": "default", "separator": "."},
        config={"write_empty_chunks": True},  # a block of failed cells leaves its files too
    )
    return held, made


def write_block(path: str | Path, block: xr.Dataset) -> Index:
    """Write one whole block, `status` last, and the errors of its failed cells; return its index.

    `block` has the coordinates of one block of the dataset, each variable that the dataset keeps and, in
    `error`, why a cell failed. Every file appears whole or not at all, and replaces one that is there: two
    writers of one block, which write the same bits, do not harm each other. ValueError where the labels are
    not those of exactly one block: a part of a shard is never written, since two writers of one shard lose
    data.
    """
    opened = _open(path)
    index = _placed(opened, block)
    absent = opened.moulds.keys() - {str(name) for name in block.data_vars}
    if absent:
        raise ValueError(f"a block lacks {sorted(absent)}, which the dataset keeps")
    _record_failures(opened.stored.path, index, block)
    for name in sorted(opened.moulds, key=lambda name: name == schema.STATUS):
        record = schema.VARIABLES[name]
        # a variable without its coordinates: with them each step would make them anew
        data = block.variables[name].transpose(*record.dims).to_numpy()
        data = data.astype(record.dtype, casting="same_kind", copy=False)
        layout.replace(shard_file(opened.stored.path, name, index), _cast(opened, name, data))
    return index


def _cast(opened: _Opened, name: str, data: NDArray[Any]) -> bytes:
    """The bytes of a shard."""
    held, mould = opened.moulds[name]
    key = ".".join(["c", *("0" for _ in data.shape)])
    with opened.lock:
        mould[tuple(slice(0, length) for length in data.shape)] = data
        return bytes(held.pop(key).to_bytes())


def _placed(opened: _Opened, block: xr.Dataset) -> Index:
    """The index of a block, from its labels."""
    index = []
    for dim, step in zip(schema.CELL_DIMS, (1, 1, *opened.stored.block), strict=True):
        labels, axis = block.variables[dim].to_numpy(), opened.labels[dim]
        start = int(np.searchsorted(axis, labels[0]))
        stop = start + len(labels)
        whole = start % step == 0 and (len(labels) == step or stop == len(axis))
        if not whole or not np.array_equal(axis[start:stop], labels):
            raise ValueError(
                f"{dim} from {labels[0]} to {labels[-1]} ({len(labels)} values) is not one block of the "
                f"dataset: blocks of {step} of its {len(axis)} values are written whole or not at all"
            )
        index.append(start // step)
    return index[0], index[1], index[2], index[3]


def shard_file(path: Path, name: str, index: Index) -> Path:
    """The file that holds one variable of one block."""
    record = schema.VARIABLES[name]
    tail = (0,) * (len(record.dims) - len(schema.CELL_DIMS))
    return path / name / ".".join(["c", *map(str, (*index, *tail))])


def written(path: str | Path) -> NDArray[np.bool_]:
    """Which blocks are there, by their index (n, d, block of betas, block of seeds)."""
    stored = layout.inspect(path)
    there = np.zeros(stored.blocks, dtype=bool)
    pattern = re.compile(r"c\.(\d+)\.(\d+)\.(\d+)\.(\d+)")
    with os.scandir(stored.path / schema.STATUS) as entries:
        for entry in entries:
            match = pattern.fullmatch(entry.name)
            if not match or not entry.is_file() or entry.stat().st_size == 0:
                continue  # a machine that crashed may leave an empty file
            index = tuple(int(v) for v in match.groups())
            if all(i < length for i, length in zip(index, there.shape, strict=True)):
                there[index] = True
    return there


def has_block(path: str | Path, index: Index) -> bool:
    """Whether this block is there."""
    try:
        return shard_file(Path(path), schema.STATUS, index).stat().st_size > 0
    except FileNotFoundError:
        return False


def discard(path: str | Path, index: Index) -> None:
    """Make a block missing, so that it is computed again. Under the lease."""
    shard_file(Path(path), schema.STATUS, index).unlink(missing_ok=True)
    _failures_file(Path(path), index).unlink(missing_ok=True)


def _failures_file(path: Path, index: Index) -> Path:
    return path / layout.FOLDER / "failures" / (".".join(map(str, index)) + ".json")


def _record_failures(path: Path, index: Index, block: xr.Dataset) -> None:
    target = _failures_file(path, index)
    target.unlink(missing_ok=True)
    status = block.variables[schema.STATUS].transpose(*schema.CELL_DIMS).to_numpy()
    failed = np.argwhere(status == schema.FAILED)
    if not len(failed):
        return
    errors = block[schema.ERROR].transpose(*schema.CELL_DIMS).to_numpy()
    axes = [block[dim].to_numpy() for dim in schema.CELL_DIMS]
    cells = [
        {dim: axis[i].item() for dim, axis, i in zip(schema.CELL_DIMS, axes, position, strict=True)}
        | {schema.ERROR: str(errors[tuple(position)])}
        for position in failed
    ]
    target.parent.mkdir(exist_ok=True)
    text = json.dumps({"block": index, "cells": cells}, indent=1, allow_nan=False)
    layout.replace(target, text.encode())


def block_failures(path: str | Path, index: Index) -> list[dict[str, Any]]:
    """The failed cells of one block that is there."""
    try:
        return _failed_cells(_failures_file(Path(path), index))[1]
    except FileNotFoundError:
        return []


def _failed_cells(file: Path) -> tuple[Index, list[dict[str, Any]]]:
    """What a record of failures holds; ValueError, in one line, where it is damaged."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        n, d, beta, seed = record["block"]
        return (n, d, beta, seed), [dict(cell) for cell in record["cells"]]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"store.path: got {str(file)!r}, a damaged record of failed cells; allowed: none (delete it, and "
            "status/c.… of the same block, to have the block computed again)"
        ) from error


def failures(path: str | Path) -> Iterator[dict[str, Any]]:
    """The failed cells of the blocks that are there: n, d, beta, seed, error and the index of the block."""
    stored = layout.inspect(path)
    for file in sorted((stored.path / layout.FOLDER / "failures").glob("*.json")):
        index, cells = _failed_cells(file)
        if has_block(stored.path, index):
            for cell in cells:
                yield {**cell, "block": index}


def add_receipts(path: str | Path, run: str, receipts: Sequence[Mapping[str, Any]]) -> None:
    """Append receipts, one JSON line each, to those of one run. Under the lease; readers skip a torn line."""
    folder = Path(path) / layout.FOLDER / "receipts"
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(receipt, allow_nan=False) + "\n" for receipt in receipts)
    with (folder / f"{run}.jsonl").open("a", encoding="utf-8") as file:
        file.write(text)


def receipts(path: str | Path) -> Iterator[dict[str, Any]]:
    """The receipts of all blocks and runs: seconds, threads, host, evaluations ..., as workers gave them."""
    for file in sorted((Path(path) / layout.FOLDER / "receipts").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                receipt = json.loads(line)
            except ValueError:
                continue  # torn by a crash
            if isinstance(receipt, dict):
                yield receipt


def sweep_up(path: str | Path) -> int:
    """Remove the drafts (`*.partial`) that killed writers left; return their number. Under the lease."""
    removed = 0
    for folder, _, names in os.walk(path):
        for name in names:
            if name.endswith(".partial"):
                Path(folder, name).unlink(missing_ok=True)
                removed += 1
    return removed
