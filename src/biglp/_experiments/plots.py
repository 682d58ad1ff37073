"""Plots, as PNG and SVG. matplotlib is loaded here only, when something is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from biglp.plot import needs

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE = {
    "svg.hashsalt": "biglp",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}


def require_matplotlib() -> None:
    """Explain early that plots need matplotlib, before hours of work.

    Raises
    ------
    MissingExtraError
    """
    needs.require_matplotlib("this command")


@contextmanager
def figure(path: Path, columns: int, rows: int = 1, size: tuple[float, float] = (3.4, 3.1)) -> Any:
    """Yield a figure and its axes in one list; save it as PNG and SVG afterwards.

    Parameters
    ----------
    path : Path
        File without its ending.
    columns, rows : int
        Panels.
    size : tuple of float
        Width and height of a panel in inches.
    """
    require_matplotlib()
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        # Not pyplot: it keeps figures alive and may look for a screen.
        drawn = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
        FigureCanvasAgg(drawn)
        yield drawn, list(drawn.subplots(rows, columns, squeeze=False).ravel())
        drawn.savefig(path.with_suffix(".png"), dpi=100)
        drawn.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def styles() -> Iterator[dict[str, Any]]:
    """Endless line styles that can be told apart without colour."""
    while True:
        for colour, mark in zip(COLOURS, MARKS, strict=True):
            yield {"color": colour, "marker": mark, "markersize": 4, "linewidth": 1.5}


def shared_legend(drawn: Any, axis: Any, columns: int = 4) -> None:
    """One legend below all panels."""
    handles, names = axis.get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=columns)
