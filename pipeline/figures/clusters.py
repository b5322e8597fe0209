"""How the number of clusters falls in log time, as a fan of quantiles."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from pipeline import schema, theory
from pipeline.figures import style

CROWD = 4  # tokens for each cluster, from which on they are a crowd that a mode can grow in
COLUMNS = 4  # inverse temperatures shown, spread evenly over those of the sweep


@style.styled
def cluster_count(summary: xr.Dataset) -> Figure:
    """Quantiles over seeds of the number of clusters against log time: a row for each d, a column for some β.

    The line is the median; the bands hold the middle half and the middle 90 percent of the seeds; there is a
    colour for each n. They are exact: quantiles of the times to at most k clusters, not of counts at save
    times. Where the line stays flat the tokens are on a plateau; on the circle the mode that grows fastest
    around the uniform measure predicts the first.
    """
    summary = style.need(summary, "cluster_count", "merge_log_time", "cells_done")
    if int(summary["cells_done"].max()) < 2:
        raise style.Unavailable("figures: cluster_count needs several seeds, this dataset has one")
    ns, ds = summary[schema.N].values, summary[schema.D].values
    chosen = np.unique(np.linspace(0, summary.sizes[schema.BETA] - 1, COLUMNS).round().astype(int))
    width = min(style.WIDTH, 1.0 + 2.3 * chosen.size)
    figure, axes = style.panels(ds.size, chosen.size, height=1.6, width=width, sharey=True, sharex="col")
    colours = style.shades(ns.size)
    for column, index in enumerate(chosen):
        at_beta = summary.isel({schema.BETA: index})
        first, last = _span(at_beta)
        time = style.TimeAxis.of_range(last)
        for row, d in enumerate(ds):
            ax = axes[row, column]
            for i in range(ns.size):
                _fan(ax, at_beta.isel({schema.D: row, schema.N: i}), time, (first, last), colours[i])
            ax.set_xlim(*time.place([first, last]))
            time.apply(ax, label=row == ds.size - 1)
            if row == 0:
                ax.set_title(rf"$\beta = {float(at_beta[schema.BETA]):.4g}$")
            if column == 0:
                ax.set_ylabel(f"clusters, $d = {d}$")
            k = int(theory.fastest_mode(float(at_beta[schema.BETA]), 2))
            if d == 2 and k <= ns.max() / CROWD:
                ax.axhline(k, color=style.THEORY, lw=0.9, ls=(0, (4, 3)), gid="fastest mode", zorder=1)
    _count_axis(axes[0, 0], min(int(ns.max()), summary.sizes[schema.CLUSTERS]))
    handles: list[Artist] = [Patch(color=colour) for colour in colours]
    labels = [f"$n = {n}$" for n in ns]
    if any(line.get_gid() == "fastest mode" for ax in axes.flat for line in ax.lines):
        handles.append(Line2D([], [], color=style.THEORY, lw=0.9, ls=(0, (4, 3))))
        labels.append("$k^*$, fastest mode on the circle")
    style.caption(figure, "median, middle 50 % and 90 % of seeds", handles, labels)
    return figure


def _fan(
    ax: Axes, point: xr.Dataset, time: style.TimeAxis, span: tuple[float, float], colour: style.RGBA
) -> None:
    times = point["merge_log_time"].transpose("quantile", schema.CLUSTERS).values
    at = np.unique([*span, *times[(times > span[0]) & (times < span[1])]])
    counts = 1.0 + np.sum(times[:, None, :] > at[:, None], axis=-1)
    if int(point[schema.N]) > times.shape[1]:
        counts[counts > times.shape[1]] = np.nan  # more than were kept
    x, middle = time.place(at), len(times) // 2
    for width, strength in ((middle, 0.2), (middle - 1, 0.32)):
        low, high = counts[middle - width], counts[middle + width]
        ax.fill_between(x, low, high, step="post", color=colour, alpha=strength, lw=0)
    ax.plot(
        x,
        counts[middle],
        drawstyle="steps-post",
        color=colour,
        lw=1.2,
        gid=f"median n={int(point[schema.N])}",
    )


def _span(at_beta: xr.Dataset) -> tuple[float, float]:
    """Log times from before the first typical merger to after the last, or to the horizon."""
    times = at_beta["merge_log_time"].values
    seen, typical = times[np.isfinite(times)], at_beta["merge_log_time"].sel(quantile=0.5).values
    typical = typical[np.isfinite(typical)]
    first, last = (float(typical.min()) if typical.size else 0.0, float(seen.max()) if seen.size else 1.0)
    if np.isposinf(times).any():
        last = max(last, at_beta.attrs.get("log_horizon", last))
    margin = 0.03 * (last - first) + 0.1
    return first - margin, min(last + margin, at_beta.attrs.get("log_horizon", math.inf))


def _count_axis(ax: Axes, n: int) -> None:
    ax.set_yscale("log", base=2)
    ax.set_ylim(0.9, 1.12 * n)
    ax.yaxis.set_major_locator(
        FixedLocator([2.0**k for k in range(int(np.log2(n)) + 1)][:: 1 if n <= 32 else 2])
    )
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
