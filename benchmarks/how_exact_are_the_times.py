"""How exact are merging times at the default tolerances?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Table, main, starts
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive
from pipeline.observe import observe_cells
from pipeline.sphere import initial_tokens

TIGHT = Adaptive(tolerance=1e-10)  # a hundred times tighter than the default, coalescence too
FINEST = Adaptive(tolerance=1e-12, coalescence=1e-9)
ALLOWED = 1e-6
DELTAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
BETAS = (1.0, 4.0, 9.0, 16.0, 64.0, 256.0)


def log_times(x: np.ndarray, beta: Any, name: str, integrator: Adaptive, delta: float) -> np.ndarray:
    """ln t to k clusters, (cells, clusters)."""
    found = observe_cells(
        x,
        np.broadcast_to(np.asarray(beta, dtype=np.float64), len(x)).copy(),
        dynamics=Dynamics(name),
        integrator=integrator,
        log_times=np.empty(0),
        log_horizon=np.inf,
        tolerance=delta,
        variables=(),
        clusters_kept=64,
    )
    assert not found["outcome"].any()
    return np.asarray(found["log_time_to_clusters"])


def errors(x: np.ndarray, beta: Any, name: str, finer: Adaptive, delta: float) -> np.ndarray:
    """|Δ ln t| / max(1, |ln t|) of the defaults against a finer integrator, (cells, clusters).

    0 where there is no such time, infinite where only one of them has it.
    """
    found, reference = (log_times(x, beta, name, method, delta) for method in (Adaptive(), finer))
    finite = np.isfinite(reference)
    difference = np.where(found == reference, 0.0, np.inf)
    difference[finite] = np.abs(found[finite] - reference[finite]) / np.maximum(
        1.0, np.abs(reference[finite])
    )
    return difference


def random_cells(quick: bool) -> Table:
    rng = np.random.default_rng(2026)
    to_one, worst = [], []
    for cell in range(4 if quick else 400):
        n, d = int(rng.integers(4, 65)), int(rng.integers(2, 33))
        beta = float(10 ** rng.uniform(0, 3))
        x = initial_tokens(1, n, d, cell)[None]
        name = ("sa", "usa")[cell % 2]
        error = errors(x, beta, name, TIGHT, 1e-3)
        to_one.append(error[0, 0])
        worst.append(error.max())
    shares = (0.5, 0.9, 0.99, 1.0)
    rows = [
        (label, *np.quantile(values, shares), float(np.mean(np.array(values) <= ALLOWED)))
        for label, values in (("time to consensus", to_one), ("worst of all times to k clusters", worst))
    ]
    columns = ("of a cell", "median", "90 %", "99 %", "largest", "share up to 1e-6")
    note = (
        f"{len(worst)} random cells: n from 4 to 64, d from 2 to 32, beta from 1 to 1000 (log-uniform), SA and USA by "
        f"turns; tolerance {Adaptive().tolerance:g} against {TIGHT.tolerance:g}, coalescence in proportion. Relative to "
        "max(1, |ln t|)."
    )
    return Table("Error of ln t on random cells", columns, rows, (note,))


def by_delta(quick: bool) -> Table:
    rows = []
    seeds = 1 if quick else 30
    for delta in DELTAS[::6] if quick else DELTAS:
        worst, over = [], []
        for d in (2, 3, 8):
            x = np.repeat(starts(32, d, seeds), len(BETAS), axis=0)
            beta = np.tile(BETAS, seeds)
            error = errors(x, beta, "sa", FINEST, delta).max(axis=1)
            worst.append(error.max())
            over.append(float(np.mean(error > ALLOWED)))
        rows.append((delta, Adaptive().chord(delta), *worst, max(over)))
    columns = ("delta", "coalescence", "d = 2", "d = 3", "d = 8", "share of cells above 1e-6")
    note = (
        f"Largest error of ln t to k clusters, all k, SA, n = 32, {len(BETAS)} beta from 1 to 256, {seeds} seeds each; "
        f"defaults against tolerance {FINEST.tolerance:g} and coalescence {FINEST.coalescence:g}. Relative to "
        "max(1, |ln t|)."
    )
    return Table("Error of ln t by cluster tolerance", columns, rows, (note,))


def ask(quick: bool) -> Iterator[Table]:
    yield random_cells(quick)
    yield by_delta(quick)


if __name__ == "__main__":
    main("How exact are merging times at the default tolerances?", ask)
