"""Files that a command writes: checked before the work, written after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vulcan.runtime.files import find_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

__all__ = ["check_output", "check_plot", "save_plot", "tell_saved"]


def check_output(path: Path) -> None:
    """Refuse a file that can't be written before the search, not after it."""
    find_target(path)


def check_plot(path: Path | None) -> None:
    """Refuse a figure that can't be drawn or written, if one is wanted."""
    if path is not None:
        from vulcan.plotting import check_figure_file

        check_figure_file(path)
        check_output(path)


def save_plot(draw: Callable[[], Axes], path: Path) -> None:
    """Draw a figure and write it to a file."""
    from vulcan.plotting import save

    save(draw(), path)


def tell_saved(path: Path, as_json: bool, obstacle: str | None) -> None:
    """Say that a file was written, or what kept it from being written.

    Parameters
    ----------
    path
        The file.
    as_json
        Whether standard output is for a document only.
    obstacle
        Why there was nothing to write; None if it was written.
    """
    from vulcan.cli import screen

    if obstacle is not None:
        screen.show_note(f"{path} was not written: {obstacle}")
    elif not as_json:
        console = screen.open_console()
        console.print()
        screen.show_rows(console, [("saved", f"{path}  {path.stat().st_size:,} bytes")])
