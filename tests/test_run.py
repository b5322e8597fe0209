"""A dataset is the same bits whoever computed it and however often killed; what fails, fails alone."""

from __future__ import annotations

import errno
import io
import json
import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from pipeline import dynamics, integrate, observe, run, schema, sphere, store, sweep, workers
from pipeline.run import driver
from tests import sabotage
from tests.tiny import bits, tiny_sweep

MADE = tiny_sweep()
SPAWN = multiprocessing.get_context("spawn")
FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["tests.sabotage"])


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The bits of the tiny sweep, computed in one go in this process."""
    path = tmp_path_factory.mktemp("run") / "expected.zarr"
    summary = run.run(MADE, path, executor=workers.Serial())
    assert (summary.cells, summary.done, summary.failed, summary.missing) == (84, 84, 0, 0)
    assert summary.computed == 84
    assert run.validate(path) == []
    return bits(path)


@pytest.fixture(scope="module")
def two() -> Iterator[workers.Remote]:
    """Two Dask workers."""
    with workers.Local(processes=2, dashboard=None).open() as executor:
        yield executor


class Witness:
    """A listener that keeps every event."""

    def __init__(self) -> None:
        self.events: list[run.Event] = []

    def __call__(self, event: run.Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


# --- the same bits


@pytest.mark.parametrize("block", [(1, 1), (3, 7), (1, 7), (3, 2), None])
def test_blocks_of_any_shape_give_the_same_dataset(
    tmp_path: Path, expected: dict[str, str], block: tuple[int, int] | None
) -> None:
    run.run(tiny_sweep(block=block), tmp_path / "data.zarr", executor=workers.Serial())
    assert bits(tmp_path / "data.zarr") == expected
    assert run.validate(tmp_path / "data.zarr") == []


@pytest.mark.parametrize("seconds", [1e-6, 1e-3, 1e3])
def test_tasks_of_any_length_give_the_same_dataset(
    tmp_path: Path, expected: dict[str, str], seconds: float
) -> None:
    run.run(MADE, tmp_path / "data.zarr", executor=workers.Serial(threads=3), task_seconds=seconds)
    assert bits(tmp_path / "data.zarr") == expected


def test_a_pool_of_threads_gives_the_same_dataset(tmp_path: Path, expected: dict[str, str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        run.run(MADE, tmp_path / "data.zarr", executor=pool, task_seconds=1e-3)
    assert bits(tmp_path / "data.zarr") == expected
    assert run.validate(tmp_path / "data.zarr") == []


def test_two_workers_give_the_same_dataset(
    tmp_path: Path, expected: dict[str, str], two: workers.Remote
) -> None:
    run.run(MADE, tmp_path / "data.zarr", executor=two, task_seconds=1e-3)
    assert bits(tmp_path / "data.zarr") == expected
    assert len({receipt["pid"] for receipt in store.receipts(tmp_path / "data.zarr")}) == 2


@pytest.mark.parametrize("processes", [1, 4])
def test_one_and_four_workers_give_the_same_dataset(
    tmp_path: Path, expected: dict[str, str], processes: int
) -> None:
    where = workers.Local(processes=processes, threads=5 - processes, dashboard=None)
    run.run(tiny_sweep(block=(1, 4)), tmp_path / "data.zarr", executor=where, task_seconds=1e-3)
    assert bits(tmp_path / "data.zarr") == expected


# --- resuming


def test_a_second_run_computes_nothing_and_starts_no_worker(tmp_path: Path, expected: dict[str, str]) -> None:
    run.run(MADE, tmp_path / "data.zarr", executor=workers.Serial())

    class Closed(workers.InProcess):
        def open(self) -> Any:
            raise AssertionError("no worker is needed")

    summary = run.run(MADE, tmp_path / "data.zarr", executor=Closed())
    assert (summary.done, summary.computed) == (84, 0)
    assert bits(tmp_path / "data.zarr") == expected


def test_a_run_computes_what_is_missing_and_no_more(tmp_path: Path, expected: dict[str, str]) -> None:
    path = tmp_path / "data.zarr"
    run.run(MADE, path, executor=workers.Serial())
    gone = [(0, 0, 0, 0), (1, 1, 1, 2)]
    for index in gone:
        store.discard(path, index)
    assert run.plan(MADE, path).cells_pending == 6 + 1
    witness = Witness()
    summary = run.run(MADE, path, executor=workers.Serial(), listeners=[witness])
    assert sorted(event.receipt["block"] for event in witness.of(run.BlockDone)) == gone
    assert (summary.done, summary.computed) == (84, 7)
    assert bits(path) == expected


def test_a_narrower_grid_is_resumed_in_the_dataset_that_contains_it(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    path = tmp_path / "data.zarr"
    store.create(path, MADE.layout, run.dataset.attributes(MADE, {}, {}))
    narrow = tiny_sweep(n=(5,), beta=(1.0,), seed=(3, 4), block=(1, 1))  # the dataset keeps its own blocks
    assert run.plan(narrow, path).blocks_pending == 2  # of both d, with 2 betas and 3 seeds each
    summary = run.run(narrow, path, executor=workers.Serial())
    assert (summary.cells, summary.done, summary.computed) == (12, 12, 12)
    assert int(store.written(path).sum()) == 2
    run.run(MADE, path, executor=workers.Serial())
    assert bits(path) == expected


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("grid.beta", {"beta": (0.5, 1.0, 4.0, 9.0)}),
        ("grid.n", {"n": (3, 5, 7)}),
        ("tolerance", {"tolerance": 1e-4}),
        ("dynamics.name", {"dynamics": dynamics.Dynamics("usa")}),
        ("integrator", {"integrator": integrate.Layers()}),
    ],
)
def test_another_question_is_refused_and_the_dataset_left_as_it_is(
    tmp_path: Path, expected: dict[str, str], key: str, changes: dict[str, Any]
) -> None:
    path = tmp_path / "data.zarr"
    run.run(MADE, path, executor=workers.Serial())
    before = {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    for act in (
        lambda: run.run(tiny_sweep(**changes), path, executor=workers.Serial()),
        lambda: run.plan(tiny_sweep(**changes), path),
    ):
        with pytest.raises(ValueError, match=rf"^{key}[^\n]*; allowed: [^\n]*$"):
            act()
    assert {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file()} == before


def _start(path: Path) -> tuple[Any, Any]:
    here, there = FORKSERVER.Pipe()
    process = FORKSERVER.Process(target=sabotage.drive, args=(str(path), there))
    process.start()
    there.close()
    return process, here


def test_killed_at_ten_random_instants_and_resumed_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    path, chance = tmp_path / "data.zarr", random.Random(5)
    run.run(sabotage.SLOW, tmp_path / "whole.zarr", executor=workers.Serial())
    pending = []
    for attempt in range(10):
        process, pipe = _start(path)
        assert pipe.poll(60)
        pending.append(pipe.recv())
        if attempt % 3:  # and one in three possibly before its first block
            assert pipe.poll(60)
        process.join(chance.uniform(0.0, 0.15))
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
    assert len(set(pending)) > 5  # it went on from where it was, and was killed in the middle
    assert pending == sorted(pending, reverse=True)
    run.run(sabotage.SLOW, path, executor=workers.Serial())
    assert run.validate(path) == []
    assert bits(path) == bits(tmp_path / "whole.zarr")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_cleanly_and_can_go_on(tmp_path: Path, number: int) -> None:
    path = tmp_path / "data.zarr"
    process, pipe = _start(path)
    for _ in range(4):  # its start, and three blocks
        assert pipe.poll(60)
        pipe.recv()
    os.kill(process.pid, number)
    process.join(20)
    assert process.exitcode == 130
    assert not (path / store.FOLDER / "lease.json").exists()
    assert not list(path.rglob("*.partial"))
    there = int(store.written(path).sum())
    assert 0 < there < store.written(path).size
    assert 3 <= sum(1 for _ in store.receipts(path)) <= there  # those of the last task may be missing
    assert len(store.inspect(path).attrs["history"].splitlines()) == 2
    summary = run.run(sabotage.SLOW, path, executor=workers.Serial())
    assert summary.missing == 0


class Interrupting:
    """Interrupts this process when it is cleared away, where what the interrupt raises is lost."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_loses_is_met_all_the_same(tmp_path: Path) -> None:
    held: list[Interrupting] = []

    def listen(event: run.Event) -> None:
        if isinstance(event, run.BlockDone):
            held.append(Interrupting())
            held.clear()

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run.run(
            MADE, tmp_path / "data.zarr", executor=workers.Serial(), listeners=[listen], task_seconds=1e-3
        )
    assert signal.getsignal(signal.SIGINT) is before
    there = store.written(tmp_path / "data.zarr")
    assert 0 < there.sum() < there.size


