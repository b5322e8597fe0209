"""The driver: tasks to an executor, a bounded number at a time, and failures back to their cells.

Workers write their own blocks and answer with receipts, so the driver holds a few numbers per block in flight
and nothing else. A task that fails is tried again, then cut into its blocks; a block that still kills its
workers is searched for the cells that do, by halves; those are recorded as failed, the rest is computed.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pipeline import cell, sweep, workers
from pipeline.run import events, work

# What the disk says when no retry can help; what is written stays.
HOPELESS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR})


class Executor(Protocol):
    """Anything with `submit`: ours, or one of the standard library's."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Start a call; its future."""


@dataclass
class _Job:
    """Something to be sent to a worker: blocks to write, or (`places`) cells of one block to be tried."""

    blocks: tuple[cell.Block, ...]
    tries: int = 0
    skip: dict[cell.Place, str] = field(default_factory=dict)
    places: tuple[cell.Place, ...] = ()
    inquest: _Inquest | None = None
    is_examined: bool = False  # its cells were tried: no second inquest
    is_last_resort: bool = False  # nothing is computed any more, only recorded as failed


@dataclass
class _Inquest:
    """The search for the cells of a block that kill their worker."""

    block: cell.Block
    open: int = 0
    culprits: dict[cell.Place, str] = field(default_factory=dict)


class Driver:
    """Runs tasks on an executor until all of their blocks are written."""

    def __init__(
        self,
        path: Path,
        recipe: cell.Recipe,
        tasks: Iterator[sweep.Task],
        executor: Executor,
        *,
        window: int | None,
        threads: int,
        retries: int,
        tell: events.Listener,
    ) -> None:
        self.path, self.recipe, self.tasks, self.executor = path, recipe, tasks, executor
        self.window, self.threads, self.retries, self.tell = window, threads, retries, tell
        self.again: deque[_Job] = deque()
        self.flying: dict[Future[Any], _Job] = {}
        self.lost_workers = 0

    def receipts(self) -> Iterator[dict[str, Any]]:
        """Receipts of the blocks, in the order in which they are done.

        OSError where the disk is full or gone. Nothing is left flying when this ends, by whatever way.
        """
        try:
            while self._submit():
                done, _ = wait(self.flying, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from self._settle(future, self.flying.pop(future))
        finally:
            for future in self.flying:
                future.cancel()
            self.flying.clear()

    def _submit(self) -> bool:
        """Fill the window; whether anything flies."""
        while len(self.flying) < self._room():
            job = self.again.popleft() if self.again else self._next()
            if job is None:
                break
            if job.places:
                future = self.executor.submit(work.probe, self.recipe, job.blocks[0], job.places)
            else:
                arguments = (str(self.path), self.recipe, job.blocks, self.threads, job.skip)
                future = self.executor.submit(work.compute_task, *arguments)
            self.flying[future] = job
        return bool(self.flying)

    def _room(self) -> int:
        """How many jobs may fly: one for each place on a worker, and as many waiting.

        A worker's death is charged to all that wait on it, so after the first one nothing waits.
        """
        places = slots(self.executor)
        room = places if places == 1 or self.lost_workers else 2 * places
        return room if self.window is None else min(room, self.window)

    def _next(self) -> _Job | None:
        task = next(self.tasks, None)
        return None if task is None else _Job(task.blocks)

    def _settle(self, future: Future[Any], job: _Job) -> Iterator[dict[str, Any]]:
        try:
            result = future.result()
        except Exception as error:
            self._failed(job, error)
            return
        if job.inquest is None:
            yield from result
        else:
            self._closed(job.inquest)

    def _failed(self, job: _Job, error: Exception) -> None:
        lost = workers.is_lost(error)
        self.lost_workers += lost
        # The disk's errors are no cell's fault: some are hopeless at once, the others when they persist.
        if isinstance(error, OSError) and not lost and (error.errno in HOPELESS or job.tries >= self.retries):
            raise error
        reason = "the worker was lost" if lost else f"{type(error).__name__}: {error}"
        where = _place(job.blocks)
        job.tries += 1
        alone = len(job.places) == 1 or (not job.places and job.inquest is None)
        if alone and job.tries <= self.retries and not job.is_last_resort:
            self.tell(events.Trouble(f"{where}: {reason}; trying again"))
            self.again.append(job)
        elif len(job.blocks) > 1:
            self.tell(events.Trouble(f"{where}: {reason}; trying its blocks one by one"))
            self.again.extend(_Job((block,)) for block in job.blocks)
        elif job.is_last_resort:
            raise error
        elif job.inquest is not None:
            self._narrow(job, job.inquest, reason)
        elif lost and not job.is_examined:
            self.tell(events.Trouble(f"{where}: {reason}; looking for the cells that do it"))
            inquest = _Inquest(job.blocks[0], open=1)
            self._halve(inquest, _places(job.blocks[0]))
            self._closed(inquest)
        else:
            self.tell(events.Trouble(f"{where}: {reason}; giving its cells up"))
            skip = dict.fromkeys(_places(job.blocks[0]), reason)
            self.again.append(_Job(job.blocks, skip=skip, is_last_resort=True))

    def _narrow(self, job: _Job, inquest: _Inquest, reason: str) -> None:
        if len(job.places) > 1:
            self._halve(inquest, job.places)
        else:
            block, (b, s) = inquest.block, job.places[0]
            at = f"n={block.n}, d={block.d}, beta={block.beta[b]!r}, seed={block.seed[s]}"
            self.tell(events.Trouble(f"{at}: {reason} {job.tries} times; giving this cell up"))
            inquest.culprits[job.places[0]] = (
                f"{reason} each of the {job.tries} times that this cell ran alone"
            )
        self._closed(inquest)

    def _halve(self, inquest: _Inquest, places: tuple[cell.Place, ...]) -> None:
        middle = (len(places) + 1) // 2
        for half in filter(None, (places[:middle], places[middle:])):
            inquest.open += 1
            self.again.append(_Job((inquest.block,), places=half, inquest=inquest))

    def _closed(self, inquest: _Inquest) -> None:
        """One probe less; after the last, the block is computed without the culprits."""
        inquest.open -= 1
        if not inquest.open:
            self.again.append(_Job((inquest.block,), skip=inquest.culprits, is_examined=True))


def slots(executor: Executor) -> int:
    """How many calls an executor makes at a time, at least 1; it may change as workers come and go."""
    count = getattr(executor, "slots", None)
    if count is None:
        count = getattr(executor, "_max_workers", None)  # the standard library's pools
    return max(1, int(count or 1))


def _places(block: cell.Block) -> tuple[cell.Place, ...]:
    return tuple((b, s) for b in range(len(block.beta)) for s in range(len(block.seed)))


def _place(blocks: tuple[cell.Block, ...]) -> str:
    first = blocks[0]
    if len(blocks) > 1:
        return f"task of {len(blocks)} blocks from n={first.n}, d={first.d}"
    seeds = f"{first.seed[0]}...{first.seed[-1]}"
    return f"block n={first.n}, d={first.d}, beta={first.beta[0]:g}...{first.beta[-1]:g}, seed={seeds}"
