"""A sweep is refused or canonical; its blocks hold every cell once; its plan is cheap and true."""

from __future__ import annotations

import dataclasses
import heapq
import json
import math
import sys
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import dynamics, integrate, schema, sweep
from tests.tiny import tiny_sweep

NOT_A_NUMBER = float("nan")


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("grid.n", {"n": (1, 4)}),
        ("grid.n", {"n": ()}),
        ("grid.n", {"n": (4, 4)}),
        ("grid.n", {"n": (4.5,)}),
        ("grid.n", {"n": 4}),
        ("grid.n", {"n": "44"}),
        ("grid.d", {"d": (1,)}),
        ("grid.d", {"d": (True,)}),
        ("grid.beta", {"beta": (-1.0,)}),
        ("grid.beta", {"beta": (NOT_A_NUMBER,)}),
        ("grid.beta", {"beta": (math.inf,)}),
        ("grid.beta", {"beta": ("1",)}),
        ("grid.beta", {"beta": (0.3, 0.1 * 3)}),
        ("grid.seed", {"seed": (0.0,)}),
        ("grid.seed", {"seed": (-1,)}),
        ("grid.seed", {"seed": (2**63,)}),
        ("root_seed", {"root_seed": -1}),
        ("root_seed", {"root_seed": 1.5}),
        ("horizon", {"horizon": 0}),
        ("horizon", {"horizon": -1.0}),
        ("horizon", {"horizon": NOT_A_NUMBER}),
        ("horizon", {"horizon": 7.9}),
        ("horizon", {"horizon": None, "integrator": integrate.Layers()}),
        ("horizon", {"horizon": None, "dynamics": dynamics.Dynamics(value=dynamics.Matrix("goe"))}),
        ("tolerance", {"tolerance": 1e-10}),
        ("tolerance", {"tolerance": 2.1}),
        ("tolerance", {"tolerance": NOT_A_NUMBER}),
        ("variables", {"variables": ("energy", "energy")}),
        ("variables", {"variables": ("enegry",)}),
        ("clusters_kept", {"clusters_kept": 0}),
        ("block", {"block": (0, 1)}),
        ("block", {"block": (1, 1, 1)}),
        ("integrator.tolerance", {"integrator": integrate.Adaptive(1e-4), "tolerance": 1e-9}),
        ("grid.d", {"d": (10**12,)}),
    ],
)
def test_bad_input_is_refused_in_one_line_that_names_the_key(key: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got .*; allowed: ") as refusal:
        tiny_sweep(**changes)
    assert str(refusal.value).startswith(f"{key}: ")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("values", [(), (1.0, 1.0), (-1.0,), (NOT_A_NUMBER,), (math.inf,), ("1",)])
def test_bad_save_times_are_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"times: got .*; allowed: "):
        sweep.Times(values)


def test_axes_are_sorted_and_beta_has_twelve_digits() -> None:
    made = tiny_sweep(n=[8, 2], beta=[9, 0.1 * 3, -0.0], seed=[5, 1])
    assert made.n == (2, 8)
    assert made.beta == (0.0, 0.3, 9.0)
    assert math.copysign(1, made.beta[0]) == 1
    assert made.seed == (1, 5)
    assert made == tiny_sweep(n=(2, 8), beta=(0.0, 0.3, 9.0), seed=(1, 5))


def test_numpy_axes_are_as_good_as_lists() -> None:
    assert tiny_sweep(n=np.array([2, 3]), beta=np.linspace(0.1, 9, 90)).n == (2, 3)
    assert type(tiny_sweep(n=np.array([2, 3])).n[0]) is int


def test_log_times_reach_beyond_float64() -> None:
    linear = sweep.Times((0.0, 1.0, 4.0))
    assert linear.log_times == (-math.inf, 0.0, math.log(4.0))
    assert linear.times == (0.0, 1.0, 4.0)
    near = sweep.Times((-2.0, 0.0, 3.0), logarithmic=True)
    assert near.times == pytest.approx((math.exp(-2), 1.0, math.exp(3)), rel=1e-15)
    far = sweep.Times((0.0, 1930.0), logarithmic=True)
    assert far.log_times == (0.0, 1930.0)
    assert far.times is None
    assert sweep.Times((-2000.0, 0.0), logarithmic=True).times is None


def test_the_horizon_may_be_the_last_save_time() -> None:
    assert tiny_sweep(horizon=8.0).horizon == 8.0
    log_times = sweep.Times((0.0, math.log(8.0)), logarithmic=True)
    assert tiny_sweep(horizon=8.0, times=log_times).recipe.log_horizon == math.log(8.0)


