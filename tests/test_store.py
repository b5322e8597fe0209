"""A dataset is made at once, written block by block, never mixed, and every flipped bit in it is an error."""

from __future__ import annotations

import errno
import json
import math
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

from pipeline import run, schema, store, sweep
from pipeline.run import dataset
from pipeline.store import leases
from tests.tiny import bits, made_block, tiny_sweep

WHOLE = tiny_sweep()


def make(path: Path, whole: sweep.Sweep = WHOLE) -> Path:
    """An empty dataset."""
    store.create(path, whole.layout, dataset.attributes(whole, {"made": "up"}, {}))
    return path


def fill(path: Path, whole: sweep.Sweep = WHOLE, failed: int = 0) -> Path:
    """A complete dataset of invented values."""
    for index in np.ndindex(sweep.blocks_shape(whole)):
        store.write_block(path, made_block(whole, index, failed))
    return path


@pytest.fixture(scope="module")
def _complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(make(tmp_path_factory.mktemp("store") / "complete.zarr"))


@pytest.fixture
def complete(_complete: Path, tmp_path: Path) -> Path:
    """A complete dataset of one's own to damage."""
    shutil.copytree(_complete, tmp_path / "data.zarr")
    return tmp_path / "data.zarr"


def faults(path: Path) -> list[str]:
    return run.validate(path)


# --- what strangers see


