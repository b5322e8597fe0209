"""What is true of single cells: whether they count, and their metastable plateau."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pipeline import schema, theory

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """What a dataset's sweep asked, as far as statements about its results depend on it.

    Parameters
    ----------
    dynamics
        Name of the field.
    identity
        Whether its matrices are the identity, as closed forms assume.
    tolerance
        δ of two tokens being together.
    log_horizon
        Log of the last time simulated; inf if every cell ran to consensus.
    """

    dynamics: str
    identity: bool
    tolerance: float
    log_horizon: float

    @classmethod
    def of(cls, dataset: xr.Dataset) -> Question:
        """Read it from the attribute ``sweep`` of the dataset."""
        try:
            sweep = json.loads(dataset.attrs["sweep"])
            field, horizon = sweep["dynamics"], sweep["horizon"]
            identity = all(field[role]["kind"] == "identity" for role in ("query", "key", "value"))
            log_horizon = math.inf if horizon == "consensus" else math.log(horizon)
            return cls(field["name"], identity, float(sweep["tolerance"]), log_horizon)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                "dataset: got no readable attribute 'sweep'; allowed: a spheresweep dataset"
            ) from error

    def log_floor(self, dataset: xr.Dataset) -> xr.DataArray:
        """The fast time scale of each n and β; see `plateaus`."""
        n, beta = dataset[schema.N], dataset[schema.BETA]
        fast = xr.zeros_like(n, dtype=float)
        fast[:] = np.maximum(theory.equiangular_log_time(self.tolerance, 0.0, n.values), 0.0)
        return fast - beta if self.dynamics == "usa" else fast + xr.zeros_like(beta)


def done(dataset: xr.Dataset) -> xr.DataArray:
    """Which cells count."""
    return dataset[schema.STATUS] == schema.DONE


def need(dataset: xr.Dataset, variable: str) -> xr.DataArray:
    """The variable, with NaN wherever the cell does not count; ValueError if the dataset does not hold it."""
    if variable not in dataset:
        held = ", ".join(str(name) for name in dataset.data_vars)
        raise ValueError(f"variables: got {held}; needed: {variable}, which this dataset did not keep")
    return dataset[variable].where(done(dataset))


def counts(dataset: xr.Dataset) -> xr.Dataset:
    """Number of seeds that are done, failed and missing at each point (n, d, β)."""
    status = dataset[schema.STATUS]
    named = zip(schema.STATUS_MEANINGS, (schema.MISSING, schema.DONE, schema.FAILED), strict=True)
    return xr.Dataset(
        {
            f"cells_{name}": (status == code)
            .sum(schema.SEED)
            .assign_attrs(long_name=f"number of seeds that are {name}", units="1")
            for name, code in named
        }
    )


def plateaus(dataset: xr.Dataset, *, log_floor: xr.DataArray | float | None = None) -> xr.Dataset:
    """The metastable plateau of each cell: its longest stay in log time at a constant number of clusters.

    A cell stays at k clusters from the time to at most k until the time to at most k − 1. Log time has no
    beginning at t = 0, so stays are measured from ``log_floor`` on: what happens before counts as happening
    there. Of stays that are equally long the one with fewer clusters is taken. Consensus is no plateau; the
    initial state is one if it outlasts the fast phase.

    Parameters
    ----------
    dataset : Dataset
        With `log_time_to_clusters` for two clusters at least.
    log_floor : DataArray or float, optional
        Where log time begins, per n and β if it likes. By default the end of the fast phase, ln t₀ for SA and
        ln t₀ − β for USA: t₀ = ½ ln(n/δ − n + 1) and at least 1 is the time in which orthonormal tokens meet
        at β = 0 (5.2 for n = 32, δ = 1e-3). Before that no state has been kept: it has not had the time to
        change.

    Returns
    -------
    Dataset
        Per cell, NaN or 0 or False where the cell does not count or never stayed anywhere:

        plateau_clusters    k, 0 for none
        plateau_log_entry   ln t of its beginning, at least `log_floor`
        plateau_log_exit    ln t of its end, at most the horizon
        plateau_length      their difference: the separation of the two time scales, 0 for none
        plateau_censored    no consensus at the horizon (or ever, from symmetry): a longer one may follow
        plateau_hidden      a longer stay may lie among counts so high that their times were not kept
    """
    question = Question.of(dataset)
    log_times = need(dataset, schema.LOG_TIME_TO_CLUSTERS)
    if log_times.sizes[schema.CLUSTERS] < 2:
        raise ValueError("clusters_kept: got 1; needed: at least 2, since a stay lies between two mergers")
    floor = question.log_floor(dataset) if log_floor is None else xr.DataArray(log_floor)
    results = xr.apply_ufunc(
        _longest_stay,
        log_times,
        floor,
        dataset[schema.N],
        kwargs={"horizon": question.log_horizon},
        input_core_dims=[[schema.CLUSTERS], [], []],
        output_core_dims=[[]] * 6,
        dask="parallelized",
        output_dtypes=[np.int64, float, float, float, bool, bool],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    names = {
        "clusters": "number of clusters on the plateau",
        "log_entry": "natural logarithm of the time at which the plateau begins",
        "log_exit": "natural logarithm of the time at which the plateau ends",
        "length": "length of the plateau in natural logarithms of time",
        "censored": "whether a longer plateau may follow after the horizon",
        "hidden": "whether a longer plateau may lie among higher counts",
    }
    return xr.Dataset(
        {
            f"plateau_{name}": result.transpose(*schema.CELL_DIMS).assign_attrs(
                long_name=long_name, units="1"
            )
            for (name, long_name), result in zip(names.items(), results, strict=True)
        }
    )


def effective_clusters(dataset: xr.Dataset, plateaus: xr.Dataset) -> xr.DataArray:
    """Inverse of the energy half-way along each plateau, in log time: what is kept of the clusters' sizes.

    While clusters lie far apart it is 1/Σ mᵢ²: their number if they are equally large, less the more unequal
    they are. Taken at the save time nearest to the middle; NaN where none falls on the plateau.
    """
    result: xr.DataArray = xr.apply_ufunc(
        _inverse_inside,
        need(dataset, schema.ENERGY),
        dataset[schema.LOG_TIME],
        plateaus["plateau_log_entry"],
        plateaus["plateau_log_exit"],
        input_core_dims=[[schema.TIME], [schema.TIME], [], []],
        dask="parallelized",
        output_dtypes=[float],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    long_name = "inverse of the energy half-way along the plateau, in log time"
    return result.rename("plateau_effective_clusters").assign_attrs(long_name=long_name, units="1")


def _longest_stay(
    log_times: Array, floor: Array, n: NDArray[np.int64], horizon: float
) -> tuple[NDArray[np.int64], Array, Array, Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Shapes (…, clusters), (…), (…). The clusters are 1, 2, …, so stay j is one at j + 2 of them."""
    at = np.minimum(np.maximum(log_times, floor[..., None]), horizon)
    with np.errstate(invalid="ignore"):
        stays = np.nan_to_num(at[..., :-1] - at[..., 1:], nan=0.0, posinf=np.inf)  # inf − inf: never reached
        unseen = np.where(n > log_times.shape[-1], at[..., -1] - floor, 0.0)
    longest = np.argmax(stays, axis=-1)[..., None]

    def of_longest(values: Array) -> Array:
        return np.take_along_axis(values, longest, axis=-1)[..., 0]

    length = of_longest(stays)
    found = length > 0
    exit_ = of_longest(log_times[..., :-1])
    return (
        np.where(found, longest[..., 0] + 2, 0),
        np.where(found, of_longest(at[..., 1:]), np.nan),
        np.where(found, np.minimum(exit_, horizon), np.nan),
        np.where(np.isnan(log_times[..., 0]), np.nan, length),
        found & np.isposinf(log_times[..., 0]),
        unseen > length,
    )


def _inverse_inside(energy: Array, log_times: Array, entry: Array, exit_: Array) -> Array:
    """Shapes (…, time), (time,), (…), (…)."""
    middle = np.clip(
        (entry + exit_) / 2, None, np.maximum(log_times[-1], entry)
    )  # of an endless one, the last
    away = np.abs(log_times - np.nan_to_num(middle)[..., None])
    nearest = np.argmin(away, axis=-1)
    at = log_times[nearest]
    value = np.take_along_axis(energy, nearest[..., None], axis=-1)[..., 0].astype(float)
    return np.where((entry <= at) & (at < exit_), 1 / value, np.nan)