def test_consensus_has_no_last_time() -> None:
    assert tiny_sweep(horizon=None, times=sweep.Times((0.0, 5000.0), True)).recipe.log_horizon == math.inf


SWEEPS = [
    tiny_sweep(),
    tiny_sweep(horizon=None, times=sweep.Times((-1.0, 2000.0), True), seed=range(3, 5000)),
    tiny_sweep(integrator=integrate.Layers(0.05), block=None, variables=()),
    tiny_sweep(
        dynamics=dynamics.Dynamics("usa", query=dynamics.Matrix("diagonal", diagonal=(1.0, 0.5))), d=(2,)
    ),
]


@pytest.mark.parametrize("made", SWEEPS, ids=["adaptive", "consensus", "layers", "diagonal"])
def test_json_gives_the_same_sweep_back(made: sweep.Sweep) -> None:
    text = made.to_json()
    assert sweep.Sweep.from_json(text) == made
    assert sweep.Sweep.from_json(text).to_json() == text
    assert "NaN" not in text
    assert len(text) < 2000


@pytest.mark.parametrize("text", ["", "{}", "[1]", "null", '{"grid": 3}', '{"grid": {"n": []}}'])
def test_what_is_not_a_sweep_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="not the description of a sweep"):
        sweep.Sweep.from_json(text)


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("root_seed", {"root_seed": 12}),
        ("dynamics.name", {"dynamics": dynamics.Dynamics("usa")}),
        ("dynamics.query.kind", {"dynamics": dynamics.Dynamics(query=dynamics.Matrix("goe"))}),
        ("integrator.tolerance", {"integrator": integrate.Adaptive(1e-9)}),
        ("integrator", {"integrator": integrate.Layers()}),
        ("horizon", {"horizon": 9.0}),
        ("times", {"times": sweep.Times((0.0, 8.0))}),
        ("tolerance", {"tolerance": 1e-4}),
        ("variables", {"variables": ("energy",)}),
        ("clusters_kept", {"clusters_kept": 3}),
        ("grid.n", {"n": (3, 4)}),
        ("grid.d", {"d": (2, 3)}),
        ("grid.beta", {"beta": (0.5, 1.0, 4.0, 9.0)}),
        ("grid.seed", {"seed": range(8)}),
    ],
)
def test_a_dataset_refuses_another_question_by_its_key_or_axis(key: str, changes: dict[str, Any]) -> None:
    reason = tiny_sweep().refusal(tiny_sweep(**changes))
    assert reason is not None
    assert reason.startswith(key)
    assert "; allowed: " in reason
    assert "\n" not in reason


def test_a_dataset_takes_any_part_of_its_grid_and_any_block() -> None:
    whole = tiny_sweep()
    assert whole.refusal(whole) is None
    assert whole.refusal(tiny_sweep(beta=(1.0,), seed=(2, 6), n=(5,), block=None)) is None


def test_a_matrix_file_is_known_by_its_content(tmp_path: Any) -> None:
    here, there, other = (tmp_path / name for name in ("here.npy", "there.npy", "other.npy"))
    np.save(here, np.eye(2))
    np.save(there, np.eye(2))
    np.save(other, 2 * np.eye(2))
    made = [
        tiny_sweep(d=(2,), dynamics=dynamics.Dynamics(query=dynamics.Matrix("file", path=str(path))))
        for path in (here, there, other)
    ]
    assert made[0].refusal(made[1]) is None
    assert (made[0].refusal(made[2]) or "").startswith("dynamics.query.digest")


# --- blocks and tasks

lengths = st.integers(1, 9)


@st.composite
def blocked_sweeps(draw: st.DrawFn) -> sweep.Sweep:
    return tiny_sweep(
        n=range(2, 2 + draw(st.integers(1, 3))),
        d=range(2, 2 + draw(st.integers(1, 3))),
        beta=range(draw(lengths)),
        seed=range(draw(lengths)),
        block=(draw(lengths), draw(lengths)),
    )


def cells(block: sweep.Block) -> list[tuple[int, int, float, int]]:
    return [(block.n, block.d, beta, seed) for beta in block.beta for seed in block.seed]


def everything(made: sweep.Sweep) -> list[tuple[int, int, float, int]]:
    return [(n, d, b, s) for n in made.n for d in made.d for b in made.beta for s in made.seed]


@given(blocked_sweeps())
def test_blocks_hold_every_cell_exactly_once(made: sweep.Sweep) -> None:
    blocks = [sweep.block_at(made, index) for index in np.ndindex(sweep.blocks_shape(made))]
    found = Counter(cell for block in blocks for cell in cells(block))
    assert found == Counter(everything(made))
    assert sum(block.cells for block in blocks) == made.cells


