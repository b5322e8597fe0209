"""The question that a dataset answers: axes, dynamics, integrator, horizon and what is recorded, all checked.

Everything else (blocks, tasks, prices, the dataset's shape) is derived from a `Sweep`. It is canonical: axes
are sorted, inverse temperatures are rounded to 12 significant digits (0.3 and 0.1 * 3 are one cell), and its
JSON form is stored in the dataset and compared before anything is added to it.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pipeline import cell, integrate, schema, store
from pipeline import dynamics as dynamics_

LARGEST_SEED = 2**63 - 1
MOST_COORDINATES = 2**30  # n * d of the tokens of a cell: 8 GiB

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Times:
    """The save times: in `values` as they are or, if `logarithmic`, as their natural logarithms.

    Logarithms reach beyond float64, where t itself would overflow.
    """

    values: tuple[float, ...]
    logarithmic: bool = False

    def __post_init__(self) -> None:
        allowed = "finite numbers" if self.logarithmic else "finite numbers >= 0"
        values = _reals("times", self.values, least=-math.inf if self.logarithmic else 0.0, allowed=allowed)
        object.__setattr__(self, "values", values)

    @property
    def log_times(self) -> tuple[float, ...]:
        """Natural logarithms of the times, ascending; -inf for t = 0."""
        if self.logarithmic:
            return self.values
        return tuple(math.log(t) if t > 0 else -math.inf for t in self.values)

    @property
    def times(self) -> tuple[float, ...] | None:
        """The times, or None where float64 cannot hold them or tell them apart."""
        if not self.logarithmic:
            return self.values
        if self.values[-1] > math.log(1.7e308):
            return None
        times = tuple(math.exp(v) for v in self.values)
        distinct = all(a < b for a, b in itertools.pairwise(times))
        return times if distinct and times[0] > 0 else None


@dataclass(frozen=True)
class Sweep:
    """A labelled box of cells (n, d, beta, seed), and what is computed in each.

    Parameters
    ----------
    n, d, beta, seed
        The axes: distinct values, sorted here.
    root_seed
        Root of every cell's random stream.
    dynamics, integrator
        What moves the tokens, and how it is stepped.
    horizon
        Last time simulated; None runs every cell to consensus.
    times
        When the time-resolved variables are recorded.
    tolerance
        delta in [1e-9, 2]: two tokens are together when <x, y> >= 1 - delta.
    variables
        The variables of `schema.OPTIONAL` kept; the others always are.
    clusters_kept
        Times to at most k clusters are kept for k up to this.
    block
        (betas, seeds) of a block, or None: chosen from the price of the cells.
    """

    n: tuple[int, ...]
    d: tuple[int, ...]
    beta: tuple[float, ...]
    seed: tuple[int, ...]
    root_seed: int
    dynamics: dynamics_.Dynamics
    integrator: integrate.Adaptive | integrate.Layers
    horizon: float | None
    times: Times
    tolerance: float = 1e-3
    variables: tuple[str, ...] = schema.TIME_RESOLVED
    clusters_kept: int = 64
    block: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        canonical = {
            "n": _integers("grid.n", self.n, least=2),
            "d": _integers("grid.d", self.d, least=2),
            "beta": _reals("grid.beta", self.beta, least=0.0, allowed="finite numbers >= 0", digits=12),
            "seed": _integers("grid.seed", self.seed, least=0),
            "root_seed": _integer("root_seed", self.root_seed, least=0),
            "horizon": self._checked_horizon(),
            "tolerance": _real(
                "tolerance", self.tolerance, least=1e-9, most=2.0, allowed="numbers in [1e-9, 2]"
            ),
            "variables": self._checked_variables(),
            "clusters_kept": _integer("clusters_kept", self.clusters_kept, least=1),
            "block": self._checked_block(),
        }
        for name, value in canonical.items():
            object.__setattr__(self, name, value)
        if self.n[-1] * self.d[-1] > MOST_COORDINATES:
            raise ValueError(
                f"grid.d: got {self.d[-1]} with n = {self.n[-1]}; allowed: n * d up to {MOST_COORDINATES}"
            )
        if isinstance(self.integrator, integrate.Layers):
            self.integrator.check(self.horizon or 0.0)
        else:
            self.integrator.chord(self.tolerance)  # refuses tolerances that do not go together
            many = self.spectral  # refuses sums that do not exist
            if many and set(schema.MERGERS) & set(self.variables):
                n, d, _ = many[0]
                raise ValueError(
                    f"variables: got {', '.join(schema.MERGERS)} with n = {n}, d = {d}; allowed: these only "
                    "with integrator.sum=direct, where each merger is seen"
                )

    def _checked_horizon(self) -> float | None:
        if self.horizon is None:
            if not self.dynamics.reaches_consensus:
                raise ValueError(
                    "horizon: got consensus; allowed: a time > 0, since with value matrices other than "
                    "the identity the tokens need not reach consensus"
                )
            if isinstance(self.integrator, integrate.Layers):
                raise ValueError(
                    "horizon: got consensus; allowed: a time > 0, since integrator=layers takes equal steps"
                )
            return None
        horizon = _real(
            "horizon", self.horizon, least=0.0, open_below=True, allowed="numbers > 0, or consensus"
        )
        last = self.times.values[-1]
        if last > (math.log(horizon) if self.times.logarithmic else horizon):
            shown = f"log time {last!r}" if self.times.logarithmic else repr(last)
            raise ValueError(f"horizon: got {horizon!r}; allowed: at least the last of times, {shown}")
        return horizon

    def _checked_variables(self) -> tuple[str, ...]:
        kept = tuple(self.variables)
        for name in kept:
            if name not in schema.OPTIONAL:
                raise ValueError(f"variables: got {name!r}; allowed: {', '.join(schema.OPTIONAL)}")
        if len(set(kept)) < len(kept):
            raise ValueError(f"variables: got {list(kept)}; allowed: each name once")
        return tuple(name for name in schema.OPTIONAL if name in kept)

    def _checked_block(self) -> tuple[int, int] | None:
        if self.block is None:
            return None
        allowed = "two integers >= 1, the betas and the seeds of a block"
        if len(self.block) != 2:
            raise ValueError(f"block: got {self.block!r}; allowed: {allowed}")
        betas, seeds = (_integer("block", v, least=1, allowed=allowed) for v in self.block)
        return min(betas, len(self.beta)), min(seeds, len(self.seed))

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Lengths of the axes n, d, beta, seed."""
        return len(self.n), len(self.d), len(self.beta), len(self.seed)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def clusters(self) -> tuple[int, ...]:
        """The coordinate `clusters`: 1 ... min(largest n, clusters kept)."""
        return tuple(range(1, min(self.n[-1], self.clusters_kept) + 1))

    @property
    def spectral(self) -> list[tuple[int, int, float]]:
        """(n, d, largest beta) of the cells that begin with spectral sums."""
        if not isinstance(self.integrator, integrate.Adaptive):
            return []
        symmetric = self.dynamics.symmetric
        begins = partial(self.integrator.spectral, symmetric=symmetric, delta=self.tolerance)
        found = []
        for n, d in itertools.product(self.n, self.d):
            rank = min(n, d) if symmetric else d
            if begins(n, rank, self.beta[0]):  # if any, then the smallest beta
                found.append((n, d, [b for b in self.beta if begins(n, rank, b)][-1]))
        return found

    @property
    def recipe(self) -> cell.Recipe:
        """What every cell computes, without the axes: short, since it goes with every task."""
        return cell.Recipe(
            root_seed=self.root_seed,
            dynamics=self.dynamics,
            integrator=self.integrator,
            log_horizon=math.inf if self.horizon is None else math.log(self.horizon),
            log_times=self.times.log_times,
            tolerance=self.tolerance,
            variables=self.variables,
            clusters=self.clusters,
        )

    @property
    def layout(self) -> store.Layout:
        """The dataset that holds this sweep; its block must have been chosen."""
        if self.block is None:
            raise ValueError("a sweep without a block has no layout: see blocked()")
        axes: dict[str, tuple[float, ...]] = {dim: getattr(self, dim) for dim in schema.CELL_DIMS}
        times = self.times.times
        axes |= {schema.LOG_TIME: self.times.log_times, schema.CLUSTERS: self.clusters}
        axes |= {} if times is None else {schema.TIME: times}
        return store.Layout(axes, schema.variables_kept(self.variables), self.block)

    def to_json(self) -> str:
        """Canonical JSON, from which `from_json` makes an equal sweep."""
        record = {
            "grid": {
                "n": _packed(self.n),
                "d": _packed(self.d),
                "beta": self.beta,
                "seed": _packed(self.seed),
            },
            "root_seed": self.root_seed,
            "dynamics": dataclasses.asdict(self.dynamics),
            "integrator": {
                "name": type(self.integrator).__name__.lower(),
                **dataclasses.asdict(self.integrator),
            },
            "horizon": "consensus" if self.horizon is None else self.horizon,
            "times": dataclasses.asdict(self.times),
            "tolerance": self.tolerance,
            "variables": self.variables,
            "clusters_kept": self.clusters_kept,
            "block": self.block,
        }
        return json.dumps(record, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Sweep:
        """The sweep that `to_json` wrote; ValueError where the text is not one."""
        try:
            record = json.loads(text)
            grid = record["grid"]
            field = dict(record["dynamics"])
            for role in ("query", "key", "value"):
                matrix = field[role]
                field[role] = dynamics_.Matrix(**{**matrix, "diagonal": tuple(matrix["diagonal"])})
            method = dict(record["integrator"])
            kind = {"adaptive": integrate.Adaptive, "layers": integrate.Layers}[method.pop("name")]
            return cls(
                n=_unpacked(grid["n"]),
                d=_unpacked(grid["d"]),
                beta=tuple(grid["beta"]),
                seed=_unpacked(grid["seed"]),
                root_seed=record["root_seed"],
                dynamics=dynamics_.Dynamics(**field),
                integrator=kind(**method),
                horizon=None if record["horizon"] == "consensus" else record["horizon"],
                times=Times(tuple(record["times"]["values"]), record["times"]["logarithmic"]),
                tolerance=record["tolerance"],
                variables=tuple(record["variables"]),
                clusters_kept=record["clusters_kept"],
                block=None if record["block"] is None else tuple(record["block"]),
            )
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ValueError(f"not the description of a sweep: {type(error).__name__}: {error}") from error

    def refusal(self, asked: Sweep) -> str | None:
        """Why cells of `asked` may not be computed into this sweep's dataset, in one line; None: they may.

        Everything but the block must be equal, and the axes of `asked` must be contained in this sweep's.
        """
        mine, other = (_flat(json.loads(s.to_json())) for s in (self, asked))
        for key in mine.keys() | other.keys():
            if key.startswith("dynamics.") and key.endswith(".path") and mine.get(key[:-4] + "digest"):
                mine.pop(key, None)  # a matrix is its content, wherever its file lies
                other.pop(key, None)
        for key in sorted(mine.keys() | other.keys()):
            if not key.startswith(("grid.", "block")) and mine.get(key) != other.get(key):
                got, allowed = _shown(other.get(key)), _shown(mine.get(key))
                return f"{key}: got {got}; allowed: {allowed}, as in the dataset"
        for axis in schema.CELL_DIMS:
            stored = set(getattr(self, axis))
            absent = [v for v in getattr(asked, axis) if v not in stored]
            if absent:
                return (
                    f"grid.{axis}: got {_listed(absent)}; allowed: {_listed(getattr(self, axis))}, as in the "
                    "dataset"
                )
        return None


def _integer(key: str, value: Any, *, least: int, allowed: str | None = None) -> int:
    allowed = allowed or f"integers >= {least}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{key}: got {value!r}; allowed: {allowed}") from None
    if not least <= number <= LARGEST_SEED:
        raise ValueError(f"{key}: got {number}; allowed: {allowed}")
    return number


