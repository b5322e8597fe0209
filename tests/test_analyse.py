"""Statements about datasets against answers that can be computed by hand or by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from pipeline import analyse, schema, theory
from tests import mock

INF, NAN = math.inf, math.nan


def by_hand(mergers: list, *, n: int = 4, beta: tuple[float, ...] = (1.0,), **kwargs: object) -> xr.Dataset:
    """A dataset of one n and d with these log times to at most 1, 2, ... clusters, (beta, seed, clusters).

    At a tolerance of 0.9 the fast phase of SA ends at t = 1, so that log time begins at 0.
    """
    values = np.asarray(mergers, dtype=float)
    given = {"tolerance": 0.9, **kwargs}
    dataset = mock.dataset(n=(n,), d=(2,), beta=beta, seeds=values.shape[1], **given)
    kept = dataset.sizes[schema.CLUSTERS]
    whole = np.full((1, 1, *values.shape[:2], kept), -INF)
    whole[..., : values.shape[2]] = values
    return dataset.assign(
        {schema.LOG_TIME_TO_CLUSTERS: (schema.VARIABLES["log_time_to_clusters"].dims, whole)}
    )


def plateau_of(log_times: list[float], **kwargs: object) -> tuple[int, float, float, float, bool, bool]:
    found = analyse.plateaus(by_hand([[log_times]], **kwargs)).isel(n=0, d=0, beta=0, seed=0)
    names = ("clusters", "log_entry", "log_exit", "length", "censored", "hidden")
    return tuple(found[f"plateau_{name}"].item() for name in names)


# ------------------------------------------------------------------------------- plateaus


def test_plateau_is_the_longest_stay() -> None:
    assert plateau_of([9.0, 7.5, 1.0]) == (3, 1.0, 7.5, 6.5, False, False)
    assert plateau_of([20.0, 7.5, 1.0]) == (2, 7.5, 20.0, 12.5, False, False)


def test_log_time_begins_where_the_fast_phase_ends() -> None:
    """Four tokens since t = 0 have stayed so since t_0 under SA, and since exp(-beta) t_0 under USA."""
    fast = math.log(math.log(4 / 1e-3 - 3) / 2)
    assert plateau_of([9.0, 8.5, 8.0], tolerance=1e-3)[1] == pytest.approx(fast)
    assert plateau_of([9.0, 8.5, 8.0], tolerance=1e-3, dynamics="usa", beta=(3.0,))[1] == pytest.approx(
        fast - 3
    )
    assert plateau_of([1.4, 1.3, 1.2], tolerance=1e-3)[0] == 0
    assert plateau_of([9.0, 8.5, 8.0]) == (4, 0.0, 8.0, 8.0, False, False)
    assert plateau_of([9.0, 8.5, 8.0], dynamics="usa", beta=(3.0,)) == (4, -3.0, 8.0, 11.0, False, False)
    assert plateau_of([0.4, 0.1, -50.0]) == (2, 0.1, 0.4, pytest.approx(0.3), False, False)
    floor = analyse.plateaus(by_hand([[[0.4, 0.1, -50.0]]]), log_floor=-60.0)
    assert floor["plateau_clusters"].item() == 3
    assert floor["plateau_length"].item() == pytest.approx(50.1)


def test_who_met_before_that_has_no_plateau() -> None:
    clusters, entry, exit_, length, censored, hidden = plateau_of([-1.0, -2.0, -3.0])
    assert (clusters, length, censored, hidden) == (0, 0.0, False, False)
    assert math.isnan(entry)
    assert math.isnan(exit_)
    assert plateau_of([-INF, -INF, -INF])[0] == 0


def test_plateau_that_outlasts_the_horizon_is_cut_there_and_says_so() -> None:
    horizon = math.exp(10)
    assert plateau_of([INF, 2.0, 1.0], horizon=horizon) == (2, 2.0, 10.0, pytest.approx(8.0), True, False)
    assert plateau_of([INF, INF, 1.0], horizon=horizon) == (3, 1.0, 10.0, pytest.approx(9.0), True, False)
    # the longest so far has ended, but the stay that goes on may become longer
    assert plateau_of([INF, 9.0, 1.0], horizon=horizon) == (3, 1.0, 9.0, 8.0, True, False)


def test_an_exactly_symmetric_state_stays_for_ever() -> None:
    assert plateau_of([INF, INF, INF]) == (4, 0.0, INF, INF, True, False)
    assert plateau_of([INF, 3.0, 1.0]) == (2, 3.0, INF, INF, True, False)


def test_plateau_among_counts_that_were_not_kept_is_said_to_be_hidden() -> None:
    kept_two = {"n": 9, "clusters_kept": 2}
    assert plateau_of([9.0, 2.0], **kept_two) == (2, 2.0, 9.0, 7.0, False, False)
    assert plateau_of([9.0, 6.0], **kept_two) == (2, 6.0, 9.0, 3.0, False, True)
    assert plateau_of([9.0, 6.0], n=2) == (2, 6.0, 9.0, 3.0, False, False)


def test_missing_and_failed_cells_have_no_plateau() -> None:
    dataset = by_hand([[[9.0, 7.5, 1.0], [9.0, 7.5, 1.0], [9.0, 7.5, 1.0]]])
    dataset[schema.STATUS][0, 0, 0] = [schema.DONE, schema.FAILED, schema.MISSING]
    found = analyse.plateaus(dataset).squeeze()
    assert list(found["plateau_clusters"].values) == [3, 0, 0]
    for name in ("log_entry", "log_exit", "length"):
        assert list(np.isnan(found[f"plateau_{name}"].values)) == [False, True, True]
    assert not found["plateau_hidden"].values[1:].any()


def test_stays_of_one_cell_by_walking_along_its_count() -> None:
    """Brute force: the count at each of 20000 log times, and its longest constant run."""
    dataset = mock.dataset(n=(6, 12), d=(2, 3), beta=(2.0, 20.0), seeds=5)
    found = analyse.plateaus(dataset, log_floor=0.0)
    grid = np.linspace(0, 60, 20001)
    for cell in itertools.product(range(2), range(2), range(2), range(5)):
        log_times = dataset[schema.LOG_TIME_TO_CLUSTERS].values[cell]
        count = 1 + np.sum(log_times[:, None] > grid, axis=0)
        runs = {k: np.sum(count == k) * (grid[1] - grid[0]) for k in np.unique(count) if k > 1}
        k = max(runs, key=runs.get)
        assert found["plateau_length"].values[cell] == pytest.approx(runs[k], abs=0.01)
        assert found["plateau_clusters"].values[cell] == k


def test_plateau_needs_two_counts() -> None:
    with pytest.raises(ValueError, match=r"clusters_kept: got 1; needed: at least 2"):
        analyse.plateaus(mock.dataset(clusters_kept=1))


def test_effective_clusters_are_the_inverse_energy_at_the_middle_of_the_plateau() -> None:
    dataset = by_hand([[[9.0, 5.5, 1.0], [30.0, 2.0, 1.0], [1.5, 1.4, 1.3]]], log_times=(0.0, 3.1, 6.9, 8.0))
    dataset[schema.ENERGY].values[0, 0, 0] = [[0.25, 0.4, 0.5, 1.0], [0.25, 0.3, 0.6, 0.8], [0.25, 1, 1, 1]]
    found = analyse.effective_clusters(dataset, analyse.plateaus(dataset))
    # Plateaus [1, 5.5), middle 3.25; [2, 30), middle 16, nearest save time 8; [0, 1.3), save time 0.
    np.testing.assert_allclose(found.values[0, 0, 0], [1 / 0.4, 1 / 0.8, 4.0], rtol=1e-6)


def test_effective_clusters_are_unknown_where_nothing_was_saved_on_the_plateau() -> None:
    dataset = by_hand([[[9.0, 5.0, 1.0]]], log_times=(0.0, 20.0))
    assert np.isnan(analyse.effective_clusters(dataset, analyse.plateaus(dataset))).all()


# ------------------------------------------------------------------------------- seeds


def test_counts_add_up_to_the_seeds() -> None:
    dataset = mock.dataset(seeds=40, missing=0.3, failed=0.2)
    found = analyse.counts(dataset)
    assert (found["cells_done"] == (dataset[schema.STATUS] == 1).sum("seed")).all()
    assert (found["cells_done"] + found["cells_failed"] + found["cells_missing"] == 40).all()
    assert (found["cells_failed"] > 0).any()


def test_phase_diagram_is_the_mean_over_the_seeds_that_are_done() -> None:
    dataset = mock.dataset(n=(8,), d=(2, 8), seeds=30, missing=0.2, failed=0.2)
    found = analyse.phase_diagram(dataset)
    for i, j in itertools.product(range(2), range(3)):
        kept = dataset[schema.STATUS].values[0, i, j] == schema.DONE
        values = dataset[schema.PAIR_SYNC_FRACTION].values[0, i, j][kept].astype(float)
        np.testing.assert_allclose(found["pair_sync_mean"].values[0, i, j], values.mean(0), atol=1e-14)
        error = values.std(0, ddof=1) / math.sqrt(kept.sum())
        np.testing.assert_allclose(found["pair_sync_error"].values[0, i, j], error, atol=1e-8)
        assert found["seeds"].values[0, i, j] == kept.sum()


def test_phase_diagram_of_nothing_is_nan_and_of_one_seed_has_no_error() -> None:
    dataset = mock.dataset(seeds=1, beta=(1.0, 2.0))
    dataset[schema.STATUS][0, 0, 0] = schema.MISSING
    found = analyse.phase_diagram(dataset)
    assert found["pair_sync_mean"].isnull().values[0, 0].all(axis=-1).tolist() == [True, False]
    assert found["pair_sync_error"].isnull().all()


def test_missing_variable_is_named() -> None:
    with pytest.raises(ValueError, match="needed: pair_sync_fraction, which this dataset did not keep"):
        analyse.phase_diagram(mock.dataset(variables=("energy",)))


def test_quantiles_are_order_statistics_and_infinities_are_values() -> None:
    values = xr.DataArray(
        [[1.0, 2.0, 3.0, 4.0, 5.0], [INF, INF, 3.0, -INF, 5.0], [NAN, 2.0, NAN, 7.0, 1.0]],
        dims=("beta", "seed"),
    )
    found = analyse.quantiles(values, (0.2, 0.5, 0.9))
    np.testing.assert_array_equal(found["estimate"], [[1, 3, 5], [-INF, 5, INF], [1, 2, 7]])
    assert np.isnan(analyse.quantiles(xr.full_like(values, NAN), (0.5,))["estimate"]).all()


def test_quantile_rank_is_not_lifted_by_rounding() -> None:
    values = xr.DataArray(np.arange(1.0, 31.0), dims="seed")
    for tenths in range(1, 10):
        assert analyse.quantiles(values, (tenths / 10,))["estimate"].item() == 3 * tenths


def test_intervals_of_the_median_cover_it_as_often_as_they_say() -> None:
    """2000 samples of 40: a 90 percent interval covers at least 0.9 - 4 standard errors = 0.873 of them."""
    rng = np.random.default_rng(3)
    values = xr.DataArray(rng.exponential(size=(2000, 40)), dims=("beta", "seed"))
    found = analyse.quantiles(values, (0.5, 0.25), level=0.9)
    for i, truth in enumerate((math.log(2), math.log(4 / 3))):
        inside = (found["lower"][:, i] <= truth) & (truth <= found["upper"][:, i])
        assert inside.mean() > 0.873


def test_merge_times_hold_the_quantiles_of_the_count() -> None:
    """At any time, the q-quantile of the count is the least k whose merge-time quantile has passed."""
    dataset = mock.dataset(n=(12,), seeds=21)
    found = analyse.merge_times(dataset, (0.25, 0.5, 0.75))
    log_times = dataset[schema.LOG_TIME_TO_CLUSTERS].values[0, 0, 2]
    for log_t in np.linspace(0.5, 20, 57):
        counts = np.sort(1 + np.sum(log_times > log_t, axis=-1))
        for i, q in enumerate((0.25, 0.5, 0.75)):
            passed = found["merge_log_time"].values[0, 0, 2, :, i] <= log_t
            assert 1 + np.argmax(passed) == counts[math.ceil(q * 21 - 1e-9) - 1]


def test_survival_counts_the_seeds_that_are_not_there_yet() -> None:
    dataset = by_hand([[[9.0, 5.0], [8.0, 2.0], [INF, 1.0], [4.0, 3.0]]], n=2, horizon=math.exp(10))
    found = analyse.survival(dataset, [0.0, 4.0, 8.5, 10.0, 11.0])
    one, two = found["survival"].values[0, 0, 0]
    np.testing.assert_array_equal(one, [1, 0.75, 0.5, 0.25, NAN])  # nobody looked after the horizon
    np.testing.assert_array_equal(two, [1, 0.25, 0, 0, 0])


def test_wilson_interval_ends_where_the_share_is_just_a_deviate_away() -> None:
    """Wilson (1927): (p - p_0)^2 = z^2 p_0 (1 - p_0)/m; 2 of 8, and 0 of 8, which ends at z^2/(m + z^2)."""
    dataset = by_hand([[[INF], [INF], *[[1.0]] * 6], [[1.0]] * 8], n=2, beta=(1.0, 2.0), horizon=math.exp(3))
    found = analyse.unsynchronised(dataset).squeeze()
    z2 = 1.959963984540054**2
    np.testing.assert_allclose(found["unsynchronised"], [0.25, 0])
    for end in ("lower", "upper"):
        p = found[f"unsynchronised_{end}"].values[0]
        assert (0.25 - p) ** 2 == pytest.approx(z2 * p * (1 - p) / 8, rel=1e-12)
    assert found["unsynchronised_lower"].values[1] == 0
    assert found["unsynchronised_upper"].values[1] == pytest.approx(z2 / (8 + z2), rel=1e-12)


def test_level_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match=r"level: got 95; allowed: numbers between 0 and 1"):
        analyse.unsynchronised(mock.dataset(), level=95)


def test_plateau_statistics_are_medians_over_seeds() -> None:
    dataset = by_hand(
        [[[9.0, 7.5, 1.0], [20.0, 1.5, 1.0], [30.0, 2.0, 1.0], [-1.0, -2.0, -3.0], [INF, 3.0, 1.0]]]
    )
    found = analyse.plateau_statistics(analyse.plateaus(dataset)).squeeze()
    assert found["plateau_clusters_median"] == 2  # of 3, 2, 2 and 2; one seed has none
    assert found["plateau_length_median"] == 18.5  # of 6.5, 18.5, 28, 0 and inf
    assert found["plateau_length_median_lower"] == 0
    assert found["plateau_length_median_upper"] == INF
    assert found["plateau_censored_share"] == pytest.approx(0.2)


# ------------------------------------------------------------------------------- growth


def exact_pair_sweep(beta: np.ndarray, cosine: np.ndarray, *, dynamics: str = "sa") -> xr.Dataset:
    """Two tokens at the given inner products, one for each seed, with their exact meeting times."""
    log_t = theory.two_cluster_log_time(beta[:, None], cosine, 1e-3, dynamics=dynamics)
    return by_hand(log_t[..., None].tolist(), n=2, beta=tuple(beta.tolist()), dynamics=dynamics)


@pytest.mark.parametrize(("dynamics", "exponent"), [("sa", 1.4), ("usa", 0.4)])
def test_slope_is_the_exponent_of_two_clusters(dynamics: str, exponent: float) -> None:
    beta = np.linspace(50, 1000, 12)
    found = analyse.merge_slopes(exact_pair_sweep(beta, np.full(5, -0.4), dynamics=dynamics)).squeeze()
    for name in ("merge_slope", "merge_slope_lower", "merge_slope_upper"):
        assert found[name] == pytest.approx(exponent, abs=1e-4)
    constant = -math.log((2 if dynamics == "sa" else 1) * (1 - 0.16))
    assert found["merge_intercept"] == pytest.approx(constant, abs=0.02)
    assert found["merge_slope_points"] == 12


def test_slope_interval_covers_the_slope_of_the_median() -> None:
    """200 samples of 25 pairs of uniform tokens on S^2, whose median is u = 0, c = 1.

    At 95 percent the binomial chance of fewer than 180 hits is 0.2 percent; the sample is fixed.
    """
    rng = np.random.default_rng(11)
    beta = np.array([100.0, 200.0, 400.0])
    hits = 0
    for _ in range(200):
        found = analyse.merge_slopes(exact_pair_sweep(beta, rng.uniform(-1, 1, 25)), replicates=199)
        hits += bool(found["merge_slope_lower"] <= 1.0 <= found["merge_slope_upper"])
    assert hits >= 180


def test_slope_does_not_move_while_less_than_half_of_the_seeds_are_censored() -> None:
    beta = np.array([8.0, 16.0, 32.0, 64.0])
    whole = exact_pair_sweep(beta, np.linspace(-0.9, 0.9, 21))
    cut = whole.copy(deep=True)
    cut[schema.LOG_TIME_TO_CLUSTERS].values[..., :10, :1] = INF  # the ten slowest at every beta
    a, b = (analyse.merge_slopes(dataset).squeeze() for dataset in (whole, cut))
    assert a["merge_slope"] == b["merge_slope"]
    cut[schema.LOG_TIME_TO_CLUSTERS].values[0, 0, 2:, :11, :1] = INF  # two medians beyond the horizon
    c = analyse.merge_slopes(cut).squeeze()
    assert np.isnan(c["merge_slope"])
    assert c["merge_slope_points"] == 2


def test_failed_seeds_change_neither_slope_nor_bootstrap() -> None:
    beta = np.array([8.0, 16.0, 32.0])
    whole = exact_pair_sweep(beta, np.array([-0.2, -0.1, 0.0, 0.1, 0.2, 0.9]))
    without = whole.isel(seed=slice(0, 5))
    whole[schema.STATUS][..., 5] = schema.FAILED
    a, b = (analyse.merge_slopes(dataset).squeeze() for dataset in (whole, without))
    assert a["merge_slope"] == b["merge_slope"]


@given(st.lists(st.floats(-5, 5) | st.just(INF) | st.just(NAN), min_size=1, max_size=12))
def test_median_of_the_fit_is_the_quantile_of_the_table(values: list[float]) -> None:
    from pipeline.analyse.growth import _medians

    ordered = np.sort(values)
    ours = _medians(ordered, ~np.isnan(ordered))
    table = analyse.quantiles(xr.DataArray(values, dims="seed"), (0.5,))["estimate"].item()
    np.testing.assert_equal(float(ours), table)


# ------------------------------------------------------------------------------- the whole


@pytest.fixture
def whole() -> xr.Dataset:
    return mock.dataset(n=(4, 16), d=(2, 16), beta=(1.0, 4.0, 16.0, 32.0), seeds=12, missing=0.1, failed=0.1)


def test_summary_is_small_named_and_says_what_predictions_depend_on(whole: xr.Dataset) -> None:
    found = analyse.summary(whole)
    assert schema.SEED not in found.dims
    assert all(
        variable.attrs["long_name"] and variable.attrs["units"] for variable in found.data_vars.values()
    )
    assert found.attrs["dynamics"] == "sa"
    assert found.attrs["tolerance"] == 1e-3
    assert found.attrs["identity_matrices"] == 1
    assert "log_horizon" not in found.attrs
    assert found[schema.BETA].attrs["long_name"] == "inverse temperature"


def test_summary_of_a_lazy_dataset_is_lazy_and_the_same(whole: xr.Dataset) -> None:
    eager, lazy = analyse.summary(whole), analyse.summary(whole.chunk(n=1, d=1, beta=2, seed=5))
    assert all(variable.chunks is not None for variable in lazy.data_vars.values())
    xr.testing.assert_allclose(eager, lazy.compute(), rtol=1e-12)


def test_summary_leaves_out_what_was_not_kept(whole: xr.Dataset) -> None:
    found = analyse.summary(whole.drop_vars([schema.PAIR_SYNC_FRACTION, schema.ENERGY]))
    assert "pair_sync_mean" not in found
    assert "plateau_effective_clusters_median" not in found
    assert "plateau_length_median" in found
    assert "plateau_length_median" not in analyse.summary(mock.dataset(clusters_kept=1))


def test_seeds_may_stand_in_any_order(whole: xr.Dataset) -> None:
    order = np.random.default_rng(0).permutation(12)
    a, b = analyse.summary(whole), analyse.summary(whole.isel(seed=order))
    resampled = [
        name for name in a.data_vars if name.startswith("merge_slope_")
    ]  # their draws fall on other seeds
    xr.testing.assert_allclose(a.drop_vars(resampled), b.drop_vars(resampled), rtol=1e-12)


def test_a_dataset_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="got no readable attribute 'sweep'"):
        analyse.summary(mock.dataset().assign_attrs(sweep="{}"))


# ------------------------------------------------------------------------------- the mock itself


def test_mock_datasets_are_legal(whole: xr.Dataset) -> None:
    for name, variable in whole.data_vars.items():
        record = schema.VARIABLES[str(name)]
        assert variable.dims == record.dims
        assert variable.dtype == record.dtype
        absent = variable.where(whole[schema.STATUS] != schema.DONE)
        if record.is_float:
            assert absent.isnull().all()
        elif name != schema.STATUS:
            assert (absent.fillna(0) == 0).all()
    log_times = whole[schema.LOG_TIME_TO_CLUSTERS]
    steps = log_times.values[..., :-1] >= log_times.values[..., 1:]
    assert (steps | np.isnan(log_times.values[..., 1:])).all()
    assert (log_times.sel(n=4, clusters=slice(4, None)).fillna(-INF) == -INF).all()
    assert (
        (whole[schema.PAIR_SYNC_FRACTION].fillna(0) >= 0) & (whole[schema.PAIR_SYNC_FRACTION].fillna(0) <= 1)
    ).all()
    assert (whole[schema.ENERGY].fillna(1) <= 1.0000001).all()
