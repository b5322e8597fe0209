"""What Dask is told before it starts anything, and the checks that options of all kinds share."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "BLIS_NUM_THREADS",
    ),
    "1",
)


def whole(name: str, value: Any) -> None:
    """Refuse what is not an integer >= 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"workers.{name}: got {value!r}; allowed: integers >= 1")


def port(value: Any) -> None:
    """Refuse what is neither a port nor None."""
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 65536
    ):
        raise ValueError(f"workers.dashboard: got {value!r}; allowed: a port, 0 for any, or null for none")


def memory(value: str | None) -> None:
    """Refuse what is neither an amount of memory that a worker can live in nor None."""
    import dask.utils

    if value is None:
        return
    try:
        enough = isinstance(value, str) and dask.utils.parse_bytes(value) >= 2**28
    except ValueError:
        enough = False
    if not enough:
        raise ValueError(f"workers.memory: got {value!r}; allowed: at least 256MiB, as in '4GiB'")


def dashboard(port: int | None) -> str:
    """Where the scheduler's pages listen: at the port wanted, or any if it is taken or none is wanted."""
    if port is None:
        return ":0"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            port = 0
    return f":{port}"


@contextlib.contextmanager
def dask_settings(failures: int) -> Iterator[None]:
    """Dask as this program needs it: what it retries is decided here, and memory is bounded, not spilled."""
    import dask

    wanted = {
        "distributed.scheduler.allowed-failures": failures,
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": 0.95,
        "distributed.nanny.pre-spawn-environ": {**ONE_THREAD, "MALLOC_TRIM_THRESHOLD_": "65536"},
    }
    with dask.config.set(wanted):
        yield


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """The environment that worker processes inherit, before they import anything."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask's own log of workers that come and go off the screen: the run tells what matters."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio", "bokeh")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def deaf() -> Any:
    """A plugin that lets workers ignore Ctrl-C, which a terminal sends to all: the driver alone decides."""
    import distributed

    class Deaf(distributed.WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Deaf()