def test_xarray_alone_opens_it_without_a_warning(complete: Path) -> None:
    code = f"""
import sys, xarray
dataset = xarray.open_zarr({str(complete)!r})
assert dict(dataset.sizes) == dict(n=2, d=2, beta=3, seed=7, time=4, clusters=5), dataset.sizes
assert set(dataset.coords) == {{"n", "d", "beta", "seed", "time", "log_time", "clusters"}}
assert dataset.sel(n=3, d=4, beta=0.5, seed=6).energy.load().notnull().all()
assert (dataset.status.load() == 1).all()
assert not any(name.startswith("pipeline") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120, cwd=complete.parent)


def test_every_variable_and_attribute_of_the_schema_is_there(complete: Path) -> None:
    with xr.open_zarr(complete) as ds:
        for name, record in (schema.VARIABLES | schema.COORDINATES).items():
            assert ds[name].dtype == record.dtype
            assert ds[name].dims == record.dims
            for key, value in record.attrs.items():
                assert ds[name].attrs[key] == value
            assert "_FillValue" not in ds[name].encoding
            assert "_FillValue" not in ds[name].attrs
        assert ds.attrs.keys() >= schema.GROUP_ATTRS.keys()
        assert ds.attrs["Conventions"] == "CF-1.11 ACDD-1.3"
        assert json.loads(ds.attrs["config"]) == {"made": "up"}
        assert sweep.Sweep.from_json(ds.attrs["sweep"]) == WHOLE
        np.testing.assert_array_equal(ds.log_time, [-np.inf, 0, math.log(2), math.log(8)])


def test_all_metadata_are_strict_json_and_consolidated(complete: Path) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(token)

    files = sorted(complete.rglob("*.json"))
    assert len(files) == 1 + len(schema.VARIABLES) + len(schema.COORDINATES)
    for file in files:
        json.loads(file.read_text(), parse_constant=refuse)
    root = json.loads((complete / "zarr.json").read_text())
    assert root["consolidated_metadata"]["metadata"].keys() == (schema.VARIABLES | schema.COORDINATES).keys()


def test_metadata_are_consolidated_as_zarr_does_it(complete: Path) -> None:
    ours = json.loads((complete / "zarr.json").read_text())
    shutil.rmtree(complete / store.FOLDER)
    with pytest.warns(UserWarning, match="not part in the Zarr format 3 specification"):
        zarr.consolidate_metadata(str(complete), zarr_format=3)
    theirs = json.loads((complete / "zarr.json").read_text())
    assert ours["consolidated_metadata"] == theirs["consolidated_metadata"]
    assert ours["attributes"] == theirs["attributes"]


def test_times_beyond_float64_leave_the_coordinate_log_time(tmp_path: Path) -> None:
    whole = tiny_sweep(horizon=None, times=sweep.Times((-5.0, 0.0, 1930.0), True))
    with xr.open_zarr(make(tmp_path / "data.zarr", whole)) as ds:
        assert "time" not in ds.coords
        np.testing.assert_array_equal(ds.log_time, [-5.0, 0.0, 1930.0])
        assert ds.energy.dims[-1] == "time"
        assert "log_time" in ds.energy.coords


def test_missing_cells_are_status_0_nan_and_0(tmp_path: Path) -> None:
    with xr.open_zarr(make(tmp_path / "data.zarr")) as ds:
        for name, record in schema.VARIABLES.items():
            values = ds[name].to_numpy()
            assert (np.isnan(values) if record.is_float else values == 0).all()


def test_values_come_back_as_they_were_written(complete: Path) -> None:
    with xr.open_zarr(complete) as ds:
        for index in np.ndindex(sweep.blocks_shape(WHOLE)):
            block = made_block(WHOLE, index)
            found = ds.sel({dim: block[dim] for dim in schema.CELL_DIMS})
            for name in schema.VARIABLES:
                np.testing.assert_array_equal(found[name], block[name])


def test_a_block_is_one_file_per_variable_and_nothing_else(complete: Path) -> None:
    blocks = math.prod(sweep.blocks_shape(WHOLE))
    for name in schema.VARIABLES:
        files = [p.name for p in (complete / name).iterdir() if p.name != "zarr.json"]
        assert len(files) == blocks
    plan = sweep.plan(WHOLE)
    assert sum(1 for p in complete.rglob("*") if p.is_file()) <= plan.files
    with xr.open_zarr(complete) as ds:
        assert sum(ds[name].nbytes for name in schema.VARIABLES) == plan.bytes


@pytest.mark.parametrize("block", [(1, 1), (90, 11), (1, 2048), (90, 1021), (7, 13), (1, 997)])
def test_chunks_divide_shards_and_hold_enough_cells_to_be_read_fast(block: tuple[int, int]) -> None:
    times = sweep.Times(tuple(np.linspace(0, 8, 200)))
    whole = tiny_sweep(beta=range(90), seed=range(2048), times=times, block=block)
    for variable in whole.layout.variables:
        shard, chunk = whole.layout.shard(variable), whole.layout.chunk(variable)
        assert all(s % c == 0 for s, c in zip(shard, chunk, strict=True))
        assert math.prod(chunk[2:4]) >= min(store.CHUNK_CELLS, math.prod(block))
        assert math.prod(chunk) * np.dtype(variable.dtype).itemsize <= 4 * 2**20


def test_history_grows_and_nothing_else_changes(complete: Path) -> None:
    before = bits(complete)
    store.add_history(complete, "2026-01-01T00:00:00Z touched")
    with xr.open_zarr(complete) as ds:
        assert ds.attrs["history"].splitlines()[-1] == "2026-01-01T00:00:00Z touched"
        assert len(ds.attrs["history"].splitlines()) == 2
    assert bits(complete) == before
    assert faults(complete) == []


# --- writing


def test_a_part_of_a_block_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "data.zarr")
    block = made_block(WHOLE, (0, 0, 0, 0))
    for part in (
        block.isel(seed=slice(0, 2)),
        block.isel(beta=slice(1, 2)),
        block.assign_coords(seed=[1, 2, 3]),
        block.assign_coords(seed=[0, 2, 1]),
        block.assign_coords(beta=[0.5, 1.0000001]),
        block.assign_coords(n=[4]),
    ):
        with pytest.raises(ValueError, match="is not one block of the dataset"):
            store.write_block(path, part)
    assert not store.written(path).any()


def test_a_block_without_a_kept_variable_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "data.zarr")
    with pytest.raises(ValueError, match="energy"):
        store.write_block(path, made_block(WHOLE, (0, 0, 0, 0)).drop_vars("energy"))


def test_written_blocks_are_those_whose_status_is_there(tmp_path: Path) -> None:
    path = make(tmp_path / "data.zarr")
    assert not store.written(path).any()
    indices = [(0, 0, 0, 0), (1, 1, 1, 2), (0, 1, 1, 0)]
    for index in indices:
        assert not store.has_block(path, index)
        assert store.write_block(path, made_block(WHOLE, index)) == index
        assert store.has_block(path, index)
    assert sorted(map(tuple, np.argwhere(store.written(path)).tolist())) == sorted(indices)
    store.discard(path, indices[0])
    assert not store.has_block(path, indices[0])
    assert int(store.written(path).sum()) == 2


@pytest.mark.parametrize("survivors", range(8))
def test_a_writer_that_dies_between_variables_leaves_the_block_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survivors: int
) -> None:
    path = make(tmp_path / "data.zarr")
    store.write_block(path, made_block(WHOLE, (1, 0, 0, 0)))
    _break_after(monkeypatch, survivors, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        store.write_block(path, made_block(WHOLE, (0, 0, 0, 0)))
    monkeypatch.undo()
    assert not store.has_block(path, (0, 0, 0, 0))
    assert store.has_block(path, (1, 0, 0, 0))
    assert list(store.failures(path)) == []
    assert not list(path.rglob("*.partial"))
    store.write_block(path, made_block(WHOLE, (0, 0, 0, 0)))
    assert faults(path) == ["incomplete: 72 of 84 cells are missing"]


def _break_after(monkeypatch: pytest.MonkeyPatch, count: int, error: OSError) -> None:
    """Let `count` files reach the disk, and no further one."""
    left = [count]
    real = os.fsync

    def sync(handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            left[0] -= 1
            if left[0] < 0:
                raise error
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)


def _write_blocks(path: str, part: int, parts: int) -> int:
    indices = list(np.ndindex(sweep.blocks_shape(WHOLE)))[part::parts]
    for index in indices:
        store.write_block(path, made_block(WHOLE, index))
    return len(indices)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def test_processes_that_write_different_blocks_lose_nothing(
    tmp_path: Path, complete: Path, pool: ProcessPoolExecutor
) -> None:
    path = make(tmp_path / "other.zarr")
    counts = list(pool.map(_write_blocks, [str(path)] * 4, range(4), [4] * 4))
    assert sum(counts) == math.prod(sweep.blocks_shape(WHOLE))
    assert faults(path) == []
    assert bits(path) == bits(complete)


def test_writers_of_the_same_block_leave_one_whole_block(tmp_path: Path, pool: ProcessPoolExecutor) -> None:
    path = make(tmp_path / "data.zarr")
    list(pool.map(_write_blocks, [str(path)] * 40, [0] * 40, [24] * 40))  # forty times the first block
    assert faults(path) == ["incomplete: 78 of 84 cells are missing"]


def test_failed_cells_are_kept_with_their_errors(tmp_path: Path) -> None:
    path = make(tmp_path / "data.zarr")
    store.write_block(path, made_block(WHOLE, (1, 0, 1, 2), failed=1))
    found = list(store.failures(path))
    assert found == [{"n": 5, "d": 2, "beta": 4.0, "seed": 6, "error": "made to fail", "block": (1, 0, 1, 2)}]
    assert store.block_failures(path, (1, 0, 1, 2))[0]["seed"] == 6
    store.discard(path, (1, 0, 1, 2))
    assert list(store.failures(path)) == []


def test_receipts_are_read_back_and_a_torn_one_is_skipped(tmp_path: Path) -> None:
    path = make(tmp_path / "data.zarr")
    store.add_receipts(path, "first", [{"seconds": 1.0}, {"seconds": 2.0}])
    store.add_receipts(path, "first", [{"seconds": 3.0}])
    with (path / store.FOLDER / "receipts" / "first.jsonl").open("a") as file:
        file.write('{"seconds": 4')
    assert [receipt["seconds"] for receipt in store.receipts(path)] == [1.0, 2.0, 3.0]


def test_drafts_of_killed_writers_are_swept_up(complete: Path) -> None:
    drafts = [complete / "energy" / "c.0.0.0.0.0.abc.partial", complete / store.FOLDER / "x.partial"]
    for draft in drafts:
        draft.write_bytes(b"half")
    assert any("2 drafts" in fault for fault in faults(complete))
    assert store.sweep_up(complete) == 2
    assert faults(complete) == []


# --- what is refused, and left as it was


def _foreign(path: Path) -> None:
    zarr.create_group(str(path), zarr_format=3).create_array("x", shape=(3,), dtype="f8")


def _format_2(path: Path) -> None:
    zarr.create_group(str(path), zarr_format=2)


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")


def _file(path: Path) -> None:
    path.write_text("years of work")


def _truncated(path: Path) -> None:
    make(path)
    shutil.rmtree(path / "energy")


def _half_json(path: Path) -> None:
    make(path)
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text[: len(text) // 2])


def _unconsolidated(path: Path) -> None:
    make(path)
    _edit(path / "zarr.json", lambda document: document.pop("consolidated_metadata"))


def _other_schema(path: Path) -> None:
    make(path)
    _edit(path / "zarr.json", lambda document: document["attributes"].update(schema_version=2))


def _broken_sweep(path: Path) -> None:
    make(path)
    _edit(path / "zarr.json", lambda document: document["attributes"].update(sweep="{}"))


def _edit(file: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_foreign, "of another origin"),
        (_format_2, "a Zarr store of format 2"),
        (_folder, "a folder without zarr.json"),
        (_file, "a file"),
        (_truncated, "truncated dataset: energy is missing"),
        (_half_json, "zarr.json is damaged"),
        (_unconsolidated, "metadata are damaged"),
        (_other_schema, "schema version 2; allowed: schema version 1"),
        (_broken_sweep, "attribute sweep is damaged"),
    ],
)
def test_what_is_not_a_sound_dataset_is_refused_in_one_line_and_left_alone(
    tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "data.zarr"
    spoil(path)
    before = _contents(tmp_path)
    for act in (
        lambda: run.validate(path),
        lambda: run.plan(WHOLE, path),
        lambda: run.run(WHOLE, path, executor=_never()),
    ):
        with pytest.raises(ValueError, match=r"store\.path: got ") as refusal:
            act()
        assert words in str(refusal.value)
        assert "; allowed: " in str(refusal.value)
        assert "\n" not in str(refusal.value)
    assert _contents(tmp_path) == before


class _never:
    def submit(self, *args: Any) -> Any:
        raise AssertionError("nothing may be computed")


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_nothing_is_ever_created_over_something(complete: Path) -> None:
    before = _contents(complete.parent)
    with pytest.raises(OSError, match="not empty"):
        make(complete)
    assert _contents(complete.parent) == before


def test_a_creation_that_fails_leaves_nothing(tmp_path: Path) -> None:
    attrs = dataset.attributes(WHOLE, {}, {}) | {"tolerance": float("nan")}
    with pytest.raises(ValueError, match="JSON"):
        store.create(tmp_path / "data.zarr", WHOLE.layout, attrs)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_a_place_for_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "data.zarr").mkdir()
    assert not store.exists(tmp_path / "data.zarr")
    assert store.inspect(make(tmp_path / "data.zarr")).blocks == (2, 2, 2, 3)


# --- one driver at a time


def test_a_second_driver_is_refused_by_the_name_of_the_first(tmp_path: Path) -> None:
    path = make(tmp_path / "data.zarr")
    with store.lease(path):
        with pytest.raises(ValueError, match=rf"store\.path: got .*process {os.getpid()} on ") as refusal:
            store.Lease(path).acquire()
        assert "\n" not in str(refusal.value)
    with store.lease(path) as held:
        assert held.is_held()
    assert not (path / store.FOLDER / "lease.json").exists()


def test_the_lease_of_a_killed_driver_is_taken_over_at_once(tmp_path: Path) -> None:
    path = make(tmp_path / "data.zarr")
    code = f"""