@given(blocked_sweeps(), st.integers(0, 2**31), st.floats(1e-4, 1.0))
def test_tasks_hold_every_pending_block_exactly_once_the_dearest_first(
    made: sweep.Sweep, salt: int, target: float
) -> None:
    shape = sweep.blocks_shape(made)
    pending = np.random.default_rng(salt).random(shape) < 0.6
    tasks = list(sweep.tasks(made, pending, target))
    found = Counter(block.index for task in tasks for block in task.blocks)
    assert found == Counter(tuple(int(v) for v in index) for index in np.argwhere(pending))
    seconds = sweep.block_seconds(made)
    order = [float(seconds[block.index]) for task in tasks for block in task.blocks]
    assert all(a >= b for a, b in pairwise(order))
    for task in tasks:
        costs = [float(seconds[block.index]) for block in task.blocks]
        assert task.seconds == pytest.approx(sum(costs))
        assert task.seconds <= target + max(costs)
    assert sweep.plan(made, pending=pending, target_seconds=target).tasks == len(tasks)


@given(blocked_sweeps(), st.data())
def test_touched_blocks_are_those_that_hold_a_cell_asked_for(made: sweep.Sweep, data: st.DataObject) -> None:
    part = {
        dim: data.draw(st.lists(st.sampled_from(getattr(made, dim)), min_size=1, unique=True))
        for dim in schema.CELL_DIMS
    }
    asked = dataclasses.replace(made, **part)
    touched = sweep.touched(made, asked)
    wanted = set(everything(asked))
    for index in np.ndindex(touched.shape):
        assert touched[index] == bool(wanted & set(cells(sweep.block_at(made, index))))


PAPER: dict[str, Any] = {
    "n": (32,),
    "d": (2, 8, 32, 128, 512, 1024),
    "beta": np.linspace(0.1, 9, 90),
    "seed": range(2048),
    "horizon": 30.0,
    "times": sweep.Times(tuple(np.linspace(0, 30, 200))),
    "variables": ("pair_sync_fraction",),
    "block": None,
}


@pytest.mark.parametrize("target", [10.0, 60.0])
def test_the_dearest_block_is_near_the_target_and_blocks_are_large_enough_to_read(target: float) -> None:
    many = {**PAPER, "seed": range(4 * len(PAPER["seed"]))}  # so that a 64th of the sweep is no bound
    made = sweep.blocked(tiny_sweep(**many), target)
    assert made.block is not None
    betas, seeds = made.block
    assert betas == 90  # all betas share their initial tokens
    assert betas * seeds >= 90
    dearest = float(sweep.block_seconds(made).max())
    assert target / 2 < dearest <= target
    assert sweep.blocked(made, target / 7) is made  # a block that is there stays


def test_a_small_sweep_is_spread_over_many_blocks_but_not_into_crumbs() -> None:
    made = sweep.blocked(tiny_sweep(n=(32,), d=(2,), beta=range(1, 9), seed=range(512), block=None))
    assert 16 <= math.prod(sweep.blocks_shape(made)) <= 64
    assert math.prod(made.block or ()) >= 100


def test_chosen_blocks_divide_the_axes_evenly() -> None:
    for seeds in (1, 7, 100, 1000, 1021, 2048):
        made = sweep.blocked(tiny_sweep(n=(32,), seed=range(seeds), block=None), 1.0)
        count, size = sweep.blocks_shape(made)[3], (made.block or (0, 0))[1]
        assert count * size - seeds < count  # no block is more than one seed short


def test_a_cell_beyond_the_target_gets_a_block_of_its_own_and_the_plan_says_so() -> None:
    made = tiny_sweep(
        n=(16, 512), d=(8,), beta=(1.0, 256.0), horizon=None, times=sweep.Times((0.0,)), block=None
    )
    plan = sweep.plan(made, target_seconds=1.0)
    assert plan.block == (1, 1)
    assert plan.dearest_cell["n"] == 512
    assert plan.dearest_cell["beta"] == 256.0
    assert any("a single cell exceeds the target" in note for note in plan.notes)
    assert "single cell" in str(plan)
    assert not any("single cell" in note for note in sweep.plan(tiny_sweep()).notes)


