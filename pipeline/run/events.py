"""What happens during a run, as plain records that listeners are told of; the run itself prints nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Started:
    """A run begins.

    `cells` and `seconds` (estimated, of one core) are those it has to compute; `cells_present` lie in
    blocks that are there already.
    """

    path: Path
    cells: int
    cells_present: int
    blocks: int
    tasks: int
    seconds: float
    workers: str
    dashboard: str


@dataclass(frozen=True)
class BlockDone:
    """A block is in the dataset: its receipt, and the seconds at which it was estimated."""

    receipt: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Trouble:
    """Something went wrong and was met: a task failed or its worker was lost, and will be tried again."""

    message: str


@dataclass(frozen=True)
class Finished:
    """A run has computed what it had to."""

    summary: Summary


@dataclass(frozen=True)
class Stopped:
    """A run ends before that: interrupted, or the disk is full; so many cells were computed and are kept."""

    reason: str
    computed: int


@dataclass(frozen=True)
class Summary:
    """What the part of the dataset that was asked for holds after a run.

    `failed` and `missing` count cells of the blocks asked for; `computed` and `seconds` are this run's.
    """

    path: Path
    cells: int
    failed: int
    missing: int
    computed: int
    seconds: float

    @property
    def done(self) -> int:
        """Number of cells that are done."""
        return self.cells - self.failed - self.missing


Event = Started | BlockDone | Trouble | Finished | Stopped
Listener = Callable[[Event], None]
