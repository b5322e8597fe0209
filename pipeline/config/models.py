"""The configuration's shape: every key, its type and what it may be, checked once and strictly.

A key that is not here is refused with the nearest one that is; a bool is not a number and ``"1"`` is not 1.
What values mean together (a horizon before the last save time, say) is checked by the objects they become.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from pipeline import schema
from pipeline.config import axes

POSITIVE = "a number > 0"
COUNT = "a whole number >= 1"


class Strict(BaseModel):
    """Refuses unknown keys, foreign types, NaN and infinities; nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Grid(Strict):
    """The four axes, in any form; `axes.axis` reads them."""

    n: Any = Field(description="an axis of numbers of tokens")
    d: Any = Field(description="an axis of dimensions")
    beta: Any = Field(description="an axis of inverse temperatures")
    seed: Any = Field(description="an axis of seeds, or N for 0 ... N-1")


class Matrix(Strict):
    """One matrix of the attention."""

    kind: Literal["identity", "diagonal", "gaussian", "goe", "file"] = Field(
        default="identity", description="identity, diagonal, gaussian, goe, file"
    )
    diagonal: list[float] = Field(default=[], description="a list of d numbers, with kind: diagonal")
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="a whole number >= 0")
    scale: float = Field(default=1.0, description="a number")
    path: str = Field(default="", description="a .npy file, with kind: file")


class Dynamics(Strict):
    """The equation of motion: a field and its matrices."""

    name: str = Field(description="the name of a dynamics")
    query: Matrix = Field(default=Matrix(), description="a matrix: {kind, diagonal, seed, scale, path}")
    key: Matrix = Field(default=Matrix(), description="a matrix: {kind, diagonal, seed, scale, path}")
    value: Matrix = Field(default=Matrix(), description="a matrix: {kind, diagonal, seed, scale, path}")


class Adaptive(Strict):
    """Embedded Runge-Kutta steps with coalescence and the running clock."""

    name: Literal["adaptive"] = Field(description="adaptive, layers")
    tolerance: Annotated[float, Field(gt=0)] = Field(default=1e-8, description=POSITIVE)
    coalescence: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="a chord > 0, or null for the rule"
    )
    max_evaluations: Annotated[int, Field(ge=1)] = Field(default=10_000_000, description=COUNT)
    sum: Literal["auto", "direct", "spectral"] = Field(default="auto", description="auto, direct, spectral")
    sum_threads: Annotated[int, Field(ge=1)] = Field(default=1, description=COUNT)


class Layers(Strict):
    """Normalised Euler steps: a discrete transformer."""

    name: Literal["layers"] = Field(description="adaptive, layers")
    step: Annotated[float, Field(gt=0)] = Field(default=0.1, description=POSITIVE)


class Store(Strict):
    """Where the dataset lies."""

    path: Annotated[str, Field(min_length=1)] = Field(description="a path")


class About(Strict):
    """What a new dataset says of itself, where the default does not do."""

    title: str | None = Field(description="one line, or null")
    summary: str | None = Field(description="text, or null")
    creator_name: str | None = Field(description="a name, or null")
    license: str | None = Field(description="an SPDX identifier, or null")


class Configuration(Strict):
    """Everything that a run can be told."""

    grid: Grid = Field(description="the axes n, d, beta, seed")
    dynamics: Dynamics = Field(description="a dynamics and its matrices")
    integrator: Annotated[Adaptive | Layers, Field(discriminator="name")] = Field(
        description="adaptive, layers"
    )
    workers: dict[str, Any] = Field(description="one of the group workers")
    store: Store = Field(description="path: where the dataset lies")
    root_seed: Annotated[int, Field(ge=0)] = Field(description="a whole number >= 0")
    horizon: Annotated[float, Field(gt=0)] | Literal["consensus"] = Field(
        description="a number > 0, or consensus"
    )
    times: Any = Field(description="an axis of save times")
    tolerance: Annotated[float, Field(ge=1e-9, le=2)] = Field(description="numbers in [1e-9, 2]")
    variables: list[str] = Field(description=f"a list of {', '.join(schema.OPTIONAL)}")
    clusters_kept: Annotated[int, Field(ge=1)] = Field(description=COUNT)
    block: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=2)] | None = Field(
        description="[betas, seeds] of a block, or null for the cost model's choice"
    )
    task_seconds: Annotated[float, Field(gt=0)] = Field(description=POSITIVE)
    retries: Annotated[int, Field(ge=0)] = Field(description="a whole number >= 0")
    retry_failed: bool = Field(description="true, false")
    about: About = Field(description="title, summary, creator_name, license")