def test_a_driver_in_another_thread_may_run_and_leaves_signals_alone(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(
        target=run.run, args=(MADE, tmp_path / "data.zarr"), kwargs={"executor": workers.Serial()}
    )
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before
    assert run.validate(tmp_path / "data.zarr") == []


def test_two_drivers_do_not_compute_the_same_dataset(tmp_path: Path) -> None:
    path = tmp_path / "data.zarr"
    run.run(tiny_sweep(seed=(0,)), path, executor=workers.Serial())
    with store.lease(path), pytest.raises(ValueError, match=r"^store\.path: got .* is computing; allowed: "):
        run.run(tiny_sweep(seed=(0,)), path, executor=workers.Serial())


def test_two_drivers_that_begin_at_once_make_one_dataset(tmp_path: Path) -> None:
    path = tmp_path / "data.zarr"
    outcomes: list[str] = []

    def one() -> None:
        try:
            run.run(MADE, path, executor=workers.Serial())
            outcomes.append("done")
        except ValueError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "done" in outcomes
    assert all(text == "done" or text.startswith("store.path: got ") for text in outcomes)
    assert run.validate(path) == []


# --- failures


def test_a_worker_that_is_killed_costs_only_its_task(
    tmp_path: Path, expected: dict[str, str], two: workers.Remote
) -> None:
    path, witness = tmp_path / "data.zarr", Witness()
    executor = sabotage.Saboteur(two, sabotage.killed_once, str(tmp_path / "marker"))
    summary = run.run(MADE, path, executor=executor, listeners=[witness])
    assert (summary.done, summary.failed) == (84, 0)
    assert any("the worker was lost; trying again" in event.message for event in witness.of(run.Trouble))
    assert bits(path) == expected
    assert run.validate(path) == []


def test_a_cell_that_kills_its_worker_is_found_and_fails_alone(tmp_path: Path, two: workers.Remote) -> None:
    path = tmp_path / "data.zarr"
    made = tiny_sweep(n=(3,), d=(2,), seed=range(4), block=(2, 2))
    executor = sabotage.Saboteur(two, sabotage.with_poison, (3, 2, 1.0, 2), made.root_seed)
    summary = run.run(made, path, executor=executor, retries=0)
    assert (summary.done, summary.failed, summary.missing) == (11, 1, 0)
    (failure,) = store.failures(path)
    assert (failure["n"], failure["d"], failure["beta"], failure["seed"]) == (3, 2, 1.0, 2)
    assert "worker was lost" in failure["error"]
    assert run.validate(path) == ["incomplete: 1 of 12 cells are failed"]
    run.run(made, tmp_path / "sound.zarr", executor=workers.Serial())
    with xr.open_zarr(path) as found, xr.open_zarr(tmp_path / "sound.zarr") as sound:
        good = found.status.load() == schema.DONE
        assert found.energy.where(good).equals(sound.energy.where(good))


@pytest.mark.parametrize("retries", [0, 1, 3])
@pytest.mark.parametrize("bad", [{(3, 2, 0.5, 0)}, {(3, 2, 0.5, 0), (3, 2, 1.0, 2), (5, 4, 4.0, 6)}])
def test_lost_workers_are_searched_for_culprits_by_halves(
    tmp_path: Path, retries: int, bad: set[sabotage.Cell]
) -> None:
    executor = sabotage.Lossy(bad)
    path = tmp_path / "data.zarr"
    summary = run.run(MADE, path, executor=executor, retries=retries, task_seconds=1e3)
    assert (summary.done, summary.failed) == (84 - len(bad), len(bad))
    found = {tuple(record[dim] for dim in schema.CELL_DIMS) for record in store.failures(path)}
    assert found == bad
    assert run.validate(path) == [f"incomplete: {len(bad)} of 84 cells are failed"]
    assert len(executor.calls) < 40 + 30 * len(bad) * (1 + retries)


def test_a_task_that_fails_now_and_then_is_retried(tmp_path: Path, expected: dict[str, str]) -> None:
    executor = sabotage.Lossy({(3, 2, 0.5, 0)}, losses=2)
    summary = run.run(MADE, tmp_path / "data.zarr", executor=executor, retries=2)
    assert (summary.done, summary.failed) == (84, 0)
    assert bits(tmp_path / "data.zarr") == expected


def _poison(monkeypatch: pytest.MonkeyPatch, n: int, beta: float, seed: int) -> None:
    real = observe.observe_cells
    start = sphere.initial_tokens(MADE.root_seed, n, 2, seed)

    def engine(tokens: Any, betas: Any, **kwargs: Any) -> Any:
        if any(b == beta and np.array_equal(t, start) for t, b in zip(tokens, betas, strict=True)):
            raise ZeroDivisionError("poison")
        return real(tokens, betas, **kwargs)

    monkeypatch.setattr(observe, "observe_cells", engine)


def test_a_cell_that_raises_is_recorded_and_stays_failed_until_it_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, str]
) -> None:
    path = tmp_path / "data.zarr"
    _poison(monkeypatch, 5, 4.0, 2)
    summary = run.run(MADE, path, executor=workers.Serial())
    assert (summary.done, summary.failed, summary.missing) == (83, 1, 0)
    assert [record["error"] for record in store.failures(path)] == ["ZeroDivisionError: poison"]
    monkeypatch.undo()
    again = run.run(MADE, path, executor=workers.Serial())
    assert (again.failed, again.computed) == (1, 0)
    retried = run.run(MADE, path, executor=workers.Serial(), retry_failed=True)
    assert (retried.failed, retried.computed) == (0, 3)  # its block of 1 beta and 3 seeds
    assert bits(path) == expected
    assert run.validate(path) == []


