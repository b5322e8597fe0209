"""Figures hold what they say, at the right coordinates, and leave no trace but the files asked for."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pipeline import analyse, figures, schema, theory
from pipeline.figures import style
from tests import mock


@pytest.fixture(autouse=True)
def nothing_global_changes() -> Iterator[None]:
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before


@pytest.fixture(scope="module")
def diagram() -> xr.Dataset:
    """A small diagram like the paper's, with a cell without data."""
    dataset = mock.dataset(
        d=(2, 32), beta=np.linspace(0.1, 9, 12), seeds=6, times=np.linspace(0, 30, 31), horizon=30
    )
    dataset[schema.STATUS][0, 1, 5] = schema.MISSING
    return analyse.summary(dataset)


@pytest.fixture(scope="module")
def growth() -> xr.Dataset:
    """Every cell to consensus, at times far beyond float64."""
    dataset = mock.dataset(
        n=(8, 16), d=(2, 3), beta=np.geomspace(4, 1000, 6), seeds=12, log_times=np.linspace(-3, 2100, 50)
    )
    return analyse.summary(dataset)


def lines(ax: Axes, gid: str) -> list[Line2D]:
    return [line for line in ax.lines if (line.get_gid() or "").startswith(gid)]


def titled(figure: Figure) -> dict[str, Axes]:
    return {ax.get_title(): ax for ax in figure.axes if ax.get_title()}


# ------------------------------------------------------------------------------- the phase diagram


@pytest.mark.parametrize(
    ("n", "beta"), [(32, {10: 5.109904, 20: 6.344740}), (128, {10: 5.912396, 20: 7.219828})]
)
def test_curve_lies_where_the_golden_numbers_say_for_the_n_of_the_data(
    n: int, beta: dict[int, float]
) -> None:
    dataset = mock.dataset(n=(n,), beta=np.linspace(0.1, 9, 8), seeds=2, times=np.linspace(0, 30, 11))
    (curve,) = lines(figures.phase_diagram(analyse.summary(dataset)).axes[0], "prediction")
    for t, expected in beta.items():
        assert np.interp(t, *curve.get_data()) == pytest.approx(expected, abs=2e-3)


def test_curve_of_usa_falls_with_beta() -> None:
    dataset = mock.dataset(beta=np.linspace(0, 9, 8), seeds=2, times=np.linspace(0, 1, 11), dynamics="usa")
    (curve,) = lines(figures.phase_diagram(analyse.summary(dataset)).axes[0], "prediction")
    t, beta = curve.get_data()
    assert np.all(np.diff(t[np.argsort(beta)]) < 0)
    assert np.interp(9.0, beta, t) == pytest.approx(0.68598766887729669, abs=1e-3)


def test_curve_needs_the_field_it_was_derived_for() -> None:
    dataset = mock.dataset(beta=np.linspace(0, 9, 8), seeds=2)
    sweep = json.loads(dataset.attrs["sweep"])
    sweep["dynamics"]["query"]["kind"] = "goe"
    figure = figures.phase_diagram(analyse.summary(dataset.assign_attrs(sweep=json.dumps(sweep))))
    assert not lines(figure.axes[0], "prediction")
    assert not figure.legends


def test_each_mean_is_drawn_at_its_time_and_beta(diagram: xr.Dataset) -> None:
    ax = titled(figures.phase_diagram(diagram))["$d = 2$"]
    mesh = next(artist for artist in ax.collections if isinstance(artist, QuadMesh))
    corners, shown = mesh.get_coordinates(), mesh.get_array()
    for i, j in ((0, 0), (3, 20), (11, 30)):
        point = diagram.isel(n=0, d=0, beta=i, time=j)
        assert corners[i, j, 0] <= float(point["time"]) < corners[i, j + 1, 0]
        assert corners[i, j, 1] < float(point["beta"]) < corners[i + 1, j, 1]
        assert shown[i, j] == float(point["pair_sync_mean"])


def test_points_without_data_stay_empty(diagram: xr.Dataset) -> None:
    ax = titled(figures.phase_diagram(diagram))["$d = 32$"]
    mesh = next(artist for artist in ax.collections if isinstance(artist, QuadMesh))
    assert np.ma.getmaskarray(mesh.get_array())[5].all()
    assert np.ma.getmaskarray(mesh.get_array()).sum() == 31


