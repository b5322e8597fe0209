"""What does one evaluation for one pair of tokens cost, beside one step of batched torch?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.how_near_the_limit import contenders as kernels
from benchmarks.measure import Table, core_seconds, cores, in_turns, main, starts, wall_seconds
from pipeline import observe
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive
from pipeline.sphere import in_span

N, BETA = 32, 9.0
TARGETS = {2: 15.0, 32: 8.0, 1024: 80.0}
HORIZON = 30.0  # of the paper's diagram
BATCHES = (64, 2048)  # one that stays in the caches, and the published one
PAIRS = N * N  # as torch computes them: all (i, j)


def torch_steps(d: int, batch: int, steps: int, threads: int) -> Callable[[], None]:
    import torch

    x = torch.from_numpy(np.concatenate([starts(N, d, min(batch, 64))] * max(1, batch // 64)))
    scores, moved = torch.empty(len(x), N, N, dtype=torch.float64), torch.empty_like(x)

    def call() -> None:
        torch.set_num_threads(threads)
        for _ in range(steps):
            peers.torch_step(x, BETA, scores, moved)

    return call


class Trajectories:
    """Trajectories to t = 30 without save times, spread over plain threads; `evaluations` counts those of one call."""

    def __init__(self, d: int, cells: int, threads: int) -> None:
        self.pool, self.threads, self.evaluations = ThreadPoolExecutor(threads), threads, 0
        self.tokens = np.stack([in_span(x) for x in starts(N, d, cells)])

    def _some(self, tokens: np.ndarray) -> int:
        found = observe.observe_cells(
            tokens,
            np.full(len(tokens), BETA),
            dynamics=Dynamics(),
            integrator=Adaptive(),
            log_times=np.empty(0),
            log_horizon=float(np.log(HORIZON)),
            tolerance=peers.TOGETHER,
            variables=(),
            clusters_kept=1,
        )
        return int(found["evaluations"].sum())

    def __call__(self) -> None:
        if self.threads == 1:
            self.evaluations = self._some(self.tokens)
        else:
            self.evaluations = sum(self.pool.map(self._some, np.array_split(self.tokens, 4 * self.threads)))


def rotation() -> float:
    """Milliseconds of one rotation of 32 tokens in 1024 dimensions into their span."""
    tokens = starts(N, 1024, 1)[0]
    return in_turns({"": lambda: in_span(tokens)}, 5).seconds("") * 1e3


def beside_torch(threads: int, quick: bool) -> Table:
    clock = core_seconds if threads == 1 else wall_seconds
    rows = []
    for d, target in TARGETS.items():
        cells = 8 if quick else 64
        ours = Trajectories(d, cells, threads)
        calls: dict[str, Any] = {"ours": ours}
        work = {}
        for batch in (4,) if quick else BATCHES:
            steps = 1 if quick or batch * d > 10**5 else 10
            calls[str(batch)] = torch_steps(d, batch, steps, threads)
            work[str(batch)] = steps * batch * PAIRS
        if threads == 1:
            velocities, times = kernels(N, min(N, d), 10_000 if quick else 3_000_000)
            calls["velocity"] = velocities["velocity"]
            work["velocity"] = times * PAIRS
        taken = in_turns(calls, 1 if quick else 7, least=0.0 if quick else 2e-2, clock=clock)
        work["ours"] = ours.evaluations * PAIRS
        each = {name: taken.seconds(name) / work[name] * 1e9 for name in calls}
        batches = [name for name in calls if name not in ("ours", "velocity")]
        best = min(batches, key=each.__getitem__)
        over = partial(taken.ratio, best, slow_work=work[best])
        ratio = over("ours", fast_work=work["ours"])
        alone = over("velocity", fast_work=work["velocity"]) if threads == 1 else None
        rows.append(
            (
                d,
                *(each[b] for b in batches),
                each["ours"],
                ratio,
                target,
                ratio >= target,
                each.get("velocity"),
                alone,
            )
        )
    columns = (
        "d",
        *(f"torch, batch {b}" for b in batches),
        "ours",
        "ratio",
        "target",
        "reached",
        "field alone",
        "ratio, field alone",
    )
    notes = (
        f"ns per pair (i, j) of {N} tokens, beta = {BETA:g}: of one step of torch; of one evaluation, averaged over "
        f"trajectories to t = {HORIZON:g} with all that goes with them (steps, crossings; an evaluation after tokens have "
        "coalesced sums over fewer pairs); of the field alone, with all tokens. The ratio is to the faster torch.",
        f"For d > n the tokens are rotated into their span beforehand, once for all beta, in {rotation():.2g} ms at "
        "d = 1024.",
    )
    where = "one core" if threads == 1 else f"{threads} cores, by the clock on the wall"
    return Table(f"A step of torch and an evaluation, on {where}", columns, rows, notes)


def ask(quick: bool) -> Iterator[Table]:
    yield beside_torch(1, quick)
    if cores() > 1:
        yield beside_torch(cores(), quick)


if __name__ == "__main__":
    main("What does one evaluation for one pair of tokens cost, beside one step of batched torch?", ask)
