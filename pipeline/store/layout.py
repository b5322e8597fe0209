"""A dataset on disk before any cell is computed: Zarr v3 arrays, shards, codecs, attributes, coordinates.

One shard holds one variable of one block, so that whatever is written is a whole file of its own (two
writers of one shard lose each other's cells without any error). Shards are divided in chunks large enough
to be read fast. Every chunk carries a CRC-32C, so that a flipped bit is an error and never a number. Keys
are flat ("c.0.0.3.7"): one file and no folder for each shard, which is what inode quotas count.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from pipeline import schema

FOLDER = ".spheresweep"  # failures, lease and receipts, beside the arrays
CHUNK_CELLS = 128  # an inner chunk of one cell is 60 times slower to read than one of a hundred
CHUNK_BYTES = 256 * 1024
_ZSTD_LEVEL = 3


@dataclass(frozen=True)
class Layout:
    """Shape of a dataset: the coordinates, the variables and the (betas, seeds) of a block."""

    coordinates: Mapping[str, Sequence[float]]
    variables: tuple[schema.Variable, ...]
    block: tuple[int, int]

    @property
    def sizes(self) -> dict[str, int]:
        """Length of each dimension."""
        lengths = {name: len(values) for name, values in self.coordinates.items()}
        return {name: lengths[name] for name in schema.DIMS if name != schema.TIME} | {
            schema.TIME: lengths[schema.LOG_TIME]
        }

    def shape(self, variable: schema.Variable) -> tuple[int, ...]:
        """Shape of the variable's array."""
        return tuple(self.sizes[dim] for dim in variable.dims)

    def shard(self, variable: schema.Variable) -> tuple[int, ...]:
        """Shape of one block of the variable: whole along time and clusters."""
        betas, seeds = self.block
        return (1, 1, betas, seeds, *self.shape(variable)[len(schema.CELL_DIMS) :])

    def chunk(self, variable: schema.Variable) -> tuple[int, ...]:
        """Shape of one chunk: a divisor of the shard of at least 128 cells and 256 KiB, or all of it."""
        betas, seeds = self.block
        tail = self.shape(variable)[len(schema.CELL_DIMS) :]
        bytes_per_cell = np.dtype(variable.dtype).itemsize * math.prod(tail)
        least = max(CHUNK_CELLS, math.ceil(CHUNK_BYTES / bytes_per_cell))
        chunk_seeds = _divisor_from(seeds, least)
        return (1, 1, _divisor_from(betas, math.ceil(least / chunk_seeds)), chunk_seeds, *tail)


def _divisor_from(length: int, least: int) -> int:
    """The smallest divisor of `length` that is at least `least`, or `length`."""
    return next((v for v in range(max(1, least), length) if length % v == 0), length)


