"""Progress for people: a bar with rate and time left on a terminal, a few lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from pipeline.run import events

HEARTBEAT_SECONDS = 600.0  # between lines where there is no terminal


class Reporter:
    """A listener that shows a run on a terminal; elsewhere a line at its start, end and every ten minutes.

    The time left is weighed by the estimated cost of the blocks, not by their number: the dearest come first.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)
        self.bar: Progress | None = None
        self.total = self.done = 0.0
        self.cells = self.cells_total = self.failed = 0
        self.started = self.spoken = time.monotonic()

    def __call__(self, event: events.Event) -> None:
        """Show one event."""
        if isinstance(event, events.Started):
            self._start(event)
        elif isinstance(event, events.BlockDone):
            self._advance(event)
        elif isinstance(event, events.Trouble):
            self._say(event.message)
        else:
            self._end(event)

    def _start(self, event: events.Started) -> None:
        self.started = self.spoken = time.monotonic()
        self.total, self.done = event.seconds, 0.0
        self.cells, self.cells_total, self.failed = 0, event.cells, 0
        present = f", {event.cells_present:,} are there already" if event.cells_present else ""
        work = (
            f"{event.cells:,} cells to compute in {event.tasks:,} tasks"
            if event.cells
            else "nothing to compute"
        )
        where = f"; {event.workers}" if event.workers else ""
        self._say(f"{event.path}: {work}{present}{where}")
        if event.dashboard:
            self._say(f"dashboard: {event.dashboard}")
        if event.cells and self.console.is_terminal:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                _Numbers(self),
                console=self.console,
                transient=True,
            )
            self.bar.add_task("computing", total=self.total)
            self.bar.start()

    def _advance(self, event: events.BlockDone) -> None:
        self.done += event.seconds
        self.cells += event.receipt["cells"]
        self.failed += event.receipt["failed"]
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.done)
        elif time.monotonic() - self.spoken > HEARTBEAT_SECONDS:
            self._say(self.numbers())

    def _end(self, event: events.Finished | events.Stopped) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
        if isinstance(event, events.Stopped):
            self._say(f"{event.reason}; {event.computed:,} cells computed and kept")
            return
        s = event.summary
        parts = [f"{s.done:,} of {s.cells:,} cells done"]
        parts += [f"{s.failed:,} failed"] if s.failed else []
        parts += [f"{s.missing:,} missing"] if s.missing else []
        took = f"; {s.computed:,} computed in {_clock(s.seconds)}" if s.computed else ""
        self._say(f"{s.path}: {', '.join(parts)}{took}")

    def numbers(self) -> str:
        """Cells so far, cells per second, and the time left."""
        elapsed = max(time.monotonic() - self.started, 1e-9)
        failed = f", {self.failed:,} failed" if self.failed else ""
        left = f", {_clock(elapsed * (self.total - self.done) / self.done)} left" if self.done > 0 else ""
        return f"{self.cells:,} of {self.cells_total:,} cells{failed}, {self.cells / elapsed:,.3g}/s{left}"

    def _say(self, line: str) -> None:
        self.spoken = time.monotonic()
        self.console.print(line, markup=False)


class _Numbers(ProgressColumn):
    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self.reporter = reporter

    def render(self, task: Task) -> Text:
        return Text(self.reporter.numbers())


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
