"""Statistics over the seeds of a point (n, d, β): means, quantiles, shares and survival, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from pipeline import schema
from pipeline.analyse.cells import Array, Question, done, need

QUANTILE = "quantile"
FAN = (0.05, 0.25, 0.5, 0.75, 0.95)

_PLATEAU = {
    "plateau_clusters": "number of clusters on the plateau",
    "plateau_length": "length of the plateau in natural logarithms of time",
    "plateau_log_entry": "natural logarithm of the time at which the plateau begins",
    "plateau_log_exit": "natural logarithm of the time at which the plateau ends",
    "plateau_effective_clusters": "inverse of the energy half-way along the plateau",
}


def phase_diagram(dataset: xr.Dataset) -> xr.Dataset:
    """Mean share of pairs that are together, over (n, d, β, time), with its standard error and count.

    Returns
    -------
    Dataset
        pair_sync_mean, pair_sync_error (standard deviation over seeds by √count, NaN for one seed) and seeds.
    """
    share = need(dataset, schema.PAIR_SYNC_FRACTION)
    seeds = done(dataset).sum(schema.SEED)
    total = share.sum(schema.SEED, dtype=np.float64)
    squares = (share.astype(np.float64) ** 2).sum(schema.SEED)
    mean = total / seeds.where(seeds > 0)
    variance = (squares - total * mean).clip(min=0) / (seeds - 1).where(seeds > 1)
    return xr.Dataset(
        {
            "pair_sync_mean": mean.assign_attrs(
                long_name="mean share of pairs of tokens that are together",
                units="1",
                cell_methods="seed: mean",
            ),
            "pair_sync_error": ((variance / seeds.where(seeds > 0)) ** 0.5).assign_attrs(
                long_name="standard error of the mean share of pairs", units="1"
            ),
            "seeds": seeds.assign_attrs(long_name="number of seeds in the mean", units="1"),
        }
    )


def quantiles(
    values: xr.DataArray, probabilities: Sequence[float] = FAN, *, level: float = 0.95
) -> xr.Dataset:
    """Quantiles over seeds by order statistics, with distribution-free binomial intervals.

    The p-quantile of m values is the ⌈pm⌉-th in order, so that +inf (not before the horizon) and −inf are
    values like any other. Its interval lies between the order statistics whose ranks differ from pm by
    z√(mp(1−p)), rounded outwards and cut at the least and the greatest value. NaN does not count.

    Returns
    -------
    Dataset
        estimate, lower and upper, with a last dimension `quantile` in place of `seed`.
    """
    given = np.asarray(probabilities, dtype=float)
    estimate, lower, upper = xr.apply_ufunc(
        order_statistics,
        values,
        kwargs={"probabilities": given, "z": deviate(level)},
        input_core_dims=[[schema.SEED]],
        output_core_dims=[[QUANTILE]] * 3,
        dask="parallelized",
        output_dtypes=[float] * 3,
        dask_gufunc_kwargs={"output_sizes": {QUANTILE: given.size}, "allow_rechunk": True},
    )
    return xr.Dataset(
        {"estimate": estimate, "lower": lower, "upper": upper}, coords={QUANTILE: (QUANTILE, given)}
    )


def merge_times(
    dataset: xr.Dataset, probabilities: Sequence[float] = FAN, *, level: float = 0.95
) -> xr.Dataset:
    """Quantiles over seeds of the log times to at most k clusters, with intervals.

    Since the count "from then on at most" only falls, they are the quantiles of the count against time as
    well: the share p of the seeds has at most k clusters from the p-quantile for k on.
    """
    found = quantiles(need(dataset, schema.LOG_TIME_TO_CLUSTERS), probabilities, level=level)
    what = "over seeds of the natural logarithm of the time from which on there are at most k clusters"
    return _named(found, "merge_log_time", f"quantile {what}", level)


def plateau_statistics(plateaus: xr.Dataset, *, level: float = 0.95) -> xr.Dataset:
    """Medians over seeds of what `plateaus` found, with intervals, and the shares of seeds that are in doubt.

    The length, 0 where there is no plateau, counts for all seeds; everything else for those that have one.
    """
    held = plateaus["plateau_length"] > 0
    parts = []
    for name, what in _PLATEAU.items():
        if name in plateaus:
            values = plateaus[name] if name == "plateau_length" else plateaus[name].where(held)
            median = quantiles(values, (0.5,), level=level).isel({QUANTILE: 0}, drop=True)
            parts.append(_named(median, f"{name}_median", f"median {what}", level))
    counted = plateaus["plateau_length"].notnull().sum(schema.SEED)
    for name, what in (
        ("plateau_censored", "may grow after the horizon"),
        ("plateau_hidden", "may not be the longest"),
    ):
        among = plateaus[name].sum(schema.SEED) / counted.where(counted > 0)
        among.attrs = {"long_name": f"share of seeds whose plateau {what}", "units": "1"}
        parts.append(among.to_dataset(name=f"{name}_share"))
    return xr.merge(parts)


def survival(dataset: xr.Dataset, log_times: ArrayLike, *, level: float = 0.95) -> xr.Dataset:
    """Share of the seeds that still have more than k clusters, against log time, with Wilson's interval.

    At log times beyond the horizon nothing is known, and the share is NaN unless no cell was left to merge.

    Returns
    -------
    Dataset
        survival, survival_lower and survival_upper over (n, d, β, clusters, log_time).
    """
    at = np.asarray(log_times, dtype=float)
    values = need(dataset, schema.LOG_TIME_TO_CLUSTERS)
    alive = xr.apply_ufunc(
        _alive,
        values,
        kwargs={"at": at},
        input_core_dims=[[schema.SEED]],
        output_core_dims=[[schema.LOG_TIME]],
        dask="parallelized",
        output_dtypes=[np.int64],
        dask_gufunc_kwargs={"output_sizes": {schema.LOG_TIME: at.size}, "allow_rechunk": True},
    ).assign_coords({schema.LOG_TIME: (schema.LOG_TIME, at)})
    horizon = Question.of(dataset).log_horizon
    known = (alive[schema.LOG_TIME] <= horizon) | (alive == 0)
    shares = share(alive, done(dataset).sum(schema.SEED), level=level).where(known)
    return _named(shares, "survival", "share of seeds that still have more than k clusters", level)


def unsynchronised(dataset: xr.Dataset, *, level: float = 0.95) -> xr.Dataset:
    """Share of the seeds that had not synchronised at the horizon, with Wilson's interval."""
    times = need(dataset, schema.LOG_TIME_TO_CLUSTERS).sel({schema.CLUSTERS: 1}, drop=True)
    shares = share((times == np.inf).sum(schema.SEED), done(dataset).sum(schema.SEED), level=level)
    return _named(shares, "unsynchronised", "share of seeds that had not synchronised at the horizon", level)


