"""The schema says everything a reader needs, and says it in JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from pipeline import observe, schema

RECORDS = [*schema.VARIABLES.values(), *schema.COORDINATES.values()]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.name)
def test_every_array_is_named_in_words_with_units_and_a_description(record: schema.Variable) -> None:
    for name in ("long_name", "units", "description"):
        assert record.attrs[name], name
    assert set(record.dims) <= set(schema.DIMS)
    assert np.dtype(record.dtype).name == record.dtype
    json.dumps(dict(record.attrs), allow_nan=False)
    assert "_FillValue" not in record.attrs


def test_the_names_and_types_are_those_of_version_1() -> None:
    assert schema.VERSION == 1
    found = {v.name: (v.dims[4:], v.dtype) for v in schema.VARIABLES.values()}
    assert found == {
        "status": ((), "int8"),
        "log_time_to_clusters": (("clusters",), "float64"),
        "merger_smaller_share": (("clusters",), "float32"),
        "merger_larger_share": (("clusters",), "float32"),
        "pair_sync_fraction": (("time",), "float32"),
        "cluster_count": (("time",), "int32"),
        "energy": (("time",), "float32"),
        "order_parameter": (("time",), "float32"),
        "evaluations": ((), "int64"),
        "steps": ((), "int64"),
    }
    assert all(v.dims[:4] == ("n", "d", "beta", "seed") for v in schema.VARIABLES.values())


def test_missing_cells_are_nan_in_floats_and_0_in_integers() -> None:
    for v in schema.VARIABLES.values():
        assert np.isnan(v.fill) if v.dtype.startswith("float") else v.fill == 0, v.name


def test_time_resolved_variables_say_how_they_sample_time_and_are_those_that_the_engine_computes() -> None:
    assert schema.TIME_RESOLVED == observe.TIME_RESOLVED
    assert schema.MERGERS == observe.MERGERS
    for name in schema.TIME_RESOLVED:
        assert schema.VARIABLES[name].attrs["cell_methods"] == "time: point"


def test_status_has_cf_flags() -> None:
    attrs = schema.VARIABLES["status"].attrs
    meanings = dict(zip(attrs["flag_values"], str(attrs["flag_meanings"]).split(), strict=True))
    assert meanings == {schema.MISSING: "missing", schema.DONE: "done", schema.FAILED: "failed"}


def test_log_time_to_clusters_explains_its_infinities_and_nan() -> None:
    text = str(schema.VARIABLES["log_time_to_clusters"].attrs["description"])
    for word in ("+inf", "-inf", "NaN", "clusters", "horizon"):
        assert word in text


def test_kept_variables_come_in_schema_order_with_those_that_always_are() -> None:
    kept = [v.name for v in schema.variables_kept(("energy", "pair_sync_fraction"))]
    assert kept == ["status", "log_time_to_clusters", "pair_sync_fraction", "energy", "evaluations", "steps"]
    with pytest.raises(ValueError, match=r"variables: got \['heat'\]; allowed: "):
        schema.variables_kept(("heat",))


def test_attributes_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        schema.VARIABLES["energy"].attrs["units"] = "J"  # type: ignore[index]


def test_the_schema_needs_neither_zarr_nor_xarray() -> None:
    code = "import sys, pipeline.schema; assert not {'zarr', 'xarray', 'numpy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
