"""Figures, drawn from what `analyse.summary` says of a dataset, or from the arrays of one trajectory.

`FIGURES` are those of a dataset, by name; each takes a summary and returns a matplotlib figure, and `draw`
writes them as PNG and PDF. `energy_staircase`, `dendrogram` and `tokens` are of single trajectories. Nothing
here runs a simulation, decides what a plateau is, or needs a display or LaTeX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import xarray as xr
from matplotlib.figure import Figure

from pipeline.figures.clusters import cluster_count
from pipeline.figures.growth import merge_time
from pipeline.figures.phase import phase_diagram
from pipeline.figures.plateaus import plateau_d, plateau_n
from pipeline.figures.portraits import tokens
from pipeline.figures.style import Unavailable, look
from pipeline.figures.trajectory import dendrogram, energy_staircase

__all__ = [
    "FIGURES",
    "Unavailable",
    "cluster_count",
    "dendrogram",
    "draw",
    "energy_staircase",
    "merge_time",
    "phase_diagram",
    "plateau_d",
    "plateau_n",
    "save",
    "tokens",
]

FIGURES: Mapping[str, Callable[[xr.Dataset], Figure]] = MappingProxyType(
    {
        "phase_diagram": phase_diagram,
        "cluster_count": cluster_count,
        "plateau_n": plateau_n,
        "plateau_d": plateau_d,
        "merge_time": merge_time,
    }
)


def draw(
    summary: xr.Dataset,
    names: Sequence[str] | None,
    directory: str | Path,
    left_out: Callable[[str], object] = lambda reason: None,
) -> list[Path]:
    """Write figures of a dataset as PNG and PDF.

    Parameters
    ----------
    summary : Dataset
        What `analyse.summary` returns.
    names : sequence of str, optional
        Keys of `FIGURES`; None for all that this dataset can give.
    directory : path
        Made if it is not there. Files of the same name are replaced.
    left_out : callable, optional
        Told in one line of each figure that is left out because the dataset cannot give it.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    ValueError
        In one line: for an unknown name, for a named figure that the dataset cannot give (`Unavailable`), or
        if it can give none.
    """
    unknown = [name for name in names or () if name not in FIGURES]
    if unknown:
        raise ValueError(f"figures: got {unknown[0]!r}; allowed: {', '.join(FIGURES)}")
    written: list[Path] = []
    lacks: list[str] = []
    for name in FIGURES if names is None else names:
        try:
            figure = FIGURES[name](summary)
        except Unavailable as reason:
            if names is not None:
                raise
            lacks.append(str(reason))
            continue
        written += save(figure, Path(directory) / name)
    if not written:
        raise Unavailable(lacks[0])
    for line in lacks:
        left_out(line)
    return written


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Write one figure as ``path.png`` and ``path.pdf``, undated, so that equal figures are equal files."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = figure.get_layout_engine()
    with look():
        figure.draw_without_rendering()  # lay it out once, not for each format and pass
        figure.set_layout_engine("none")
        png, pdf = path.with_name(f"{path.name}.png"), path.with_name(f"{path.name}.pdf")
        figure.savefig(png, metadata={"Software": None})
        figure.savefig(pdf, metadata={"CreationDate": None})
        figure.set_layout_engine(engine)
    return [png, pdf]
