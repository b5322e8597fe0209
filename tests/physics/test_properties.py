"""Properties of any cell at all: ranges, conventions and consistency of what is reported."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline import simulate
from pipeline.observe import DONE, Trajectory
from tests import reference

examples = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
cells = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["sa", "usa"]),
        "n": st.integers(2, 14),
        "d": st.integers(2, 18),
        "beta": st.one_of(st.just(0.0), st.floats(1e-9, 10), st.floats(10, 1000)),
        "seed": st.integers(0, 10**6),
        "weighted": st.booleans(),
        "delta": st.sampled_from([1e-9, 1e-5, 1e-3, 0.1, 1.0]),
    }
)


def follow(cell: dict, log_times: np.ndarray, horizon: float | str) -> Trajectory:
    n = cell["n"]
    return simulate(
        reference.random_tokens(n, cell["d"], cell["seed"]),
        cell["beta"],
        dynamics=cell["name"],
        weights=reference.random_weights(n, cell["seed"]) if cell["weighted"] else None,
        log_times=log_times,
        horizon=horizon,
        tolerance=cell["delta"],
    )


def assert_sane(run: Trajectory, n: int) -> None:
    assert run.outcome == DONE
    slack = 1e-12
    assert np.all((run.energy > 0) & (run.energy <= 1 + slack))
    assert np.all((run.order_parameter >= 0) & (run.order_parameter <= 1 + slack))
    assert np.all((run.pair_sync_fraction >= 0) & (run.pair_sync_fraction <= 1 + slack))
    assert np.all((run.cluster_count >= 1) & (run.cluster_count <= n))
    assert np.abs(np.sum(run.tokens**2, axis=-1) - 1).max() < 1e-12
    log_times = run.log_time_to_clusters
    assert log_times.shape == (n,)
    assert not np.any(np.isnan(log_times))
    assert np.all(log_times[1:] <= log_times[:-1])
    assert log_times[-1] == -np.inf
    for k in range(1, n + 1):
        after = run.log_times > log_times[k - 1]
        assert np.all(run.cluster_count[after] <= k)
    # a cluster of one: all pairs are connected, so the order parameter is high and no component is left out
    assert np.all(run.pair_sync_fraction[run.cluster_count == n] == 0)


@examples
@given(cell=cells)
def test_random_starts_reach_consensus_and_say_so(cell: dict):
    n, beta = cell["n"], cell["beta"]
    shift = beta if cell["name"] == "usa" else 0.0
    grid = np.concatenate([[-np.inf], np.linspace(-3, 2.2 * beta + 60, 50) - shift])
    run = follow(cell, grid, "consensus")
    assert_sane(run, n)
    start = len(reference.components(reference.random_tokens(n, cell["d"], cell["seed"]), cell["delta"]))
    assert run.cluster_count[0] == start
    assert np.all(run.log_time_to_clusters < np.inf)
    # more clusters at the start than k: at most k only later
    assert np.all(np.isfinite(run.log_time_to_clusters[: start - 1]))
    last = run.log_time_to_clusters[0]
    assert np.all(run.cluster_count[grid > last] == 1)
    # one cluster may be a long chain: all have met 50 fast units after they have at the finest tolerance
    met = follow({**cell, "delta": 1e-9}, np.array([]), "consensus").log_time_to_clusters[0]
    beyond = grid > np.logaddexp(met, math.log(50) - shift)
    assert np.all(np.abs(run.energy[beyond] - 1) < 1e-9)
    assert np.all(run.pair_sync_fraction[beyond] == 1)


@examples
@given(cell=cells, fraction=st.floats(0.05, 1.5))
def test_horizons_leave_what_has_not_happened_at_plus_infinity(cell: dict, fraction: float):
    horizon = 10.0 * fraction * math.exp(-cell["beta"] if cell["name"] == "usa" else 0)
    grid = np.concatenate([[-np.inf], np.linspace(math.log(horizon) - 5, math.log(horizon), 12)])
    run = follow(cell, grid, horizon)
    assert_sane(run, cell["n"])
    count = run.cluster_count[-1]
    assert np.all(run.log_time_to_clusters[: count - 1] == np.inf)
    assert np.all(run.log_time_to_clusters[count - 1 :] <= math.log(horizon))
