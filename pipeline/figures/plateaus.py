"""Maps of the metastable plateau: how long it lasts and how many clusters it has, over (β, n) and (β, d)."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from pipeline import schema
from pipeline.figures import style

MOST_ANNOTATED = 14  # columns of a map in which numbers still fit
WORTH = 2.0  # a stay that lasts less than this factor in time is no plateau, and its clusters are not shown


@style.styled
def plateau_n(summary: xr.Dataset) -> Figure:
    """Median length of the plateau and median number of clusters on it over (β, n), one column for each d."""
    return _maps(summary, "plateau_n", schema.N, schema.D)


@style.styled
def plateau_d(summary: xr.Dataset) -> Figure:
    """Median length of the plateau and median number of clusters on it over (β, d), one column for each n."""
    return _maps(summary, "plateau_d", schema.D, schema.N)


def _maps(summary: xr.Dataset, name: str, upwards: str, across: str) -> Figure:
    """Both maps, lengths in decades of time.

    Hatched: half of the seeds or more had not reached consensus at the horizon, so that the length is a lower
    bound, or may have a longer plateau among counts that were not kept. Grey: no data, or
    a stay of less than a factor of two.
    """
    variables = ("length_median", "clusters_median", "censored_share", "hidden_share")
    names = (f"plateau_{variable}" for variable in variables)
    summary = style.need(summary, name, *names, several=(schema.BETA, upwards))
    levels, columns = summary[upwards].values, summary[across].values
    width = min(style.WIDTH, 1.5 + 2.4 * columns.size)
    figure, axes = style.panels(
        2,
        columns.size,
        height=max(1.9, 0.9 + 0.3 * min(levels.size, 8)),
        width=width,
        sharex=True,
        sharey=True,
    )
    length = summary["plateau_length_median"] / style.LN10
    clusters = summary["plateau_clusters_median"].where(length >= math.log10(WORTH))
    rows = (
        (length, _norm(length, 0.1, 1.0), "plateau length, decades"),
        (clusters, _norm(clusters, 2.0, 8.0), "clusters on the plateau"),
    )
    for row, (values, norm, label) in enumerate(rows):
        for column, value in enumerate(columns):
            ax = axes[row, column]
            at = values.isel({across: column}).transpose(upwards, schema.BETA)
            mesh = _map(ax, at, levels, norm)
            _doubt(ax, summary.isel({across: column}), upwards)
            if row == 0:
                ax.set_title(f"${across} = {value}$")
            ax.set_xlabel(r"inverse temperature $\beta$" if row == 1 else "")
            if column == 0:
                ax.set_ylabel("tokens $n$" if upwards == schema.N else "dimension $d$")
        bar = figure.colorbar(mesh, ax=axes[row], aspect=12, pad=0.02, fraction=0.08)
        bar.set_label(label)
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
        bar.outline.set_linewidth(0.6)
    keys: list[tuple[Artist, str]] = []
    if bool(clusters.isnull().any()):
        keys.append((Patch(facecolor=style.NO_DATA, lw=0), "no plateau, or no data"))
    if bool(_doubtful(summary).any()):
        hatched = Patch(facecolor="white", edgecolor=style.INK, hatch="////", lw=0.4)
        keys.append((hatched, "at least this long"))
    style.caption(figure, "medians over seeds", [key for key, _ in keys], [text for _, text in keys])
    return figure


def _map(ax: Axes, values: xr.DataArray, levels: style.Array, norm: Normalize) -> QuadMesh:
    beta = values[schema.BETA].values
    log = style.beta_scale(ax, beta, which="x")
    ax.set_facecolor(style.NO_DATA)
    shown = np.ma.masked_where(np.isnan(values.values), values.values)
    cmap = style.light_to_dark()
    mesh = ax.pcolormesh(
        style.edges(beta, log=log),
        np.arange(levels.size + 1) - 0.5,
        np.minimum(shown, float(norm.vmax or 1.0)),
        cmap=cmap,
        norm=norm,
        rasterized=True,
    )
    ax.yaxis.set_major_locator(FixedLocator(range(levels.size)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{levels[round(value)]}"))
    ax.tick_params(axis="y", length=0)
    if beta.size <= MOST_ANNOTATED:
        for (i, j), value in np.ndenumerate(values.values):
            if np.isnan(value):
                continue
            depth = float(norm(value))
            ink, casing = "white" if depth > 0.45 else style.INK, style.halo(2.5, cmap(depth))
            text = _figure(value)
            ax.text(
                float(beta[j]), i, text, ha="center", va="center", size=7.5, color=ink, path_effects=casing
            )
    return mesh


def _figure(value: float) -> str:
    """Two digits, or what stands for what never ends."""
    if np.isinf(value):
        return r"$\infty$"
    return f"{value:.0f}" if value >= 9.95 or value == round(value) else f"{value:.1f}"


def _norm(values: xr.DataArray, low: float, high: float) -> Normalize:
    """Logarithmic from `low`, which stands for all below, to what there is but at least to `high`."""
    seen = values.values[np.isfinite(values.values)]
    return LogNorm(low, float(seen.max(initial=high)), clip=True)


def _doubtful(summary: xr.Dataset) -> xr.DataArray:
    return (summary["plateau_censored_share"] >= 0.5) | (summary["plateau_hidden_share"] >= 0.5)


def _doubt(ax: Axes, column: xr.Dataset, upwards: str) -> None:
    beta = column[schema.BETA].values
    borders = style.edges(beta, log=ax.get_xscale() == "log")
    for i, j in np.argwhere(_doubtful(column).transpose(upwards, schema.BETA).values):
        ax.fill_between(
            borders[j : j + 2], i - 0.5, i + 0.5, facecolor="none", edgecolor=style.INK, hatch="////", lw=0
        )