def share(successes: xr.DataArray, trials: xr.DataArray, *, level: float) -> xr.Dataset:
    """A binomial share and Wilson's score interval; NaN where there were no trials."""
    z2 = deviate(level) ** 2
    m = trials.where(trials > 0)
    p = successes / m
    middle, half = p + z2 / (2 * m), (z2 * (p * (1 - p) + z2 / (4 * m)) / m) ** 0.5
    lower, upper = (((middle + sign * half) / (1 + z2 / m)).clip(0, 1) for sign in (-1, 1))
    return xr.Dataset({"estimate": p, "lower": lower, "upper": upper})


def deviate(level: float) -> float:
    """The normal deviate z that a two-sided interval of this level reaches."""
    if not 0 < level < 1:
        raise ValueError(f"level: got {level!r}; allowed: numbers between 0 and 1")
    return NormalDist().inv_cdf((1 + level) / 2)


def order_statistics(values: Array, probabilities: Array, z: float) -> tuple[Array, Array, Array]:
    """Quantiles of the last axis and the ends of their intervals; see `quantiles`."""
    ordered = np.sort(values, axis=-1)  # NaN last
    m = np.sum(~np.isnan(values), axis=-1)[..., None]
    half = z * np.sqrt(m * probabilities * (1 - probabilities))
    # Products like 0.1 · 30 must not climb a rank by their last bit.
    ranks = (
        np.ceil(m * probabilities - 1e-9),
        np.floor(m * probabilities - half + 1e-9),
        np.ceil(m * probabilities + half - 1e-9) + 1,
    )
    picked = (
        np.take_along_axis(ordered, np.clip(r, 1, np.maximum(m, 1)).astype(np.int64) - 1, axis=-1)
        for r in ranks
    )
    estimate, lower, upper = (np.where(m > 0, values, np.nan) for values in picked)
    return estimate, lower, upper


def _alive(values: Array, at: Array) -> Array:
    """How many values along the last axis exceed each threshold; one after another, to save memory."""
    with np.errstate(invalid="ignore"):
        return np.stack([np.sum(values > t, axis=-1) for t in at], axis=-1)


def _named(found: xr.Dataset, name: str, long_name: str, level: float) -> xr.Dataset:
    """Estimate, lower and upper under their final names."""
    ends = {"estimate": "", "lower": "lower", "upper": "upper"}
    percent = f"{100 * level:g} percent interval"
    return xr.Dataset(
        {
            f"{name}_{end}".rstrip("_"): found[key].assign_attrs(
                long_name=f"{long_name}, {end} end of the {percent}" if end else long_name, units="1"
            )
            for key, end in ends.items()
        }
    )