import os, signal
from pipeline import store
store.Lease({str(path)!r}).acquire()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == -9
    assert (path / store.FOLDER / "lease.json").exists()
    with store.lease(path) as held:
        assert held.is_held()


@pytest.mark.parametrize(("age", "is_refused"), [(0.0, True), (60.0, True), (300.0, False)])
def test_a_lease_from_elsewhere_is_stale_after_two_minutes(
    tmp_path: Path, age: float, is_refused: bool
) -> None:
    path = make(tmp_path / "data.zarr")
    record = {"name": "theirs", "pid": 1, "host": "elsewhere", "heartbeat": time.time() - age}
    (path / store.FOLDER / "lease.json").write_text(json.dumps(record))
    lease = store.Lease(path)
    if is_refused:
        with pytest.raises(ValueError, match="process 1 on elsewhere"):
            lease.acquire()
    else:
        lease.acquire()
        assert lease.is_held()
        lease.release()


def test_the_heart_beats_and_a_lost_lease_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.02)
    path = make(tmp_path / "data.zarr")
    file = path / store.FOLDER / "lease.json"
    with store.lease(path) as held:
        first = json.loads(file.read_text())["heartbeat"]
        deadline = time.monotonic() + 10
        while json.loads(file.read_text())["heartbeat"] == first:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        file.write_text(json.dumps({"name": "theirs", "heartbeat": time.time()}))
        time.sleep(0.1)
        assert not held.is_held()
    assert json.loads(file.read_text())["name"] == "theirs"  # not ours to give back


