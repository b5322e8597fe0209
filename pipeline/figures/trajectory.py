"""One trajectory in log time, from plain arrays as a simulation returns them: its energy and its mergers.

Shapes: t log times, n tokens, e changes of the partition. A partition is n labels, equal for tokens in one
cluster; partition i holds from change i to change i + 1.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from pipeline import theory
from pipeline.figures import style

Labels = NDArray[np.int64]


@style.styled
def energy_staircase(
    log_times: ArrayLike,
    energy: ArrayLike,
    change_log_times: ArrayLike,
    partitions: ArrayLike,
    weights: ArrayLike,
    *,
    title: str = "",
) -> Figure:
    """Energy of one trajectory against log time, with the plateau levels that its clusters' weights predict.

    Dashed: Σ mᵢ² over the clusters, from each change of the partition to the next; a merger raises it by
    2mᵢmⱼ. Nothing is fitted. Numbers are those of the clusters. Steps that are not seen to begin, or too
    short to be seen, have no level.

    Parameters
    ----------
    log_times, energy : array_like, shape (t,)
        The scaled energy, 1 at consensus, at ascending log times.
    change_log_times : array_like, shape (e,)
        When the partition changes; −inf for the start.
    partitions : array_like, shape (e, n)
        Labels from then on.
    weights : array_like, shape (n,)
        Positive; only their ratios matter.
    title : str
        Above the figure.
    """
    log_t, changes = np.asarray(log_times, dtype=float), np.asarray(change_log_times, dtype=float)
    labels, share = np.asarray(partitions), np.asarray(weights, dtype=float) / np.sum(weights)
    values = np.asarray(energy, dtype=float)
    shown = np.isfinite(log_t)
    time = style.TimeAxis.of_range(float(log_t[-1]))
    figure = style.figure(5.2, 3.0)
    ax = figure.subplots()
    ax.plot(time.place(log_t[shown]), values[shown], color=style.HUES[0], lw=1.5)
    first, last = float(log_t[shown][0]), float(log_t[-1])
    ends = np.minimum([*changes[1:], last], last)
    for begin, end, partition in zip(changes, ends, labels, strict=True):
        if begin < first or end - begin < 0.012 * (last - first):
            continue
        clusters = _weights_of(partition, share)
        level = theory.plateau_energy(clusters)
        a, b = time.place([begin, end])
        ax.plot(
            [a, b], [level, level], color=style.THEORY, lw=1.1, ls=(0, (4, 2)), gid=f"level {clusters.size}"
        )
        at = float(time.place((begin + end) / 2))
        above = level < 0.9
        ax.annotate(
            f"{clusters.size}",
            (at, level),
            xytext=(0, 3 if above else -3),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=8.5,
        )
    ax.set_xlim(*time.place([first, last]))
    time.apply(ax)
    ax.set_ylim(0, 1.04)
    ax.set_ylabel(r"energy $\Sigma\, m_i m_j\, e^{-\beta(1 - \langle x_i, x_j\rangle)}$")
    handle = Line2D([], [], color=style.THEORY, lw=1.1, ls=(0, (4, 2)))
    style.caption(figure, title, [handle], [r"$\Sigma\, m_i^2$ of the clusters"])
    return figure


@style.styled
def dendrogram(
    linkage: ArrayLike,
    weights: ArrayLike,
    *,
    origin: float = 0.0,
    cut: float | None = None,
    title: str = "",
) -> Figure:
    """The mergers of one trajectory as a tree, in log time from left to right, lines as thick as clusters.

    Parameters
    ----------
    linkage : array_like, shape (n − 1, 4)
        SciPy's: the two clusters that merge, the height, the number of tokens. Infinite heights have
        not happened.
    weights : array_like, shape (n,)
        Of the tokens; only their ratios matter.
    origin : float
        Log time at height 0.
    cut : float, optional
        Log time at which the clusters are told apart by colour; the middle of the longest stay if left out.
    title : str
        Above the figure.
    """
    rows = np.asarray(linkage, dtype=float)
    n = len(rows) + 1
    share = np.asarray(weights, dtype=float) / np.sum(weights)
    children = rows[:, :2].astype(int)
    heights = np.concatenate([np.full(n, -np.inf), rows[:, 2] + origin])
    mass = np.concatenate([share, np.zeros(n - 1)])
    place = np.zeros(2 * n - 1)
    for slot, leaf in enumerate(_leaves(children, n)):
        place[leaf] = slot
    for i, (a, b) in enumerate(children):
        mass[n + i] = mass[a] + mass[b]
        place[n + i] = (place[a] * mass[a] + place[b] * mass[b]) / mass[n + i]
    seen = np.sort(heights[np.isfinite(heights)])
    if not seen.size:
        raise ValueError("linkage: got no merger; needed: at least one finite height")
    first, last = float(seen[0]), float(seen[-1])
    margin = 0.03 * (last - first) + 0.2
    if cut is None:
        gap = int(np.argmax(np.diff(seen))) if seen.size > 1 else 0
        cut = float(seen[gap : gap + 2].mean())
    time = style.TimeAxis.of_range(last)
    owner = _owners(children, heights, cut, n)
    heaviest = sorted(set(owner) - {-1}, key=lambda node: -mass[node])
    colours = dict(zip(heaviest, style.cluster_colours(len(heaviest)), strict=True))

    figure = style.figure(5.2, 1.4 + 0.035 * max(n, 40))
    ax = figure.subplots()
    parents = np.full(2 * n - 1, -1)
    for i, pair in enumerate(children):
        parents[pair] = n + i
    for node in np.flatnonzero(heights < np.inf):
        begin = max(float(heights[node]), first - margin)
        end = min(float(heights[parents[node]]) if parents[node] >= 0 else math.inf, last + margin)
        thickness = 0.5 + 5.0 * math.sqrt(mass[node])
        colour = colours.get(owner[node], style.INK)
        x = time.place([begin, end])
        ax.plot(
            x, [place[node]] * 2, color=colour, lw=thickness, solid_capstyle="butt", zorder=2 + mass[node]
        )
        if parents[node] >= 0 and np.isfinite(heights[parents[node]]):
            joint = [place[node], place[parents[node]]]
            ax.plot([x[1]] * 2, joint, color=colour, lw=0.6 + 0.3 * thickness, zorder=1)
    ax.axvline(float(time.place(cut)), color=style.FAINT, lw=0.8, ls=(0, (2, 2)), zorder=0)
    ax.set_xlim(*time.place([first - margin, last + margin]))
    time.apply(ax)
    ax.set_ylim(-1, n)
    ax.set_yticks([])
    ax.set_ylabel(f"{n} tokens")
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
    figure.suptitle(title, x=0.02, ha="left")
    return figure


def _weights_of(partition: Labels, share: style.Array) -> style.Array:
    """Weights of the clusters of a partition."""
    _, member = np.unique(partition, return_inverse=True)
    return np.asarray(np.bincount(member, weights=share), dtype=float)


def _leaves(children: NDArray[np.int64], n: int) -> list[int]:
    """Leaves of the tree, so that no lines cross."""
    order, stack = [], [2 * n - 2]
    while stack:
        node = stack.pop()
        if node < n:
            order.append(node)
        else:
            stack.extend(int(child) for child in children[node - n][::-1])
    return order


def _owners(children: NDArray[np.int64], heights: style.Array, cut: float, n: int) -> Labels:
    """For each node the ancestor that is its cluster at `cut`; −1 for the nodes that come after."""
    owner = np.full(2 * n - 1, -1)
    for node in range(2 * n - 2, -1, -1):
        if owner[node] < 0 and heights[node] <= cut:
            owner[node] = node
        if node >= n:
            owner[children[node - n]] = owner[node]
    return owner
