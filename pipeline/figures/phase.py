"""The phase diagram: which share of the pairs is together, over time and inverse temperature."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pipeline import schema, theory
from pipeline.figures import style


@style.styled
def phase_diagram(summary: xr.Dataset) -> Figure:
    """Heat maps of the mean share of pairs that are together over (t, β), one panel for each d (and n).

    Over each lies the high-dimensional prediction {(t, β): γ_β(t) = 1 − δ} for the panel's own n, exact as
    d → ∞ (MPT §6.2), if the sweep's field has one. Grey is no data.
    """
    both = (schema.BETA, schema.TIME)
    summary = style.need(summary, "phase_diagram", "pair_sync_mean", "seeds", several=both)
    ns, ds = summary[schema.N].values, summary[schema.D].values
    rows, columns = style.grid_shape(ds.size) if ns.size == 1 else (ns.size, ds.size)
    width = min(style.WIDTH, 1.3 + 2.6 * columns)
    figure, axes = style.panels(
        rows, columns, height=2.0 if rows > 1 else 2.3, width=width, sharex=True, sharey=True
    )
    time = style.TimeAxis.of_saves(summary)
    mesh: ScalarMappable | None = None
    for index, ax in enumerate(axes.flat):
        if index >= ns.size * ds.size:
            ax.remove()
            continue
        point = summary.isel({schema.N: index // ds.size, schema.D: index % ds.size})
        mesh = _heat(ax, point, time)
        _predict(ax, point, time)
        d, n = int(point[schema.D]), int(point[schema.N])
        ax.set_title(f"$d = {d}$" if ns.size == 1 else f"$n = {n},\\ d = {d}$")
        time.apply(ax, label=index + columns >= ns.size * ds.size)
        ax.set_ylabel(r"inverse temperature $\beta$" if index % columns == 0 else "")
    assert mesh is not None
    bar = figure.colorbar(
        mesh, ax=axes, aspect=14 * rows, fraction=0.05, pad=0.02, ticks=np.linspace(0, 1, 6)
    )
    bar.set_label("mean share of pairs together")
    bar.outline.set_linewidth(0.6)
    curve = Line2D([], [], color=style.THEORY, lw=1.3, path_effects=style.halo(2.8))
    label = r"$\gamma_\beta(t) = 1 - \delta$, the limit $d \to \infty$"
    predicted = _has_prediction(summary)
    style.caption(figure, _title(summary), [curve] if predicted else [], [label] if predicted else [])
    return figure


def _heat(ax: Axes, point: xr.Dataset, time: style.TimeAxis) -> ScalarMappable:
    beta = point[schema.BETA].values
    log = style.beta_scale(ax, beta)
    log_times = point[schema.LOG_TIME].values
    shown = np.isfinite(log_times) | (time.kind == "linear")
    values = point["pair_sync_mean"].transpose(schema.BETA, schema.TIME).values[:, shown]
    ax.set_facecolor(style.NO_DATA)
    return ax.pcolormesh(
        time.edges(log_times[shown]),
        style.edges(beta, log=log),
        np.ma.masked_invalid(values),
        cmap=style.light_to_dark(),
        vmin=0,
        vmax=1,
        rasterized=True,
    )


def _has_prediction(summary: xr.Dataset) -> bool:
    return bool(summary.attrs["identity_matrices"]) and summary.attrs["dynamics"] in ("sa", "usa")


def _predict(ax: Axes, point: xr.Dataset, time: style.TimeAxis) -> None:
    if not _has_prediction(point):
        return
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    low = max(bottom, 0.0)
    beta = np.geomspace(low, top, 600) if ax.get_yscale() == "log" else np.linspace(low, top, 600)
    log_t = theory.equiangular_log_time(
        point.attrs["tolerance"], beta, int(point[schema.N]), dynamics=point.attrs["dynamics"]
    )
    x = time.place(log_t)
    inside = (x >= left) & (x <= right)
    ax.plot(
        x[inside], beta[inside], color=style.THEORY, lw=1.3, path_effects=style.halo(2.8), gid="prediction"
    )
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)


def _title(summary: xr.Dataset) -> str:
    seeds = summary["seeds"].values
    counts = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    tokens = f"$n = {int(summary[schema.N][0])}$ tokens, " if summary.sizes[schema.N] == 1 else ""
    tolerance = rf"$\delta = {style.power(summary.attrs['tolerance'])}$"
    return f"{summary.attrs['dynamics'].upper()}, {tokens}{tolerance}, {counts} seeds"
