"""How large clusters are: from the shares that joined in each merger back to the clusters at any k."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pipeline import schema
from pipeline.analyse.cells import need

Array = NDArray[np.float64]

SHARE = "share"  # dimension of `size_distribution`
_SAME = 1e-5  # shares are kept in float32


def cluster_sizes(dataset: xr.Dataset, clusters: xr.DataArray | int) -> xr.DataArray:
    """Shares of all tokens that the clusters hold, when the cell has come down to so many clusters.

    One cluster holds all. Backwards in time it splits into the two shares of the last merger, one of these
    into the two of the merger before, and so on.

    Parameters
    ----------
    dataset : Dataset
        With `merger_smaller_share` and `merger_larger_share`.
    clusters : DataArray or int
        How many, per cell if it likes: `plateau_clusters` of `plateaus` gives the sizes on the plateau.

    Returns
    -------
    DataArray
        Per cell and position 1, 2, ... along `clusters` the share of the largest cluster, the second largest,
        ...; 0 beyond their number. NaN where the cell does not count or never had so many clusters or so few.
    """
    shares: xr.DataArray = xr.apply_ufunc(
        _sizes,
        need(dataset, schema.MERGER_SMALLER).astype(float),
        need(dataset, schema.MERGER_LARGER).astype(float),
        clusters,
        input_core_dims=[[schema.CLUSTERS], [schema.CLUSTERS], []],
        output_core_dims=[[schema.CLUSTERS]],
        vectorize=True,
        dask="parallelized",
        output_dtypes=[float],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    return (
        shares.transpose(*schema.CELL_DIMS, schema.CLUSTERS)
        .rename("cluster_sizes")
        .assign_attrs(long_name="share of all tokens, largest cluster first", units="1")
    )


def size_distribution(sizes: xr.DataArray, *, bins: int = 20) -> xr.Dataset:
    """Distribution of cluster sizes over all seeds of a point (n, d, β).

    Parameters
    ----------
    sizes : DataArray
        From `cluster_sizes`.
    bins : int
        Bins of equal width of the share, on (0, 1].

    Returns
    -------
    Dataset
        ``probability`` of a cluster, drawn from all clusters of all seeds that count, to lie in a bin
        (dimension `share`, at the bins' centres); NaN if there are none. ``clusters_counted``: how many.
    """
    edges = np.linspace(0.0, 1.0, bins + 1)
    counted: xr.DataArray = xr.apply_ufunc(
        lambda values: _counts(values, edges),
        sizes,
        input_core_dims=[[schema.SEED, schema.CLUSTERS]],
        output_core_dims=[[SHARE]],
        vectorize=True,
        dask="parallelized",
        output_dtypes=[float],
        dask_gufunc_kwargs={"output_sizes": {SHARE: bins}, "allow_rechunk": True},
    ).assign_coords({SHARE: (edges[1:] + edges[:-1]) / 2})
    total = counted.sum(SHARE)
    return xr.Dataset(
        {
            "probability": (counted / total.where(total > 0)).assign_attrs(
                long_name="probability of the share of a cluster", units="1", cell_methods="seed: mean"
            ),
            "clusters_counted": total.assign_attrs(long_name="number of clusters counted", units="1"),
        }
    )


def _sizes(smaller: Array, larger: Array, clusters: float) -> Array:
    nothing = np.full(smaller.size, np.nan)
    if not 1 <= clusters <= smaller.size or np.isnan(smaller[0]):
        return nothing
    sizes = [1.0]
    for less, more in zip(smaller[: int(clusters) - 1], larger[: int(clusters) - 1], strict=True):
        parent = int(np.argmin([abs(size - less - more) for size in sizes]))
        if less == 0.0 or abs(sizes[parent] - less - more) > _SAME:
            return nothing
        sizes[parent : parent + 1] = [float(less), float(more)]
    return np.concatenate([np.sort(sizes)[::-1], np.zeros(smaller.size - len(sizes))])


def _counts(values: Array, edges: Array) -> Array:
    # shares are multiples of 1/n: one that lies on an edge belongs below it
    held = values[values > 0]
    return np.histogram(np.nextafter(np.minimum(held, 1.0), 0.0), edges)[0].astype(float)
