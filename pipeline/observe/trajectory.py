"""One trajectory at a time, for notebooks: states, observables and the tree of mergers."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.dynamics import Dynamics
from pipeline.integrate import OUTCOMES, Adaptive, Layers, layers
from pipeline.integrate.adaptive import FROM_THE_START
from pipeline.integrate.workspace import Workspace
from pipeline.observe import crowd
from pipeline.observe import record as recorders
from pipeline.sphere import in_span

MOST_WEIGHT = 1e100  # their squares and their ratios must be numbers too
_LEAST_TIME = float(np.nextafter(0.0, 1.0))
_PARTITIONS = 2**27  # entries: a gigabyte for partitions, unless a trajectory turns out to have more
SPECTRAL_CLUSTERS = 64  # numbers of clusters whose times are kept after spectral sums


@dataclass(frozen=True)
class Trajectory:
    """One trajectory: states and observables at the save times, cluster times, and the tree of mergers.

    Attributes
    ----------
    log_times : ndarray of float64, shape (T,)
        Natural logarithms of the save times.
    tokens : ndarray of float64, shape (T, n, d)
        Positions at the save times; coalesced tokens share theirs.
    weights : ndarray of float64, shape (n,)
        As given.
    pair_sync_fraction, energy, order_parameter : ndarray of float64, shape (T,)
    cluster_count : ndarray of int64, shape (T,)
    log_time_to_clusters : ndarray of float64, shape (n,)
        Entry k - 1: natural logarithm of the last moment with more than k clusters. After spectral sums:
        shape (64,).
    outcome : int
        0 if done, else a key of `OUTCOMES`; observables not reached are NaN (0 for the count).
    evaluations, steps : int
        Evaluations of the field, steps accepted (layers).
    change_log_times : ndarray of float64, shape (e,)
        When the number of clusters changed; the first entry is -inf, the start.
    partitions : ndarray of int64, shape (e, n)
        Label of each token's cluster from then on. Both are empty after spectral sums, which keep no tree.
    """

    log_times: NDArray[np.float64]
    tokens: NDArray[np.float64]
    weights: NDArray[np.float64]
    pair_sync_fraction: NDArray[np.float64]
    cluster_count: NDArray[np.int64]
    energy: NDArray[np.float64]
    order_parameter: NDArray[np.float64]
    log_time_to_clusters: NDArray[np.float64]
    outcome: int
    evaluations: int
    steps: int
    change_log_times: NDArray[np.float64]
    partitions: NDArray[np.int64]

    @property
    def times(self) -> NDArray[np.float64]:
        """Save times; inf beyond float64."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_times)

    @property
    def message(self) -> str:
        """The outcome in words."""
        return OUTCOMES[self.outcome]

    @property
    def tree_origin(self) -> float:
        """The ln time at height 0 of `linkage`: 0, or the first merger's if that comes before t = 1."""
        finite = self.change_log_times[np.isfinite(self.change_log_times)]
        return float(min(0.0, finite.min(initial=0.0)))

    def linkage(self) -> NDArray[np.float64]:
        """The tree of mergers as a SciPy linkage in log time.

        Two tokens merge at the last moment when they are in different clusters; these times form an
        ultrametric, hence a tree. `scipy.cluster.hierarchy.dendrogram` takes no negative heights, so a height
        is ln t minus `tree_origin`. Tokens that are together from the start merge at height 0, those not
        together at the horizon at +inf (which `dendrogram` cannot draw: go to consensus).

        Returns
        -------
        ndarray of float64, shape (n - 1, 4)
            A row per merger: the two clusters, the height, the number of tokens.
        """
        if not self.change_log_times.size:
            raise ValueError("linkage: got a trajectory by spectral sums; allowed: Adaptive(sum='direct')")
        n = self.weights.size
        # Backwards in time classes only split: a class holds the tokens together from then on.
        merges: list[tuple[float, list[NDArray[np.int64]]]] = []
        classes = [np.arange(n)]
        upper = np.inf
        for log_time, labels in zip(self.change_log_times[::-1], self.partitions[::-1], strict=True):
            parts_of_all = []
            for members in classes:
                parts = [members[labels[members] == label] for label in np.unique(labels[members])]
                if len(parts) > 1:
                    merges.append((float(upper), parts))
                parts_of_all.extend(parts)
            classes, upper = parts_of_all, log_time
        merges.extend(
            (float(upper), [np.array([token]) for token in members])
            for members in classes
            if members.size > 1
        )
        origin = self.tree_origin
        rows, node = [], {(token,): token for token in range(n)}
        for height, parts in sorted(
            merges, key=lambda merge: (merge[0], sum(part.size for part in merge[1]))
        ):
            whole = tuple(parts[0])
            for part in parts[1:]:
                joined = tuple(sorted((*whole, *part)))
                rows.append((node[whole], node[tuple(part)], max(height - origin, 0.0), len(joined)))
                node[joined] = n + len(rows) - 1
                whole = joined
        return np.array(rows, dtype=np.float64).reshape(-1, 4)


