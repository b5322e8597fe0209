"""Tokens where they are, on the circle and on the sphere, from plain arrays as a simulation returns them."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from pipeline.figures import style

Labels = NDArray[np.int64]
COMPACT = 0.99  # length of the mean of tokens that are drawn as one disc: within about 0.14 of it


@style.styled
def tokens(
    snapshots: ArrayLike,
    log_times: ArrayLike,
    partitions: ArrayLike,
    weights: ArrayLike,
    *,
    title: str = "",
) -> Figure:
    """Tokens on the circle or the sphere at a few log times, say before, on and after the plateau.

    Dots are tokens, discs are compact clusters of several, with areas like their weights. Colours tell apart
    the clusters of the middle snapshot, everywhere; a disc that unites several of them is black. The sphere
    is seen from where most of their weight faces the reader, and what lies behind is pale.

    Parameters
    ----------
    snapshots : array_like, shape (s, n, d)
        Positions, d = 2 or 3.
    log_times : array_like, shape (s,)
        When.
    partitions : array_like, shape (s, n)
        Labels at those times.
    weights : array_like, shape (n,)
        Positive; only their ratios matter.
    title : str
        Above the figure.
    """
    x, labels = np.asarray(snapshots, dtype=float), np.asarray(partitions)
    log_t, share = np.asarray(log_times, dtype=float), np.asarray(weights, dtype=float) / np.sum(weights)
    if x.ndim != 3 or x.shape[2] not in (2, 3):
        raise ValueError(f"snapshots: got shape {x.shape}; allowed: (s, n, 2) or (s, n, 3)")
    middle = len(x) // 2
    colours = _token_colours(labels[middle], share)
    if x.shape[2] == 3:
        x = x @ _facing(x[middle], share).T
    figure = style.figure(min(style.WIDTH, 2.2 * len(x) + 0.2), 2.4 + 0.25 * bool(title))
    axes = figure.subplots(1, len(x), squeeze=False)[0]
    for ax, positions, partition, at in zip(axes, x, labels, log_t, strict=True):
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.set_xlim(-1.2, 1.2)
        ax.set_ylim(-1.2, 1.2)
        _ground(ax, positions.shape[1])
        _dots(ax, positions, partition, share, colours)
        ax.set_title(_instant(at))
    figure.suptitle(title, x=0.02, ha="left")
    return figure


def _token_colours(partition: Labels, share: style.Array) -> NDArray[np.object_]:
    names, member = np.unique(partition, return_inverse=True)
    rank = np.argsort(np.argsort(-np.bincount(member, weights=share), kind="stable"))
    return np.array(style.cluster_colours(names.size), dtype=object)[rank[member]]


def _facing(positions: style.Array, share: style.Array) -> style.Array:
    """Rotation that turns to the reader (last axis) the direction from which the most weight is in view."""
    k = np.arange(400)
    z = 1 - (2 * k + 1) / 400
    φ = k * math.pi * (3 - math.sqrt(5))
    views = np.stack([np.sqrt(1 - z**2) * np.cos(φ), np.sqrt(1 - z**2) * np.sin(φ), z], axis=1)
    in_view = np.minimum(views @ positions.T, 0.35) @ share
    front = views[np.argmax(in_view)]
    right = np.cross([0.0, 0.0, 1.0], front)
    right = right / np.linalg.norm(right)
    return np.stack([right, np.cross(front, right), front])


def _ground(ax: Axes, d: int) -> None:
    """The circle, or the sphere's outline with a few parallels and meridians."""
    θ = np.linspace(0, 2 * np.pi, 361)
    ax.plot(np.cos(θ), np.sin(θ), color=style.FAINT, lw=0.8, zorder=0)
    if d == 3:
        tilt = math.radians(20)
        for latitude in np.radians([-60, -30, 0, 30, 60]):
            _arc(
                ax,
                np.cos(latitude) * np.cos(θ),
                np.full_like(θ, np.sin(latitude)),
                np.cos(latitude) * np.sin(θ),
                tilt,
            )
        for longitude in np.radians(np.arange(0, 180, 30)):
            _arc(ax, np.cos(θ) * np.sin(longitude), np.sin(θ), np.cos(θ) * np.cos(longitude), tilt)


def _arc(ax: Axes, x: style.Array, y: style.Array, z: style.Array, tilt: float) -> None:
    up, depth = y * math.cos(tilt) - z * math.sin(tilt), y * math.sin(tilt) + z * math.cos(tilt)
    ax.plot(x, np.where(depth > 0, up, np.nan), color=style.NO_DATA, lw=0.5, zorder=0)


def _dots(
    ax: Axes, positions: style.Array, partition: Labels, share: style.Array, colours: NDArray[np.object_]
) -> None:
    for name in np.unique(partition):
        members = np.flatnonzero(partition == name)
        weight = float(share[members].sum())
        centre = share[members] @ positions[members] / weight
        if members.size > 1 and np.linalg.norm(centre) > COMPACT:
            kinds = {str(colour) for colour in colours[members]}
            colour = kinds.pop() if len(kinds) == 1 else style.INK
            _mark(ax, centre, colour, size=900 * weight, strength=0.6)
            _mark(ax, centre, colour, size=9, strength=1.0)
        else:
            for i in members:
                _mark(ax, positions[i], str(colours[i]), size=9, strength=1.0)


def _mark(ax: Axes, at: style.Array, colour: str, *, size: float, strength: float) -> None:
    """A disc; behind the sphere it is pale, and below what lies in front."""
    behind = at.size == 3 and bool(at[2] < 0)
    alpha, height = (strength / 4, 1) if behind else (strength, 2)
    ax.scatter([at[0]], [at[1]], s=size, color=colour, alpha=alpha, lw=0, zorder=height)


def _instant(log_time: float) -> str:
    if not np.isfinite(log_time):
        return "$t = 0$"
    if abs(log_time) < 4 * style.LN10:
        return f"$t = {math.exp(log_time):.2g}$"
    return rf"$t = 10^{{{log_time / style.LN10:.3g}}}$"
