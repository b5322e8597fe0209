"""`run`: compute into a dataset what it still lacks of a sweep, on any executor."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import provenance, store, workers
from pipeline import sweep as sweeps
from pipeline.run import dataset, events
from pipeline.run.driver import Driver, Executor, slots

PATIENCE = 4  # signals until an orderly end is broken off
RECEIPTS_SECONDS = 5.0  # receipts are kept in memory for no longer than that


def run(
    sweep: sweeps.Sweep,
    path: str | Path,
    *,
    executor: Executor | workers.Workers,
    task_seconds: float = sweeps.TARGET_SECONDS,
    window: int | None = None,
    threads: int | None = None,
    retries: int = 1,
    retry_failed: bool = False,
    listeners: Sequence[events.Listener] = (),
    config: Mapping[str, Any] | None = None,
    attrs: Mapping[str, str] | None = None,
) -> events.Summary:
    """Compute what the dataset at `path` lacks of a sweep; it is made if it is not there.

    The result does not depend on the executor, the block or on how often the run was interrupted.

    Parameters
    ----------
    sweep
        The question. A dataset that is there must contain its grid and agree in everything else; it keeps
        its block.
    path
        Folder of the dataset.
    executor
        A description from `pipeline.workers`, opened when there is something to compute; or anything with
        `submit`, whose `slots` and `threads`, if it has them, say how many calls it makes at a time and how
        many threads each may use.
    task_seconds
        Aimed length of a task; the last ones are shorter. How blocks are bundled changes no result.
    window
        Most tasks in flight; by default two for each slot.
    threads
        Threads of a task; by default the executor's, or 1.
    retries
        Further tries of a task, a block or a cell that failed, before it is cut up or given up.
    retry_failed
        Whether cells that failed in an earlier run are computed again, with their blocks.
    listeners
        Told of every event.
    config
        The whole resolved configuration, kept in a new dataset.
    attrs
        Group attributes of a new dataset, in place of the defaults.

    Raises
    ------
    ValueError
        The sweep and the dataset do not fit, or another run is writing it; in one line.
    OSError
        The disk is full or gone, or workers cannot be kept alive; in one line. What is done is kept.
    KeyboardInterrupt
        Interrupted, by SIGINT or SIGTERM. What is done is kept, and the same call goes on from there.
    """
    path = Path(path).absolute()
    for d in sweep.d:
        sweep.dynamics.check(d)
    if not store.exists(path):
        dataset.create(sweeps.blocked(sweep, task_seconds), path, config or {}, attrs or {})
    whole = dataset.admitted(sweep, path)
    asked = sweeps.touched(whole, sweep)

    def tell(event: events.Event) -> None:
        for listener in listeners:
            listener(event)

    with _writable(path), store.lease(path) as lease, _interruptible() as check:
        started = time.perf_counter()
        store.sweep_up(path)
        if retry_failed:
            for index in {record["block"] for record in store.failures(path)}:
                if asked[index]:
                    store.discard(path, index)
        pending = asked & ~store.written(path)
        computed = 0
        if pending.any():
            recipe = dataclasses.replace(whole.recipe, dynamics=sweep.dynamics)  # its files may have moved
            with contextlib.ExitStack() as stack:
                if isinstance(executor, workers.Workers):
                    executor = stack.enter_context(executor.open())
                places = slots(executor)
                _announce(tell, whole, pending, asked, path, task_seconds, executor, places)
                driver = Driver(
                    path,
                    recipe,
                    sweeps.tasks(whole, pending, task_seconds, places),
                    executor,
                    window=window,
                    threads=threads if threads is not None else getattr(executor, "threads", 1),
                    retries=retries,
                    tell=tell,
                )
                computed = _drive(driver, whole, pending, path, lease, tell, check)
        else:
            _announce(tell, whole, pending, asked, path, task_seconds, None, 1)
        cells, failed, missing = dataset.count(path, asked, whole)
        summary = events.Summary(path, cells, failed, missing, computed, time.perf_counter() - started)
        tell(events.Finished(summary))
        return summary


def _drive(
    driver: Driver,
    whole: sweeps.Sweep,
    pending: NDArray[np.bool_],
    path: Path,
    lease: store.Lease,
    tell: events.Listener,
    check: Callable[[], None],
) -> int:
    """Run the driver to its end; the number of cells computed."""
    estimates = sweeps.block_seconds(whole)
    ledger = _Ledger(path, lease)
    computed = 0
    try:
        for receipt in driver.receipts():
            computed += receipt["cells"]
            ledger.add(receipt)
            tell(events.BlockDone(receipt, float(estimates[tuple(receipt["block"])])))
            check()
    except BaseException as error:
        # workers have written more blocks than their tasks have told of
        total, _, missing = dataset.count(path, pending, whole)
        computed = total - missing
        tell(events.Stopped(_reason(error), computed))
        raise _plain(error, path) from error
    finally:
        ledger.close()
        with contextlib.suppress(OSError):  # worth less than what interrupted the run
            if driver.lost_workers:
                store.sweep_up(path)
            if computed:
                line = f"{provenance.now()} {computed} cells computed by {provenance.source()}"
                store.add_history(path, line)
    return computed


def _announce(
    tell: events.Listener,
    whole: sweeps.Sweep,
    pending: NDArray[np.bool_],
    asked: NDArray[np.bool_],
    path: Path,
    seconds: float,
    executor: Executor | None,
    places: int,
) -> None:
    price = sweeps.plan(whole, pending=pending, target_seconds=seconds, workers=places)
    total, _, missing = dataset.count(path, asked, whole)
    tell(
        events.Started(
            path=path,
            cells=missing,
            cells_present=total - missing,
            blocks=price.blocks_pending,
            tasks=price.tasks,
            seconds=price.seconds,
            workers="" if executor is None else getattr(executor, "description", type(executor).__name__),
            dashboard=getattr(executor, "dashboard", ""),
        )
    )


class _Ledger:
    """Receipts on their way to disk, a few seconds' worth at a time; notices when the lease is lost."""

    def __init__(self, path: Path, lease: store.Lease) -> None:
        self.path, self.lease, self.run = (
            path,
            lease,
            f"{provenance.now().replace(':', '')}-{uuid.uuid4().hex[:8]}",
        )
        self.waiting: list[dict[str, Any]] = []
        self.last = time.monotonic()

    def add(self, receipt: dict[str, Any]) -> None:
        self.waiting.append(receipt)
        if time.monotonic() - self.last > RECEIPTS_SECONDS:
            if not self.lease.is_held():
                raise OSError(
                    errno.ESTALE, "another run has taken over while this one stood still", str(self.path)
                )
            self.close()

    def close(self) -> None:
        if self.waiting and self.lease.is_held():
            with contextlib.suppress(OSError):  # receipts are worth less than what a full disk interrupts
                store.add_receipts(self.path, self.run, self.waiting)
        self.waiting, self.last = [], time.monotonic()


