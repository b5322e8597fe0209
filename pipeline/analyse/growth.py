"""How merge times grow with β: ln t = a + cβ − ln β, with the exponent c and its interval."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pipeline import schema
from pipeline.analyse.cells import Array, need

FEWEST = 3  # betas that a line is fitted to


def merge_slopes(
    dataset: xr.Dataset,
    *,
    clusters: int = 1,
    beta_min: float = 4.0,
    level: float = 0.95,
    replicates: int = 999,
) -> xr.Dataset:
    """Exponent c of the time to at most k clusters, t ≈ e^{a + cβ}/β, per (n, d).

    A pair of clusters at ⟨x, y⟩ = u takes e^{β(1−u)}/β up to a constant under SA, and e^{−βu}/β under USA
    (Laplace's method), so c names the angle that the last merger typically has to cross. The line is fitted
    by least squares to the medians over seeds of ln t + ln β, at the β from `beta_min` on where the median is
    finite: up to half of the seeds may be beyond the horizon. The interval is the percentile interval of a
    bootstrap that draws whole seeds, the same for every β (a seed starts all β from the same tokens); its
    random stream is fixed.

    Returns
    -------
    Dataset
        Over (n, d): merge_slope, merge_slope_lower, merge_slope_upper, merge_intercept (a), and
        merge_slope_points, the number of β fitted; NaN with fewer than three.
    """
    times = need(dataset, schema.LOG_TIME_TO_CLUSTERS).sel({schema.CLUSTERS: clusters}, drop=True)
    results = xr.apply_ufunc(
        _slope,
        times,
        dataset[schema.BETA],
        kwargs={"beta_min": beta_min, "level": level, "replicates": replicates},
        input_core_dims=[[schema.BETA, schema.SEED], [schema.BETA]],
        output_core_dims=[[]] * 5,
        vectorize=True,
        dask="parallelized",
        output_dtypes=[float, float, float, float, np.int64],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    what = f"growth c of the time to at most {clusters} clusters, ln t = a + c beta - ln beta"
    names = {
        "merge_slope": what,
        "merge_slope_lower": f"{what}, lower end of the {100 * level:g} percent interval",
        "merge_slope_upper": f"{what}, upper end of the {100 * level:g} percent interval",
        "merge_intercept": "intercept a of the same line",
        "merge_slope_points": "number of beta that the line is fitted to",
    }
    return xr.Dataset(
        {
            name: result.assign_attrs(long_name=long_name, units="1")
            for (name, long_name), result in zip(names.items(), results, strict=True)
        }
    ).assign_attrs(merge_slope_clusters=clusters, merge_slope_beta_min=beta_min)


def _slope(
    times: Array, beta: Array, *, beta_min: float, level: float, replicates: int
) -> tuple[float, float, float, float, int]:
    """One (n, d): times (β, seed)."""
    medians = _medians(np.sort(times, axis=-1), ~np.isnan(np.sort(times, axis=-1)))
    fitted = np.isfinite(medians) & (beta >= beta_min) & (beta > 0)
    if np.count_nonzero(fitted) < FEWEST:
        return np.nan, np.nan, np.nan, np.nan, int(np.count_nonzero(fitted))
    times, beta = times[fitted], beta[fitted]
    order = np.argsort(times, axis=-1)
    ordered = np.take_along_axis(times, order, axis=-1)
    valid = ~np.isnan(ordered)
    centred = (beta - beta.mean()) / np.sum((beta - beta.mean()) ** 2)

    def line(copies: NDArray[np.int64]) -> tuple[float, float]:
        y = _medians(ordered, np.where(valid, copies[order], 0)) + np.log(beta)
        c = float(centred @ y) if np.all(np.isfinite(y)) else np.inf
        return c, float(y.mean()) - c * float(beta.mean())

    seeds = times.shape[-1]
    rng = np.random.Generator(np.random.Philox(0))
    drawn = [line(rng.multinomial(seeds, np.full(seeds, 1 / seeds)))[0] for _ in range(replicates)]
    lower, upper = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    slope, intercept = line(np.ones(seeds, dtype=np.int64))
    return slope, float(lower), float(upper), intercept, beta.size


def _medians(ordered: Array, copies: NDArray[np.int64]) -> Array:
    """Medians along the last axis of ascending values that occur `copies` times: the ⌈m/2⌉-th of m."""
    reached = np.cumsum(copies, axis=-1)
    m = reached[..., -1:]
    index = np.argmax(2 * reached >= np.maximum(m, 1), axis=-1)[..., None]
    return np.where(m[..., 0] > 0, np.take_along_axis(ordered, index, axis=-1)[..., 0], np.nan)
