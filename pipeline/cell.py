"""A block of cells, computed: from (n, d), inverse temperatures and seeds to labelled data. Pure.

The result of a cell depends on its parameters and seed alone: not on the block that it is computed in, nor
on the number of threads. A cell that fails does not harm its neighbours: it is computed again alone, then
given up with the reason in `error`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from pipeline import dynamics, integrate, observe, schema, sphere

# A call of the engine: many cells, so that what surrounds it is cheap; yet short: nothing interrupts it.
CALL_CELLS = 512
CALL_PAIRS = 2**18
CALL_BYTES = 64 * 2**20  # of initial tokens, and of what is recorded at save times


@dataclass(frozen=True)
class Recipe:
    """What is computed in every cell of a sweep, whatever its place on the axes.

    Times and horizon are natural logarithms; `log_horizon` is inf for consensus.
    """

    root_seed: int
    dynamics: dynamics.Dynamics
    integrator: integrate.Adaptive | integrate.Layers
    log_horizon: float
    log_times: tuple[float, ...]
    tolerance: float
    variables: tuple[str, ...]
    clusters: tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """A box of cells of one (n, d); `index` is its place in the dataset, counted in blocks."""

    index: tuple[int, int, int, int]
    n: int
    d: int
    beta: tuple[float, ...]
    seed: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Number of cells."""
        return len(self.beta) * len(self.seed)


Place = tuple[int, int]  # of a cell in its block: which beta, which seed