def test_an_error_outside_the_cells_is_recorded_for_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = run.work.cell.compute_block

    def compute(recipe: Any, block: Any, **kwargs: Any) -> Any:
        if block.index == (0, 1, 0, 1) and not kwargs.get("skip"):
            raise MemoryError("no room for the block")
        return real(recipe, block, **kwargs)

    monkeypatch.setattr(run.work.cell, "compute_block", compute)
    summary = run.run(MADE, tmp_path / "data.zarr", executor=workers.Serial())
    assert (summary.done, summary.failed) == (78, 6)
    errors = {record["error"] for record in store.failures(tmp_path / "data.zarr")}
    assert errors == {"MemoryError: no room for the block"}


def test_workers_that_never_live_end_the_run_in_one_line(tmp_path: Path) -> None:
    class Dead:
        slots = 2

        def submit(self, *args: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(driver.workers.executors.BrokenExecutor("dead on arrival"))
            return future

    with pytest.raises(OSError, match=r"lost again and again[^\n]*what is done is kept"):
        run.run(MADE, tmp_path / "data.zarr", executor=Dead(), retries=0)
    assert not (tmp_path / "data.zarr" / store.FOLDER / "lease.json").exists()


def test_a_pool_that_breaks_ends_the_run_and_another_goes_on(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    path = tmp_path / "data.zarr"
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        executor = sabotage.Saboteur(_Sized(pool), sabotage.killed_once, str(tmp_path / "marker"))
        with pytest.raises(OSError, match="what is done is kept"):
            run.run(MADE, path, executor=executor)
    assert not (path / store.FOLDER / "lease.json").exists()
    run.run(MADE, path, executor=workers.Serial())
    assert bits(path) == expected


class _Sized:
    slots = 1

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self.submit = pool.submit


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_ends_the_run_in_one_line_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, str], number: int
) -> None:
    path, left = tmp_path / "data.zarr", [100]
    store.create(path, MADE.layout, run.dataset.attributes(MADE, {}, {}))
    real = os.fsync

    def sync(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(number, os.strerror(number))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(OSError, match=os.strerror(number)) as stop:
        run.run(MADE, path, executor=workers.Serial())
    monkeypatch.undo()
    assert stop.value.errno == number
    assert stop.value.filename == str(path)
    assert "what is done is kept" in str(stop.value)
    assert not list(path.rglob("*.partial"))
    there = int(store.written(path).sum())
    assert 0 < there < 24
    assert all("missing" in fault for fault in run.validate(path))
    summary = run.run(MADE, path, executor=workers.Serial())
    assert summary.computed < 84
    assert bits(path) == expected


@pytest.mark.parametrize(("hiccups", "is_stopped"), [(1, False), (10**9, True)])
def test_an_error_of_the_disk_is_retried_and_is_no_cells_fault(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    expected: dict[str, str],
    hiccups: int,
    is_stopped: bool,
) -> None:
    path, left = tmp_path / "data.zarr", [hiccups]
    real = store.write_block

    def write(path: Any, block: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            raise OSError(errno.EIO, "Input/output error")
        return real(path, block)

    monkeypatch.setattr(store, "write_block", write)
    if is_stopped:
        with pytest.raises(OSError, match="Input/output error; what is done is kept"):
            run.run(MADE, path, executor=workers.Serial())
        monkeypatch.undo()
    assert run.run(MADE, path, executor=workers.Serial()).failed == 0
    assert bits(path) == expected


@pytest.mark.parametrize("name", ["a file/data.zarr", "a file"])
def test_a_place_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").write_text("x")
    with pytest.raises(ValueError, match=r"^store\.path: got [^\n]*; allowed: [^\n]*$"):
        run.run(MADE, tmp_path / name, executor=workers.Serial())


# --- how it goes about it


def test_what_flies_is_bounded_and_tasks_are_made_when_they_are_needed(tmp_path: Path) -> None:
    made = tiny_sweep(block=(1, 1))
    flying, most = 0, 0
    lock = threading.Lock()
    taken: list[int] = []
    real = sweep.tasks

    class Counting:
        slots = 3

        def __init__(self, pool: ThreadPoolExecutor) -> None:
            self.pool = pool

        def submit(self, fn: Any, /, *args: Any) -> Future[Any]:
            nonlocal flying, most
            with lock:
                flying += 1
                most = max(most, flying)
            return self.pool.submit(self.done, fn, *args)

        def done(self, fn: Any, *args: Any) -> Any:
            nonlocal flying
            try:
                return fn(*args)
            finally:
                with lock:
                    flying -= 1

    def stream(*args: Any) -> Iterator[sweep.Task]:
        for task in real(*args):
            taken.append(1)
            assert len(taken) <= len(witness.of(run.BlockDone)) + 6 + 1
            yield task

    witness = Witness()
    with ThreadPoolExecutor(3) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(run.sweeping.sweeps, "tasks", stream)
        run.run(made, tmp_path / "data.zarr", executor=Counting(pool), task_seconds=1e-9, listeners=[witness])
    assert most <= 6
    assert run.validate(tmp_path / "data.zarr") == []


def test_events_tell_the_whole_story(tmp_path: Path) -> None:
    witness = Witness()
    run.run(MADE, tmp_path / "data.zarr", executor=workers.Serial(), listeners=[witness])
    first, *middle, last = witness.events
    assert isinstance(first, run.Started)
    assert isinstance(last, run.Finished)
    assert (first.cells, first.cells_present, first.blocks) == (84, 0, 24)
    assert len(middle) == 24
    assert sum(event.receipt["cells"] for event in witness.of(run.BlockDone)) == 84
    assert sum(event.seconds for event in witness.of(run.BlockDone)) == pytest.approx(first.seconds)
    receipts = list(store.receipts(tmp_path / "data.zarr"))
    assert len(receipts) == 24
    assert all(receipt["seconds"] > 0 and receipt["evaluations"] > 0 for receipt in receipts)
    with xr.open_zarr(tmp_path / "data.zarr") as ds:
        assert sum(r["evaluations"] for r in receipts) == int(ds.evaluations.sum())


def test_the_dataset_says_who_made_it_and_from_what(tmp_path: Path) -> None:
    run.run(
        MADE,
        tmp_path / "data.zarr",
        executor=workers.Serial(),
        config={"grid": {"n": [3, 5]}},
        attrs={"title": "mine", "creator_name": "A. Turing"},
    )
    attrs = store.inspect(tmp_path / "data.zarr").attrs
    assert attrs["title"] == "mine"
    assert attrs["creator_name"] == "A. Turing"
    assert json.loads(attrs["config"]) == {"grid": {"n": [3, 5]}}
    assert json.loads(attrs["software"])["numpy"] == np.__version__
    assert json.loads(attrs["platform"])["processor"]["cores"] >= 1
    assert attrs["source"].startswith("spheresweep")
    assert len(attrs["history"].splitlines()) == 2


def test_the_plan_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "data.zarr"
    before = run.plan(MADE, path)
    assert not path.exists()  # planning writes nothing
    assert (before.cells, before.cells_pending, before.blocks) == (84, 84, 24)
    run.run(MADE, path, executor=workers.Serial())
    arrays = sum(1 for p in path.rglob("*") if p.is_file() and store.FOLDER not in p.parts)
    assert arrays <= before.files
    with xr.open_zarr(path) as ds:
        assert sum(ds[name].nbytes for name in schema.VARIABLES) == before.bytes
    after = run.plan(MADE, path)
    assert (after.cells_pending, after.blocks_pending, after.tasks, after.seconds) == (0, 0, 0, 0)


def _story(tmp_path: Path, reporter: run.Reporter) -> None:
    run.run(MADE, tmp_path / "data.zarr", executor=workers.Serial(), listeners=[reporter])
    reporter(run.Trouble("a worker was lost"))


def test_progress_is_quiet_where_there_is_no_terminal(tmp_path: Path) -> None:
    screen = io.StringIO()
    _story(tmp_path, run.Reporter(screen))
    start, end, trouble = screen.getvalue().splitlines()
    assert "84 cells to compute" in start
    assert "in this process" in start
    assert "84 of 84 cells done" in end
    assert trouble == "a worker was lost"


def test_progress_shows_a_rate_and_the_time_left_on_a_terminal(tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "120")
        _story(tmp_path, run.Reporter(screen))
    text = screen.getvalue()
    assert "/s" in text
    assert " left" in text
    assert "84 of 84 cells done" in text


def test_the_time_left_is_weighed_by_cost(tmp_path: Path) -> None:
    reporter = run.Reporter(io.StringIO())
    reporter(run.Started(tmp_path, 100, 0, 2, 2, 100.0, "", ""))
    reporter.started -= 60.0
    reporter(
        run.BlockDone({"cells": 1, "failed": 0}, 75.0)
    )  # one cell of a hundred, three quarters of the work
    assert reporter.numbers().startswith("1 of 100 cells, ")
    assert reporter.numbers().endswith(", 0:20 left")


def test_a_run_without_distributed_installed_is_possible(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["distributed"] = sys.modules["dask_jobqueue"] = None
from pipeline import run, workers
from tests.tiny import tiny_sweep
run.run(tiny_sweep(n=(3,), d=(2,)), {str(tmp_path / "data.zarr")!r}, executor=workers.InProcess())
"""
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        check=True,
        timeout=120,
        cwd=Path(__file__).parents[1],
    )


def test_finite_numbers_only(tmp_path: Path) -> None:
    """Infinite and missing log times are stored as such and read back."""
    made = tiny_sweep(n=(5,), d=(2,), horizon=0.5, times=sweep.Times((0.0, 0.5)))
    run.run(made, tmp_path / "data.zarr", executor=workers.Serial())
    with xr.open_zarr(tmp_path / "data.zarr") as ds:
        log_times = ds.log_time_to_clusters.load()
        assert (log_times.sel(clusters=1) == math.inf).any()  # not synchronised by then
        assert (log_times.sel(clusters=5) == -math.inf).all()
    assert run.validate(tmp_path / "data.zarr") == []