def test_ten_million_cells_are_planned_without_an_object_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tiny_sweep(n=(16, 32), d=(2, 3, 4, 8, 16), beta=range(1, 101), seed=range(10_000), block=None)
    single = tiny_sweep(n=(16,), beta=range(1, 51), seed=range(100_000), d=(2, 3), block=(1, 1))
    blocks = 0
    real = sweep.block_at

    def counted(*args: Any) -> sweep.Block:
        nonlocal blocks
        blocks += 1
        return real(*args)

    monkeypatch.setattr(sys.modules[sweep.tasks.__module__], "block_at", counted)
    for asked in (made, single):
        assert asked.cells == 10_000_000
        plan = sweep.plan(asked)
        assert str(plan)
        assert blocks == 0
        whole = sweep.blocked(asked)
        stream = sweep.tasks(whole, np.ones(sweep.blocks_shape(whole), dtype=bool))
        assert len(next(stream).blocks) == blocks > 0
        blocks = 0
    assert plan.blocks == 10_000_000


@given(st.integers(1, 50), st.floats(0.5, 20.0), st.integers(0, 2**31))
def test_workers_end_together(workers: int, target: float, salt: int) -> None:
    made = tiny_sweep(n=(32,), d=(2, 3), beta=range(1, 9), seed=range(8192), horizon=None, block=(8, 8))
    pending = np.ones(sweep.blocks_shape(made), dtype=bool)
    whole = float(sweep.block_seconds(made).sum())
    assert whole > 50.0
    # each worker takes the next task when it is free; estimates are off by up to a half either way
    rng = np.random.default_rng(salt)
    free = [0.0] * workers
    for task in sweep.tasks(made, pending, target, workers):
        heapq.heapreplace(free, free[0] + task.seconds * rng.uniform(0.5, 1.5))
    idle = sum(max(free) - end for end in free) / workers
    assert idle < 0.02 * whole / workers + 1.5 * (0.1 + float(sweep.block_seconds(made).max()))


def test_the_plan_counts_cells_bytes_and_what_is_there() -> None:
    made = tiny_sweep()
    pending = np.ones(sweep.blocks_shape(made), dtype=bool)
    pending[0, 0, 0, 0] = False  # 2 betas, 3 seeds
    plan = sweep.plan(made, pending=pending)
    assert (plan.cells, plan.cells_pending) == (84, 78)
    assert (plan.blocks, plan.blocks_pending) == (24, 23)
    assert plan.block == (2, 3)
    # status, 5 log times and 2 shares, 4 variables at 4 times, evaluations and steps
    per_cell = 1 + 5 * (8 + 2 * 4) + 4 * 4 * 4 + 2 * 8
    assert plan.bytes == 84 * per_cell
    assert 0 < plan.seconds < sweep.plan(made).seconds
    assert plan.worker_bytes > 2**28
    for word in ("cells", "blocks", "tasks", "files", "size", "memory", "core-hours", "already there"):
        assert word in str(plan)


def test_prices_rise_with_n_and_with_beta_and_stay_finite() -> None:
    made = tiny_sweep(
        n=(2, 8, 64, 512, 2**15),
        d=(2, 3, 8, 1024),
        beta=(0.0, 1.0, 9.0, 1000.0),
        horizon=None,
        times=sweep.Times((0.0,)),
        variables=schema.TIME_RESOLVED,
    )
    for name in dynamics.DYNAMICS:
        prices = sweep.cell_seconds(dataclasses.replace(made, dynamics=dynamics.Dynamics(name)))
        assert prices.shape == (5, 4, 4)
        assert np.isfinite(prices).all()
        assert (prices > 0).all()
        assert (np.diff(prices, axis=0) > 0).all()
        assert (np.diff(prices, axis=2) >= 0).all()


def test_prices_of_layers_are_proportional_to_their_number() -> None:
    one, ten = (
        sweep.cell_seconds(
            tiny_sweep(n=(64,), integrator=integrate.Layers(step), variables=(), horizon=1000.0)
        )
        for step in (0.1, 0.01)
    )
    assert (ten / one > 8).all()
    assert (ten / one < 10.1).all()


def test_a_sweep_says_which_cells_begin_with_spectral_sums() -> None:
    made = tiny_sweep(
        n=(8, 20_000), d=(2, 3, 8), beta=(1.0, 20.0, 1e5), variables=(), integrator=integrate.Adaptive()
    )
    assert made.spectral == [(20_000, 2, 20.0), (20_000, 3, 20.0)]
    assert tiny_sweep().spectral == []
    assert tiny_sweep(integrator=integrate.Layers()).spectral == []


def test_recipes_are_short_however_long_the_axes_are() -> None:
    made = tiny_sweep(seed=range(100_000))
    assert len(json.dumps(dataclasses.asdict(made.recipe), default=str)) < 2000