def test_several_n_and_d_make_a_grid_of_panels() -> None:
    dataset = mock.dataset(n=(8, 32), d=(2, 8, 32), beta=(1.0, 2.0, 3.0), seeds=2, times=(0, 1, 2))
    panels = titled(figures.phase_diagram(analyse.summary(dataset)))
    assert len(panels) == 6
    assert r"$n = 32,\ d = 8$" in panels
    for title, ax in panels.items():
        (curve,) = lines(ax, "prediction") or [None]
        if curve is not None and curve.get_xdata().size:
            n = 8 if "n = 8" in title else 32
            t, beta = curve.get_data()
            assert math.exp(theory.equiangular_log_time(1e-3, beta[0], n)) == pytest.approx(t[0])


@pytest.mark.parametrize(
    ("times", "label", "scale"),
    [
        ({"times": np.linspace(0, 30, 9)}, r"time $t$", "linear"),
        ({"times": np.geomspace(0.01, 1000, 9)}, r"time $t$", "log"),
        ({"log_times": np.linspace(-3, 800, 9)}, r"$\log_{10} t$", "linear"),
    ],
)
def test_time_axis_suits_the_save_times(times: dict[str, np.ndarray], label: str, scale: str) -> None:
    dataset = mock.dataset(beta=np.linspace(0.1, 9, 5), seeds=2, **times)
    ax = figures.phase_diagram(analyse.summary(dataset)).axes[0]
    assert (ax.get_xlabel(), ax.get_xscale()) == (label, scale)
    if "log_times" in times:
        left, right = ax.get_xlim()
        half = 803 / 16 / math.log(10)  # half a cell, beyond the first and the last save time
        assert (left, right) == pytest.approx((-3 / math.log(10) - half, 800 / math.log(10) + half))


