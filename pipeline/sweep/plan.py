"""Blocks and tasks of a sweep, and its price: computed with arrays, never one object per cell.

A block is one (n, d), a range of betas and a range of seeds; its shape is one per dataset, chosen so that the
dearest block takes about the target time. A task is one or more whole blocks bundled to the same time, and
to less towards the end, so that all workers end together. Tasks are made one by one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline import cell, schema, store
from pipeline.sweep.cost import cell_bytes, cell_seconds
from pipeline.sweep.grid import Sweep

TARGET_SECONDS = 10.0  # of a task: long beside the cost of scheduling, short beside the patience of a user
LEAST_SHARE = 64  # a block is at most this part of a sweep, so that small ones are spread and show progress
MOST_BLOCK_CELLS = 2**16
MOST_BLOCK_BYTES = 64 * 2**20
MOST_TASK_BLOCKS = 256
SHARES = 4  # a task is at most this part of what is left for each worker, ...
SHORTEST_SECONDS = 0.05  # ... unless that is less than this: below it the cost of scheduling shows,
SCHEDULING_SECONDS = 2e-3  # or than this for each worker, which the scheduler needs to serve them all
MANY_FILES = 100_000  # a usual quota of file systems of clusters
WORKER_BYTES = 400 * 2**20  # a worker with nothing to do: interpreter, compiled kernels, scheduler's client


@dataclass(frozen=True)
class Task:
    """What a worker is sent: one or more whole blocks, and their estimated seconds."""

    blocks: tuple[cell.Block, ...]
    seconds: float


def blocked(sweep: Sweep, target_seconds: float = TARGET_SECONDS) -> Sweep:
    """The sweep with its block chosen: unchanged if it has one.

    The dearest block is kept under the target, and under a 64th of the whole sweep as long as it has 128
    cells. Blocks take all betas before they take a second seed: betas share their initial tokens, and a
    sweep that is not finished has whole curves over beta.
    """
    if sweep.block is not None:
        return sweep
    seconds = cell_seconds(sweep)
    share = float(seconds.sum()) * len(sweep.seed) / LEAST_SHARE
    small = max(share, store.CHUNK_CELLS * float(seconds.max()))
    limit = min(target_seconds, small)
    most = max(1, min(MOST_BLOCK_CELLS, MOST_BLOCK_BYTES // cell_bytes(sweep)))
    row = float(seconds.sum(axis=2).max())
    if row <= limit and len(sweep.beta) <= most:
        betas = len(sweep.beta)
        seeds = max(1, min(math.floor(limit / row), most // betas, len(sweep.seed)))
    else:
        betas = max(1, min(math.floor(limit / float(seconds.max())), most, len(sweep.beta)))
        seeds = 1
    return dataclasses.replace(sweep, block=(_even(len(sweep.beta), betas), _even(len(sweep.seed), seeds)))


def _even(length: int, part: int) -> int:
    """The size of the parts when `length` is cut evenly in as many as parts of size `part` need."""
    return math.ceil(length / math.ceil(length / part))


def _block_of(sweep: Sweep) -> tuple[int, int]:
    if sweep.block is None:
        raise ValueError("a sweep without a block: see blocked()")
    return sweep.block


def blocks_shape(sweep: Sweep) -> tuple[int, int, int, int]:
    """Number of blocks along n, d, beta, seed."""
    betas, seeds = _block_of(sweep)
    return len(sweep.n), len(sweep.d), -(-len(sweep.beta) // betas), -(-len(sweep.seed) // seeds)


def block_at(sweep: Sweep, index: tuple[int, int, int, int]) -> cell.Block:
    """The block at this place."""
    betas, seeds = _block_of(sweep)
    i, j, k, m = index
    return cell.Block(
        index=index,
        n=sweep.n[i],
        d=sweep.d[j],
        beta=sweep.beta[k * betas : (k + 1) * betas],
        seed=sweep.seed[m * seeds : (m + 1) * seeds],
    )


def block_seconds(sweep: Sweep) -> NDArray[np.float64]:
    """Estimated seconds of every block, by its index."""
    betas, seeds = _block_of(sweep)
    rows = np.add.reduceat(cell_seconds(sweep), np.arange(0, len(sweep.beta), betas), axis=2)
    return np.asarray(rows[..., None] * _lengths(len(sweep.seed), seeds))


def _lengths(length: int, part: int) -> NDArray[np.int64]:
    return np.diff(np.append(np.arange(0, length, part), length))


def touched(sweep: Sweep, asked: Sweep) -> NDArray[np.bool_]:
    """The blocks of `sweep` that hold a cell of `asked`, whose axes it contains."""
    steps = (1, 1, *_block_of(sweep))
    along = []
    for dim, step, count in zip(schema.CELL_DIMS, steps, blocks_shape(sweep), strict=True):
        places = np.searchsorted(np.array(getattr(sweep, dim)), np.array(getattr(asked, dim)))
        along.append(np.isin(np.arange(count), places // step))
    i, j, k, m = along
    return np.asarray(i[:, None, None, None] & j[:, None, None] & k[:, None] & m)


def _bundled(
    sweep: Sweep, pending: NDArray[np.bool_], target_seconds: float, workers: int
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """Pending blocks, dearest first, their seconds, and where each task begins in that order."""
    numbers = np.flatnonzero(pending)
    seconds = block_seconds(sweep).ravel()[numbers]
    order = np.argsort(-seconds, kind="stable")
    numbers, seconds = numbers[order], seconds[order]
    counted = np.maximum(seconds, target_seconds / MOST_TASK_BLOCKS)
    left = counted[::-1].cumsum()[::-1]
    # A task ends where the count of those made passes an integer: at most one block more than is due.
    to_come = _tasks_in(left - counted / 2, target_seconds, workers)
    starts = np.flatnonzero(np.diff(np.floor(to_come[:1] - to_come), prepend=-1.0))
    return numbers, seconds, starts


def _tasks_in(left: NDArray[np.float64], target_seconds: float, workers: int) -> NDArray[np.float64]:
    """How many tasks so many seconds of work make, not rounded.

    Each takes what is left / (SHARES * workers), or the target if that is less: fewer and fewer seconds, as
    in guided self-scheduling (Polychronopoulos and Kuck, IEEE Trans. Comput. C-36, 1425, 1987).
    """
    shares = SHARES * workers
    shortest = min(max(SHORTEST_SECONDS, SCHEDULING_SECONDS * workers), target_seconds)
    even, long = shares * shortest, shares * target_seconds
    shrinking = shares * np.log(np.clip(left, even, long) / even)
    return np.minimum(left, even) / shortest + shrinking + np.maximum(left - long, 0.0) / target_seconds


def tasks(
    sweep: Sweep,
    pending: NDArray[np.bool_],
    target_seconds: float = TARGET_SECONDS,
    workers: int = 1,
) -> Iterator[Task]:
    """The tasks that compute the pending blocks on so many workers, made one by one, the longest first."""
    numbers, seconds, starts = _bundled(sweep, pending, target_seconds, workers)
    shape = blocks_shape(sweep)
    for first, last in zip(starts, np.append(starts[1:], len(numbers)), strict=False):
        indices = zip(*np.unravel_index(numbers[first:last], shape), strict=True)
        blocks = tuple(block_at(sweep, (int(i), int(j), int(k), int(m))) for i, j, k, m in indices)
        yield Task(blocks, float(seconds[first:last].sum()))


@dataclass(frozen=True)
class Plan:
    """What a run would do, in numbers; `str` is the page that `plan` prints. Seconds are of one core."""

    cells: int
    cells_pending: int
    blocks: int
    blocks_pending: int
    tasks: int
    block: tuple[int, int]
    files: int
    bytes: int
    worker_bytes: int
    seconds: float
    dearest_block_seconds: float
    dearest_cell: dict[str, float]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        betas, seeds = self.block
        done = self.cells - self.cells_pending
        at = ", ".join(f"{dim}={self.dearest_cell[dim]:g}" for dim in (schema.N, schema.D, schema.BETA))
        rows = [
            ("cells", f"{self.cells:,}" + (f", {done:,} of them in blocks already there" if done else "")),
            (
                "blocks",
                f"{self.blocks:,} of {betas} betas and {seeds} seeds, {self.blocks_pending:,} to compute",
            ),
            ("tasks", f"{self.tasks:,}"),
            ("files", f"{self.files:,} when complete"),
            ("size", f"{_size(self.bytes)} when complete, before compression"),
            ("memory", f"about {_size(self.worker_bytes)} per worker"),
            ("time", f"about {_duration(self.seconds)} of one core ({self.seconds / 3600:.3g} core-hours)"),
            ("dearest block", f"about {_duration(self.dearest_block_seconds)}"),
            ("dearest cell", f"about {_duration(self.dearest_cell['seconds'])}, at {at}"),
            *(("note", note) for note in self.notes),
        ]
        return "\n".join(f"{name:14}{value}" for name, value in rows)


def plan(
    sweep: Sweep,
    *,
    pending: NDArray[np.bool_] | None = None,
    target_seconds: float = TARGET_SECONDS,
    threads: int = 1,
    workers: int = 1,
) -> Plan:
    """What computing the pending blocks of a sweep takes (all of them by default); runs nothing."""
    sweep = blocked(sweep, target_seconds)
    betas, seeds = _block_of(sweep)
    shape = blocks_shape(sweep)
    pending = np.ones(shape, dtype=bool) if pending is None else pending
    _, chosen, starts = _bundled(sweep, pending, target_seconds, workers)
    per_cell = cell_seconds(sweep)
    i, j, k = np.unravel_index(int(per_cell.argmax()), per_cell.shape)
    dearest = float(per_cell.max())
    cells = np.multiply.outer(_lengths(len(sweep.beta), betas), _lengths(len(sweep.seed), seeds))
    variables = schema.variables_kept(sweep.variables)
    coordinates = len(schema.COORDINATES)
    d, times = sweep.d[-1], len(sweep.times.values)
    call = max(cell.call_cells(n, d, times) * cell.call_bytes(n, d, times) for n in sweep.n)
    notes = []
    if dearest > target_seconds:
        notes.append(
            f"a single cell exceeds the target of {target_seconds:g} s per task: the dearest is estimated at "
            f"{_duration(dearest)}"
        )
    files = math.prod(shape) * len(variables) + len(variables) + 2 * coordinates + 1
    if files > MANY_FILES:
        notes.append(
            "check that your quota allows so many files; fewer variables or larger blocks make fewer"
        )
    if betas * seeds < min(store.CHUNK_CELLS, len(sweep.beta) * len(sweep.seed)):
        notes.append(
            f"blocks of {betas * seeds} cells are slow to read back; a sweep of its own for the dearest "
            "(n, d) would give the others larger blocks"
        )
    return Plan(
        cells=sweep.cells,
        cells_pending=int((pending * cells).sum()),
        blocks=math.prod(shape),
        blocks_pending=int(pending.sum()),
        tasks=len(starts),
        block=(betas, seeds),
        files=files,
        bytes=sweep.cells * cell_bytes(sweep),
        worker_bytes=WORKER_BYTES + 4 * betas * seeds * cell_bytes(sweep) + 2 * threads * call,
        seconds=float(chosen.sum()),
        dearest_block_seconds=float(block_seconds(sweep).max()),
        dearest_cell={"n": sweep.n[i], "d": sweep.d[j], "beta": sweep.beta[k], "seconds": dearest},
        notes=tuple(notes),
    )


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _duration(seconds: float) -> str:
    for limit, unit, name in (
        (1.0, 1e-3, "ms"),
        (120.0, 1.0, "s"),
        (7200.0, 60.0, "min"),
        (172800.0, 3600.0, "h"),
    ):
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 86400:.3g} days"
