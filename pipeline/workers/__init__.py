"""Where tasks run: this process, others on this machine, a batch system, a scheduler that is there.

The only door to distributed and dask-jobqueue. Each kind is a frozen description that `open` turns into an
executor with `submit`; what runs on it knows nothing of Dask. Workers compute on one BLAS, OpenMP and numba
thread, whatever they inherit; they keep almost nothing in memory, so nothing is spilled to disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from pipeline.workers.batch import Batch
from pipeline.workers.executors import Remote, Serial, is_lost
from pipeline.workers.here import Connect, InProcess, Local

__all__ = [
    "KINDS",
    "Batch",
    "Connect",
    "InProcess",
    "Local",
    "Remote",
    "Serial",
    "Workers",
    "is_lost",
    "read",
]

Workers = InProcess | Local | Batch | Connect
KINDS: dict[str, Callable[..., Workers]] = {
    "none": InProcess,
    "local": Local,
    "slurm": lambda **options: Batch("slurm", **options),
    "pbs": lambda **options: Batch("pbs", **options),
    "connect": Connect,
}


def read(options: Mapping[str, Any]) -> Workers:
    """The description that a mapping with `kind` and its options stands for; ValueError in one line."""
    given = dict(options)
    kind = given.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"workers.kind: got {kind!r}; allowed: {', '.join(KINDS)}")
    record = {"none": InProcess, "local": Local, "connect": Connect}.get(kind, Batch)
    known = [f.name for f in fields(record) if f.name != "kind"]
    for name in given:
        if name not in known:
            raise ValueError(f"workers.{name}: unknown key, got {given[name]!r}; allowed: {', '.join(known)}")
    return KINDS[kind](**given)
