"""What does a coarser tolerance of the integrator change in the phase diagram?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.how_long_is_the_paper_diagram import PAPER, part
from benchmarks.measure import Table, cores, main
from pipeline import cell

TOLERANCES = (1e-8, 1e-6, 1e-5)
REFERENCE = 1e-10
TARGET = 1e-3
SEEDS = {2: 512, 8: 256, 32: 128}  # where clusters merge one by one, a single event should not count for much


def diagram(d: int, betas: int, seeds: int, tolerance: float) -> np.ndarray:
    """The mean share of pairs that are together, (beta, time)."""
    block = cell.compute_block(*part(d, betas, seeds, tolerance), threads=cores())
    return block["pair_sync_fraction"].astype(np.float64).mean("seed").values[0, 0]


def ask(quick: bool) -> Iterator[Table]:
    betas = 2 if quick else 18
    rows = []
    for d in PAPER.d[:1] if quick else PAPER.d:
        seeds = 2 if quick else SEEDS.get(d, 32)
        reference = diagram(d, betas, seeds, REFERENCE)
        changes = [np.abs(diagram(d, betas, seeds, tolerance) - reference) for tolerance in TOLERANCES]
        largest = [change.max() for change in changes]
        rows.append((d, seeds, *largest, TARGET, largest[1] < TARGET, *(change.mean() for change in changes)))
    columns = (
        "d",
        "seeds",
        *(f"largest at {t:g}" for t in TOLERANCES),
        "target",
        "reached at 1e-06",
        *(f"mean at {t:g}" for t in TOLERANCES),
    )
    note = (
        f"Change of the mean share of synchronised pairs against tolerance {REFERENCE:g}, over {betas} beta and "
        f"{len(PAPER.times.values)} times. The smallest change there is, one pair of one cell on the other side of a "
        "save time, is 1 / (496 seeds); the figure has 2048 seeds."
    )
    yield Table("Effect of the tolerance on the phase diagram", columns, rows, (note,))


if __name__ == "__main__":
    main("What does a coarser tolerance of the integrator change in the phase diagram?", ask)
