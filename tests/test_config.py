"""Configuration: the grammar of axes, composition with whole axes, strict shapes, and every file in conf/."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pipeline import config, dynamics, integrate, schema
from pipeline.config import axes, composition, models

CONF = Path(__file__).resolve().parents[1] / "conf"
EXPERIMENTS = sorted(file.stem for file in (CONF / "experiment").glob("*.yaml"))

finite = st.floats(allow_nan=False, allow_infinity=False)
tenths = st.integers(-10_000, 10_000)


def floats(value: Any, **how: Any) -> tuple[float, ...]:
    return axes.axis(value, key="grid.beta", integer=False, **how)


def integers(value: Any) -> tuple[int, ...]:
    return tuple(int(x) for x in axes.axis(value, key="grid.n", integer=True))


# --- the grammar of an axis


@given(st.lists(finite, min_size=1, max_size=30))
def test_an_axis_is_sorted_and_reading_it_again_changes_nothing(values: list[float]) -> None:
    distinct = list({axes.rounded(v): v for v in values}.values())
    axis = floats(distinct)
    assert all(a < b for a, b in itertools.pairwise(axis))
    assert floats(list(axis)) == axis
    assert all(
        math.isclose(a, b, rel_tol=1e-11, abs_tol=0) for a, b in zip(axis, sorted(distinct), strict=True)
    )


@given(st.lists(finite, min_size=1, max_size=10), st.data())
def test_a_value_that_comes_twice_is_refused(values: list[float], data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(values))
    with pytest.raises(ValueError, match="twice"):
        floats([*values, axes.rounded(again)])


@given(st.integers(-(10**12) + 1, 10**12 - 1), st.integers(-200, 200))
def test_what_differs_from_a_typed_value_in_the_last_bits_is_that_value(digits: int, power: int) -> None:
    x = float(f"{digits}e{power}")
    below, above = math.nextafter(x, -math.inf), math.nextafter(x, math.inf)
    assert axes.rounded(x) == x
    assert x == 0 or axes.rounded(below) == axes.rounded(above) == x
    assert math.copysign(1, axes.rounded(-0.0)) == 1


def test_hand_typed_and_computed_values_agree() -> None:
    assert floats([0.1 * 3]) == floats([0.3]) == (0.3,)
    assert floats({"start": 0.1, "stop": 9, "num": 90}) == tuple(float(f"{k / 10:.1f}") for k in range(1, 91))
    assert floats({"start": 1, "stop": 256, "num": 9, "spacing": "log"}) == tuple(2.0**k for k in range(9))
    assert floats({"start": 1e-3, "stop": 1e3, "num": 7, "spacing": "log"}) == (
        1e-3,
        1e-2,
        0.1,
        1,
        10,
        100,
        1000,
    )


@given(tenths, st.integers(1, 500), st.integers(2, 200))
def test_linear_spacing_gives_the_decimals_that_a_hand_would_type(first: int, step: int, num: int) -> None:
    axis = floats({"start": first / 10, "stop": (first + step * (num - 1)) / 10, "num": num})
    assert axis == tuple(float(Fraction(first + step * i, 10)) for i in range(num))


@given(st.floats(1e-6, 1e6), st.floats(1.001, 1e6), st.integers(2, 100))
def test_log_spacing_has_equal_ratios_and_exact_ends(start: float, ratio: float, num: int) -> None:
    axis = floats({"start": start, "stop": start * ratio, "num": num, "spacing": "log"})
    assert (axis[0], axis[-1]) == (axes.rounded(start), axes.rounded(start * ratio))
    steps = [math.log(b / a) for a, b in itertools.pairwise(axis)]
    assert max(steps) - min(steps) < 1e-10


def test_whole_numbers_come_from_every_form() -> None:
    assert integers(7) == (7,)
    assert integers([3, 2.0]) == (2, 3)
    assert integers({"start": 16, "stop": 256, "num": 3, "spacing": "log"}) == (16, 64, 256)
    assert integers({"start": 0, "stop": 2**53 + 1, "num": 2}) == (0, 2**53 + 1)


BAD_AXES = {
    "nan": math.nan,
    "infinity": [1.0, math.inf],
    "a bool": True,
    "a bool in a list": [1, False],
    "text": "4",
    "text in a list": [1, "2"],
    "nothing": None,
    "a list in a list": [[1], 2],
    "an empty list": [],
    "twice the same": [1, 2, 1],
    "twice the same to 12 digits": [0.3, 0.1 * 3],
    "unknown key": {"start": 1, "stop": 2, "nun": 3},
    "no start": {"stop": 2, "num": 3},
    "no num": {"start": 1, "stop": 2},
    "num of 0": {"start": 1, "stop": 2, "num": 0},
    "num of 1.5": {"start": 1, "stop": 2, "num": 1.5},
    "num beyond memory": {"start": 1, "stop": 2, "num": 10**9},
    "one value from two ends": {"start": 1, "stop": 2, "num": 1},
    "many values from one end": {"start": 1, "stop": 1, "num": 2},
    "backwards": {"start": 2, "stop": 1, "num": 2},
    "unknown spacing": {"start": 1, "stop": 2, "num": 2, "spacing": "cubic"},
    "log from 0": {"start": 0, "stop": 2, "num": 2, "spacing": "log"},
    "log_time where there is no time": {"start": 1, "stop": 2, "num": 2, "spacing": "log_time"},
    "finer than 12 digits": {"start": 1, "stop": 1 + 1e-11, "num": 99},
}


@pytest.mark.parametrize("value", BAD_AXES.values(), ids=BAD_AXES)
def test_a_bad_axis_is_refused_in_one_line(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^grid\.beta[^\n]*: [^\n]*allowed[^\n]*$"):
        floats(value)


@pytest.mark.parametrize("value", [1.5, [2, 2.5], {"start": 1, "stop": 2, "num": 3}])
def test_fractions_are_no_whole_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^grid\.n: got [12]\.5; allowed: whole numbers$"):
        integers(value)


# --- an override replaces an axis whole

FORMS: dict[str, Any] = {
    "int": 4,
    "float": 2.5,
    "list": [1, 2, 3],
    "mapping": {"start": 1, "stop": 9, "num": 5},
    "spaced": {"start": 2, "stop": 8, "num": 3, "spacing": "log"},
}
PAIRS = list(itertools.product(FORMS, repeat=2))


def everywhere(value: Any) -> dict[str, Any]:
    return {"grid": dict.fromkeys(schema.CELL_DIMS, value), "times": value}


def experiment(folder: Path, name: str, content: dict[str, Any], *parents: str) -> None:
    head = "# @package _global_\n" + (f"defaults: [{', '.join(parents)}]\n" if parents else "")
    (folder / "experiment").mkdir(exist_ok=True)
    (folder / "experiment" / f"{name}.yaml").write_text(head + yaml.safe_dump(content))


def flow(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1000).splitlines()[0]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_the_command_line_replaces_an_axis_of_any_form_by_any_form(
    before: str, after: str, tmp_path: Path
) -> None:
    experiment(tmp_path, "mine", everywhere(FORMS[before]))
    overrides = [f"{key}={flow(FORMS[after])}" for key in composition.AXES]
    composed = composition.compose(["experiment=mine", *overrides], extra=str(tmp_path))
    assert {"grid": composed["grid"], "times": composed["times"]} == everywhere(FORMS[after])


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_an_experiment_replaces_an_axis_of_any_form_by_any_form(
    before: str, after: str, tmp_path: Path
) -> None:
    experiment(tmp_path, "base", everywhere(FORMS[before]))
    experiment(tmp_path, "mine", everywhere(FORMS[after]), "base", "_self_")
    composed = composition.compose(["experiment=mine"], extra=str(tmp_path))
    assert {"grid": composed["grid"], "times": composed["times"]} == everywhere(FORMS[after])


@pytest.mark.parametrize("form", FORMS)
def test_a_group_given_as_a_mapping_replaces_its_axes_whole(form: str) -> None:
    spaced = {"start": 2, "stop": 8, "num": 3, "spacing": "log"}
    composed = composition.compose(
        [f"grid={flow({'beta': spaced})}", f"++grid={flow({'beta': FORMS[form]})}"]
    )
    assert composed["grid"]["beta"] == FORMS[form]


def test_an_axis_may_follow_another_key() -> None:
    assert composition.compose(["horizon=7"])["times"] == {"start": 0, "stop": 7, "num": 61}
    assert composition.compose(["times=${grid.beta}", "grid.beta=[1, 2]"])["times"] == [1, 2]


SPLIT_BY_A_SHELL = [
    ["grid.beta=start:1", "grid.beta=stop:2", "grid.beta=num:3"],
    ["grid.beta=start:1"],
    ["grid.n=16", "grid.n=32"],
    ["times=start:0", "times=stop:3"],
    ["dynamics.key=kind:goe", "dynamics.key=seed:3"],
    ["grid=n:3", "grid=d:4"],
    ["grid.beta={start:", "1,", "stop:", "2}"],
    ["grid.d=[2,", "8]"],
]


@pytest.mark.parametrize("words", SPLIT_BY_A_SHELL, ids=" ".join)
def test_what_a_shell_makes_of_unquoted_braces_is_refused_with_advice_to_quote(words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^[\w.]+: got [^\n]*quote[^\n]*$"):
        composition.compose(words)


def test_a_part_of_an_axis_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^grid\.beta: got grid\.beta\.num=3, a part"):
        composition.compose(["grid.beta.num=3"])


def test_an_experiment_may_be_chosen_with_a_plus_and_taken_back() -> None:
    demo = composition.compose(["experiment=demo"])
    assert composition.compose(["+experiment=demo"]) == demo
    assert composition.compose(["experiment=null"]) == composition.compose(["~experiment"])
    assert composition.compose(["experiment=null"]) == composition.compose()


def test_the_groups_are_those_of_the_primary_file() -> None:
    defaults = yaml.safe_load((CONF / "config.yaml").read_text())["defaults"]
    chosen = [key for entry in defaults if isinstance(entry, dict) for key in entry if "override" not in key]
    assert tuple(chosen) == composition.GROUPS


# --- from composition to typed objects


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_a_valid_sweep(name: str) -> None:
    settings = config.load([f"experiment={name}"])
    assert settings.sweep.cells > 0
    assert settings.path == Path(f"runs/{name}.zarr")


def options(group: str) -> list[str]:
    return [f"{group}={file.stem}" for file in sorted((CONF / group).glob("*.yaml"))]


@pytest.mark.parametrize(
    "choice", [c for g in ("grid", "dynamics", "integrator", "workers", "store") for c in options(g)]
)
def test_every_choice_of_every_group_is_a_valid_sweep(choice: str) -> None:
    needs = {"workers=connect": ["workers.address='tcp://10.0.0.1:8786'"]}
    assert config.load([choice, *needs.get(choice, [])]).sweep.cells > 0


def test_every_file_in_conf_is_reached_by_these_tests() -> None:
    reached = {"experiment", "grid", "dynamics", "integrator", "workers", "store"}
    assert {file.parent.name for file in CONF.rglob("*.yaml")} <= reached | {"conf"}
    assert [file.name for file in CONF.glob("*.yaml")] == ["config.yaml"]


def test_the_paper_is_as_published() -> None:
    for name, field, horizon in (
        ("paper_phase_diagram", "sa", 30.0),
        ("paper_phase_diagram_usa", "usa", 1.0),
    ):
        sweep = config.load([f"experiment={name}"]).sweep
        assert (sweep.n, sweep.d) == ((32,), (2, 8, 32, 128, 512, 1024))
        assert (len(sweep.beta), sweep.beta[0], sweep.beta[-1]) == (90, 0.1, 9.0)
        assert sweep.seed == tuple(range(2048))
        assert (sweep.dynamics.name, sweep.horizon, sweep.tolerance) == (field, horizon, 1e-3)
        assert (len(sweep.times.values), sweep.times.values[-1]) == (200, horizon)
        assert sweep.variables == (schema.PAIR_SYNC_FRACTION,)


def test_metastability_runs_to_consensus_in_log_time() -> None:
    small, large = (config.load([f"experiment=metastability{x}"]).sweep for x in ("", "_large"))
    assert (small.n, small.d, len(small.seed)) == ((16, 64), (2, 3, 8), 256)
    assert (large.n, large.d, len(large.seed)) == ((256,), (2, 3, 8), 16)
    for sweep in (small, large):
        assert sweep.beta == (1, 2, 4, 8, 16, 32, 64, 128, 256)
        assert sweep.horizon is None
        assert sweep.times.logarithmic
        assert sweep.times.values[-1] > 2 * 256


def test_the_keys_that_papers_quote_mean_what_they_say() -> None:
    settings = config.load(
        [
            "grid.n=3",
            "grid.d=[2, 3]",
            "grid.beta={start: 0, stop: 1, num: 3}",
            "grid.seed=1000",
            "root_seed=5",
            "dynamics=usa",
            "dynamics.key.kind=goe",
            "integrator=layers",
            "integrator.step=0.05",
            "workers=none",
            "horizon=2.5",
            "times={start: -3, stop: 0.5, num: 8, spacing: log_time}",
            "tolerance=1e-4",
            "store.path=somewhere/x.zarr",
            "variables=[energy]",
            "clusters_kept=2",
            "block=[2, 10]",
        ]
    )
    sweep = settings.sweep
    assert (sweep.n, sweep.d, sweep.beta) == ((3,), (2, 3), (0.0, 0.5, 1.0))
    assert sweep.seed == tuple(range(1000))
    assert sweep.dynamics == dynamics.Dynamics("usa", key=dynamics.Matrix("goe"))
    assert sweep.integrator == integrate.Layers(0.05)
    assert (sweep.root_seed, sweep.horizon, sweep.tolerance, sweep.clusters_kept) == (5, 2.5, 1e-4, 2)
    assert sweep.times.log_times == (-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5)
    assert (sweep.variables, sweep.block) == (("energy",), (2, 10))
    assert settings.path == Path("somewhere/x.zarr")
    assert settings.config["grid"]["seed"] == 1000


def test_two_ways_to_say_the_same_give_the_same_sweep() -> None:
    one = config.load(["grid.seed=4", "grid.beta={start: 0.1, stop: 0.3, num: 3}"]).sweep
    other = config.load(["grid.seed=[3,0,1,2]", f"grid.beta=[0.1,0.2,{0.1 * 3}]"]).sweep
    assert one == other


def test_known_keys_are_the_composed_ones() -> None:
    def flat(value: Any, at: str = "") -> set[str]:
        if not isinstance(value, dict):
            return {at}
        return {k for name, item in value.items() for k in flat(item, f"{at}.{name}" if at else name)}

    known = set(models.keys())
    assert {
        key for key in flat(composition.compose()) if not key.startswith(("times.", "grid.", "workers."))
    } <= known
