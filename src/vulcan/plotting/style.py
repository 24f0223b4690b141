"""What all figures share: their style, new axes without windows, and files."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from vulcan.errors import OptionError
from vulcan.runtime.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "check_figure_file",
    "make_axes",
    "make_figure",
    "put_heading",
    "put_legend_below",
    "put_title",
    "save",
    "use_style",
]

WIDTH: Final = 6.3
"""Inches: the text width of a page."""

INK, BLUE, ORANGE, GREY, PALE = "#1a1a1a", "#0072b2", "#dd7a00", "#767676", "#e4ebe4"
"""Colours that differ in lightness as well, and for the colour-blind."""

STYLE: Final[Mapping[str, Any]] = {
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "hatch.linewidth": 0.5,
}

FILES: Final[Mapping[str, Mapping[str, Any]]] = {
    # The same figure gives the same file: no dates, no random names.
    ".png": {"dpi": 200},
    ".svg": {"metadata": {"Date": None}},
    ".pdf": {"metadata": {"CreationDate": None}},
}
FILE_STYLE: Final[Mapping[str, Any]] = {"svg.hashsalt": "vulcan", "pdf.fonttype": 42}

LONGEST_TITLE: Final = 100
TITLE_LINE, HEADING_LINE = 76, 88
"""Letters of a title, and of a line of one over axes and over a figure."""

BELOW_AXIS: Final = 30.0
"""Typographic points that the numbers and the label of a horizontal axis take."""

SCREEN: Final = 100
"""Dots of a screen per inch, as notebooks show figures."""


def require_matplotlib() -> Any:
    """Return matplotlib, or say how to get it."""
    try:
        import matplotlib as found
    except ImportError as error:
        raise OptionError(
            "figures need matplotlib, which is not installed: pip install 'vulcan-planner[plot]'"
        ) from error
    return found


def use_style() -> AbstractContextManager[Any]:
    """Return a context in which figures have this style; it changes nothing outside."""
    style: AbstractContextManager[Any] = require_matplotlib().rc_context(dict(STYLE))
    return style


def make_axes(height: float, shares: Sequence[float] = (1.0,)) -> list[Axes]:
    """Return the axes of a new figure, one above the other, with a common horizontal axis.

    Parameters
    ----------
    height
        Of the figure, in inches.
    shares
        The height of each of the axes, relative to each other.
    """
    grid = make_figure(height).subplots(
        len(shares), sharex=True, squeeze=False, height_ratios=list(shares)
    )
    return [row[0] for row in grid]


def make_figure(height: float) -> Figure:
    """Return a new figure that no window shows.

    Parameters
    ----------
    height
        In inches.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)  # draws in memory: there is no window, and no display is needed
    figure.add_axobserver(_let_notebooks_show)
    return figure


def _let_notebooks_show(figure: Figure) -> None:
    """Let a cell of a notebook that ends with any axes of a figure show the figure."""
    for axes in figure.axes:
        axes._repr_png_ = partial(_draw_png, figure)  # type: ignore[attr-defined]


def _draw_png(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """Return a figure as notebooks want it: fine enough for any screen, and how large it is."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=2 * SCREEN)
    width, height = figure.get_size_inches()
    return content.getvalue(), {"width": round(SCREEN * width), "height": round(SCREEN * height)}


def put_title(ax: Axes, text: str, *remarks: str) -> None:
    """Put a title over axes; it comes from models and may hold anything.

    Parameters
    ----------
    ax
        The axes.
    text
        The title.
    remarks
        Further lines under it.
    """
    ax.set_title(_clean(TITLE_LINE, text, *remarks), parse_math=False, color=INK)


def put_heading(figure: Figure, text: str, *remarks: str) -> None:
    """Put a title over a whole figure, like `put_title`."""
    place: dict[str, Any] = {"x": 0.01, "horizontalalignment": "left", "fontsize": 9.0}
    figure.suptitle(_clean(HEADING_LINE, text, *remarks), parse_math=False, color=INK, **place)


def _clean(width: int, *lines: str) -> str:
    """Return lines that are not too wide, without characters that are no letters."""
    plain = ["".join(c if c.isprintable() else "?" for c in line) for line in lines]
    short = [
        line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…" for line in plain
    ]
    return "\n".join(part for line in short for part in wrap(line, width) or [""])


def put_legend_below(ax: Axes, columns: int, *others: Axes) -> None:
    """Put the legend under axes and what is written there, where it covers nothing.

    Parameters
    ----------
    ax
        The axes.
    columns
        How many entries are side by side, at the most.
    others
        Axes above whose entries come first.
    """
    from matplotlib.transforms import ScaledTranslation

    figure = ax.get_figure(root=True)
    assert figure is not None
    entries = [axes.get_legend_handles_labels() for axes in (*others, ax)]
    handles = [handle for found, _ in entries for handle in found]
    labels = [label for _, found in entries for label in found]
    # In points, not as a share of the axes: low ones have as much written below them.
    down = ScaledTranslation(0, -BELOW_AXIS / 72, figure.dpi_scale_trans)
    ax.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + down,
        ncols=min(columns, max(1, len(labels))),
        columnspacing=1.5,
        handlelength=2.2,
    )


def check_figure_file(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a file that a figure can't be written to.

    Parameters
    ----------
    path
        The file; its ending says in what format.

    Raises
    ------
    OptionError
        If the ending is none that is known, or matplotlib is not installed.
    """
    if Path(path).suffix.lower() not in FILES:
        raise OptionError(f"a figure is written to {', '.join(FILES)}; not to {os.fspath(path)!r}")
    require_matplotlib()


def save(ax: Axes, path: str | os.PathLike[str]) -> None:
    """Write the figure of some axes to a file, at once or not at all.

    Parameters
    ----------
    ax
        The axes, as a plotting function returned them.
    path
        The file: .png, .svg or .pdf.
    """
    check_figure_file(path)
    kind = Path(path).suffix.lower()
    figure = ax.get_figure(root=True)
    assert figure is not None
    content = io.BytesIO()
    with require_matplotlib().rc_context(dict(FILE_STYLE)):
        figure.savefig(content, format=kind[1:], **FILES[kind])
    write_atomically(path, content.getvalue())