def simulate(
    x0: ArrayLike,
    beta: float,
    *,
    dynamics: str | Dynamics = "sa",
    weights: ArrayLike | None = None,
    times: ArrayLike | None = None,
    log_times: ArrayLike | None = None,
    horizon: float | str = "consensus",
    tolerance: float = 1e-3,
    integrator: Adaptive | Layers | None = None,
) -> Trajectory:
    """Follow tokens under self-attention.

    Parameters
    ----------
    x0 : array_like, shape (n, d)
        Initial tokens, n >= 2, d >= 2; rows are normalised.
    beta : float
        Inverse temperature, >= 0.
    dynamics : {"sa", "usa"} or Dynamics
        The equation of motion.
    weights : array_like, shape (n,), optional
        Masses of the tokens, 1e-100 to 1e100; equal by default. Only their ratios matter.
    times, log_times : array_like, shape (T,), optional
        Save times, ascending; or their natural logarithms, for times beyond float64. Default: none.
    horizon : float or "consensus"
        Last time simulated; "consensus": until one cluster is left.
    tolerance : float
        Cluster tolerance delta in [1e-9, 2]: two tokens are together when <x_i, x_j> >= 1 - delta.
    integrator : Adaptive or Layers, optional
        ``Adaptive()`` by default. `Layers` needs a finite horizon.

    Returns
    -------
    Trajectory

    Raises
    ------
    ValueError
        For input out of range; the message names the argument.

    Examples
    --------
    >>> import numpy as np
    >>> from pipeline import simulate
    >>> run = simulate(np.eye(4), beta=1.0, times=[0, 1, 2])
    >>> run.cluster_count
    array([4, 4, 4])
    """
    integrator = integrator if integrator is not None else Adaptive()
    if not isinstance(integrator, Adaptive | Layers):
        raise ValueError(f"integrator: got {reprlib.repr(integrator)}; allowed: Adaptive(...) or Layers(...)")
    if not isinstance(dynamics, str | Dynamics):
        raise ValueError(f"dynamics: got {reprlib.repr(dynamics)}; allowed: 'sa', 'usa' or Dynamics(...)")
    dynamics = Dynamics(dynamics) if isinstance(dynamics, str) else dynamics
    tokens = _unit_rows(x0)
    n, d = tokens.shape
    beta = _number("beta", beta, 0.0, np.finfo(np.float64).max, "finite numbers >= 0")
    tolerance = _number("tolerance", tolerance, 1e-9, 2.0, "1e-9 to 2")
    mass = _masses(weights, n)
    saves = _save_times(times, log_times)
    log_horizon = _log_horizon(horizon, dynamics, integrator)
    if saves.size and saves[-1] > log_horizon:
        raise ValueError(
            f"horizon: got {horizon!r}; allowed: at least the last save time, {math.exp(saves[-1]):g}"
        )

    if isinstance(integrator, Layers):
        integrator.check(math.exp(log_horizon))

    # the span of the tokens is enough; what is saved is turned back
    basis = None
    if dynamics.span_invariant and d > n:
        reduced = in_span(tokens)
        basis = np.linalg.lstsq(reduced, tokens, rcond=None)[0]
        tokens = reduced
    dimension = tokens.shape[1]
    field = dynamics.field(dimension)
    spectral = crowd.chosen(integrator, dynamics, n, dimension, beta, tolerance)
    solver: Any = None
    work: Any = None
    atoms: tuple[NDArray[Any], ...] = (mass,)
    begin: tuple[Any, ...] = ()
    if isinstance(integrator, Layers):
        solver = recorders.layer_solver(True)
        work = layers.Workspace.of(n, dimension)
    elif not spectral:
        solver = recorders.adaptive_solver(field.velocity, field.reference, True)
        work = Workspace.of(n, dimension, n)
        atoms, begin = (mass, mass * mass, np.arange(n)), (FROM_THE_START,)
    kept, room = (SPECTRAL_CLUSTERS, 0) if spectral else (n, min(4 * n, _PARTITIONS // n) + 64)
    while True:
        series = np.full((saves.size, len(recorders.TIME_RESOLVED)), np.nan)
        last = recorders.cluster_record(kept)
        states = np.full((saves.size, n, dimension), np.nan)
        changes, change_log_times = np.zeros(1, np.int64), np.empty(room)
        partitions = np.empty((room, n), np.int64)
        record = (
            np.ones(4, np.bool_),
            tolerance,
            series,
            last,
            states,
            changes,
            change_log_times,
            partitions,
        )
        if spectral:
            outcome, evaluations, steps = crowd.follow(
                tokens,
                mass,
                beta,
                dynamics=dynamics,
                integrator=integrator,
                log_times=saves,
                log_horizon=log_horizon,
                tolerance=tolerance,
                wanted=record[0],
                series=series,
                last=last,
                states=states,
            )
            found = 0
            break
        outcome, evaluations, steps = solver(
            work,
            tokens,
            *atoms,
            beta,
            *recorders.method_arguments(field, integrator, tolerance),
            tolerance,
            saves,
            log_horizon,
            record,
            *begin,
        )
        found = int(changes[0])
        if found <= room:
            break
        room = found
    return Trajectory(
        log_times=saves,
        tokens=states if basis is None else states @ basis,
        weights=mass,
        pair_sync_fraction=series[:, 0],
        cluster_count=np.nan_to_num(series[:, 1]).astype(np.int64),
        energy=series[:, 2],
        order_parameter=series[:, 3],
        log_time_to_clusters=last[:, 0].copy(),
        outcome=int(outcome),
        evaluations=int(evaluations),
        steps=int(steps),
        change_log_times=change_log_times[:found].copy(),
        partitions=partitions[:found].copy(),
    )


def _numbers(key: str, value: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{key}: got {reprlib.repr(value)}; allowed: real numbers") from error


def _number(key: str, value: ArrayLike, least: float, most: float, allowed: str) -> float:
    found = _numbers(key, value)
    if found.ndim == 0 and least <= found <= most:
        return float(found)
    raise ValueError(f"{key}: got {reprlib.repr(value)}; allowed: {allowed}")


def _unit_rows(x0: ArrayLike) -> NDArray[np.float64]:
    given = _numbers("x0", x0)
    if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 2:
        raise ValueError(f"x0: got shape {given.shape}; allowed: (n, d) with n >= 2 and d >= 2")
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(given, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise ValueError("x0: got rows that are zero or not finite; allowed: rows that can be normalised")
    return np.asarray(given / norms)


def _masses(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    mass = np.ones(n) if weights is None else _numbers("weights", weights)
    if mass.shape != (n,):
        raise ValueError(f"weights: got shape {mass.shape}; allowed: {n} numbers, one for each token")
    sound = (mass >= 1 / MOST_WEIGHT) & (mass <= MOST_WEIGHT)
    if not sound.all():
        raise ValueError(
            f"weights: got {mass[~sound][0]:g} among them; allowed: {1 / MOST_WEIGHT:g} to {MOST_WEIGHT:g}"
        )
    return mass


def _save_times(times: ArrayLike | None, log_times: ArrayLike | None) -> NDArray[np.float64]:
    if times is not None and log_times is not None:
        raise ValueError("times: got times and log_times; allowed: one of them")
    if log_times is not None:
        saves = _numbers("log_times", log_times).reshape(-1)
    else:
        plain = _numbers("times", [] if times is None else times).reshape(-1)
        if not (plain >= 0).all():
            raise ValueError("times: got negative or NaN times; allowed: numbers >= 0")
        with np.errstate(divide="ignore"):
            saves = np.log(plain)
    if np.isnan(saves).any() or (saves == np.inf).any() or (np.diff(saves) <= 0).any():
        raise ValueError(
            "times: got times that are not finite and ascending; allowed: finite, strictly ascending"
        )
    return saves


def _log_horizon(horizon: float | str, dynamics: Dynamics, integrator: Adaptive | Layers) -> float:
    if horizon == "consensus":
        if isinstance(integrator, Layers):
            raise ValueError("horizon: got 'consensus'; allowed: a finite time with Layers")
        if not dynamics.reaches_consensus:
            raise ValueError("horizon: got 'consensus'; allowed: a finite time unless V is the identity")
        return math.inf
    allowed = "'consensus' or a finite number > 0"
    if isinstance(horizon, str):
        raise ValueError(f"horizon: got {horizon!r}; allowed: {allowed}")
    return math.log(_number("horizon", horizon, _LEAST_TIME, np.finfo(np.float64).max, allowed))
