"""From Hydra's configuration to typed objects, once; nothing below this floor knows Hydra.

`load` composes ``conf/`` with overrides, as the command line does, and gives `Settings`: the sweep, where it
is stored, where it runs. Every fault is a ValueError of one line: the key, what was given, what is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline import dynamics, integrate, sweep, workers
    from pipeline.config import models


@dataclass(frozen=True)
class Settings:
    """One configured run.

    Parameters
    ----------
    sweep
        The question.
    path
        Where its dataset lies.
    workers
        Where tasks run.
    task_seconds
        Aimed length of a task.
    retries
        Further tries of a failed task.
    retry_failed
        Whether cells that failed in an earlier run are computed again.
    about
        Title, creator and licence of a new dataset, where they are given.
    config
        The whole resolved configuration, as plain data for the dataset's record.
    """

    sweep: sweep.Sweep
    path: Path
    workers: workers.Workers
    task_seconds: float
    retries: int
    retry_failed: bool
    about: dict[str, str]
    config: dict[str, Any]


def load(overrides: Sequence[str] = (), *, main: str | None = None, extra: str | None = None) -> Settings:
    """Settings that ``spheresweep run`` has with these overrides.

    ``main`` replaces the folder ``conf/``, ``extra`` is searched before it.
    """
    from pipeline.config import composition

    return settings(composition.compose(overrides, main=main, extra=extra))


def settings(config: dict[str, Any]) -> Settings:
    """Settings from a composed configuration in built-in types."""
    from pipeline import sweep, workers
    from pipeline.config import models

    given: models.Configuration = models.read(config)
    horizon = None if given.horizon == "consensus" else float(given.horizon)
    question = sweep.Sweep(
        n=_integers(given.grid.n, "grid.n"),
        d=_integers(given.grid.d, "grid.d"),
        beta=_axis(given.grid.beta, "grid.beta"),
        seed=_seeds(given.grid.seed),
        root_seed=given.root_seed,
        dynamics=_dynamics(given.dynamics),
        integrator=_integrator(given.integrator, given.tolerance),
        horizon=horizon,
        times=_times(given.times, horizon),
        tolerance=given.tolerance,
        variables=tuple(given.variables),
        clusters_kept=given.clusters_kept,
        block=None if given.block is None else (given.block[0], given.block[1]),
    )
    for d in question.d:
        question.dynamics.check(d)
    return Settings(
        sweep=question,
        path=Path(given.store.path).expanduser(),
        workers=workers.read(given.workers),
        task_seconds=given.task_seconds,
        retries=given.retries,
        retry_failed=given.retry_failed,
        about={name: text for name, text in given.about.model_dump().items() if text is not None},
        config=config,
    )


def _axis(value: Any, key: str) -> tuple[float, ...]:
    from pipeline.config import axes

    return tuple(float(x) for x in axes.axis(value, key=key, integer=False))


def _integers(value: Any, key: str) -> tuple[int, ...]:
    from pipeline.config import axes

    return tuple(int(x) for x in axes.axis(value, key=key, integer=True))


def _seeds(value: Any) -> tuple[int, ...]:
    """An axis of seeds; one whole number N stands for 0 ... N-1."""
    from pipeline.config import axes

    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= axes.MOST:
            raise ValueError(
                f"grid.seed: got {value}; allowed: N from 1 to {axes.MOST} for 0 ... N-1, or a list"
            )
        return tuple(range(value))
    if isinstance(value, float):  # one seed, or so many? 1e3 is neither
        raise ValueError(f"grid.seed: got {value!r}; allowed: an integer N for 0 ... N-1, or a list")
    return _integers(value, "grid.seed")


def _times(value: Any, horizon: float | None) -> sweep.Times:
    from pipeline import sweep
    from pipeline.config import axes

    if horizon is None and isinstance(value, dict) and value.get("stop") == "consensus":
        raise ValueError(
            "times.stop: got the horizon, consensus, which is no number; allowed with horizon=consensus: "
            "an axis of its own, as in 'times={start: -2, stop: 40, num: 85, spacing: log_time}'"
        )
    spacings = (axes.LINEAR, axes.LOG, axes.LOG_TIME)
    values = axes.axis(value, key="times", integer=False, spacings=spacings)
    logarithmic = isinstance(value, dict) and value.get("spacing") == axes.LOG_TIME
    return sweep.Times(tuple(float(x) for x in values), logarithmic)


def _dynamics(given: models.Dynamics) -> dynamics.Dynamics:
    from pipeline import dynamics

    if given.name not in dynamics.DYNAMICS:
        raise ValueError(f"dynamics.name: got {given.name!r}; allowed: {', '.join(dynamics.DYNAMICS)}")
    matrices = {role: _matrix(getattr(given, role), role) for role in ("query", "key", "value")}
    return dynamics.Dynamics(name=given.name, **matrices)


def _matrix(given: models.Matrix, role: str) -> dynamics.Matrix:
    from pipeline import dynamics

    try:
        return dynamics.Matrix(
            kind=given.kind,
            diagonal=tuple(given.diagonal),
            seed=given.seed,
            scale=given.scale,
            path=given.path,
        )
    except ValueError as error:
        raise ValueError(f"dynamics.{role}.{error}") from error


def _integrator(
    given: models.Adaptive | models.Layers, tolerance: float
) -> integrate.Adaptive | integrate.Layers:
    from pipeline import integrate

    if given.name == "layers":
        return integrate.Layers(given.step)
    method = integrate.Adaptive(
        given.tolerance, given.coalescence, given.max_evaluations, given.sum, given.sum_threads
    )
    method.chord(tolerance)
    return method
