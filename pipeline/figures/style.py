"""One look for all figures: type, colours, axes in log time, and how a curve stays visible on any ground.

Nothing global changes: figures are made and saved inside `look()`, and without pyplot. Text is set in the
STIX fonts that come with matplotlib, so no LaTeX and no system font is needed. The colour map is perceptually
uniform and runs from light to dark, so that it reads the same in grey.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec

import matplotlib
import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from pipeline import schema

Array = NDArray[np.float64]
RGBA = tuple[float, float, float, float]
P = ParamSpec("P")

WIDTH = 7.0  # inches of a text column pair
INK = "#1a1a1a"
FAINT = "#8a8a8a"
NO_DATA = "#dcdcdc"
LN10 = math.log(10)

_RC: Any = {  # the type that matplotlib spells out has 300 literals
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "figure.titlesize": 10.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "axes.titlepad": 4.5,
    "axes.unicode_minus": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 1.7,
    "ytick.minor.size": 1.7,
    "lines.linewidth": 1.4,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "figure.facecolor": "white",
    "figure.dpi": 110,
    "savefig.dpi": 220,
    "figure.constrained_layout.w_pad": 0.05,
    "figure.constrained_layout.h_pad": 0.05,
    "pdf.fonttype": 42,
    "hatch.linewidth": 0.5,
}

# For clusters, the heaviest first: apart for the colour-blind, and in lightness.
HUES = ("#1f4e79", "#e0932f", "#3a9d8a", "#a8385d", "#8fb0d9", "#6b5b3e", "#c9c46b", "#7b5aa6")
THEORY = "#d6401f"  # what is predicted and not measured, in every figure

# Equal steps of lightness in Oklab, 0.975 to 0.22, while the hue turns from yellow over green to blue.
_ANCHORS = (
    *("#f8f8ea", "#dbe8c6", "#b4dab0", "#88cba7", "#5cb9a5", "#2da6a4", "#0090a2"),
    *("#00789c", "#146191", "#1c4a81", "#1f366d", "#1d2454", "#15153a"),
)


def look() -> AbstractContextManager[None]:
    """Everything drawn or saved inside has the look; everything outside keeps its own."""
    return matplotlib.rc_context(_RC)


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make a figure inside `look()`."""

    @functools.wraps(draw)
    def made(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with look():
            return draw(*args, **kwargs)

    return made


def light_to_dark() -> Colormap:
    """The sequential map of all heat maps, from ivory over teal to navy; grey where there is no data."""
    return LinearSegmentedColormap.from_list("light_to_dark", _ANCHORS).with_extremes(bad=NO_DATA)


def shades(count: int) -> list[RGBA]:
    """Colours for an ordered family of curves, from the same map, none too light for a line."""
    return (
        [light_to_dark()(x) for x in np.linspace(0.38, 0.95, count)] if count > 1 else [light_to_dark()(0.8)]
    )


def cluster_colours(count: int) -> list[str]:
    """A colour for each cluster by its rank; the light ones beyond the palette share one."""
    return [*HUES, *[FAINT] * count][:count]


def halo(width: float = 1.6, colour: str | RGBA = "white") -> list[patheffects.AbstractPathEffect]:
    """A casing that keeps a line or a letter visible on dark and on bright ground."""
    return [patheffects.Stroke(linewidth=width, foreground=colour), patheffects.Normal()]


def figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, whose layout keeps everything apart."""
    return Figure(figsize=(width, height), layout="constrained")


def panels(
    rows: int, columns: int, *, height: float, width: float = WIDTH, **kwargs: Any
) -> tuple[Figure, NDArray[Any]]:
    """A figure with rows × columns axes, `height` inches for each row."""
    made = figure(width, height * rows + 0.45)
    return made, made.subplots(rows, columns, squeeze=False, **kwargs)


def caption(figure: Figure, text: str, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """A line above the figure, with a legend at its right, or below the figure where that is narrow."""
    figure.suptitle(text, x=0.02, ha="left")
    if handles:
        where: Literal["outside upper right", "outside lower center"] = "outside upper right"
        if figure.get_figwidth() <= 5:
            where = "outside lower center"
        figure.legend(handles, labels, loc=where, ncols=len(handles), handlelength=1.6)


def grid_shape(count: int) -> tuple[int, int]:
    """Rows and columns for `count` panels of one kind, at most three or four beside one another."""
    columns = count if count <= 3 else (2 if count == 4 else (3 if count <= 9 else 4))
    return math.ceil(count / columns), columns


def is_log_spaced(values: Array) -> bool:
    """Whether positive ascending values are spread more evenly in their logarithms than as they are."""
    if values.size < 3 or values[0] <= 0:
        return False
    plain, log = np.diff(values / values[-1]), np.diff(np.log(values))
    return bool(log.std() / log.mean() < plain.std() / plain.mean())


def edges(centres: Array, *, log: bool = False) -> Array:
    """Borders half-way between centres, in the logarithm if `log`; none is negative if no centre is."""
    x = np.log(centres) if log else centres
    middle = (x[1:] + x[:-1]) / 2
    borders = np.concatenate([[x[0] - (middle[0] - x[0])], middle, [x[-1] + (x[-1] - middle[-1])]])
    if log:
        return np.asarray(np.exp(borders))
    return np.maximum(borders, 0.0) if centres[0] >= 0 else borders


@dataclass(frozen=True)
class TimeAxis:
    """How log times are shown: as t on a linear or a logarithmic axis or, when no double holds t, as log₁₀ t.

    Parameters
    ----------
    kind
        "linear", "log" or "log10".
    """

    kind: str

    @classmethod
    def of_saves(cls, summary: xr.Dataset) -> TimeAxis:
        """The axis that suits the save times of a dataset."""
        if schema.TIME in summary.coords:
            times = np.asarray(summary[schema.TIME], dtype=float)
            if not is_log_spaced(times[times > 0]):
                return cls("linear")
        return cls.of_range(float(summary[schema.LOG_TIME][-1]))

    @classmethod
    def of_range(cls, last: float) -> TimeAxis:
        """A logarithmic axis up to this log time."""
        return cls("log" if last < 12 * LN10 else "log10")

    def place(self, log_times: Any) -> Array:
        """Where log times lie on the axis."""
        log_times = np.asarray(log_times, dtype=float)
        if self.kind == "log10":
            return np.asarray(log_times / LN10)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(log_times))

    def apply(self, ax: Axes, *, label: bool = True) -> None:
        """Give the horizontal axis, whose limits are set, its scale, ticks and label."""
        if self.kind == "log":
            first, last = ax.get_xlim()
            ax.set_xscale("log")
            ax.set_xlim(first, last)
            if last < 30 * first:
                ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ax.xaxis.set_minor_formatter(NullFormatter())
        if label:
            ax.set_xlabel(r"$\log_{10} t$" if self.kind == "log10" else r"time $t$")

    def edges(self, log_times: Array) -> Array:
        """Borders of cells around log times, on the axis."""
        if self.kind == "linear":
            return edges(self.place(log_times))
        middle = (log_times[1:] + log_times[:-1]) / 2
        ends = [2 * log_times[0] - middle[0]], [2 * log_times[-1] - middle[-1]]
        return self.place(np.concatenate([ends[0], middle, ends[1]]))


def beta_scale(ax: Axes, beta: Array, *, which: str = "y") -> bool:
    """Give an axis of β its label and scale; whether it is logarithmic."""
    log = is_log_spaced(beta)
    set_scale, set_label = (ax.set_yscale, ax.set_ylabel) if which == "y" else (ax.set_xscale, ax.set_xlabel)
    if log:
        set_scale("log")
    set_label(r"inverse temperature $\beta$")
    return log


def power(value: float) -> str:
    """A number for mathtext: 10^{-3}, 5 × 10^{-4}, or as it is."""
    exponent = math.floor(math.log10(value))
    mantissa = value / 10**exponent
    if -3 < exponent < 4:
        return f"{value:g}"
    if math.isclose(mantissa, 1):
        return f"10^{{{exponent}}}"
    return rf"{mantissa:.3g}\times 10^{{{exponent}}}"


class Unavailable(ValueError):
    """A figure that this dataset cannot give; the message says what it lacks."""


def need(summary: xr.Dataset, figure: str, *variables: str, several: Sequence[str] = ()) -> xr.Dataset:
    """The variables that a figure uses, in memory; Unavailable if it cannot be drawn from them."""
    if schema.SEED in summary.dims:
        raise ValueError("figures: got a dataset of single cells; needed: what analyse.summary makes of it")
    for name in variables:
        if name not in summary:
            source = schema.PAIR_SYNC_FRACTION if name == "pair_sync_mean" else name
            raise Unavailable(f"figures: {figure} needs {source}, which this dataset did not keep")
    for axis in several:
        if summary.sizes[axis] < 2:
            raise Unavailable(f"figures: {figure} needs several values of {axis}, this dataset has one")
    used = summary[list(variables)].compute()
    if not np.isfinite(used[variables[0]]).any():
        raise Unavailable(
            f"figures: {figure} has nothing to show: no finished cell has a finite {variables[0]}"
        )
    return used
