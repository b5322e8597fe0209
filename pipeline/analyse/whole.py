"""All statements about a dataset in one small dataset, from which figures are drawn."""

from __future__ import annotations

import math

import xarray as xr

from pipeline import schema
from pipeline.analyse.cells import Question, counts, effective_clusters, plateaus
from pipeline.analyse.growth import merge_slopes
from pipeline.analyse.seeds import merge_times, phase_diagram, plateau_statistics, unsynchronised


def summary(dataset: xr.Dataset) -> xr.Dataset:
    """Every statistic over seeds that the dataset can give, without the dimension `seed`.

    The attributes say what predictions depend on: `dynamics`, `identity_matrices` (1 if closed forms apply),
    `tolerance`, and `log_horizon` if there is one.
    """
    question = Question.of(dataset)
    parts = [counts(dataset), merge_times(dataset), unsynchronised(dataset), merge_slopes(dataset)]
    if schema.PAIR_SYNC_FRACTION in dataset:
        parts.append(phase_diagram(dataset))
    if dataset.sizes[schema.CLUSTERS] > 1:
        found = plateaus(dataset)
        if schema.ENERGY in dataset:
            found = found.assign(plateau_effective_clusters=effective_clusters(dataset, found))
        parts.append(plateau_statistics(found))
    whole = xr.merge(parts, combine_attrs="drop_conflicts")
    for name in (schema.LOG_TIME, *whole.dims):
        if name in dataset.coords and name in whole.coords:
            whole[name].attrs.update(dataset[name].attrs)
    whole.attrs |= {
        "dynamics": question.dynamics,
        "identity_matrices": int(question.identity),
        "tolerance": question.tolerance,
    }
    if math.isfinite(question.log_horizon):
        whole.attrs["log_horizon"] = question.log_horizon
    return whole
