"""A sweep meets a dataset: one is made, or refused as another question's, or says what it lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import integrate, provenance, schema, store
from pipeline import sweep as sweeps

REFERENCES = (
    "Geshkovski, Letrouit, Polyanskiy, Rigollet: A mathematical perspective on transformers, "
    "arXiv:2312.10794; Geshkovski, Koubbi, Polyanskiy, Rigollet: Dynamic metastability in the self-attention "
    "model, arXiv:2410.06833"
)


def attributes(sweep: sweeps.Sweep, config: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """The group attributes of a new dataset; `given` (title, creator_name, license ...) replaces defaults."""
    made = provenance.now()
    horizon: str | float = "consensus" if sweep.horizon is None else sweep.horizon
    adaptive = isinstance(sweep.integrator, integrate.Adaptive)
    until = "until one cluster is left" if sweep.horizon is None else f"up to t = {horizon:g}"
    name = sweep.dynamics.name.upper()
    attrs: dict[str, Any] = {
        "Conventions": schema.CONVENTIONS,
        "title": f"Clustering of tokens under self-attention: {name} on the sphere",
        "summary": (
            f"Trajectories of n tokens on the unit sphere of R^d under {name} self-attention dynamics at "
            f"inverse temperature beta, from uniform random starts: one for each of the {sweep.cells} cells "
            f"(n, d, beta, seed), integrated {'adaptively' if adaptive else 'layer by layer'} {until}. For "
            f"each: when it has at most k clusters, and {', '.join(sweep.variables) or 'nothing else'} at "
            f"{len(sweep.times.values)} times."
        ),
        "keywords": "self-attention, transformers, clustering, metastability, synchronisation, "
        "interacting particles",
        "creator_name": "spheresweep users",
        "license": "CC-BY-4.0",
        "source": provenance.source(),
        "history": f"{made} created by {provenance.source()}",
        "date_created": made,
        "references": REFERENCES,
        "schema_version": schema.VERSION,
        "dynamics": sweep.dynamics.name,
        "integrator": "adaptive" if adaptive else "layers",
        "spectral": json.dumps(sweep.spectral),
        "horizon": horizon,
        "tolerance": sweep.tolerance,
        "root_seed": sweep.root_seed,
        "sweep": sweep.to_json(),
        "config": json.dumps(config, allow_nan=False),
        "software": json.dumps(provenance.software()),
        "platform": json.dumps(provenance.platform_facts()),
    }
    return attrs | {name: text for name, text in given.items() if text}


def stored_sweep(path: Path) -> sweeps.Sweep:
    """The sweep that the dataset at `path` was made for; ValueError where it is not a sound one."""
    stored = store.inspect(path)
    try:
        found = sweeps.Sweep.from_json(stored.attrs["sweep"])
    except ValueError as error:
        raise ValueError(
            f"store.path: got {str(path)!r}, a dataset whose attribute sweep is damaged ({error}); "
            "allowed: a dataset made by spheresweep"
        ) from error
    if found.block != stored.block or found.shape != stored.shape:
        raise ValueError(
            f"store.path: got {str(path)!r}, a dataset whose arrays differ from its attribute sweep; "
            "allowed: a dataset made by spheresweep"
        )
    return found


def admitted(asked: sweeps.Sweep, path: Path) -> sweeps.Sweep:
    """The stored sweep, which contains the one asked for; else a refusal that names the axis or key."""
    found = stored_sweep(path)
    for dim, labels in store.labels(path).items():
        if not np.array_equal(labels, getattr(found, dim)):
            raise ValueError(
                f"store.path: got {str(path)!r}, a dataset whose coordinate {dim} is damaged; "
                "allowed: a dataset made by spheresweep"
            )
    reason = found.refusal(asked)
    if reason:
        raise ValueError(f"{reason}, {str(path)!r}; choose another store.path for another sweep")
    return found


def create(asked: sweeps.Sweep, path: Path, config: Mapping[str, Any], given: Mapping[str, str]) -> None:
    """Make an empty dataset for the sweep, whose block is chosen; a refusal where nothing can be written."""
    try:
        store.create(path, asked.layout, attributes(asked, config, given))
    except OSError as error:
        if store.exists(path):
            return  # another run has just made it: whether it is the same sweep is seen next
        raise ValueError(
            f"store.path: got {str(path)!r}, which cannot be written ({error.strerror or error}); "
            "allowed: a place where a new folder can be made"
        ) from error


def pending_blocks(whole: sweeps.Sweep, asked: sweeps.Sweep, path: Path) -> NDArray[np.bool_]:
    """The blocks that hold a cell asked for and are not there."""
    return sweeps.touched(whole, asked) & ~store.written(path)


def plan(
    sweep: sweeps.Sweep,
    path: str | Path,
    *,
    task_seconds: float = sweeps.TARGET_SECONDS,
    workers: int = 1,
    threads: int = 1,
) -> sweeps.Plan:
    """What a run would still compute, given what is in the dataset at `path`; writes nothing."""
    path = Path(path)
    if not store.exists(path):
        return sweeps.plan(sweep, target_seconds=task_seconds, workers=workers, threads=threads)
    whole = admitted(sweep, path)
    pending = pending_blocks(whole, sweep, path)
    return sweeps.plan(whole, pending=pending, target_seconds=task_seconds, workers=workers, threads=threads)


def validate(path: str | Path) -> list[str]:
    """Every fault of the dataset at `path`, one line each: schema, checksums, values, completeness."""
    whole = stored_sweep(Path(path))
    attrs, wanted = store.inspect(path).attrs, attributes(whole, {}, {})
    told = ("dynamics", "integrator", "spectral", "horizon", "tolerance", "root_seed")
    differing = [
        f"attribute {name} is {attrs.get(name)!r}, and by the attribute sweep should be {wanted[name]!r}"
        for name in told
        if attrs.get(name) != wanted[name]
    ]
    return [*differing, *store.faults(path, whole.layout)]


def count(path: Path, asked: NDArray[np.bool_], whole: sweeps.Sweep) -> tuple[int, int, int]:
    """Cells, failed cells and missing cells of the blocks `asked` for, without reading any array."""
    there = store.written(path)
    betas, seeds = whole.block or (1, 1)
    shape = [
        np.diff([*range(0, n, part), n]) for n, part in zip(whole.shape[2:], (betas, seeds), strict=True)
    ]
    cells = np.broadcast_to(np.multiply.outer(*shape), asked.shape)
    failed = sum(1 for record in store.failures(path) if asked[record["block"]])
    return int(cells[asked].sum()), failed, int(cells[asked & ~there].sum())