def test_colours_get_darker_in_even_steps() -> None:
    """Lightness of CIE Lab from sRGB: monotone, and no step more than a third off the mean."""
    rgb = style.light_to_dark()(np.linspace(0, 1, 65))[:, :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lightness = 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16
    steps = -np.diff(lightness)
    assert np.all(steps > 0)
    assert np.all(np.abs(steps / steps.mean() - 1) < 0.34)


# ------------------------------------------------------------------------------- plateaus and mergers


def test_median_count_steps_down_at_the_median_merge_times(growth: xr.Dataset) -> None:
    ax = figures.cluster_count(growth).axes[0]
    (median,) = lines(ax, "median n=8")
    x, count = median.get_data()
    point = growth.isel(n=0, d=0, beta=0)["merge_log_time"].sel(quantile=0.5)
    for k in range(1, 8):
        merged = float(point.sel(clusters=k))
        at = x >= math.exp(merged) * (1 - 1e-12)
        assert count[at].max() <= k
        assert count[~at].min() > k


def test_fastest_mode_is_marked_on_the_circle_only(growth: xr.Dataset) -> None:
    figure = figures.cluster_count(growth)
    by_title = titled(figure)
    (mark,) = lines(by_title[r"$\beta = 4$"], "fastest mode")
    assert mark.get_ydata()[0] == 3
    assert sum(len(lines(ax, "fastest mode")) for ax in figure.axes) == 1  # the others need more tokens


def test_exact_two_clusters_are_drawn_at_the_cosine_of_the_slope(growth: xr.Dataset) -> None:
    ax = titled(figures.merge_time(growth))["$d = 3$"]
    (curve,) = lines(ax, "two clusters")
    cosine = 1 - float(growth["merge_slope"].isel(n=-1, d=1))
    beta, decades = curve.get_data()
    expected = theory.two_cluster_log_time(beta, cosine, 1e-3) / math.log(10)
    np.testing.assert_allclose(decades, expected, rtol=1e-12)
    assert decades[-1] > 308  # beyond float64


def test_medians_and_intervals_are_drawn_in_decades(growth: xr.Dataset) -> None:
    ax = titled(figures.merge_time(growth))["$d = 2$"]
    times = growth["merge_log_time"].isel(n=0, d=0).sel(clusters=1, quantile=0.5).values
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(dots.get_ydata(), times / math.log(10))


def test_a_dimension_without_a_fit_is_left_out_and_named(growth: xr.Dataset) -> None:
    assert "no fit" not in figures.merge_time(growth).get_suptitle()
    names = [name for name in growth if str(name).startswith(("merge_slope", "merge_intercept"))]
    lacking = growth.assign({name: growth[name].where(growth["d"] != 3) for name in names})
    figure = figures.merge_time(lacking)
    assert "$d = 3$" not in titled(figure)
    assert figure.get_suptitle().endswith("no fit at d = 3")


def test_maps_write_the_plateau_into_its_cell(growth: xr.Dataset) -> None:
    ax = titled(figures.plateau_n(growth))["$d = 3$"]
    length = growth["plateau_length_median"].isel(d=1).values / math.log(10)
    texts = {(round(t.get_position()[0], 6), t.get_position()[1]): t.get_text() for t in ax.texts}
    assert len(texts) == length.size
    for i, j in np.ndindex(length.shape):
        written = float(texts[round(float(growth["beta"][j]), 6), i])
        assert written == pytest.approx(length[i, j], abs=0.5 if length[i, j] >= 9.95 else 0.05)


def test_plateaus_cut_by_the_horizon_are_hatched() -> None:
    dataset = mock.dataset(n=(8, 16), beta=(1.0, 8.0, 64.0), seeds=5, horizon=30, times=(0, 30))
    summary = analyse.summary(dataset)
    figure = figures.plateau_n(summary)
    assert figure.legends
    hatched = [c for c in figure.axes[0].collections if c.get_hatch()]
    assert len(hatched) == (summary["plateau_censored_share"] >= 0.5).sum() == 4  # the larger beta, both n


# ------------------------------------------------------------------------------- single trajectories

CHANGES = [-math.inf, 0.0, 20.0, 70.0]
PARTITIONS = [[0, 1, 2, 3], [0, 0, 2, 3], [0, 0, 2, 2], [0, 0, 0, 0]]
LINKAGE = [[0, 1, 0.0, 2], [2, 3, 20.0, 2], [4, 5, 70.0, 4]]


def test_staircase_predicts_each_level_from_the_weights() -> None:
    weights, log_t = [1.0, 2.0, 3.0, 4.0], np.linspace(-5, 80, 50)
    ax = figures.energy_staircase(log_t, np.ones(50), CHANGES, PARTITIONS, weights).axes[0]
    drawn = {line.get_gid(): line for line in lines(ax, "level")}
    expected = {"level 3": 0.34, "level 2": 0.58, "level 1": 1.0}
    assert {gid: line.get_ydata()[0] for gid, line in drawn.items()} == pytest.approx(expected)
    np.testing.assert_allclose(drawn["level 2"].get_xdata(), np.array([20, 70]) / math.log(10))


def test_tree_has_a_branch_for_each_cluster_from_its_birth_to_its_merger() -> None:
    ax = figures.dendrogram(LINKAGE, [1, 1, 1, 1], origin=5.0).axes[0]
    spans = {
        tuple(np.round(line.get_xdata() * math.log(10), 6))
        for line in ax.lines
        if line.get_ydata()[0] == line.get_ydata()[1]
    }
    assert {(5.0, 75.0), (25.0, 75.0)} <= spans
    leaves = [line for line in ax.lines if line.get_xdata()[0] < 5 / math.log(10)]
    assert sorted(line.get_ydata()[0] for line in leaves) == [0, 1, 2, 3]


def test_tree_draws_what_has_not_merged_and_refuses_what_never_did() -> None:
    open_end = [[0, 1, 1.0, 2], [2, 3, 4.0, 2], [4, 5, math.inf, 4]]
    ax = figures.dendrogram(open_end, [1, 1, 1, 1]).axes[0]
    assert np.isfinite([line.get_xdata() for line in ax.lines]).all()
    with pytest.raises(ValueError, match="linkage: got no merger"):
        figures.dendrogram([[0, 1, math.inf, 2]], [1, 1])


@pytest.mark.parametrize("d", [2, 3])
def test_tokens_are_drawn_where_they_are(d: int) -> None:
    x = np.zeros((3, 4, d))
    x[..., 0], x[0, 1], x[1, 2:] = 1.0, np.eye(d)[1], -np.eye(d)[1]
    figure = figures.tokens(
        x, [-math.inf, 5.0, 1000.0], [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]], [1, 1, 1, 1]
    )
    assert [ax.get_title() for ax in figure.axes] == ["$t = 0$", "$t = 1.5e+02$", "$t = 10^{434}$"]
    centres = [np.ravel(c.get_offsets()) for c in figure.axes[2].collections]
    if d == 2:
        np.testing.assert_allclose(centres, [[1, 0], [1, 0]])
    assert np.hypot(*np.transpose(centres)).max() <= 1 + 1e-12


def test_tokens_need_a_circle_or_a_sphere() -> None:
    with pytest.raises(
        ValueError, match=r"snapshots: got shape \(1, 2, 4\); allowed: \(s, n, 2\) or \(s, n, 3\)"
    ):
        figures.tokens(np.zeros((1, 2, 4)), [0.0], [[0, 1]], [1, 1])


# ------------------------------------------------------------------------------- files and refusals


