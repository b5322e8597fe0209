"""What does it cost to follow 32 tokens on the circle to their last merger, at any inverse temperature?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Table, Timer, main, starts
from pipeline import observe
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive

N, D, MERGERS = 32, 2, 31
BETAS = (4.0, 16.0, 64.0, 200.0, 1000.0)
MILLISECONDS = {4.0: 2.0, 200.0: 5.0, 1000.0: 9.0}  # targets, of the median trajectory
PER_MERGER, GOAL, GROWTH = 350, 175, 4.0
EXPONENTIALS = 2**13


def to_consensus(tokens: np.ndarray, beta: float) -> dict[str, np.ndarray]:
    """One trajectory to the last merger."""
    return observe.observe_cells(
        tokens[None],
        np.array([beta]),
        dynamics=Dynamics(),
        integrator=Adaptive(),
        log_times=np.empty(0),
        log_horizon=np.inf,
        tolerance=1e-3,
        variables=(),
        clusters_kept=1,
    )


def ask(quick: bool) -> Iterator[Table]:
    seeds, rounds = (2, 1) if quick else (64, 3)
    tokens = starts(N, D, seeds)
    arguments, out = np.linspace(-8.0, 0.0, EXPONENTIALS), np.empty(EXPONENTIALS)
    found: dict[tuple[float, int], dict[str, Any]] = {}
    seconds = np.empty((len(BETAS), seeds, rounds))
    exps = np.empty((seeds, rounds))
    to_consensus(tokens[0], 1.0)
    np.exp(arguments, out=out)
    for r in range(rounds):
        for s in range(seeds):
            for b, beta in enumerate(BETAS):
                with Timer() as taken:
                    found[beta, s] = to_consensus(tokens[s], beta)
                seconds[b, s, r] = taken.seconds
            with Timer() as taken:
                for _ in range(10):
                    np.exp(arguments, out=out)
            exps[s, r] = taken.seconds / 10 / EXPONENTIALS
    rows = []
    for b, beta in enumerate(BETAS):
        evaluations = np.mean([found[beta, s]["evaluations"][0] for s in range(seeds)])
        log_time = np.median([found[beta, s]["log_time_to_clusters"][0, 0] for s in range(seeds)])
        each = np.median(seconds[b], axis=1)  # of a trajectory
        worth = np.median(np.median(seconds[b] / exps, axis=1)) / 1e6
        median, target = float(np.median(each)) * 1e3, MILLISECONDS.get(beta)
        reached = None if target is None else median <= target
        rows.append(
            (
                beta,
                log_time,
                evaluations,
                evaluations / MERGERS,
                PER_MERGER,
                GOAL,
                median,
                target,
                reached,
                worth,
            )
        )
    columns = (
        "beta",
        "median ln t",
        "evaluations",
        "per merger",
        "target",
        "goal",
        "median ms",
        "target ms",
        "reached",
        "million numpy.exp",
    )
    growth = rows[-1][2] / rows[1][2]
    notes = (
        f"{seeds} seeds, one core. The last column is the median time in units of a million numpy.exp, taken in turns.",
        f"Evaluations grow {growth:.2f} times from beta = 16 to 1000 (target: at most {GROWTH:g}).",
    )
    yield Table(f"To consensus: n = {N}, d = {D}", columns, rows, notes)


if __name__ == "__main__":
    main(
        "What does it cost to follow 32 tokens on the circle to their last merger, at any inverse temperature?",
        ask,
    )
