"""The most telling outcomes of one policy, side by side: the paper's figure of the exploration.

Which ones they are is the business of `telling`. All panels show the same part of the map and have
the same colours; the background of each is the mean of the field given the samples of its journey.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from string import ascii_lowercase
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from vulcan.domains.exploration.drawing.choice import TellingOutcome, choose_outcomes
from vulcan.domains.exploration.drawing.journeys import Journeys, get_map
from vulcan.domains.exploration.drawing.terrain import (
    choose_levels,
    choose_window,
    draw_field,
    draw_journey,
    draw_map,
    predict_window,
)
from vulcan.errors import OptionError
from vulcan.model.interface import describe_model
from vulcan.plotting.style import INK, make_figure, put_heading, use_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_outcomes"]

COLUMNS: Final = 3
PANEL: Final = 1.8
"""Inches: the width of a panel, about."""

CAPTION: Final = 37
"""Letters in a line of a caption."""

MOST: Final = len(ascii_lowercase)


def plot_outcomes(
    journeys: Journeys,
    outcomes: Sequence[TellingOutcome] | None = None,
    axes: Sequence[Axes] | None = None,
) -> Axes:
    """Draw some outcomes of a policy, side by side.

    Parameters
    ----------
    journeys
        All of the policy's.
    outcomes
        Those to draw; by default the six that `choose_outcomes` returns.
    axes
        Where to draw them, one each; by default in a new figure.

    Returns
    -------
    Axes
        Those of the first outcome.
    """
    if outcomes is None:
        outcomes = choose_outcomes(journeys)
    if not 1 <= len(outcomes) <= MOST:
        raise OptionError(f"from 1 to {MOST} outcomes can be drawn, not {len(outcomes)}")
    if axes is not None and len(axes) != len(outcomes):
        raise OptionError(f"{len(outcomes)} outcomes need as many axes, not {len(axes)}")
    cells = [cell for outcome in outcomes for cell in outcome.journey.path]
    window = choose_window(get_map(journeys.mission), cells)
    fields = [predict_window(o.journey, window, len(o.journey)) for o in outcomes]
    with use_style():
        levels = choose_levels(fields)
        own = axes is None
        if axes is None:
            columns, rows = window.shape
            axes = _make_panels(len(outcomes), rows / columns)
        contours = None
        for letter, ax, outcome, means in zip(
            ascii_lowercase, axes, outcomes, fields, strict=False
        ):
            draw_map(ax, get_map(journeys.mission), window)
            contours = draw_field(ax, means, window, levels)
            draw_journey(ax, outcome.journey, scale=0.75)
            _write_caption(ax, letter, outcome)
        if own:
            _finish(axes, contours, journeys)
    return axes[0]


def _make_panels(count: int, shape: float) -> list[Axes]:
    columns = min(COLUMNS, count)
    rows = math.ceil(count / columns)
    figure = make_figure(1.6 + rows * (PANEL * shape + 0.85))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for ax in grid.flat[count:]:
        ax.remove()
    for ax in grid[:, 0]:
        ax.set_ylabel("north (cells)")
    for column in range(columns):
        lowest = [row for row in range(rows) if row * columns + column < count][-1]
        grid[lowest, column].set_xlabel("east (cells)")
        grid[lowest, column].tick_params(labelbottom=True)
    return list(grid.flat[:count])


def _write_caption(ax: Axes, letter: str, outcome: TellingOutcome) -> None:
    earned, _, probable = outcome.numbers.rpartition(", ")
    # A cell such as (5, 5) is not broken in two, and neither are step 3 and the north-west.
    words = re.sub(r"(\(\d+,|step) (\d)", "\\1\u00a0\\2", outcome.words)
    wrapped = wrap(f"({letter}) {words}", CAPTION, break_on_hyphens=False)
    lines = [*wrapped, f"{earned},", probable]
    ax.set_title("\n".join(lines), fontsize=7.0, color=INK, parse_math=False, linespacing=1.15)


def _finish(axes: Sequence[Axes], contours: Any, journeys: Journeys) -> None:
    """Add what all panels share: title, colour bar and legend."""
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(contours, ax=list(axes), location="bottom", aspect=60, shrink=0.7)
    bar.set_label("expected field, given the samples")
    bar.outline.set_linewidth(0.5)
    named: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    style: dict[str, Any] = {"columnspacing": 1.3, "handletextpad": 0.5}
    shown = (list(named.values()), list(named))
    figure.legend(*shown, loc="outside lower center", ncols=len(named), **style)
    put_heading(
        figure,
        describe_model(journeys.mission),
        f"{len(axes)} of {len(journeys):,} safe outcomes of one policy "
        f"(reward {journeys.reward:.2f}, risk {journeys.risk:.3g})",
    )
