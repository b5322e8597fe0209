"""How long do other programs take for the same trajectories, and how right are they?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks import peers
from benchmarks.measure import Table, in_turns, main, one_core, starts
from pipeline.integrate import Adaptive, Layers

N, BETAS, HORIZON, SAVES = 32, (1.0, 3.0, 5.0, 7.0, 9.0), 30.0, 200
REFERENCE = Adaptive(tolerance=1e-12)
OURS = "spheresweep"


@dataclass(frozen=True)
class Contender:
    """A program with its settings, and the part of the seeds that it has time for."""

    name: str
    solve: Callable[..., peers.Answer]
    part: float = 1.0


def contenders(d: int, times: np.ndarray) -> list[Contender]:
    diffrax = partial(peers.Diffrax, shape=(N, d), times=times)
    return [
        Contender(OURS, partial(peers.spheresweep, integrator=Adaptive())),
        Contender(f"{OURS}, tolerance 1e-6", partial(peers.spheresweep, integrator=Adaptive(tolerance=1e-6))),
        Contender(f"{OURS}, layers 0.1", partial(peers.spheresweep, integrator=Layers(peers.STEP))),
        Contender("NumPy, steps 0.1", peers.numpy_layers),
        Contender("torch, steps 0.1", peers.torch_layers),
        Contender("torch, as published", partial(peers.torch_layers, masked=True)),
        Contender("SciPy DOP853, 1e-6", partial(peers.scipy_ivp, tolerance=1e-6), 1 / 8),
        Contender("SciPy DOP853, 1e-9", partial(peers.scipy_ivp, tolerance=1e-9), 1 / 8),
        Contender("diffrax Tsit5, 1e-6", diffrax("Tsit5", 1e-6), 1 / 4),
        Contender("diffrax Dopri8, 1e-6", diffrax("Dopri8", 1e-6), 1 / 4),
    ]


def beside_peers(d: int, seeds: int, betas: np.ndarray, times: np.ndarray, rounds: int) -> Table:
    tokens = starts(N, d, seeds)
    entered = contenders(d, times)
    subsets = {c.name: max(1, round(c.part * seeds)) for c in entered}
    truth = {
        size: peers.spheresweep(tokens[:size], betas, times, REFERENCE)[0] for size in set(subsets.values())
    }
    answers: dict[str, peers.Answer] = {}

    def enter(c: Contender) -> None:
        answers[c.name] = c.solve(tokens[: subsets[c.name]], betas, times)

    taken = in_turns({c.name: partial(enter, c) for c in entered}, rounds)
    rows = []
    for c in entered:
        share, evaluations = answers[c.name]
        count = subsets[c.name] * len(betas)
        error = np.abs(share - truth[subsets[c.name]])
        ratio = taken.ratio(c.name, OURS, count, seeds * len(betas))
        taken_each = taken.seconds(c.name) / count * 1e3
        rows.append((c.name, count, taken_each, ratio, round(evaluations), error.mean(), error.max()))
    columns = ("program", "trajectories", "ms each", "ratio", "evaluations", "mean error", "largest error")
    note = (
        "Ratio: time to that of the first row. Errors are those of the share of pairs that are together, a mean "
        f"over seeds, over {len(betas)} beta and all save times; the reference is {OURS} at {REFERENCE.tolerance:g}."
    )
    return Table(f"d = {d}: n = {N}, {len(times)} save times to t = {times[-1]:g}", columns, rows, (note,))


def ask(quick: bool) -> Iterator[Table]:
    import torch

    one_core()
    torch.set_num_threads(1)
    betas = np.array(BETAS[::4] if quick else BETAS)
    times = np.linspace(0.0, 1.0 if quick else HORIZON, 11 if quick else SAVES)
    for d, seeds in ((2, 64), (32, 64), (1024, 8)):
        yield beside_peers(d, 1 if quick else seeds, betas, times, rounds=1 if quick else 3)


if __name__ == "__main__":
    main("How long do other programs take for the same trajectories, and how right are they?", ask)
