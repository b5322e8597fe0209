"""Workers that a batch system has to start: jobs of Slurm or PBS, through dask-jobqueue."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.workers import settings
from pipeline.workers.executors import Remote


@dataclass(frozen=True)
class Batch:
    """`workers=slurm` and `workers=pbs`: jobs of a batch system, each with some Dask workers.

    Parameters
    ----------
    kind : {"slurm", "pbs"}
        Batch system.
    jobs : int
        Jobs to submit.
    cores, processes, memory
        Cores, worker processes and memory of a job; a process spreads a task over cores / processes threads.
    walltime : str
        Time limit of a job. Workers stop taking tasks before it and leave in good order.
    lifetime : str or None
        When a worker leaves, counted from its start ("55m"); None: 5 minutes before the walltime.
    queue, account, interface, scratch, log_directory
        Site options: partition or queue, account, network interface, local scratch folder, folder for job
        logs.
    directives, prologue
        Further lines of the job script: directives ("--qos=long") and commands ("module load ...").
    """

    kind: str
    jobs: int = 1
    cores: int = 1
    processes: int | None = None
    memory: str = "4GiB"
    walltime: str = "01:00:00"
    lifetime: str | None = None
    queue: str | None = None
    account: str | None = None
    interface: str | None = None
    scratch: str | None = None
    log_directory: str | None = None
    directives: tuple[str, ...] = ()
    prologue: tuple[str, ...] = ()
    dashboard: int | None = 8787

    def __post_init__(self) -> None:
        if self.kind not in ("slurm", "pbs"):
            raise ValueError(f"workers.kind: got {self.kind!r}; allowed: slurm, pbs")
        for name in ("jobs", "cores"):
            settings.whole(name, getattr(self, name))
        if self.processes is not None:
            settings.whole("processes", self.processes)
            if self.cores % self.processes:
                raise ValueError(
                    f"workers.processes: got {self.processes}; allowed: divisors of workers.cores, "
                    f"{self.cores}"
                )
        settings.memory(self.memory)
        settings.port(self.dashboard)
        if _walltime_seconds(self.walltime) is None:
            raise ValueError(
                f"workers.walltime: got {self.walltime!r}; allowed: [days-]hours:minutes:seconds"
            )
        for name in ("directives", "prologue"):
            lines = getattr(self, name)
            if isinstance(lines, str) or not all(isinstance(line, str) for line in lines):
                raise ValueError(f"workers.{name}: got {lines!r}; allowed: a list of lines")
            object.__setattr__(self, name, tuple(lines))

    @property
    def threads(self) -> int:
        """Threads of a worker process."""
        return self.cores // (self.processes or self.cores)

    @property
    def places(self) -> int:
        """Tasks that run at the same time, once all jobs have begun."""
        return self.jobs * (self.processes or self.cores)

    def cluster(self) -> Any:
        """The dask-jobqueue cluster, nothing submitted yet; its `job_script()` is what would be."""
        jobqueue = _jobqueue()
        processes = self.processes or self.cores
        wall = _walltime_seconds(self.walltime) or 0
        lifetime = self.lifetime or f"{max(wall - 300, wall * 3 // 4)}s"
        exports = [f"export {name}={value}" for name, value in settings.ONE_THREAD.items()]
        options: dict[str, Any] = {
            "cores": processes,  # as Dask counts them: one task at a time in each process
            "processes": processes,
            "memory": self.memory,
            "walltime": self.walltime,
            "queue": self.queue,
            "account": self.account,
            "interface": self.interface,
            "local_directory": self.scratch or "${TMPDIR:-/tmp}",
            "log_directory": self.log_directory,
            "job_extra_directives": list(self.directives),
            "job_script_prologue": [*exports, *self.prologue],
            "worker_extra_args": ["--lifetime", lifetime, "--lifetime-stagger", "60s", "--no-dashboard"],
            "death_timeout": 300,
            "job_name": "spheresweep",
            "scheduler_options": {"dashboard_address": settings.dashboard(self.dashboard)},
            "silence_logs": "critical",
        }
        if self.kind == "slurm":
            return jobqueue.SLURMCluster(job_cpu=self.cores, **options)
        resources = f"select=1:ncpus={self.cores}:mem={self.memory.replace('iB', 'B').lower()}"
        return jobqueue.PBSCluster(resource_spec=resources, **options)

    @contextlib.contextmanager
    def open(self) -> Iterator[Remote]:
        """Submit the jobs; those that wait or run at the end are cancelled. Work begins with the first."""
        command = {"slurm": "sbatch", "pbs": "qsub"}[self.kind]
        if shutil.which(command) is None:
            raise ValueError(
                f"workers: got {self.kind}, but no {command} here; allowed: where jobs are submitted"
            )

        import distributed

        with (
            settings.dask_settings(failures=2),
            settings.quiet(),
            self.cluster() as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            client.register_plugin(settings.deaf(), name="deaf")
            cluster.scale(jobs=self.jobs)
            words = f"{self.jobs} {self.kind} job{'s' if self.jobs > 1 else ''} of {self.cores} cores"
            has_dashboard = self.dashboard is not None
            yield Remote(client, threads=self.threads, description=words, has_dashboard=has_dashboard)


def _walltime_seconds(text: str) -> int | None:
    """Seconds of [days-]hours:minutes:seconds."""
    days, _, clock = text.rpartition("-")
    parts = clock.split(":")
    if len(parts) != 3 or not all(part.isdigit() for part in (*parts, days or "0")):
        return None
    hours, minutes, seconds = map(int, parts)
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _jobqueue() -> Any:
    """The package dask_jobqueue, kept from leaving a configuration file in the home folder when imported."""
    import dask.config

    before = dask.config.ensure_file
    dask.config.ensure_file = lambda *args, **kwargs: None
    try:
        import dask_jobqueue
    finally:
        dask.config.ensure_file = before
    return dask_jobqueue
