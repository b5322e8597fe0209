"""How does the cost of a trajectory grow with n, beta and d?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.measure import Table, Timer, exponent, main, starts
from pipeline import observe
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive

TO_CONSENSUS, TO_30 = float("inf"), float(np.log(30.0))


def trajectory(tokens: np.ndarray, beta: float, log_horizon: float) -> dict[str, np.ndarray]:
    """One trajectory without save times."""
    return observe.observe_cells(
        tokens[None],
        np.array([beta]),
        dynamics=Dynamics(),
        integrator=Adaptive(),
        log_times=np.empty(0),
        log_horizon=log_horizon,
        tolerance=1e-3,
        variables=(),
        clusters_kept=1,
    )


def growth(
    title: str, axis: str, cells: Sequence[tuple[int, int, float, float]], seeds: int, rounds: int
) -> Table:
    """A row for each (n, d, beta, log_horizon), which are taken in turns, seed by seed."""
    tokens = [starts(n, d, seeds) for n, d, _, _ in cells]
    evaluations, seconds = np.empty((len(cells), seeds)), np.empty((len(cells), seeds, rounds))
    for x, (_, _, beta, _) in zip(tokens, cells, strict=True):
        trajectory(x[0], beta, -9.0)
    for r in range(rounds):
        for s in range(seeds):
            for c, (_, _, beta, log_horizon) in enumerate(cells):
                with Timer() as taken:
                    found = trajectory(tokens[c][s], beta, log_horizon)
                seconds[c, s, r], evaluations[c, s] = taken.seconds, found["evaluations"][0]
    each = np.median(np.median(seconds, axis=2), axis=1)
    ratios = np.median(
        np.median(seconds / seconds[:1], axis=2), axis=1
    )  # to the first row, same seed, same round
    along = [dict(zip(("n", "d", "beta"), cell, strict=False))[axis] for cell in cells]
    rows: list[tuple[Any, ...]] = []
    for c, value in enumerate(along):
        slope = exponent(along[c - 1 : c + 1], ratios[c - 1 : c + 1]) if c else None
        rows.append((value, np.median(evaluations[c]), each[c] * 1e3, ratios[c], slope))
    columns = (axis, "evaluations", "ms", "ratio", "exponent")
    note = f"Medians over {seeds} seeds. Ratio: to the first row; exponent: of the growth of time from the row before."
    return Table(title, columns, rows, (note,))


def ask(quick: bool) -> Iterator[Table]:
    sizes = (16, 32) if quick else (16, 32, 64, 128, 256, 512, 1024)
    betas = (1.0, 16.0) if quick else (1.0, 4.0, 16.0, 64.0, 256.0, 1000.0)
    dimensions = (2, 3) if quick else (2, 3, 4, 8, 16, 32, 128, 1024)
    seeds, rounds = (2, 1) if quick else (16, 3)
    few = 2 if quick else 5
    yield growth(
        "Tokens: d = 2, beta = 16, to consensus", "n", [(n, 2, 16.0, TO_CONSENSUS) for n in sizes], few, 1
    )
    yield growth(
        "Tokens: d = 3, beta = 16, to consensus", "n", [(n, 3, 16.0, TO_CONSENSUS) for n in sizes[:5]], few, 1
    )
    yield growth(
        "Inverse temperature: n = 32, d = 2, to consensus",
        "beta",
        [(32, 2, beta, TO_CONSENSUS) for beta in betas],
        seeds,
        rounds,
    )
    yield growth(
        "Inverse temperature: n = 32, d = 8, to consensus",
        "beta",
        [(32, 8, beta, TO_CONSENSUS) for beta in betas],
        seeds,
        1,
    )
    yield growth(
        "Dimension: n = 32, beta = 4, to t = 30",
        "d",
        [(32, d, 4.0, TO_30) for d in dimensions],
        seeds,
        rounds,
    )


if __name__ == "__main__":
    main("How does the cost of a trajectory grow with n, beta and d?", ask)
