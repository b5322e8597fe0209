"""How everything here is measured: in turns, as medians, with the machine written down.

A ratio is the median over rounds of (time of one / time of the other), both taken in the same round, so what
slows the machine for longer than a round cancels. What runs on one core is timed by the processor time of this
process, which other processes do not add to; what runs on several, by the clock on the wall.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import provenance
from pipeline.sphere import initial_tokens

RESULTS = Path(__file__).resolve().parent / "results"
# What would slow a library down, or give it more threads than the comparison allows.
_FOREIGN = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_PEERS = ("torch", "jax", "diffrax")


@dataclass(frozen=True)
class Table:
    """Rows of one answer; numbers are rounded only where they are shown."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The table in Markdown, aligned, so that it reads well in a terminal too."""
        cells = [list(self.columns), *([shown(value) for value in row] for row in self.rows)]
        widths = [max(len(row[c]) for row in cells) for c in range(len(self.columns))]
        lines = [
            "| " + " | ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)) + " |" for row in cells
        ]
        lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
        return "\n\n".join([f"**{self.title}**", "\n".join(lines), *self.notes])


def shown(value: Any) -> str:
    """A value as a table shows it: three digits."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        if value == 0 or 1e-3 <= abs(value) < 1e3:
            return f"{value:.3g}"
        return f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.1e}"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return "" if value is None else str(value)


Clock = Callable[[], float]
core_seconds: Clock = time.process_time
wall_seconds: Clock = time.perf_counter


class Timer:
    """Sums up the seconds of the blocks that it is entered for."""

    def __init__(self, clock: Clock = core_seconds) -> None:
        self.seconds, self.clock = 0.0, clock

    def __enter__(self) -> Timer:
        self._from = self.clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += self.clock() - self._from


@dataclass
class Times:
    """Seconds of one call of each contender, a list with one entry for each round."""

    of: dict[str, list[float]] = field(default_factory=dict)

    def seconds(self, name: str) -> float:
        """Median seconds of one call."""
        return statistics.median(self.of[name])

    def ratio(self, slow: str, fast: str, slow_work: float = 1.0, fast_work: float = 1.0) -> float:
        """Median over rounds of the time of `slow` in units of `fast`, each divided by its amount of work."""
        rounds = zip(self.of[slow], self.of[fast], strict=True)
        return statistics.median(a / b for a, b in rounds) * fast_work / slow_work


def in_turns(
    contenders: Mapping[str, Callable[[], object]],
    rounds: int,
    least: float = 0.0,
    clock: Clock = core_seconds,
) -> Times:
    """Time the contenders A B C, A B C, ...; `least` seconds at least for each, by repetition.

    Each is called once before, untimed: compilation, caches, first pages.
    """
    repeat = {}
    for name, call in contenders.items():
        call()
        repeat[name] = 1
        if least > 0:
            with Timer(clock) as once:
                call()
            repeat[name] = max(1, int(np.ceil(least / max(once.seconds, 1e-9))))
    times = Times({name: [] for name in contenders})
    for _ in range(rounds):
        for name, call in contenders.items():
            with Timer(clock) as taken:
                for _ in range(repeat[name]):
                    call()
            times.of[name].append(taken.seconds / repeat[name])
    return times


def starts(n: int, d: int, seeds: int) -> np.ndarray:
    """Initial tokens (seeds, n, d), by the same rule as every sweep's with root seed 0."""
    return np.stack([initial_tokens(0, n, d, seed) for seed in range(seeds)])


def log_times(times: np.ndarray) -> np.ndarray:
    """Natural logarithms; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(times)


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """The slope of ln y against ln x over the last two points: how the cost grows there."""
    return float(np.log(y[-1] / y[-2]) / np.log(x[-1] / x[-2]))


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def one_core() -> None:
    """Keep this process, and all threads that it will start, on one core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def machine() -> dict[str, Any]:
    """What a reader needs to place the numbers."""
    peers = {}
    for name in _PEERS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            peers[name] = metadata.version(name)
    processor = provenance.processor()
    return {
        "processor": processor["model"],
        "features": processor["features"],
        "cores": cores(),
        "system": platform.system(),
        "software": {**provenance.software(), **peers},
        "source": provenance.source(),
        "date": provenance.now(),
        "load": os.getloadavg()[0],
    }


def main(question: str, ask: Callable[[bool], Iterator[Table]]) -> None:
    """Run one script: print its tables, keep them as JSON and as Markdown that the documentation includes."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only see that it runs")
    parser.add_argument("--into", type=Path, help="folder of the results (default: benchmarks/results)")
    options = parser.parse_args()
    wanted = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    wanted |= dict.fromkeys(_THREADS, "1")
    if wanted != dict(os.environ):  # libraries read these when they are loaded, so begin again
        module = sys.modules["__main__"].__spec__.name
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], wanted)

    script = Path(sys.modules["__main__"].__file__).stem
    into = options.into or (RESULTS / "quick" if options.quick else RESULTS)
    into.mkdir(parents=True, exist_ok=True)
    record = {"question": question, "quick": options.quick, "machine": machine()}
    print(f"## {question}\n", flush=True)
    tables = []
    with Timer(wall_seconds) as taken:
        for table in ask(options.quick):
            print(f"{table}\n", flush=True)
            tables.append(table)
    record["machine"]["load at the end"] = os.getloadavg()[0]
    record |= {"seconds": taken.seconds, "tables": [asdict(table) for table in tables]}
    (into / f"{script}.json").write_text(
        json.dumps(record, indent=1, default=_plain) + "\n", encoding="utf-8"
    )
    (into / f"{script}.md").write_text("\n\n".join(map(str, tables)) + "\n", encoding="utf-8")
    print(f"[{taken.seconds:.0f} s]\n", flush=True)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else list(value)
