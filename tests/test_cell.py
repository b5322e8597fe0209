"""A cell's values depend on its parameters and seed alone, and a cell that fails harms no other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import xarray as xr

from pipeline import cell, integrate, observe, schema, sphere, sweep
from tests.tiny import tiny_sweep

MADE = tiny_sweep(block=(3, 7))
BLOCK = sweep.block_at(MADE, (1, 0, 0, 0))  # n = 5, d = 2, all 21 cells


def assert_same_bits(found: xr.Dataset, expected: xr.Dataset) -> None:
    xr.testing.assert_identical(found, expected)
    for name in expected.variables:
        if expected[name].dtype != object:
            assert found[name].to_numpy().tobytes() == expected[name].to_numpy().tobytes()


@pytest.fixture(scope="module")
def computed() -> xr.Dataset:
    return cell.compute_block(MADE.recipe, BLOCK)


def test_a_block_is_labelled_typed_and_done(computed: xr.Dataset) -> None:
    assert dict(computed.sizes) == {"n": 1, "d": 1, "beta": 3, "seed": 7, "time": 4, "clusters": 5}
    assert computed.n.item() == 5
    assert computed.d.item() == 2
    np.testing.assert_array_equal(computed.beta, MADE.beta)
    np.testing.assert_array_equal(computed.seed, MADE.seed)
    assert {str(name) for name in computed.data_vars} == {*schema.VARIABLES, "error"}
    for name, record in schema.VARIABLES.items():
        assert computed[name].dtype == record.dtype
        assert computed[name].dims == record.dims
    assert (computed.status == schema.DONE).all()
    assert (computed.error == "").all()


def test_a_cell_is_what_the_engine_says_of_it_alone(computed: xr.Dataset) -> None:
    for b, s in itertools.product(range(3), range(7)):
        alone = observe.observe_cells(
            sphere.initial_tokens(MADE.root_seed, 5, 2, MADE.seed[s])[None],
            np.array([MADE.beta[b]]),
            dynamics=MADE.dynamics,
            integrator=MADE.integrator,
            log_times=np.array(MADE.times.log_times),
            log_horizon=np.log(8.0),
            tolerance=MADE.tolerance,
            variables=MADE.variables,
            clusters_kept=5,
        )
        here = computed.isel(n=0, d=0, beta=b, seed=s)
        for name in schema.VARIABLES:
            if name != schema.STATUS:
                np.testing.assert_array_equal(here[name], alone[name][0].astype(here[name].dtype))


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_change_no_bit(computed: xr.Dataset, threads: int) -> None:
    assert_same_bits(cell.compute_block(MADE.recipe, BLOCK, threads=threads), computed)


@pytest.mark.parametrize("cut", [(1, 1), (1, 7), (3, 1), (2, 4)])
def test_blocks_of_any_shape_hold_the_same_bits(computed: xr.Dataset, cut: tuple[int, int]) -> None:
    for first_beta, first_seed in itertools.product(range(0, 3, cut[0]), range(0, 7, cut[1])):
        betas, seeds = slice(first_beta, first_beta + cut[0]), slice(first_seed, first_seed + cut[1])
        part = cell.Block((0, 0, 0, 0), 5, 2, MADE.beta[betas], MADE.seed[seeds])
        assert_same_bits(cell.compute_block(MADE.recipe, part), computed.isel(beta=betas, seed=seeds))


def test_calls_of_the_engine_may_hold_any_number_of_cells(
    computed: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cells in (1, 4, 64):
        monkeypatch.setattr(cell, "CALL_CELLS", cells)
        assert_same_bits(cell.compute_block(MADE.recipe, BLOCK), computed)


def test_all_betas_start_from_the_same_tokens(computed: xr.Dataset) -> None:
    at_start = computed.isel(time=0)
    assert (at_start.order_parameter == at_start.order_parameter.isel(beta=0)).all()
    assert (at_start.order_parameter.isel(seed=0) != at_start.order_parameter.isel(seed=1)).all()


def test_only_the_variables_that_are_kept_are_computed() -> None:
    made = tiny_sweep(variables=("energy",), clusters_kept=2)
    found = cell.compute_block(made.recipe, sweep.block_at(made, (0, 0, 0, 0)))
    assert {str(name) for name in found.data_vars} == {
        "status", "log_time_to_clusters", "energy", "evaluations", "steps", "error"
    }  # fmt: skip
    assert found.sizes["clusters"] == 2


def test_initial_tokens_of_large_cells_are_made_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "CALL_BYTES", 3 * cell.call_bytes(BLOCK.n, BLOCK.d, len(MADE.times.values)))
    sizes = []
    real = observe.observe_cells

    def spy(tokens: Any, *args: Any, **kwargs: Any) -> Any:
        sizes.append(len(tokens))
        return real(tokens, *args, **kwargs)

    monkeypatch.setattr(observe, "observe_cells", spy)
    cell.compute_block(MADE.recipe, BLOCK)
    assert max(sizes) == 3
    assert sum(sizes) == BLOCK.cells


# --- failures


def poisoned(monkeypatch: pytest.MonkeyPatch, *places: tuple[float, int]) -> list[int]:
    """Let the engine raise where one of these (beta, seed) is among its cells; the sizes of its calls."""
    real = observe.observe_cells
    starts = [(beta, sphere.initial_tokens(MADE.root_seed, 5, 2, seed)) for beta, seed in places]
    sizes = []

    def engine(tokens: Any, beta: Any, **kwargs: Any) -> Any:
        sizes.append(len(beta))
        for bad_beta, bad in starts:
            if any(b == bad_beta and np.array_equal(t, bad) for t, b in zip(tokens, beta, strict=True)):
                raise FloatingPointError(f"poison at beta={bad_beta}")
        return real(tokens, beta, **kwargs)

    monkeypatch.setattr(observe, "observe_cells", engine)
    return sizes


@pytest.mark.parametrize("threads", [1, 3])
def test_a_cell_that_raises_fails_alone(
    computed: xr.Dataset, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    sizes = poisoned(monkeypatch, (1.0, 3), (4.0, 6))
    found = cell.compute_block(MADE.recipe, BLOCK, threads=threads)
    bad = xr.zeros_like(found.status, dtype=bool)
    bad.loc[{"beta": 1.0, "seed": 3}] = True
    bad.loc[{"beta": 4.0, "seed": 6}] = True
    np.testing.assert_array_equal(found.status, np.where(bad, schema.FAILED, schema.DONE))
    assert found.error.sel(beta=1.0, seed=3).item() == "FloatingPointError: poison at beta=1.0"
    assert (found.error.where(~bad, "") == "").all()
    for name, record in schema.VARIABLES.items():
        if name != schema.STATUS:
            hidden = bad.broadcast_like(found[name])
            filled = found[name].to_numpy()[hidden.to_numpy()]
            assert (np.isnan(filled) if record.is_float else filled == 0).all()
            assert found[name].where(~hidden).equals(computed[name].where(~hidden))
    assert len(sizes) < 30  # found by halves, not by trying every cell


def test_a_trajectory_that_does_not_end_fails_with_its_reason() -> None:
    made = tiny_sweep(horizon=None, integrator=integrate.Adaptive(max_evaluations=200))
    found = cell.compute_block(made.recipe, sweep.block_at(made, (1, 0, 1, 0)))  # beta = 4
    failed = found.status == schema.FAILED
    assert failed.any()
    assert set(found.error.where(failed, drop=True).to_numpy().ravel()) - {np.nan} <= set(
        observe.OUTCOMES.values()
    )
    assert (found.evaluations.where(failed, 1) > 0).all()  # what was spent is kept
    assert np.isnan(found.log_time_to_clusters.where(failed)).all()
    assert np.isnan(found.energy.where(failed)).all()


def test_a_result_that_is_not_a_number_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    real = observe.observe_cells

    def engine(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        found["energy"][0, 1] = np.nan
        return found

    monkeypatch.setattr(observe, "observe_cells", engine)
    found = cell.compute_block(MADE.recipe, BLOCK)
    assert found.status.to_numpy().ravel().tolist().count(schema.FAILED) == 1
    assert "energy is not a number" in found.error.to_numpy()


def test_an_outcome_that_nobody_named_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    real = observe.observe_cells

    def engine(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        found["outcome"][-1] = 99
        return found

    monkeypatch.setattr(observe, "observe_cells", engine)
    assert "outcome 99" in cell.compute_block(MADE.recipe, BLOCK).error.to_numpy()


def test_cells_to_be_skipped_are_recorded_as_failed_and_not_computed(
    computed: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = poisoned(monkeypatch, (1.0, 3))
    found = cell.compute_block(MADE.recipe, BLOCK, skip={(1, 3): "kills its worker"})
    assert sum(sizes) == BLOCK.cells - 1
    assert found.error.sel(beta=1.0, seed=3).item() == "kills its worker"
    assert found.status.sel(beta=1.0, seed=3).item() == schema.FAILED
    assert int((found.status == schema.DONE).sum()) == 20
    assert found.energy.sel(beta=4.0).equals(computed.energy.sel(beta=4.0))


def test_all_cells_may_be_skipped() -> None:
    everything = {(b, s): "gone" for b in range(3) for s in range(7)}
    found = cell.compute_block(MADE.recipe, BLOCK, skip=everything)
    assert (found.status == schema.FAILED).all()


def test_an_interrupt_is_not_a_failed_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def engine(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(observe, "observe_cells", engine)
    with pytest.raises(KeyboardInterrupt):
        cell.compute_block(MADE.recipe, BLOCK)
