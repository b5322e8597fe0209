"""Cluster sizes: what the mergers keep, against the partitions of single trajectories and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from pipeline import analyse, schema, simulate
from pipeline.dynamics import Dynamics
from pipeline.integrate import Adaptive, Layers
from pipeline.observe import MERGERS, observe_cells
from pipeline.sphere import initial_tokens
from tests import mock


def observed(tokens: np.ndarray, beta: float, integrator: Adaptive | Layers, log_horizon: float) -> dict:
    return observe_cells(
        tokens[None],
        np.array([beta]),
        dynamics=Dynamics("sa"),
        integrator=integrator,
        log_times=np.empty(0),
        log_horizon=log_horizon,
        tolerance=1e-3,
        variables=MERGERS,
        clusters_kept=len(tokens),
    )


def as_dataset(smaller: np.ndarray, larger: np.ndarray) -> xr.Dataset:
    """One cell with these shares, k = 1, 2, ..."""
    dims = (*schema.CELL_DIMS, schema.CLUSTERS)
    shape = (1, 1, 1, 1, len(smaller))
    return xr.Dataset(
        {
            schema.STATUS: (schema.CELL_DIMS, np.full(shape[:-1], schema.DONE, np.int8)),
            schema.MERGER_SMALLER: (dims, np.asarray(smaller, np.float32).reshape(shape)),
            schema.MERGER_LARGER: (dims, np.asarray(larger, np.float32).reshape(shape)),
        },
        coords={schema.CLUSTERS: np.arange(1, len(smaller) + 1)},
    )


@pytest.mark.parametrize("d", [2, 3, 8])
@pytest.mark.parametrize("beta", [2.0, 50.0])
def test_sizes_from_mergers_are_those_of_the_partitions(d: int, beta: float) -> None:
    tokens = initial_tokens(3, 24, d, 5)
    found = observed(tokens, beta, Adaptive(), np.inf)
    smaller, larger = found[MERGERS[0]][0], found[MERGERS[1]][0]
    run = simulate(tokens, beta)
    data = as_dataset(smaller, larger)
    ends = run.log_time_to_clusters
    for k in range(1, 9):
        if k > 1 and not ends[k - 1] < ends[k - 2]:
            continue  # the count jumped over k
        inside = np.searchsorted(run.change_log_times, ends[k - 1], side="right") - 1
        _, counts = np.unique(run.partitions[inside], return_counts=True)
        sizes = analyse.cluster_sizes(data, k).values.ravel()
        assert np.allclose(sizes[:k], np.sort(counts)[::-1] / 24, atol=1e-6)
        assert not sizes[k:].any()


def test_layers_keep_single_mergers_too() -> None:
    tokens = initial_tokens(0, 12, 3, 1)
    found = observed(tokens, 1.0, Layers(0.1), np.log(30.0))
    data = as_dataset(found[MERGERS[0]][0], found[MERGERS[1]][0])
    for k in range(1, 13):
        assert analyse.cluster_sizes(data, k).values.ravel()[:k].sum() == pytest.approx(1, abs=1e-6)


def test_sizes_by_hand() -> None:
    # 1 = 0.6 + 0.4, 0.6 = 0.5 + 0.1, never four
    data = as_dataset(np.array([0.4, 0.1, 0.0]), np.array([0.6, 0.5, 0.0]))
    assert np.allclose(analyse.cluster_sizes(data, 1).values.ravel(), [1, 0, 0])
    assert np.allclose(analyse.cluster_sizes(data, 2).values.ravel(), [0.6, 0.4, 0])
    assert np.allclose(analyse.cluster_sizes(data, 3).values.ravel(), [0.5, 0.4, 0.1])
    assert np.isnan(analyse.cluster_sizes(data, 4).values).all()
    assert np.isnan(analyse.cluster_sizes(data, 0).values).all()


def test_a_cell_that_did_not_come_down_has_no_sizes() -> None:
    data = as_dataset(np.array([0.0, 0.1]), np.array([0.0, 0.5]))
    assert np.isnan(analyse.cluster_sizes(data, 2).values).all()
    data[schema.STATUS][:] = schema.FAILED
    assert np.isnan(analyse.cluster_sizes(data, 1).values).all()


def test_the_distribution_counts_every_cluster_once() -> None:
    data = as_dataset(np.array([0.5, 0.25, 0.0]), np.array([0.5, 0.25, 0.0]))
    found = analyse.size_distribution(analyse.cluster_sizes(data, 3), bins=4)
    assert found.clusters_counted.item() == 3
    assert np.allclose(found.probability.values.ravel(), [2 / 3, 1 / 3, 0, 0])
    assert np.allclose(found.share, [0.125, 0.375, 0.625, 0.875])


def test_a_dataset_without_mergers_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"variables: got .*; needed: merger_smaller_share"):
        analyse.cluster_sizes(mock.dataset(), 2)
