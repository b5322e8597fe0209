"""How long do a million tokens take to their first plateau, and how does the cost grow with n?"""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import Table, core_seconds, cores, exponent, in_turns, main
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive
from pipeline.observe import observe_cells
from pipeline.sphere import initial_tokens, spectral

BETA = 20.0
END = {2: 30.0, 3: 30.0}  # on the circle few clusters stand from t = 15 on, on S² from 25 on
MINUTES = {1: 10.0, 2: 5.0}  # targets for a million tokens, by the number of threads of a sum
GIGABYTES, GROWTH = 2.0, 1.1


def alone(n: int, d: int, threads: int) -> None:
    """In a process of its own: follow n tokens, print seconds, evaluations, clusters and gigabytes."""
    tokens = initial_tokens(0, n, d, 0)
    trajectory(tokens[:2000], 1e-3, threads)  # compile, load
    started, used = time.perf_counter(), time.process_time()
    found = trajectory(tokens, END[d], threads)
    wall, core = time.perf_counter() - started, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    late = found["cluster_count"][0]
    print(found["outcome"][0], wall, core, found["evaluations"][0], late[-2], late[-1], peak)


def trajectory(tokens: np.ndarray, end: float, threads: int) -> dict[str, Any]:
    times = end * np.linspace(0.0, 1.0, 7)
    with np.errstate(divide="ignore"):
        log_times = np.log(times)
    return observe_cells(
        tokens[None],
        np.array([BETA]),
        dynamics=Dynamics(),
        integrator=Adaptive(sum="spectral", sum_threads=threads),
        log_times=log_times,
        log_horizon=math.log(end),
        tolerance=1e-3,
        variables=("cluster_count", "energy"),
        clusters_kept=64,
    )


def trajectories(d: int, sizes: tuple[int, ...], threads: int) -> Table:
    rows: list[tuple[Any, ...]] = []
    for n in sizes:
        command = [sys.executable, "-m", "benchmarks.how_long_do_a_million_tokens_take", "alone"]
        ran = subprocess.run(
            [*command, str(n), str(d), str(threads)], capture_output=True, text=True, check=True
        )
        outcome, wall, core, evaluations, before, last, peak = map(float, ran.stdout.split())
        if outcome != 0:
            raise RuntimeError(f"n = {n}, d = {d}: outcome {outcome:g}")
        slope = None
        if rows:
            slope = exponent([rows[-1][0], n], [rows[-1][2], core])
        rows.append((n, wall, core, slope, int(evaluations), int(before), int(last), peak))
    where = "the circle" if d == 2 else "S²"
    columns = ("n", "s", "core s", "exponent", "evaluations", "clusters before", "clusters at the end", "GB")
    note = (
        f"SA, beta = {BETA:g}, to t = {END[d]:g} with seven save times; clusters before: at {END[d] * 5 / 6:g}. Memory "
        "is the peak of the whole process. Exponent: of the growth of core time from the row before; target "
        f"{GROWTH:g} at most, and at n = 10⁶ {MINUTES.get(threads, 5.0):g} minutes and {GIGABYTES:g} GB."
    )
    return Table(f"On {where}, sums on {threads} thread{'s' if threads > 1 else ''}", columns, rows, (note,))


def beside_pairs(sizes: tuple[int, ...], quick: bool) -> Table:
    """One evaluation of all forces, spectrally and over pairs."""
    from benchmarks.how_near_the_limit import contenders

    rows, epsilon = [], spectral.epsilon_for(1e-8)
    for d in (2, 3):
        for n in sizes:
            tokens = initial_tokens(0, n, d, 0)
            mass = np.full(n, 1 / n)
            if d == 2:
                angles = np.sort(np.arctan2(tokens[:, 1], tokens[:, 0]))
                call = partial(spectral.circle_sums, angles, mass, BETA, epsilon)
            else:
                x = np.ascontiguousarray(tokens.T)
                call = partial(spectral.sphere_sums, x, mass, BETA, epsilon)
            calls = {"spectral": call, "pairs": contenders(n, d, 0)[0]["sums"]}
            taken = in_turns(calls, 1 if quick else 5, clock=core_seconds)
            ratio = taken.ratio("pairs", "spectral")
            rows.append((d, n, taken.seconds("spectral") * 1e3, taken.seconds("pairs") * 1e3, ratio))
    columns = ("d", "n", "ms, spectral", "ms, pairs", "ratio")
    return Table(f"One evaluation of all forces at beta = {BETA:g}, one core", columns, rows)


def ask(quick: bool) -> Iterator[Table]:
    yield beside_pairs((1024, 2048) if quick else (1024, 4096, 16384, 65536), quick)
    sizes = (2000, 4000) if quick else (10**4, 10**5, 10**6)
    for d in (2, 3):
        yield trajectories(d, sizes, 1)
    if cores() > 1:
        for d in (2, 3):
            yield trajectories(d, sizes[-1:], 2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["alone"]:
        alone(*map(int, sys.argv[2:]))
    else:
        main(
            "How long do a million tokens take to their first plateau, and how does the cost grow with n?",
            ask,
        )
