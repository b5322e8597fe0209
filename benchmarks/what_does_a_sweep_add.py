"""What does a sweep add to the time in the engine, and how does it spread over workers?"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xarray as xr

from benchmarks.measure import Table, Timer, cores, main, wall_seconds
from benchmarks.timed import Account, Timed, warm
from pipeline import integrate, run, sweep, workers
from pipeline.dynamics import Dynamics

TARGETS = {1.0: 0.05, 10.0: 0.02}  # overhead by the length of a task


def tiny(cells: int) -> sweep.Sweep:
    """Cells of about a hundredth of a millisecond: four tokens, eight save times."""
    return sweep.Sweep(
        n=(4,),
        d=(2,),
        beta=(1.0, 2.0, 3.0, 4.0, 5.0),
        seed=tuple(range(cells // 5)),
        root_seed=0,
        dynamics=Dynamics(),
        integrator=integrate.Adaptive(),
        horizon=5.0,
        times=sweep.Times((0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)),
        variables=("pair_sync_fraction",),
        clusters_kept=4,
    )


def real(core_seconds: float, per_seed: float) -> sweep.Sweep:
    """A part of the paper's phase diagram at d = 2 and 8: so many seconds of one core."""
    return sweep.Sweep(
        n=(32,),
        d=(2, 8),
        beta=tuple(0.5 * (1 + b) for b in range(18)),
        seed=tuple(range(max(1, round(core_seconds / per_seed)))),
        root_seed=0,
        dynamics=Dynamics(),
        integrator=integrate.Adaptive(),
        horizon=30.0,
        times=sweep.Times(tuple(0.5 * t for t in range(61))),
        variables=("pair_sync_fraction",),
        clusters_kept=4,
    )


def ran(asked: sweep.Sweep, path: Path, executor: Any, task_seconds: float) -> Account:
    """The account of one run into a new dataset, on workers that are there."""
    account = Account(run.driver.slots(executor), asked.cells)
    with Timer(wall_seconds) as taken:
        run.run(asked, path, executor=Timed(executor), task_seconds=task_seconds, listeners=[account])
    account.wall = taken.seconds
    return account


