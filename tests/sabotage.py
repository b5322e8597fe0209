"""Ways in which workers and drivers come to grief; worker processes import them from here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import observe, run, sphere, workers
from pipeline.run import work
from tests.tiny import tiny_sweep

Cell = tuple[int, int, float, int]


def killed_once(marker: str, fn: Callable[..., Any], *args: Any) -> Any:
    """Do the call, but let the first worker that tries die in the middle of it."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return fn(*args)
    fn(args[0], args[1], args[2][: len(args[2]) // 2], *args[3:])
    os.kill(os.getpid(), signal.SIGKILL)


def with_poison(cell: Cell, root_seed: int, fn: Callable[..., Any], *args: Any) -> Any:
    """Do the call, with an engine that takes its process down when it meets the cell."""
    n, d, beta, seed = cell
    start = sphere.initial_tokens(root_seed, n, d, seed)
    real = observe.observe_cells

    def engine(tokens: Any, betas: Any, **kwargs: Any) -> Any:
        if any(b == beta and np.array_equal(t, start) for t, b in zip(tokens, betas, strict=True)):
            os._exit(1)
        return real(tokens, betas, **kwargs)

    observe.observe_cells = engine
    try:
        return fn(*args)
    finally:
        observe.observe_cells = real


class Saboteur:
    """An executor that sends every call through one of these."""

    def __init__(self, inner: Any, wrap: Callable[..., Any], *extra: Any) -> None:
        self.inner, self.wrap, self.extra = inner, wrap, extra

    @property
    def slots(self) -> int:
        return int(self.inner.slots)

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = self.inner.submit(self.wrap, *self.extra, fn, *args)
        return future


class Lossy:
    """A serial executor that loses its worker whenever it meets one of these cells; remembers its calls."""

    slots = 3

    def __init__(self, cells: set[Cell], losses: int = 10**9) -> None:
        self.cells, self.losses = cells, losses
        self.calls: list[tuple[str, int]] = []
        self.serial = workers.Serial()

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        if fn is work.probe:
            _, block, places = args
            met = {(block.n, block.d, block.beta[b], block.seed[s]) for b, s in places}
        else:
            blocks, skip = args[2], args[4]
            met = {
                (block.n, block.d, block.beta[b], block.seed[s])
                for block in blocks
                for b in range(len(block.beta))
                for s in range(len(block.seed))
                if (b, s) not in skip
            }
        self.calls.append((fn.__name__, len(met)))
        if met & self.cells and self.losses > 0:
            self.losses -= 1
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor("lost"))
            return future
        return self.serial.submit(fn, *args)


# --- whole drivers, to be killed

SLOW = tiny_sweep(n=(8, 16), d=(2, 3), beta=(1.0, 2.0, 4.0, 8.0), seed=range(48), block=(2, 2))


def drive(path: str, begun: Any) -> None:
    """Compute the sweep in this process; tell of its start and each block. Exit code 130 if interrupted."""

    def listen(event: Any) -> None:
        if isinstance(event, run.Started):
            begun.send(event.blocks)
        elif isinstance(event, run.BlockDone):
            begun.send("block")

    try:
        run.run(SLOW, path, executor=workers.Serial(), listeners=[listen], task_seconds=1e-3)
    except KeyboardInterrupt:
        os._exit(130)


def waste_time(seconds: float) -> int:
    """Sleep; the number of the process that did."""
    time.sleep(seconds)
    return os.getpid()


def environment(names: tuple[str, ...]) -> dict[str, str | None]:
    """These variables as a worker sees them."""
    return {name: os.environ.get(name) for name in names}


def die() -> None:
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt_yourself(marker: str) -> str:
    """Get a Ctrl-C, and go on."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
    Path(marker).touch()
    return "still here"