def _real(
    key: str, value: Any, *, least: float, allowed: str, most: float = math.inf, open_below: bool = False
) -> float:
    try:
        if isinstance(value, (bool, str)):
            raise TypeError
        number = float(value) + 0.0  # -0.0 becomes 0.0
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{key}: got {value!r}; allowed: {allowed}") from None
    if not math.isfinite(number) or not least <= number <= most or (open_below and number == least):
        raise ValueError(f"{key}: got {value!r}; allowed: {allowed}")
    return number


def _integers(key: str, values: Iterable[Any], *, least: int) -> tuple[int, ...]:
    return _ascending(key, [_integer(key, v, least=least) for v in _several(key, values)])


def _reals(
    key: str, values: Iterable[Any], *, least: float, allowed: str, digits: int = 17
) -> tuple[float, ...]:
    numbers = [_real(key, v, least=least, allowed=allowed) for v in _several(key, values)]
    return _ascending(key, [float(f"{v:.{digits}g}") for v in numbers])


def _several(key: str, values: Iterable[Any]) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ValueError(f"{key}: got {values!r}; allowed: a list of numbers")
    values = tuple(values)
    if not values:
        raise ValueError(f"{key}: got an empty axis; allowed: at least one value")
    return values


def _ascending(key: str, values: list[Number]) -> tuple[Number, ...]:
    ordered = sorted(values)
    for a, b in itertools.pairwise(ordered):
        if a == b:
            raise ValueError(f"{key}: got {a!r} twice; allowed: each value once")
    return tuple(ordered)


def _packed(values: tuple[int, ...]) -> Any:
    """Consecutive integers as first and count, so that a million seeds stay short."""
    if len(values) > 8 and values[-1] - values[0] == len(values) - 1:
        return {"first": values[0], "count": len(values)}
    return values


def _unpacked(record: Any) -> tuple[int, ...]:
    if isinstance(record, Mapping):
        return tuple(range(record["first"], record["first"] + record["count"]))
    return tuple(record)


def _flat(record: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(record, dict):
        return {prefix: record}
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat |= _flat(value, f"{prefix}.{key}" if prefix else key)
    return flat


def _shown(value: Any) -> str:
    return _listed(value) if isinstance(value, (list, tuple)) else repr(value)


def _listed(values: Iterable[Any]) -> str:
    values = list(values)
    if len(values) <= 6:
        return "[" + ", ".join(map(repr, values)) + "]"
    return f"[{values[0]!r}, {values[1]!r}, ... {values[-1]!r}] ({len(values)} values)"
