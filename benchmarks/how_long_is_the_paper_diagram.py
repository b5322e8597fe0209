"""How long do the six panels of the paper's phase diagram take, predicted from a sample of their cells?"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks import peers
from benchmarks.measure import Table, in_turns, main, starts
from pipeline import cell, config, integrate, sweep

TOLERANCES = (1e-8, 1e-6, 1e-5)
MINUTES = 60.0  # target, on two cores
PAPER = config.load(["experiment=paper_phase_diagram"]).sweep


def part(d: int, betas: int, seeds: int, tolerance: float) -> tuple[cell.Recipe, cell.Block]:
    """Some of the cells of a panel: evenly spaced beta, the first seeds."""
    chosen = np.linspace(0, len(PAPER.beta) - 1, betas).round().astype(int)
    few = dataclasses.replace(
        PAPER,
        d=(d,),
        beta=tuple(PAPER.beta[b] for b in chosen),
        seed=tuple(range(seeds)),
        integrator=integrate.Adaptive(tolerance=tolerance),
        block=(betas, seeds),
    )
    return few.recipe, sweep.block_at(few, (0, 0, 0, 0))


def published(d: int, batch: int) -> Callable[[], object]:
    """One beta of the authors' scheme in batched torch."""
    import torch

    torch.set_num_threads(1)
    tokens, times = starts(PAPER.n[0], d, batch), np.exp(np.array(PAPER.times.log_times))
    return partial(peers.torch_layers, tokens, np.array([4.0]), times, masked=True)


def ask(quick: bool) -> Iterator[Table]:
    betas, seeds, batch, rounds = (2, 1, 1, 1) if quick else (len(PAPER.beta), 4, 32, 2)
    dimensions = PAPER.d[:2] if quick else PAPER.d
    with_torch = importlib.util.find_spec("torch") is not None
    per_cell = sweep.cell_seconds(PAPER)[0].mean(axis=1)
    cells = len(PAPER.beta) * len(PAPER.seed)
    rows, names = [], [f"{tolerance:g}" for tolerance in TOLERANCES]
    hours: dict[str, float] = dict.fromkeys([*names, "torch", "plan"], 0.0)
    for i, d in enumerate(dimensions):
        calls: dict[str, Callable[[], object]] = {
            name: partial(cell.compute_block, *part(d, betas, seeds, tolerance))
            for name, tolerance in zip(names, TOLERANCES, strict=True)
        }
        if with_torch:
            calls["torch"] = published(d, batch)
        taken = in_turns(calls, rounds)
        each = {name: taken.seconds(name) / (betas * seeds) for name in names}
        if with_torch:
            each["torch"] = taken.seconds("torch") / batch
        ratio = taken.ratio("torch", "1e-06", batch, betas * seeds) if with_torch else None
        for name, seconds in {**each, "plan": per_cell[i]}.items():
            hours[name] += seconds * cells / 3600
        shown = [each[name] * 1e3 for name in names]
        rows.append((str(d), *shown, per_cell[i] * 1e3, each.get("torch", np.nan) * 1e3, ratio))
    torch_hours = hours["torch"] if with_torch else None
    whole = torch_hours / hours["1e-06"] if with_torch else None
    rows.append(("core-hours", *(hours[name] for name in names), hours["plan"], torch_hours, whole))
    columns = (
        "d",
        *(f"ms at {name}" for name in names),
        "as planned",
        "torch, as published",
        "ratio to 1e-06",
    )
    minutes = ", ".join(f"{hours[name] * 30:.3g} at {name}" for name in names)
    notes = (
        f"ms of one core for one cell, tokens, labels and {len(PAPER.times.values)} save times included, by the "
        f"integrator's tolerance; {betas} beta, {seeds} seeds. The last row is for all {cells * len(dimensions):,} "
        "cells.",
        f"On two cores that is {minutes} minutes (target: {MINUTES:g}), the store and the scheduler not counted.",
    )
    yield Table("The six panels of the phase diagram: predicted cost", columns, rows, notes)


if __name__ == "__main__":
    main(
        "How long do the six panels of the paper's phase diagram take, predicted from a sample of cells?", ask
    )
