"""From a dataset to its verdicts: what is done, failed and missing, why, and at what cost.

Plain data, so that a terminal, a script and a page can each show it their own way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from pipeline import schema, store

_PANEL = (schema.N, schema.D)


@dataclass(frozen=True)
class Row:
    """The cells of one (n, d), counted by status, and the mean cost of those that are done.

    ``evaluations`` and ``steps`` are means over the done cells; None where there is none.
    """

    n: int
    d: int
    done: int
    failed: int
    missing: int
    evaluations: float | None
    steps: float | None


@dataclass(frozen=True)
class Report:
    """A dataset's verdicts.

    Parameters
    ----------
    title, source, created
        What the dataset says of itself.
    rows
        One for each (n, d).
    failures
        Each failed cell: n, d, beta, seed and error.
    core_hours
        Time that workers spent on it, all runs together; None where no receipt tells.
    """

    title: str
    source: str
    created: str
    rows: tuple[Row, ...]
    failures: tuple[Mapping[str, Any], ...]
    core_hours: float | None

    @property
    def done(self) -> int:
        """Number of cells that are done."""
        return sum(row.done for row in self.rows)

    @property
    def failed(self) -> int:
        """Number of cells that failed."""
        return sum(row.failed for row in self.rows)

    @property
    def missing(self) -> int:
        """Number of cells that are not computed yet."""
        return sum(row.missing for row in self.rows)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.done + self.failed + self.missing

    def to_dict(self) -> dict[str, Any]:
        """The same as built-in types, ready for JSON."""
        totals = {"cells": self.cells, "done": self.done, "failed": self.failed, "missing": self.missing}
        return totals | dataclasses.asdict(self)


def opened(path: str | Path, *, in_parts: bool = False) -> xr.Dataset:
    """The dataset at `path`; ValueError, in one line, where there is none or a damaged one.

    Arrays are read when they are used: whole, or (`in_parts`) as chunks of Dask, for more than memory holds.
    """
    store.inspect(path)
    try:
        dataset: xr.Dataset = xr.open_zarr(path, chunks={} if in_parts else None)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ValueError(
            f"{path}: a dataset that cannot be opened ({error}); allowed: a dataset made by spheresweep"
        ) from error
    return dataset


def read(path: str | Path) -> Report:
    """Verdicts of the dataset at `path`, with its record of failures and receipts."""
    with opened(path) as dataset:
        return report(dataset, store.failures(path), store.receipts(path))


def report(
    dataset: xr.Dataset,
    failures: Iterable[Mapping[str, Any]] = (),
    receipts: Iterable[Mapping[str, Any]] = (),
) -> Report:
    """Verdicts of `dataset`.

    Parameters
    ----------
    dataset : xarray.Dataset
        As opened from its store; ``status``, ``evaluations`` and ``steps`` are read, one (n, d) at a time.
    failures : iterable of mappings
        The failed cells: n, d, beta, seed and error.
    receipts : iterable of mappings
        What tasks reported: ``seconds`` and ``threads`` count here.
    """
    hours = [
        float(receipt["seconds"]) * int(receipt.get("threads", 1)) / 3600
        for receipt in receipts
        if isinstance(receipt.get("seconds"), int | float) and isinstance(receipt.get("threads", 1), int)
    ]
    return Report(
        title=str(dataset.attrs.get("title", "")),
        source=str(dataset.attrs.get("source", "")),
        created=str(dataset.attrs.get("date_created", "")),
        rows=tuple(_row(dataset, i, j) for i, j in np.ndindex(*(dataset.sizes[dim] for dim in _PANEL))),
        failures=tuple(failures),
        core_hours=sum(hours) if hours else None,
    )


def _row(dataset: xr.Dataset, i: int, j: int) -> Row:
    panel = dataset.isel({schema.N: i, schema.D: j})
    status = panel[schema.STATUS].to_numpy()
    failed = int(np.count_nonzero(status == schema.FAILED))
    done = status == schema.DONE
    means = {
        name: float(panel[name].to_numpy()[done].mean()) if done.any() else None
        for name in (schema.EVALUATIONS, schema.STEPS)
    }
    return Row(
        n=int(panel[schema.N]),
        d=int(panel[schema.D]),
        done=int(done.sum()),
        failed=failed,
        missing=int(status.size - done.sum()) - failed,
        evaluations=means[schema.EVALUATIONS],
        steps=means[schema.STEPS],
    )
