"""What all figures share: their style, new axes without windows, labels, and files."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.errors import OptionError
from vulcan.runtime.files import write_atomically
from vulcan.runtime.formatting import clip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDTH: Final = 6.3  # inches: the text width of a page

INK, BLUE, ORANGE, GREY, PALE = "#1a1a1a", "#0072b2", "#dd7a00", "#767676", "#e4ebe4"
COLORS: Final = (BLUE, ORANGE, "#009e73", "#cc79a7", GREY)  # of curves beside each other
"""Colours that differ in lightness as well, and for the colour-blind."""

STYLE: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 9.0),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 8.0),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.7),
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
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
TITLE_LINE, HEADING_LINE = 76, 88  # letters of a line of a title, over axes and over a figure
BELOW_AXIS: Final = 30.0  # points that the numbers and the label of a horizontal axis take
SCREEN: Final = 100  # dots of a screen per inch, as notebooks show figures


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
    return require_matplotlib().rc_context(dict(STYLE))  # type: ignore[no-any-return]


def make_axes(height: float, shares: Sequence[float] = (1.0,)) -> list[Axes]:
    """Return axes above each other, of these relative heights, with a common horizontal axis.

    They are those of a new figure of some height in inches.
    """
    grid = make_figure(height).subplots(
        len(shares), sharex=True, squeeze=False, height_ratios=list(shares)
    )
    return [row[0] for row in grid]


def make_figure(height: float) -> Figure:
    """Return a new figure of some height in inches, which no window shows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)  # draws in memory: there is no window, and no display is needed

    def draw_png() -> tuple[bytes, dict[str, int]]:  # fine enough for any screen, and its size
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=2 * SCREEN)
        width, height = (round(SCREEN * inches) for inches in figure.get_size_inches())
        return content.getvalue(), {"width": width, "height": height}

    def let_notebooks_show(figure: Figure) -> None:  # where a cell ends with any of its axes
        for axes in figure.axes:
            axes._repr_png_ = draw_png  # type: ignore[attr-defined]

    figure.add_axobserver(let_notebooks_show)
    return figure


def put_title(ax: Axes, text: str, *remarks: str) -> None:
    """Put a title over axes, with further lines under it; it comes from models: any text."""
    ax.set_title(_clean(TITLE_LINE, text, *remarks), parse_math=False, color=INK)


def put_heading(figure: Figure, text: str, *remarks: str) -> None:
    """Put a title over a whole figure, like `put_title`."""
    look: dict[str, Any] = {"parse_math": False, "color": INK, "fontsize": 9.0}
    figure.suptitle(_clean(HEADING_LINE, text, *remarks), x=0.01, ha="left", **look)


def _clean(width: int, *lines: str) -> str:
    """Return lines wrapped to a width, with ? for unprintable characters."""
    plain = ["".join(c if c.isprintable() else "?" for c in line) for line in lines]
    short = [clip(line, LONGEST_TITLE) for line in plain]
    return "\n".join(part for line in short for part in wrap(line, width) or [""])


def put_legend_below(ax: Axes, columns: int, *others: Axes) -> None:
    """Put the legend of axes under them, in columns, after the entries of the axes above."""
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
        raise OptionError(f"figures can be saved as {', '.join(FILES)}, not {os.fspath(path)!r}")
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


Point = tuple[float, float]

DISTANCES: Final = (7.0, 14.0, 24.0, 36.0, 50.0, 70.0, 95.0, 125.0)
"""Distances of a label from its point, in typographic points."""

DIRECTIONS: Final = np.array(
    ((1, 0), (-1, 0), (0.7, -0.7), (-0.7, -0.7), (0.7, 0.7), (-0.7, 0.7), (0, -1), (0, 1))
)

PLATE: Final = {"facecolor": "white", "edgecolor": "none", "boxstyle": "round,pad=0.12"}
"""Background of texts over hatching."""

COVERED, CROSSED, HATCHED, OUTSIDE = 10.0, 20.0, 2_000.0, 10_000.0
"""Costs of a covered pixel, a crossed line, hatching below, and a place outside, in points."""


def place_labels(ax: Axes, labelled: Sequence[tuple[Point, str]]) -> None:
    """Write a label beside each point of the data, where it covers least, once all else is drawn.

    Of all places around a point, a label gets the one that costs least: other labels and points
    count most, then the edge and hatching, then lines, then the distance. A label that is not close
    to its point is tied to it by a line.
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # so that the axes are where they are going to be
    scale = figure.dpi / 72
    frame = ax.get_window_extent()

    def find_path(drawn: Any) -> Any:
        return drawn.get_transform().transform_path(drawn.get_path())

    lines = [find_path(line) for line in ax.lines if line.get_zorder() >= 2]  # grids lie below
    hatched = [find_path(patch) for patch in ax.patches if patch.get_hatch()]
    places = ax.transData.transform([point for point, _ in labelled] or np.empty((0, 2)))
    taken = [Bbox([place, place]).padded(9 * scale) for place in places]
    taken += [Text.get_window_extent(text).padded(2.5 * scale) for text in ax.texts]

    def judge(box: Any, distance: float, others: Sequence[Any]) -> float:
        outside = _overlap(box, frame) < 0.999 * box.width * box.height
        covered = sum(_overlap(box, other) for other in others)
        crossed = sum(line.intersects_bbox(box, filled=False) for line in lines)
        over = any(area.intersects_bbox(box) for area in hatched)
        cost = COVERED * covered + CROSSED * crossed + HATCHED * over + OUTSIDE * outside
        return distance + float(cost)

    tie = {"arrowstyle": "-", "color": INK, "linewidth": 0.5, "shrinkA": 1.0, "shrinkB": 4.0}
    look: dict[str, Any] = {"fontsize": 8.0, "color": INK, "zorder": 6, "parse_math": False}
    # Not in the layout: the axes stay where they were when its place was chosen.
    look |= {"in_layout": False, "path_effects": [withStroke(linewidth=2.0, foreground="white")]}
    for k, (point, text) in enumerate(labelled):
        label = ax.annotate(
            text, point, (0.0, 0.0), textcoords="offset points", arrowprops=tie, **look
        )
        extent = Text.get_window_extent(label)  # without the line to its point
        size = np.array((extent.width, extent.height))
        found = []
        for distance, direction in product(DISTANCES, DIRECTIONS):
            # The side of the text that faces the point is at this distance from it.
            low = places[k] + scale * distance * direction - size * (1 - np.sign(direction)) / 2
            box = Bbox([low, low + size])
            cost = judge(box, distance, taken[:k] + taken[k + 1 :])
            found.append((cost, distance, direction, box))
        _, distance, direction, box = min(found, key=lambda place: place[0])
        side, height = (1 + np.sign(direction)).astype(int).tolist()
        label.set(position=distance * direction, ha=("right", "center", "left")[side])
        label.set_verticalalignment(("top", "center", "bottom")[height])
        assert label.arrow_patch is not None
        label.arrow_patch.set_visible(distance > DISTANCES[0])
        if any(area.intersects_bbox(box) for area in hatched):
            label.set_bbox(PLATE)
        taken.append(box)


def _overlap(one: Any, other: Any) -> float:
    """Return the common area of two boxes, in square pixels."""
    common = one.intersection(one, other)
    return 0.0 if common is None else float(common.width * common.height)