def create(path: str | Path, layout: Layout, attrs: Mapping[str, Any]) -> None:
    """Make an empty dataset, at once or not at all: in a folder beside `path`, then renamed.

    A dataset that another process made there in the meantime is an OSError; nothing is ever overwritten.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.parent / f".{target.name}.{uuid.uuid4().hex}.partial"
    try:
        _fill(draft, layout, attrs)
        for file in draft.rglob("zarr.json"):
            sync_file(file)
        os.rename(draft, target)  # onto nothing, or onto an empty folder; never onto a filled one
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _fill(draft: Path, layout: Layout, attrs: Mapping[str, Any]) -> None:
    attributes = json.loads(json.dumps({**attrs, "coordinates": schema.LOG_TIME}, allow_nan=False))
    group = zarr.create_group(store=str(draft), zarr_format=3, attributes=attributes)
    for name, values in layout.coordinates.items():
        record = schema.COORDINATES[name]
        data = np.asarray(values, dtype=record.dtype)
        array = _array(group, record, data.shape, chunk=data.shape, shard=None)
        array[...] = data
    for record in layout.variables:
        _array(group, record, layout.shape(record), layout.chunk(record), layout.shard(record))
    _consolidate(draft)
    (draft / FOLDER).mkdir()


def _consolidate(draft: Path) -> None:
    """Copy the metadata of all arrays into the group's, as zarr does (which warns: not standard yet).

    Without the copies a dataset opens as empty over HTTP, where folders cannot be listed.
    """
    document = json.loads((draft / "zarr.json").read_text(encoding="utf-8"))
    copies = {
        file.parent.name: json.loads(file.read_text(encoding="utf-8"))
        for file in sorted(draft.glob("*/zarr.json"))
    }
    document["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": copies}
    replace(draft / "zarr.json", json.dumps(document, indent=2, allow_nan=False).encode())


def _array(
    group: zarr.Group,
    record: schema.Variable,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    shard: tuple[int, ...] | None,
) -> zarr.Array[Any]:
    attrs: dict[str, Any] = dict(record.attrs)
    if schema.TIME in record.dims and record.name not in schema.COORDINATES:
        attrs["coordinates"] = schema.LOG_TIME
    return group.create_array(
        record.name,
        shape=shape,
        dtype=record.dtype,
        chunks=chunk,
        shards=shard,
        compressors=[ZstdCodec(level=_ZSTD_LEVEL), Crc32cCodec()],
        fill_value=record.fill,
        dimension_names=list(record.dims),
        chunk_key_encoding={"name": "default", "separator": "."},
        attributes=attrs,
        config={"write_empty_chunks": True},
    )


@dataclass(frozen=True)
class Stored:
    """What a dataset on disk says of itself: its attributes and its layout in blocks."""

    path: Path
    attrs: Mapping[str, Any]
    shape: tuple[int, int, int, int]
    block: tuple[int, int]

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """Number of blocks along n, d, beta, seed."""
        n, d, betas, seeds = self.shape
        return n, d, -(-betas // self.block[0]), -(-seeds // self.block[1])


def exists(path: str | Path) -> bool:
    """Whether there is something at `path` that must not be overwritten; an empty folder is nothing."""
    target = Path(path)
    return target.exists() and not (target.is_dir() and not any(target.iterdir()))


def inspect(path: str | Path) -> Stored:
    """What the dataset at `path` says of itself.

    ValueError, in one line, where there is none, or another Zarr store, or a damaged one, or one of another
    schema version.
    """
    target = Path(path)

    def refuse(found: str) -> ValueError:
        return ValueError(f"store.path: got {str(target)!r}, {found}; allowed: a dataset made by spheresweep")

    if not target.exists():
        raise refuse("which does not exist")
    if not target.is_dir():
        raise refuse("a file")
    if not (target / "zarr.json").is_file():
        if (target / ".zgroup").exists() or (target / ".zarray").exists():
            raise refuse("a Zarr store of format 2")
        raise refuse("a folder without zarr.json")
    try:
        document = json.loads((target / "zarr.json").read_text(encoding="utf-8"))
        attrs = document["attributes"] if document["node_type"] == "group" else {}
        version = attrs.get("schema_version")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise refuse("a Zarr store whose zarr.json is damaged") from error
    if version is None or "sweep" not in attrs:
        raise refuse("a Zarr store of another origin")
    if version != schema.VERSION:
        found = f"a dataset of schema version {version}"
        raise ValueError(
            f"store.path: got {str(target)!r}, {found}; allowed: schema version {schema.VERSION}"
        )
    try:
        arrays = document["consolidated_metadata"]["metadata"]
        status = arrays[schema.STATUS]
        betas, seeds = status["chunk_grid"]["configuration"]["chunk_shape"][2:4]
        shape = status["shape"]
        n, d, beta, seed = shape
    except (KeyError, TypeError, ValueError) as error:
        raise refuse("a dataset whose metadata are damaged") from error
    for name in arrays:
        if not (target / name / "zarr.json").is_file():
            raise refuse(f"a truncated dataset: {name} is missing")
    return Stored(target, attrs, (n, d, beta, seed), (betas, seeds))


def add_history(path: str | Path, line: str) -> None:
    """Append a line to the attribute `history`, replacing zarr.json by rename. Only under the lease."""
    target = Path(path) / "zarr.json"
    document = json.loads(target.read_text(encoding="utf-8"))
    attrs = document["attributes"]
    attrs["history"] = "\n".join([*filter(None, [attrs.get("history", "")]), line])
    replace(target, json.dumps(document, indent=2, allow_nan=False).encode())


def replace(target: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash at any instant, finds it whole: old, new or not there."""
    draft = target.with_name(f"{target.name}.{uuid.uuid4().hex}.partial")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_file(path: Path) -> None:
    """Ask the disk to keep a file; a full disk may say so only now."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Ask the disk to keep a folder's list of names, where the file system can (some network ones refuse)."""
    with contextlib.suppress(OSError):
        sync_file(path)
