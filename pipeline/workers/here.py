"""Workers that are at hand: this process, processes of this machine, a scheduler that is there already."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pipeline.workers import settings
from pipeline.workers.executors import Remote, Serial

START_SECONDS = 120.0  # for the first local worker to answer


@dataclass(frozen=True)
class InProcess:
    """`workers=none`: everything in this process. The dataset is the same, bit for bit."""

    kind: ClassVar[str] = "none"
    threads: int = 1

    def __post_init__(self) -> None:
        settings.whole("threads", self.threads)

    @property
    def places(self) -> int:
        """Tasks that run at the same time."""
        return 1

    @contextlib.contextmanager
    def open(self) -> Iterator[Serial]:
        """An executor."""
        yield Serial(self.threads)


@dataclass(frozen=True)
class Local:
    """`workers=local`: Dask workers on this machine.

    Parameters
    ----------
    processes : int or None
        Worker processes; None: one for each core.
    threads : int
        Threads of each, over which the cells of a task are spread.
    memory : str or None
        Memory of each worker ("4GiB"); one that takes more is started again. None: its share of all.
    dashboard : int or None
        Port of the dashboard, or any other that is free; None: no dashboard.
    """

    kind: ClassVar[str] = "local"
    processes: int | None = None
    threads: int = 1
    memory: str | None = None
    dashboard: int | None = 8787

    def __post_init__(self) -> None:
        if self.processes is not None:
            settings.whole("processes", self.processes)
        settings.whole("threads", self.threads)
        settings.memory(self.memory)
        settings.port(self.dashboard)

    @property
    def places(self) -> int:
        """Tasks that run at the same time."""
        from dask.system import CPU_COUNT

        return self.processes or max(1, CPU_COUNT // self.threads)

    @contextlib.contextmanager
    def open(self) -> Iterator[Remote]:
        """Start the workers; they are stopped at the end, whatever they do."""
        import distributed

        count = self.places
        with settings.dask_settings(failures=0), settings.one_thread(), settings.quiet():
            try:
                cluster = distributed.LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,  # a task takes a whole worker and spreads its cells itself
                    processes=True,
                    memory_limit=self.memory or "auto",
                    dashboard_address=settings.dashboard(self.dashboard),
                    silence_logs=logging.CRITICAL,
                )
            except RuntimeError as error:  # of a nanny whose worker died before it answered
                raise ChildProcessError(errno.ECHILD, f"workers do not start ({error})") from error
            with cluster, distributed.Client(cluster, set_as_default=False) as client:
                client.register_plugin(settings.deaf(), name="deaf")
                client.wait_for_workers(1, timeout=START_SECONDS)
                words = f"{count} worker process{'es' if count > 1 else ''}"
                words += f" of {self.threads} threads" if self.threads > 1 else ""
                has_dashboard = self.dashboard is not None
                yield Remote(client, threads=self.threads, description=words, has_dashboard=has_dashboard)


@dataclass(frozen=True)
class Connect:
    """`workers=connect`: a Dask scheduler that is there already, by its address or its scheduler file."""

    kind: ClassVar[str] = "connect"
    address: str | None = None
    scheduler_file: str | None = None
    threads: int = 1
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if (self.address is None) == (self.scheduler_file is None):
            raise ValueError(
                f"workers.address: got {self.address!r} with scheduler_file {self.scheduler_file!r}; "
                "allowed: one of the two"
            )
        settings.whole("threads", self.threads)
        if self.address is not None and not re.search(r".:\d+$", str(self.address)):
            raise ValueError(
                f"workers.address: got {self.address!r}; allowed: host:port, as in 'tcp://10.0.0.1:8786'"
            )
        if isinstance(self.timeout, (bool, str)) or not 0 < self.timeout < math.inf:
            raise ValueError(f"workers.timeout: got {self.timeout!r}; allowed: seconds > 0")

    @property
    def places(self) -> int:
        """Tasks that run at the same time: one at least, and more are known when it is open."""
        return 1

    @contextlib.contextmanager
    def open(self) -> Iterator[Remote]:
        """Connect; the scheduler and its workers are left running at the end."""
        import distributed

        key, given = ("address", self.address) if self.address else ("scheduler_file", self.scheduler_file)
        if key == "scheduler_file" and not Path(str(given)).is_file():
            raise ValueError(f"workers.scheduler_file: got {given!r}, which does not exist; allowed: a file")
        with settings.dask_settings(failures=2), settings.quiet():
            try:
                client = distributed.Client(**{key: given}, timeout=self.timeout, set_as_default=False)
            except (OSError, ValueError, TimeoutError) as error:
                raise ValueError(
                    f"workers.{key}: got {given!r}, which does not answer ({error}); "
                    "allowed: a scheduler that runs"
                ) from error
            with client:
                yield Remote(client, threads=self.threads, description=f"workers of {given}")