def test_of_many_who_take_over_a_stale_lease_one_has_it(tmp_path: Path) -> None:
    path = make(tmp_path / "data.zarr")
    file = path / store.FOLDER / "lease.json"
    for _ in range(20):
        file.write_text(json.dumps({"name": "dead", "pid": 1, "host": "elsewhere", "heartbeat": 0.0}))
        held = [store.Lease(path) for _ in range(4)]
        outcomes = []
        for lease in held:
            try:
                lease.acquire()
                outcomes.append(lease)
            except ValueError:
                pass
        assert len(outcomes) == 1
        outcomes[0].release()


# --- faults


def test_a_complete_dataset_has_no_fault(complete: Path) -> None:
    assert faults(complete) == []


@pytest.mark.parametrize("name", schema.VARIABLES)
def test_a_flipped_bit_anywhere_is_an_error_and_never_a_number(complete: Path, name: str) -> None:
    file = complete / name / ("c.1.0.0.1" + ".0" * (len(schema.VARIABLES[name].dims) - 4))
    sound = file.read_bytes()
    group = zarr.open_group(str(complete), mode="r")
    for position in range(0, len(sound), max(1, len(sound) // 40)):
        spoilt = bytearray(sound)
        spoilt[position] ^= 1 << (position % 8)
        file.write_bytes(spoilt)
        with pytest.raises(Exception, match=r"(?i)checksum|index|crc|corrupt|decompress|cannot|invalid"):
            group[name][1, 0, 0:2, 3:6]  # type: ignore[index]
    found = faults(complete)
    assert any(name in fault and "cannot be decoded" in fault for fault in found), found
    file.write_bytes(sound)
    assert faults(complete) == []


@pytest.mark.parametrize("name", [*schema.COORDINATES])
def test_a_flipped_bit_in_a_coordinate_is_found(complete: Path, name: str) -> None:
    file = complete / name / "c.0"
    spoilt = bytearray(file.read_bytes())
    spoilt[len(spoilt) // 2] ^= 4
    file.write_bytes(spoilt)
    assert any(fault.startswith(f"{name}: cannot be read") for fault in faults(complete))


def _swap_coordinate(path: Path) -> None:
    zarr.open_group(str(path), mode="r+")["beta"][...] = [0.5, 1.0, 5.0]  # type: ignore[index]


def _lose_shard(path: Path) -> None:
    (path / "energy" / "c.0.0.0.0.0").unlink()


def _empty_shard(path: Path) -> None:
    (path / "energy" / "c.0.0.0.0.0").write_bytes(b"")


def _lose_block(path: Path) -> None:
    (path / "status" / "c.0.0.0.0").unlink()


def _add_array(path: Path) -> None:
    zarr.open_group(str(path), mode="r+").create_array("mine", shape=(3,), dtype="f8")


def _edit_units(path: Path) -> None:
    _edit(path / "energy" / "zarr.json", lambda document: document["attributes"].update(units="J"))


def _nan_attribute(path: Path) -> None:
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text.replace('"tolerance": 0.001', '"tolerance": NaN'))


def _lose_title(path: Path) -> None:
    _edit(path / "zarr.json", lambda document: document["attributes"].pop("title"))


def _change_value(name: str, value: float, status: int | None = None) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        group = zarr.open_group(str(path), mode="r+")
        group[name][0, 0, 0, 0] = value  # type: ignore[index]
        if status is not None:
            group["status"][0, 0, 0, 0] = status  # type: ignore[index]

    return change


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_swap_coordinate, "beta: other values than the attribute sweep says"),
        (_lose_shard, "energy, block 0.0.0.0: its file energy/c.0.0.0.0.0 is missing or empty"),
        (_empty_shard, "energy, block 0.0.0.0: its file energy/c.0.0.0.0.0 is missing or empty"),
        (_lose_block, "incomplete: 6 of 84 cells are missing"),
        (_add_array, "mine: an array or folder that is not in the consolidated metadata"),
        (_edit_units, "energy/zarr.json: attributes differ from the consolidated metadata"),
        (_nan_attribute, "zarr.json: NaN is not JSON"),
        (_lose_title, "attribute title is missing"),
        (
            _change_value("energy", np.nan),
            "energy, block 0.0.0.0: 4 values are missing in cells that are done",
        ),
        (_change_value("energy", 1.5), "energy, block 0.0.0.0: 4 values are out of range"),
        (_change_value("cluster_count", 4), "cluster_count, block 0.0.0.0: 4 values are out of range"),
        (_change_value("log_time_to_clusters", 3.0), "3 values of k >= n are not -inf"),
        (_change_value("steps", -1), "steps, block 0.0.0.0: 1 values are negative"),
        (_change_value("energy", 0.5, status=0), "not every cell is done or failed"),
        (_change_value("energy", 0.5, status=2), "energy, block 0.0.0.0: 4 values are set in failed cells"),
        (_change_value("energy", np.nan, status=2), "failed, but no error is recorded for it"),
    ],
)
def test_every_kind_of_fault_is_named(complete: Path, spoil: Callable[[Path], None], words: str) -> None:
    spoil(complete)
    found = faults(complete)
    assert any(words in fault for fault in found), found
    assert all("\n" not in fault for fault in found)


def test_failed_cells_are_a_lack_but_no_contradiction(tmp_path: Path) -> None:
    path = fill(make(tmp_path / "data.zarr"), failed=1)
    assert faults(path) == ["incomplete: 24 of 84 cells are failed"]


def test_a_recorded_failure_without_a_failed_cell_is_a_fault(complete: Path) -> None:
    record = {"block": [0, 0, 0, 0], "cells": [{"n": 3, "d": 2, "beta": 0.5, "seed": 0, "error": "?"}]}
    (complete / store.FOLDER / "failures").mkdir()
    (complete / store.FOLDER / "failures" / "0.0.0.0.json").write_text(json.dumps(record))
    assert faults(complete) == [
        "failures: n=3, d=2, beta=0.5, seed=0 is recorded as failed, but its status is not"
    ]
