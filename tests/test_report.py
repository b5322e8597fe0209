"""Verdicts of a dataset: counts by status, mean costs, failures and hours, on a dataset made by hand."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from pipeline import report, schema


def dataset() -> xr.Dataset:
    """Two n, one d, two betas, three seeds: a panel done but for one failure, and one hardly begun."""
    status = np.zeros((2, 1, 2, 3), dtype="int8")
    status[0] = schema.DONE
    status[0, 0, 1, 2] = schema.FAILED
    status[1, 0, 0, 0] = schema.DONE
    cost = np.arange(12, dtype="int64").reshape(status.shape) * 100
    return xr.Dataset(
        {
            schema.STATUS: (schema.CELL_DIMS, status),
            schema.EVALUATIONS: (schema.CELL_DIMS, np.where(status == schema.MISSING, 0, cost)),
            schema.STEPS: (schema.CELL_DIMS, np.where(status == schema.MISSING, 0, cost // 10)),
        },
        coords={schema.N: [8, 16], schema.D: [2], schema.BETA: [1.0, 4.0], schema.SEED: [0, 1, 2]},
        attrs={"title": "a sweep", "source": "spheresweep 0", "date_created": "2026-01-01T00:00:00Z"},
    )


FAILURE = {"n": 8, "d": 2, "beta": 4.0, "seed": 2, "error": "stopped after max_evaluations"}


def test_cells_are_counted_by_status_in_each_panel() -> None:
    found = report.report(dataset(), [FAILURE])
    assert [(row.n, row.d, row.done, row.failed, row.missing) for row in found.rows] == [
        (8, 2, 5, 1, 0),
        (16, 2, 1, 0, 5),
    ]
    assert (found.cells, found.done, found.failed, found.missing) == (12, 6, 1, 5)
    assert found.failures == (FAILURE,)


def test_costs_are_means_over_the_done_cells_alone() -> None:
    first, second = report.report(dataset()).rows
    assert (first.evaluations, first.steps) == (200, 20)
    assert (second.evaluations, second.steps) == (600, 60)


def test_a_panel_without_done_cells_has_no_cost() -> None:
    empty = dataset()
    empty[schema.STATUS][:] = schema.MISSING
    rows = report.report(empty).rows
    assert [(row.done, row.missing, row.evaluations, row.steps) for row in rows] == [(0, 6, None, None)] * 2


def test_hours_are_summed_over_the_receipts_that_tell_them() -> None:
    receipts = [{"seconds": 1800.0, "threads": 2}, {"seconds": 3600}, {"host": "elsewhere"}]
    assert report.report(dataset(), receipts=receipts).core_hours == 2
    assert report.report(dataset()).core_hours is None


def test_the_report_is_strict_json() -> None:
    found = report.report(dataset(), [FAILURE]).to_dict()
    again = json.loads(json.dumps(found, allow_nan=False))
    assert (again["cells"], again["done"], again["failed"], again["missing"]) == (12, 6, 1, 5)
    assert again["rows"][0]["evaluations"] == 200
    assert again["failures"] == [FAILURE]
