"""An executor that also says where the time of its tasks goes: in the engine, or around it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pipeline import cell, observe, run

_engine = observe.observe_cells
_seconds = 0.0


def _observe_cells(*args: Any, **kwargs: Any) -> Any:
    global _seconds
    started = time.perf_counter()
    try:
        return _engine(*args, **kwargs)
    finally:
        _seconds += time.perf_counter() - started


def _timed(fn: Callable[..., Any], *args: Any) -> Any:
    """On a worker: `fn(*args)`, its first receipt with when and where it ran, and how long in the engine."""
    observe.observe_cells = _observe_cells
    before, started = _seconds, time.time()
    receipts = fn(*args)
    receipts[0]["task"] = {
        "start": started,
        "end": time.time(),
        "engine": _seconds - before,
        "pid": os.getpid(),
    }
    return receipts


def warm(recipe: cell.Recipe, block: cell.Block) -> None:
    """Load the kernels on a worker, and keep it busy until the others have a call of their own."""
    cell.compute_block(recipe, block)
    time.sleep(0.2)


class Timed:
    """Another executor whose receipts say that."""

    def __init__(self, executor: Any) -> None:
        self.executor, self.threads = executor, 1

    @property
    def slots(self) -> int:
        return run.driver.slots(self.executor)

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        return self.executor.submit(_timed, fn, *args)


@dataclass
class Account:
    """Where the seconds of a run's workers went; a listener. What is not in the engine is overhead."""

    workers: int
    cells: int = 0
    wall: float = 0.0
    tasks: list[dict[str, float]] = field(default_factory=list)

    def __call__(self, event: run.Event) -> None:
        if isinstance(event, run.BlockDone) and "task" in event.receipt:
            self.tasks.append(event.receipt["task"])

    @property
    def engine(self) -> float:
        return sum(task["engine"] for task in self.tasks)

    @property
    def overhead(self) -> float:
        return self.wall * self.workers - self.engine

    @property
    def around(self) -> float:
        """Within tasks but outside the engine: initial tokens, labels, writing."""
        return sum(task["end"] - task["start"] for task in self.tasks) - self.engine

    @property
    def idle(self) -> float:
        """At the end, of workers for which no task was left."""
        last: dict[float, float] = {}
        for task in self.tasks:
            last[task["pid"]] = max(last.get(task["pid"], 0.0), task["end"])
        unused = self.workers - len(last)
        return sum(max(last.values()) - end for end in last.values()) + unused * self.wall
