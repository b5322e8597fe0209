"""Executors: anything with `submit`, and how many calls it makes at a time."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import Any


class Serial(Executor):
    """Runs each call at once, in this process and thread."""

    slots = 1
    description = "in this process"
    dashboard = ""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call `fn` now; the future is done when it is returned."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Remote(Executor):
    """Calls on the workers of a Dask scheduler."""

    def __init__(self, client: Any, *, threads: int, description: str, has_dashboard: bool = True) -> None:
        self._has_dashboard = has_dashboard and importlib.util.find_spec("bokeh") is not None
        self._client, self._executor = client, client.get_executor(pure=False)
        self.threads, self.description = threads, description

    @property
    def slots(self) -> int:
        """Calls that run at the same time on the workers that are there now."""
        return sum(self._client.nthreads().values())

    @property
    def dashboard(self) -> str:
        """Address of the dashboard; empty where there is none: it takes bokeh."""
        return str(self._client.dashboard_link) if self._has_dashboard else ""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a call to a worker."""
        future: Future[Any] = self._executor.submit(fn, *args, **kwargs)
        return future


def is_lost(error: BaseException) -> bool:
    """Whether a call failed because its worker died or went away, and not by itself."""
    if isinstance(error, (BrokenExecutor, CancelledError)):
        return True
    if "distributed" not in sys.modules:  # then the error cannot be one of its own
        return False
    import distributed
    from distributed.comm import CommClosedError

    return isinstance(error, (distributed.KilledWorker, CommClosedError))
