"""What a dataset holds: names, dimensions, types, units and formulas of schema version 1, as plain data.

Every name of a dimension or variable in the package comes from here, and a dataset is created from these
records and checked against them. Nothing is imported but the standard library, so any part may use it.

Conventions: CF-1.11 for variables, ACDD-1.3 for the group. Missing cells hold NaN in floats and 0 in
integers. NaN never means "not done": `status` alone says so. No attribute is ever NaN, which is not JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

VERSION = 1

# Dimensions, in the order of the arrays.
N, D, BETA, SEED, TIME, CLUSTERS = "n", "d", "beta", "seed", "time", "clusters"
CELL_DIMS = (N, D, BETA, SEED)
DIMS = (*CELL_DIMS, TIME, CLUSTERS)

# Variables.
STATUS = "status"
LOG_TIME_TO_CLUSTERS = "log_time_to_clusters"
PAIR_SYNC_FRACTION = "pair_sync_fraction"
CLUSTER_COUNT = "cluster_count"
ENERGY = "energy"
ORDER_PARAMETER = "order_parameter"
MERGER_SMALLER, MERGER_LARGER = "merger_smaller_share", "merger_larger_share"
EVALUATIONS, STEPS = "evaluations", "steps"
LOG_TIME = "log_time"  # auxiliary coordinate along `time`
ERROR = "error"  # of a block in memory, not of the dataset: why a cell failed, empty where it did not

# Values of `status`.
MISSING, DONE, FAILED = 0, 1, 2
STATUS_MEANINGS = ("missing", "done", "failed")


@dataclass(frozen=True)
class Variable:
    """One array of the dataset: its name, dimensions, numpy type name and CF attributes."""

    name: str
    dims: tuple[str, ...]
    dtype: str
    attrs: Mapping[str, str | int | list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attrs", MappingProxyType(dict(self.attrs)))

    @property
    def is_float(self) -> bool:
        """Whether missing cells are NaN (floats) or 0 (integers)."""
        return self.dtype.startswith("float")

    @property
    def fill(self) -> float | int:
        """The value of a missing cell."""
        return float("nan") if self.is_float else 0


_AT_TIME = "time: point"
_JOINED = (
    "Weight, as a share of all tokens, of a cluster that joined another at the time in log_time_to_clusters, "
    "from which on at most k are left; 0 where there was no such merger, NaN: missing cell. From k = 1 up, "
    "the two shares of each merger split a cluster of k, so they give the sizes of all clusters at any k."
)
_BESIDE = {"ancillary_variables": STATUS}

# One record for each variable, in the order in which they are listed and written: `status` is written last.
VARIABLES: Mapping[str, Variable] = MappingProxyType(
    {
        v.name: v
        for v in (
            Variable(
                STATUS,
                CELL_DIMS,
                "int8",
                {
                    "long_name": "status of the cell",
                    "units": "1",
                    "flag_values": [MISSING, DONE, FAILED],
                    "flag_meanings": " ".join(STATUS_MEANINGS),
                    "description": "0: not computed yet; 1: computed; 2: could not be computed (its other "
                    "values are those of a missing cell, but for evaluations and steps). NaN elsewhere "
                    "never says this.",
                },
            ),
            Variable(
                LOG_TIME_TO_CLUSTERS,
                (*CELL_DIMS, CLUSTERS),
                "float64",
                {
                    "long_name": "natural logarithm of the time from which on there are at most k clusters",
                    "units": "1",
                    "description": "ln sup{t : K(t) > k}, k the coordinate `clusters`, K(t) the number of "
                    "connected components of the graph that joins tokens i, j with <x_i, x_j> >= 1 - "
                    "tolerance. K is not monotone: this is the last moment with more than k clusters. "
                    "+inf: more than k at the horizon; -inf: never more than k; NaN: missing cell. "
                    "clusters = 1 is the time of synchronisation.",
                    **_BESIDE,
                },
            ),
            *(
                Variable(
                    name,
                    (*CELL_DIMS, CLUSTERS),
                    "float32",
                    {
                        "long_name": f"share of the {which} cluster in the merger to k clusters",
                        "units": "1",
                        "description": f"{_JOINED} This is the {which} one.",
                        **_BESIDE,
                    },
                )
                for name, which in ((MERGER_SMALLER, "smaller"), (MERGER_LARGER, "larger"))
            ),
            Variable(
                PAIR_SYNC_FRACTION,
                (*CELL_DIMS, TIME),
                "float32",
                {
                    "long_name": "share of pairs of tokens that are together",
                    "units": "1",
                    "description": "sum_{i<j} m_i m_j [<x_i, x_j> >= 1 - tolerance] / sum_{i<j} m_i m_j, "
                    "m_i the weights of the tokens (equal unless said otherwise); in [0, 1]. After "
                    "consensus the last state is recorded. NaN: missing cell.",
                    "cell_methods": _AT_TIME,
                    **_BESIDE,
                },
            ),
            Variable(
                CLUSTER_COUNT,
                (*CELL_DIMS, TIME),
                "int32",
                {
                    "long_name": "number of clusters",
                    "units": "1",
                    "description": "number of connected components of the graph that joins tokens i, j with "
                    "<x_i, x_j> >= 1 - tolerance; in 1 ... n, and 0 in missing cells.",
                    "cell_methods": _AT_TIME,
                    **_BESIDE,
                },
            ),
            Variable(
                ENERGY,
                (*CELL_DIMS, TIME),
                "float32",
                {
                    "long_name": "interaction energy, scaled to 1 at consensus",
                    "units": "1",
                    "description": "sum_{i,j} m_i m_j exp(beta (<x_i, x_j> - 1)), sum_i m_i = 1, over all "
                    "i and j; in (0, 1], 1 at consensus. It is 2 beta exp(-beta) times the energy (1 / 2 "
                    "beta) sum_{i,j} m_i m_j exp(beta <x_i, x_j>). NaN: missing cell.",
                    "cell_methods": _AT_TIME,
                    **_BESIDE,
                },
            ),
            Variable(
                ORDER_PARAMETER,
                (*CELL_DIMS, TIME),
                "float32",
                {
                    "long_name": "length of the mean token",
                    "units": "1",
                    "description": "|sum_i m_i x_i|, sum_i m_i = 1; in [0, 1], 1 at consensus. NaN: missing "
                    "cell.",
                    "cell_methods": _AT_TIME,
                    **_BESIDE,
                },
            ),
            Variable(
                EVALUATIONS,
                CELL_DIMS,
                "int64",
                {
                    "long_name": "number of evaluations of the velocity field",
                    "units": "1",
                    "description": "evaluations spent on the trajectory, those of rejected steps "
                    "included; 0 in missing cells.",
                    **_BESIDE,
                },
            ),
            Variable(
                STEPS,
                CELL_DIMS,
                "int64",
                {
                    "long_name": "number of accepted steps",
                    "units": "1",
                    "description": "accepted steps of the integrator on the trajectory; 0 in missing cells.",
                    **_BESIDE,
                },
            ),
        )
    }
)

TIME_RESOLVED = tuple(v.name for v in VARIABLES.values() if TIME in v.dims)
MERGERS = (MERGER_SMALLER, MERGER_LARGER)
OPTIONAL = (*TIME_RESOLVED, *MERGERS)  # kept if asked for

COORDINATES: Mapping[str, Variable] = MappingProxyType(
    {
        v.name: v
        for v in (
            Variable(
                N,
                (N,),
                "int64",
                {
                    "long_name": "number of tokens",
                    "units": "1",
                    "description": "tokens x_1 ... x_n of one cell",
                },
            ),
            Variable(
                D,
                (D,),
                "int64",
                {
                    "long_name": "dimension of the tokens",
                    "units": "1",
                    "description": "tokens are unit vectors of R^d, points of the sphere S^{d-1}",
                },
            ),
            Variable(
                BETA,
                (BETA,),
                "float64",
                {
                    "long_name": "inverse temperature",
                    "units": "1",
                    "description": "attention weights are proportional to exp(beta <Q x_i, K x_j>)",
                },
            ),
            Variable(
                SEED,
                (SEED,),
                "int64",
                {
                    "long_name": "seed of the initial tokens",
                    "units": "1",
                    "description": "the initial tokens are the rows, each divided by its Euclidean norm, of "
                    "numpy.random.Generator(numpy.random.Philox(numpy.random.SeedSequence(root_seed, "
                    "spawn_key=(n, d, seed)))).standard_normal((n, d)); they do not depend on beta",
                },
            ),
            Variable(
                TIME,
                (TIME,),
                "float64",
                {
                    "long_name": "time",
                    "units": "1",
                    "description": "time t of the equations of motion, dimensionless; the states at these "
                    "times are recorded. Left out where a time is beyond float64: log_time is always there",
                },
            ),
            Variable(
                LOG_TIME,
                (TIME,),
                "float64",
                {
                    "long_name": "natural logarithm of the time",
                    "units": "1",
                    "description": "ln t; -inf at t = 0, finite elsewhere",
                },
            ),
            Variable(
                CLUSTERS,
                (CLUSTERS,),
                "int64",
                {
                    "long_name": "number of clusters, k",
                    "units": "1",
                    "description": "k = 1 ... min(largest n, clusters kept)",
                },
            ),
        )
    }
)

# Attributes of the group that every dataset has; text unless said otherwise.
CONVENTIONS = "CF-1.11 ACDD-1.3"
GROUP_ATTRS: Mapping[str, str] = MappingProxyType(
    {
        "Conventions": "the conventions kept",
        "title": "one line",
        "summary": "what was computed, in words",
        "keywords": "search terms",
        "creator_name": "who made it",
        "license": "terms of reuse (SPDX name)",
        "source": "program, version and commit",
        "history": "one dated line for each thing done to it",
        "date_created": "ISO 8601, UTC",
        "references": "the papers behind it",
        "schema_version": "integer: the version of this schema",
        "dynamics": "name of the equation of motion",
        "integrator": "name of the method: adaptive, or layers (normalised Euler steps)",
        "spectral": "JSON: [n, d, largest beta] of the cells whose fast phase was summed spectrally, over "
        "all tokens in O(n); in all others attention was summed over pairs",
        "horizon": "number: the last time simulated; or consensus: until one cluster is left",
        "tolerance": "number delta: two tokens are together when <x_i, x_j> >= 1 - delta",
        "root_seed": "integer: root of the random streams of the initial tokens (see the coordinate seed)",
        "sweep": "JSON: the question asked, complete and canonical (axes, dynamics, integrator, horizon ...)",
        "config": "JSON: the whole resolved configuration of the run that created it",
        "software": "JSON: versions of the software that created it",
        "platform": "JSON: the machine that created it: processor, its features, operating system, threads",
    }
)


def variables_kept(optional: tuple[str, ...]) -> tuple[Variable, ...]:
    """The variables of a dataset that keeps these `OPTIONAL` ones (the others always are), in order."""
    unknown = set(optional) - set(OPTIONAL)
    if unknown:
        raise ValueError(f"variables: got {sorted(unknown)}; allowed: {list(OPTIONAL)}")
    return tuple(v for v in VARIABLES.values() if v.name not in OPTIONAL or v.name in optional)
