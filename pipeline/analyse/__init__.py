"""From cells to statements: phase diagrams, plateaus, merge times and how they grow with β.

Datasets of the schema go in, datasets come out; every function works on the whole grid at once and stays lazy
on a lazy dataset. Missing and failed cells never enter a statistic, and `counts` says how many there are.
What has not happened before the horizon is +inf, which every statistic here takes for what it is: later than
anything that was seen.

`plateaus` speaks of single cells; the others of all seeds of a point (n, d, β), with intervals. `summary` is
all of them, small enough to be kept, and what figures are drawn from.
"""

from __future__ import annotations

from pipeline.analyse.cells import counts, effective_clusters, plateaus
from pipeline.analyse.growth import merge_slopes
from pipeline.analyse.seeds import (
    merge_times,
    phase_diagram,
    plateau_statistics,
    quantiles,
    survival,
    unsynchronised,
)
from pipeline.analyse.sizes import cluster_sizes, size_distribution
from pipeline.analyse.whole import summary

__all__ = [
    "cluster_sizes",
    "counts",
    "effective_clusters",
    "merge_slopes",
    "merge_times",
    "phase_diagram",
    "plateau_statistics",
    "plateaus",
    "quantiles",
    "size_distribution",
    "summary",
    "survival",
    "unsynchronised",
]