class Bench:
    """Executors that stand ready, warmed up, and a folder for datasets."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder, self.stack, self.count = folder, stack, 0
        self.executors: dict[str, Any] = {}
        self.opening: dict[str, float] = {}

    def open(self, name: str, description: workers.Workers) -> None:
        with Timer(wall_seconds) as taken:
            self.executors[name] = self.stack.enter_context(description.open())
        self.opening[name] = taken.seconds
        for asked in (tiny(5), real(1.0, 1.0)):
            whole = sweep.blocked(asked)
            for d in range(len(whole.d)):
                block = sweep.block_at(whole, (0, d, 0, 0))
                calls = 2 * run.driver.slots(self.executors[name])
                for future in [self.executors[name].submit(warm, whole.recipe, block) for _ in range(calls)]:
                    future.result()

    def run(self, name: str, asked: sweep.Sweep, task_seconds: float) -> Account:
        self.count += 1
        self.last = self.folder / f"{self.count}.zarr"
        return ran(asked, self.last, self.executors[name], task_seconds)

    def opened(self) -> float:
        """Seconds to open the last dataset."""
        with Timer(wall_seconds) as taken:
            xr.open_zarr(self.last).close()
        return taken.seconds


def tiny_cells(bench: Bench, sizes: dict[str, tuple[int, ...]]) -> Table:
    rows = []
    for name, counts in sizes.items():
        for cells in counts:
            account = bench.run(name, tiny(cells), 10.0)
            each = account.wall * account.workers / cells * 1e6
            rows.append(
                (
                    name,
                    cells,
                    len(account.tasks),
                    account.wall,
                    each,
                    account.engine / cells * 1e6,
                    account.around / cells * 1e6,
                    bench.opened(),
                )
            )
    columns = ("workers", "cells", "tasks", "s", "µs per cell", "in the engine", "around it", "s to open")
    notes = (
        "µs per cell: wall time x workers / cells. Around the engine: initial tokens, labels, writing. The rest is "
        "making the dataset, scheduling, and waiting at the end.",
    )
    return Table("Tiny cells: n = 4, d = 2, to t = 5", columns, rows, notes)


def long_tasks(bench: Bench, name: str, per_seed: float, tasks: dict[float, int], scale: float) -> Table:
    rows = []
    for seconds, count in tasks.items():
        account = bench.run(name, real(seconds * scale * count, per_seed), seconds * scale)
        lengths = [task["end"] - task["start"] for task in account.tasks]
        whole = account.wall * account.workers
        between = account.overhead - account.around - account.idle
        parts = (account.around / whole, between / whole, account.idle / whole)
        share = account.overhead / whole
        target = TARGETS[seconds]
        rows.append(
            (statistics.median(lengths), len(lengths), account.wall, share, target, share <= target, *parts)
        )
    columns = (
        "s per task",
        "tasks",
        "s",
        "overhead",
        "target",
        "reached",
        "around the engine",
        "between tasks",
        "idle at the end",
    )
    note = (
        "Overhead: (wall time x workers - time in the engine) / (wall time x workers), in three parts. Idle at the "
        "end: no task is left for a worker; it shrinks with the number of tasks."
    )
    return Table(f"Overhead of a sweep, {name}", columns, rows, (note,))


def scaling(bench: Bench, names: list[str], per_seed: float, core_seconds: float, rounds: int) -> Table:
    walls: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for name in names:
            count = run.driver.slots(bench.executors[name])
            for kind, work in (("strong", core_seconds), ("weak", core_seconds * count)):
                if kind == "strong" or count > 1:
                    wall = bench.run(name, real(work, per_seed), 1.0).wall
                    walls.setdefault((name, kind), []).append(wall)
    first = walls["1 process", "strong"]
    rows = []
    for (name, kind), taken in walls.items():
        count = run.driver.slots(bench.executors[name])
        speedup = statistics.median(a / b for a, b in zip(first, taken, strict=True))
        efficiency = speedup / count if kind == "strong" else speedup
        rows.append((name, kind if count > 1 else "", statistics.median(taken), speedup, efficiency))
    columns = ("workers", "scaling", "s", "speed-up", "efficiency")
    note = (
        f"Strong: the same {core_seconds:g} s of one core for all; weak: so much for each worker. Against 1 process; "
        f"medians of {rounds} rounds. Starting the workers, once a run and not counted here, took "
        + ", ".join(f"{seconds:.1f} s ({name})" for name, seconds in bench.opening.items())
        + "."
    )
    return Table("The same sweep on more workers", columns, rows, (note,))


def ask(quick: bool) -> Iterator[Table]:
    counts = [c for c in (1, 2, 4) if c == 1 or c <= cores()]
    counts = counts[:2] if quick else counts
    most = f"{counts[-1]} process{'es' if counts[-1] > 1 else ''}"
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        bench = Bench(Path(folder), stack)
        bench.open("none", workers.InProcess())
        for count in counts:
            name = f"{count} process{'es' if count > 1 else ''}"
            bench.open(name, workers.Local(processes=count, dashboard=None))
        sample = bench.run("none", real(0.2 if quick else 2.0, 0.05), 1.0)
        per_seed = sample.engine / (sample.cells / 36)
        few, many = (10**2,), (10**2, 10**3, 10**4, 10**5)
        yield tiny_cells(bench, {"none": few if quick else many, most: few if quick else (*many, 10**6)})
        yield long_tasks(
            bench, most, per_seed, {1.0: 2} if quick else {1.0: 60, 10.0: 60}, 0.05 if quick else 1.0
        )
        yield scaling(bench, [*bench.executors], per_seed, 0.1 if quick else 8.0, 1 if quick else 3)


if __name__ == "__main__":
    main("What does a sweep add to the time in the engine, and how does it spread over workers?", ask)