def read(config: dict[str, Any], model: type[Strict] = Configuration, *, at: str = "") -> Any:
    """`config` as a `model`, or a ValueError of one line about its first fault; `at` is where it stands."""
    try:
        return model.model_validate(config)
    except pydantic.ValidationError as error:
        raise ValueError(_line(error, config, model, at)) from error


def keys(model: type[Strict] = Configuration, at: str = "") -> Iterator[str]:
    """Every dotted key of a model."""
    for name, field in model.model_fields.items():
        yield f"{at}{name}"
        for inner in _models(field.annotation):
            yield from keys(inner, f"{at}{name}.")


def unknown(key: str, value: str, known: list[str] | None = None) -> str:
    """One line about a key that does not exist, with the nearest that does."""
    known = sorted(set(keys())) if known is None else known
    parent, _, name = key.rpartition(".")
    beside = [k for k in known if k.rpartition(".")[0] == parent]
    hint = ""
    for candidates in (beside, known):
        names = {name_of(k): k for k in candidates}
        if near := difflib.get_close_matches(name, names, n=1):
            hint = f" (did you mean {names[near[0]]}?)"
            break
    allowed = ", ".join(map(name_of, beside)) or "no keys here"
    return f"{key}: unknown key, got {value}; allowed: {allowed}{hint}"


def name_of(key: str) -> str:
    """The last name of a dotted key."""
    return key.rpartition(".")[2]


def _line(error: pydantic.ValidationError, config: Any, model: type[Strict], at: str) -> str:
    # Unknown keys first: they are why others are missing.
    faults = sorted(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
    fault = faults[0]
    path: list[str] = []
    value: Any = config
    for step in fault["loc"]:  # pydantic puts the tags of unions between the keys
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and isinstance(step, int):
            break
        elif step != fault["loc"][-1] or fault["type"] != "missing":
            continue
        path.append(str(step))
    key = at + ".".join(path)
    if fault["type"] == "extra_forbidden":
        parent = ".".join(path[:-1])
        owner, prefix = (_owner(model, path[:-1], config), f"{at}{parent}." if parent else at)
        return unknown(key, axes.shown(value), [f"{prefix}{name}" for name in owner.model_fields])
    if fault["type"].startswith("union_tag"):
        path, value = [*path, "name"], value.get("name") if isinstance(value, dict) else None
        key = f"{key}.name"
    allowed = _description(model, path, config)
    if fault["type"] == "missing":
        return f"{key}: missing; allowed: {allowed}"
    return f"{key}: got {axes.shown(value)}; allowed: {allowed}"


def _owner(model: type[Strict], path: list[str], config: Any) -> type[Strict]:
    """The model of the mapping at `path`, unions settled by their names."""
    for name in path:
        config = config.get(name) if isinstance(config, dict) else None
        choices = _models(model.model_fields[name].annotation)
        tag = config.get("name") if isinstance(config, dict) else None
        model = next((choice for choice in choices if tag in _tags(choice)), choices[0])
    return model


def _tags(model: type[Strict]) -> tuple[Any, ...]:
    """The names by which a member of a union is told from the others."""
    return get_args(model.model_fields["name"].annotation) if "name" in model.model_fields else ()


def _description(model: type[Strict], path: list[str], config: Any) -> str:
    owner = _owner(model, path[:-1], config)
    field = owner.model_fields.get(path[-1]) if path else None
    return str(field.description) if field is not None else "a mapping"


def _models(annotation: Any) -> list[type[Strict]]:
    if isinstance(annotation, type) and issubclass(annotation, Strict):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models(part)]