def compute_block(
    recipe: Recipe, block: Block, *, threads: int = 1, skip: Mapping[Place, str] | None = None
) -> xr.Dataset:
    """The block's variables, with coordinates, and in `error` why a cell failed.

    Parameters
    ----------
    recipe, block
        What is computed, and where.
    threads : int
        Plain threads over which the cells are spread; they change no bit.
    skip : mapping from (beta, seed) positions to str, optional
        Cells that are not computed but recorded as failed, for these reasons.

    Returns
    -------
    xarray.Dataset
        Dimensions n, d (of length 1), beta, seed, time, clusters; the types of the schema.
    """
    skip = skip or {}
    records = schema.variables_kept(recipe.variables)
    tail = {schema.TIME: len(recipe.log_times), schema.CLUSTERS: len(recipe.clusters)}
    shape = {dim: (tail[dim],) for dim in tail}
    data: dict[str, NDArray[np.generic]] = {
        v.name: np.full(
            (len(block.beta), len(block.seed), *(s for dim in v.dims if dim in tail for s in shape[dim])),
            v.fill,
            dtype=v.dtype,
        )
        for v in records
    }
    errors = np.full((len(block.beta), len(block.seed)), "", dtype=object)
    for place, reason in skip.items():
        data[schema.STATUS][place], errors[place] = schema.FAILED, reason

    per_call = call_cells(block.n, block.d, len(recipe.log_times))
    if threads > 1:
        per_call = max(1, min(per_call, -(-block.cells // (4 * threads))))
    calls = _calls(block, per_call, skip)

    @functools.lru_cache(maxsize=per_call + threads)
    def tokens(seed: int) -> NDArray[np.float64]:
        drawn = sphere.initial_tokens(recipe.root_seed, block.n, block.d, seed)
        # once for all betas
        return sphere.in_span(drawn) if recipe.dynamics.span_invariant else drawn

    def fill(places: list[Place]) -> None:
        for some, values, reasons in _computed(recipe, block, places, tokens):
            at = tuple(np.transpose(some))
            for name, value in values.items():
                data[name][at] = value
            errors[at] = reasons
            data[schema.STATUS][at] = [schema.FAILED if reason else schema.DONE for reason in reasons]

    if threads == 1:
        for call in calls:
            fill(call)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, calls))  # asks for every result, so that an error is raised here
    return _labelled(recipe, block, records, data, errors)


def call_cells(n: int, d: int, times: int) -> int:
    """How many cells are computed in one call of the engine."""
    return max(1, min(CALL_CELLS, CALL_PAIRS // n**2, CALL_BYTES // call_bytes(n, d, times)))


def call_bytes(n: int, d: int, times: int) -> int:
    """Memory that one cell takes in such a call: its tokens, and four numbers at each save time."""
    return 8 * (n * d + 4 * times)


def _calls(block: Block, per_call: int, skip: Mapping[Place, str]) -> list[list[Place]]:
    """The cells in portions for the engine: few seeds at a time, all betas that share their tokens."""
    width = min(per_call, len(block.seed))
    places = [
        (b, s)
        for first in range(0, len(block.seed), width)
        for b in range(len(block.beta))
        for s in range(first, min(first + width, len(block.seed)))
        if (b, s) not in skip
    ]
    return [places[i : i + per_call] for i in range(0, len(places), per_call)]


def _computed(
    recipe: Recipe,
    block: Block,
    places: list[Place],
    tokens: functools._lru_cache_wrapper[NDArray[np.float64]],
) -> Iterator[tuple[list[Place], dict[str, NDArray[np.generic]], list[str]]]:
    """Cells, their values, and their reasons: empty, or why the cell failed."""
    seeds, of_cell = np.unique([s for _, s in places], return_inverse=True)
    try:
        found = observe.observe_cells(
            np.stack([tokens(block.seed[s]) for s in seeds])[of_cell],
            np.array([block.beta[b] for b, _ in places]),
            dynamics=recipe.dynamics,
            integrator=recipe.integrator,
            log_times=np.array(recipe.log_times),
            log_horizon=recipe.log_horizon,
            tolerance=recipe.tolerance,
            variables=recipe.variables,
            clusters_kept=len(recipe.clusters),
        )
    except Exception as error:  # one cell may fail in any way; the others go on
        if len(places) == 1:
            yield places, {}, [f"{type(error).__name__}: {error}"]
            return
        half = len(places) // 2
        yield from _computed(recipe, block, places[:half], tokens)
        yield from _computed(recipe, block, places[half:], tokens)
        return
    names = [v.name for v in schema.variables_kept(recipe.variables) if v.name in found]
    reasons = _reasons(found["outcome"], {name: found[name] for name in names})
    for names_kept, chosen in (
        (names, [i for i, reason in enumerate(reasons) if not reason]),
        ([schema.EVALUATIONS, schema.STEPS], [i for i, reason in enumerate(reasons) if reason]),
    ):
        if chosen:
            values = {name: found[name][chosen] for name in names_kept}
            yield [places[i] for i in chosen], values, [reasons[i] for i in chosen]


def _reasons(outcomes: NDArray[np.generic], values: Mapping[str, NDArray[np.generic]]) -> list[str]:
    """For each cell why it failed, or nothing."""
    reasons = [
        "" if outcome == observe.DONE else observe.OUTCOMES.get(outcome, f"outcome {outcome}")
        for outcome in outcomes.tolist()
    ]
    for name, value in values.items():
        if schema.VARIABLES[name].is_float:
            for i in np.unique(np.nonzero(np.isnan(value))[0]):
                reasons[i] = reasons[i] or f"{name} is not a number"
    return reasons


def _labelled(
    recipe: Recipe,
    block: Block,
    records: Iterable[schema.Variable],
    data: Mapping[str, NDArray[np.generic]],
    errors: NDArray[np.object_],
) -> xr.Dataset:
    variables = {v.name: (v.dims, data[v.name][None, None]) for v in records}
    variables[schema.ERROR] = (schema.CELL_DIMS, errors[None, None])
    coordinates = {
        schema.N: [block.n],
        schema.D: [block.d],
        schema.BETA: list(block.beta),
        schema.SEED: list(block.seed),
        schema.CLUSTERS: list(recipe.clusters),
        schema.LOG_TIME: (schema.TIME, list(recipe.log_times)),
    }
    return xr.Dataset(variables, coords=coordinates)
