"""One journey as an animation: a frame per step, the field as it is expected then.

Written as a GIF. All frames have the same limits and the same colours, so that only what happens
moves; and few colours, so that the file is small.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.domains.exploration.drawing.choice import TellingOutcome
from vulcan.domains.exploration.drawing.journeys import Journey, get_map
from vulcan.domains.exploration.drawing.mission import (
    draw_progress,
    draw_stage,
    label_samples,
    make_mission_axes,
    put_around,
    title_mission,
)
from vulcan.domains.exploration.drawing.terrain import choose_levels, choose_window, predict_window
from vulcan.errors import OptionError
from vulcan.plotting.style import BLUE, ORANGE, require_matplotlib, use_style
from vulcan.runtime.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.Image import Image

__all__ = ["animate_mission", "check_animation_file"]

Picture = NDArray[np.uint8]

ENDING: Final = ".gif"
COLOURS: Final = 128

FRAME, LAST = 900, 3000
"""Milliseconds that a frame, and the last one, are shown."""

RESOLUTIONS: Final = ((16, 110), (40, 80), (1000, 55))
"""Dots per inch for missions of up to this many frames: long ones are kept small as well."""


def check_animation_file(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work, a file that an animation can't be written to.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    OptionError
        If it does not end in .gif, or matplotlib is not installed.
    """
    if Path(path).suffix.lower() != ENDING:
        raise OptionError(f"an animation is written to {ENDING}; not to {os.fspath(path)!r}")
    require_matplotlib()


def animate_mission(outcome: TellingOutcome | Journey, path: str | os.PathLike[str]) -> None:
    """Write one journey to a file as an animation, at once or not at all.

    Parameters
    ----------
    outcome
        The journey; with what happens on it, if there are words for that.
    path
        The file: .gif.
    """
    check_animation_file(path)
    frames = _shrink(_draw_frames(outcome))
    times = [FRAME] * (len(frames) - 1) + [LAST]
    content = io.BytesIO()
    further: dict[str, Any] = {"append_images": frames[1:], "duration": times, "loop": 0}
    frames[0].save(content, format="GIF", save_all=True, optimize=False, **further)
    write_atomically(path, content.getvalue())


def _draw_frames(outcome: TellingOutcome | Journey) -> list[Picture]:
    """Return the pictures of all steps, as arrays of red, green and blue."""
    journey = outcome if isinstance(outcome, Journey) else outcome.journey
    window = choose_window(get_map(journey.mission), journey.path)
    fields = [predict_window(journey, window, moves) for moves in range(len(journey) + 1)]
    dots = next(dots for most, dots in RESOLUTIONS if len(fields) <= most)
    pictures = []
    with use_style():
        levels = choose_levels(fields)
        for moves, means in enumerate(fields):
            # Each figure is made anew, and laid out like the others: limits, colours and legend are
            # the same from the first frame on.
            axes = make_mission_axes(window)
            draw_stage(axes[0], journey, moves, window, levels, means)
            _draw_rest(axes, outcome, journey, moves)
            pictures.append(_render(axes[0], dots))
    return pictures


def _draw_rest(
    axes: tuple[Axes, Axes, Axes], outcome: TellingOutcome | Journey, journey: Journey, moves: int
) -> None:
    ax, reward_ax, risk_ax = axes
    title, *words = title_mission(outcome)
    put_around(ax, [f"{title}, step {moves} of {len(journey)}", *words])
    draw_progress(reward_ax, journey.earned, "reward so far", BLUE, moves)
    draw_progress(risk_ax, journey.risked, "risk so far", ORANGE, moves)
    risk_ax.set_xlabel("step")
    label_samples(ax, journey, moves)


def _render(ax: Axes, dots: int) -> Picture:
    figure: Any = ax.get_figure(root=True)
    figure.set_layout_engine("none")  # it is laid out already: labels needed to know where
    figure.set_dpi(dots)
    figure.canvas.draw()
    picture: Picture = np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()
    return picture


def _shrink(pictures: Sequence[Picture]) -> list[Image]:
    """Return pictures with few colours, the same in all of them so that nothing flickers."""
    from PIL import Image

    ends = Image.fromarray(np.concatenate((pictures[0], pictures[-1])))
    # The method that keeps the colours of thin lines, rather than many shades of the field.
    colours = ends.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    return [
        Image.fromarray(picture).quantize(palette=colours, dither=Image.Dither.NONE)
        for picture in pictures
    ]