def test_draw_writes_png_and_pdf_of_all_that_the_dataset_can_give(growth: xr.Dataset, tmp_path: Path) -> None:
    given = growth.drop_vars("pair_sync_mean")
    written = figures.draw(given, None, tmp_path / "new" / "folder")
    names = ["cluster_count", "plateau_n", "plateau_d", "merge_time"]
    assert [path.name for path in written] == [f"{name}.{end}" for name in names for end in ("png", "pdf")]
    for path in written:
        start = path.read_bytes()[:5]
        assert start == b"%PDF-" if path.suffix == ".pdf" else start[1:4] == b"PNG"


def test_equal_figures_are_equal_files(diagram: xr.Dataset, tmp_path: Path) -> None:
    a, b = (figures.draw(diagram, ["phase_diagram"], tmp_path / name) for name in "ab")
    assert [path.read_bytes() for path in a] == [path.read_bytes() for path in b]


def test_lazy_summaries_are_drawn_alike(tmp_path: Path) -> None:
    dataset = mock.dataset(beta=(1.0, 4.0, 8.0, 16.0, 32.0), seeds=4)
    for name in ("phase_diagram", "merge_time"):
        eager, lazy = (
            figures.FIGURES[name](analyse.summary(one)) for one in (dataset, dataset.chunk(beta=2))
        )
        for one, other in zip(eager.axes[0].lines, lazy.axes[0].lines, strict=True):
            np.testing.assert_array_equal(one.get_data(), other.get_data())


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "phase_diagram",
            {"variables": ("energy",)},
            "phase_diagram needs pair_sync_fraction, which this dataset did not keep",
        ),
        (
            "phase_diagram",
            {"beta": (1.0,)},
            "phase_diagram needs several values of beta, this dataset has one",
        ),
        ("cluster_count", {"seeds": 1}, "cluster_count needs several seeds, this dataset has one"),
        ("plateau_n", {}, "plateau_n needs several values of n, this dataset has one"),
        ("plateau_n", {"n": (4, 8), "clusters_kept": 1}, "plateau_n needs plateau_length_median, which"),
        ("merge_time", {"beta": (1.0,)}, "merge_time needs several values of beta, this dataset has one"),
        (
            "merge_time",
            {"missing": 1.0},
            "merge_time has nothing to show: no finished cell has a finite merge_log_time",
        ),
        (
            "merge_time",
            {"beta": (1.0, 2.0, 3.0)},
            "merge_time needs 3 beta from 4 on at which half of the seeds",
        ),
    ],
)
def test_figure_that_a_dataset_cannot_give_says_so_in_one_line(
    name: str, change: dict[str, object], message: str, tmp_path: Path
) -> None:
    summary = analyse.summary(mock.dataset(**change))
    with pytest.raises(figures.Unavailable, match=f"^figures: {message}") as refusal:
        figures.draw(summary, [name], tmp_path)
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_dataset_that_gives_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(figures.Unavailable, match=r"^figures: phase_diagram has nothing to show"):
        figures.draw(analyse.summary(mock.dataset(missing=1.0)), None, tmp_path)


def test_unknown_names_and_raw_datasets_are_refused(diagram: xr.Dataset, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="figures: got 'phase'; allowed: phase_diagram, cluster_count"):
        figures.draw(diagram, ["phase_diagram", "phase"], tmp_path)
    with pytest.raises(ValueError, match=r"needed: what analyse\.summary makes of it"):
        figures.draw(mock.dataset(), None, tmp_path)
    assert not list(tmp_path.iterdir())


def test_figures_need_neither_pyplot_nor_latex() -> None:
    script = "import sys; from pipeline import figures; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    with figures.look():
        assert not matplotlib.rcParams["text.usetex"]


def test_numbers_are_set_like_a_paper() -> None:
    assert [style.power(v) for v in (1e-3, 5e-4, 0.25, 2.0, 1e-9)] == [
        "10^{-3}",
        r"5\times 10^{-4}",
        "0.25",
        "2",
        "10^{-9}",
    ]


def test_axes_are_logarithmic_when_their_values_are_spread_so() -> None:
    assert style.is_log_spaced(np.geomspace(1, 256, 9))
    assert not style.is_log_spaced(np.linspace(0.1, 9, 90))
    assert not style.is_log_spaced(np.array([0.0, 1.0, 10.0]))
    np.testing.assert_allclose(
        style.edges(np.array([1.0, 10.0, 100.0]), log=True), 10 ** np.array([-0.5, 0.5, 1.5, 2.5])
    )
    np.testing.assert_allclose(style.edges(np.array([0.0, 1.0, 3.0])), [0.0, 0.5, 2.0, 4.0])
    np.testing.assert_allclose(style.edges(np.array([-1.0, 1.0, 3.0])), [-2.0, 0.0, 2.0, 4.0])
