"""How the time to consensus grows with β, beside the line fitted to it and two clusters that meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pipeline import schema, theory
from pipeline.figures import style

_DASHES = (0, (4, 2))


@style.styled
def merge_time(summary: xr.Dataset) -> Figure:
    """Median log time to consensus against β with its interval: a column for each d, a colour for each n.

    Above the times, with the fits ln t = a + cβ − ln β of the analysis; below the same data as an exponent,
    ln(βt)/β, which tends to c. Dashed is the exact time of two equal clusters from the inner product that the
    slope of the largest n names, 1 − c (−c under USA): its height is not fitted and tests the prefactor.
    Medians beyond the horizon are left out, as is a d at which no line can be fitted; the caption says so.
    """
    ends = ("", "_lower", "_upper")
    variables = [f"merge_{variable}{end}" for variable in ("log_time", "slope") for end in ends]
    summary = style.need(summary, "merge_time", *variables, "merge_intercept", several=(schema.BETA,))
    has_fit = summary["merge_slope"].notnull().any(schema.N)
    if not has_fit.any():
        start = summary.attrs["merge_slope_beta_min"]
        raise style.Unavailable(
            f"figures: merge_time needs 3 beta from {start:g} on at which half of the seeds reach consensus"
        )
    without = ", ".join(f"{d}" for d in summary[schema.D].values[~has_fit.values])
    summary = summary.isel({schema.D: np.flatnonzero(has_fit.values)})
    ns, ds, beta = (summary[axis].values for axis in (schema.N, schema.D, schema.BETA))
    bands, columns = style.grid_shape(ds.size)
    figure = style.figure(min(style.WIDTH, 1.2 + 2.6 * columns), 0.45 + 4.2 * bands)
    axes = figure.subplots(2 * bands, columns, squeeze=False, sharex=True, height_ratios=(3, 2) * bands)
    medians = summary["merge_log_time"].sel({schema.CLUSTERS: 1, "quantile": 0.5}).values
    log = style.is_log_spaced(beta) and bool(np.all(medians[np.isfinite(medians)] > 0))
    for index in range(bands * columns):
        times, exponents = axes[2 * (index // columns) : 2 * (index // columns) + 2, index % columns]
        if index >= ds.size:
            times.remove()
            exponents.remove()
            continue
        if index:
            times.sharey(axes[0, 0])
            exponents.sharey(axes[1, 0])
        at_d = summary.isel({schema.D: index})
        if log or style.is_log_spaced(beta):
            times.set_xscale("log")
        if log:
            times.set_yscale("log")
        _two_clusters(times, exponents, at_d)
        for i, colour in enumerate(style.shades(ns.size)):
            _measured(times, exponents, at_d.isel({schema.N: i}), colour)
        times.legend(
            title="$n$:  slope $c$",
            loc="upper left",
            fontsize=8,
            title_fontsize=8,
            borderaxespad=0.2,
            handlelength=0.5,
            labelspacing=0.25,
        )
        times.set_title(f"$d = {ds[index]}$")
        if index + columns >= ds.size:
            exponents.set_xlabel(r"inverse temperature $\beta$")
        if index % columns == 0:
            times.set_ylabel(r"$\log_{10}$ of the time to consensus")
            exponents.set_ylabel(r"exponent $\ln(\beta t)/\beta$")
        else:
            times.tick_params(labelleft=False)
            exponents.tick_params(labelleft=False)
    _frame_exponents(axes[1, 0], summary)
    handle = Line2D([], [], color=style.THEORY, lw=1.1, ls=_DASHES)
    style.caption(
        figure,
        r"medians over seeds, fits $t = e^{a + c\beta}/\beta$"
        + (f"; no fit at d = {without}" if without else ""),
        [handle],
        ["two equal clusters, exact"],
    )
    return figure


def _measured(times: Axes, exponents: Axes, point: xr.Dataset, colour: style.RGBA) -> None:
    beta = point[schema.BETA].values
    median, lower, upper = (
        point[f"merge_log_time{end}"].sel({schema.CLUSTERS: 1, "quantile": 0.5}).values
        for end in ("", "_lower", "_upper")
    )
    seen = np.isfinite(median) & (beta > 0)
    if not seen.any():
        return
    beta, median, lower, upper = beta[seen], median[seen], lower[seen], upper[seen]
    ends = (np.where(np.isfinite(end), end, median) for end in (lower, upper))
    reach = np.abs(np.stack([end - median for end in ends]))
    c, low, high = (float(point[f"merge_slope{end}"]) for end in ("", "_lower", "_upper"))
    label = f"{int(point[schema.N])}"
    if np.isfinite(c):
        label += f":  {_number(c)} [{_number(low)}, {_number(high)}]"
        line = np.geomspace(max(point.attrs["merge_slope_beta_min"], beta[0]), beta[-1], 200)
        fitted = float(point["merge_intercept"]) + c * line
        times.plot(line, (fitted - np.log(line)) / style.LN10, color=colour, lw=0.9)
        exponents.plot(line, fitted / line, color=colour, lw=0.9)
    dots: dict[str, Any] = {"fmt": "o", "ms": 3.2, "mew": 0, "elinewidth": 0.9, "color": colour}
    times.errorbar(beta, median / style.LN10, reach / style.LN10, label=label, **dots)
    exponents.errorbar(beta, (median + np.log(beta)) / beta, reach / beta, **dots)


def _number(value: float) -> str:
    return f"${round(value, 2) + 0.0:.2f}$" if np.isfinite(value) else r"$\infty$"


def _two_clusters(times: Axes, exponents: Axes, at_d: xr.Dataset) -> None:
    """At the inner product of the largest n that has a fit, where closed forms apply."""
    dynamics = at_d.attrs["dynamics"]
    slopes = at_d["merge_slope"].values
    fitted = slopes[np.isfinite(slopes)]
    if not (at_d.attrs["identity_matrices"] and dynamics in ("sa", "usa") and fitted.size):
        return
    cosine = (1.0 if dynamics == "sa" else 0.0) - fitted[-1]
    if not -1 < cosine < 1:
        return
    beta = at_d[schema.BETA].values
    line = np.geomspace(max(beta[beta > 0][0], 1.0), max(beta[-1], 1.0), 300)
    log_t = theory.two_cluster_log_time(line, cosine, at_d.attrs["tolerance"], dynamics=dynamics)
    dashed: dict[str, Any] = {"color": style.THEORY, "lw": 1.1, "ls": _DASHES, "zorder": 3}
    times.plot(line, log_t / style.LN10, gid="two clusters", **dashed)
    exponents.plot(line, (log_t + np.log(line)) / line, **dashed)


def _frame_exponents(ax: Axes, summary: xr.Dataset) -> None:
    """Exponents diverge as β → 0: show the upper half, at least, of the β that reach consensus."""
    beta = summary[schema.BETA].where(summary[schema.BETA] > 0)
    at = summary.sel({schema.CLUSTERS: 1, "quantile": 0.5})
    seen = np.abs(at["merge_log_time"]) < np.inf
    half = beta.where(seen).max(schema.BETA) / 2
    shown = seen & (beta >= np.minimum(half, summary.attrs["merge_slope_beta_min"]))
    reach = seen & (beta >= half)
    values = [((at["merge_log_time"] + np.log(beta)) / beta).where(shown).values]
    for end in ("_lower", "_upper"):
        values.append(((at[f"merge_log_time{end}"] + np.log(beta)) / beta).where(reach).values)
    finite = np.concatenate([v[np.isfinite(v)] for v in values])
    if finite.size:
        room = 0.1 * (finite.max() - finite.min()) + 0.03
        ax.set_ylim(finite.min() - room, finite.max() + room)