def _reason(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return f"{type(error).__name__}: {error}"


def _plain(error: BaseException, path: Path) -> BaseException:
    """The error as the user should read it: what is wrong, where, and that nothing is lost."""
    if workers.is_lost(error):
        text = f"workers are lost again and again ({error}); what is done is kept"
        return ChildProcessError(errno.ECHILD, text, str(path))
    if isinstance(error, OSError) and error.errno:
        text = f"{error.strerror}; what is done is kept, and the same command goes on from there"
        return OSError(error.errno, text, str(path))
    return error


@contextlib.contextmanager
def _writable(path: Path) -> Iterator[None]:
    """Turn the refusal of a file system into one about the key `store.path`, before anything is computed."""
    try:
        (path / store.FOLDER).mkdir(exist_ok=True)
        probe = path / store.FOLDER / f"probe.{uuid.uuid4().hex}.partial"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"store.path: got {str(path)!r}, which cannot be written ({error.strerror}); "
            "allowed: a dataset that may be changed"
        ) from error
    yield


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], None]]:
    """Meet SIGTERM, by which batch systems end a job, as Ctrl-C is met; only the main thread can.

    Yields a function that raises KeyboardInterrupt if there was one: what is raised while Python clears an
    object away is lost.
    """
    received: list[int] = []

    def check() -> None:
        if received:
            raise KeyboardInterrupt

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1 or len(received) > PATIENCE:  # impatience must not break off an orderly end
            raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            if number == signal.SIGTERM or signal.getsignal(number) is signal.default_int_handler:
                before[number] = signal.signal(number, interrupt)
    try:
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
