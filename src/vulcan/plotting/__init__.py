"""Figures of results: one file each, what is drawn found apart from the drawing.

A figure is drawn into given `Axes`, or into a new figure of its own that no window shows; `save`
writes it to a file. Markers and lines differ in shape, not only in colour, so that a figure can be
read when it is printed in grey. Only this package needs matplotlib, and only when something is
drawn.
"""

from vulcan.plotting.comparison import plot_comparison
from vulcan.plotting.frontier import plot_frontier
from vulcan.plotting.style import check_figure_file, save

__all__ = ["check_figure_file", "plot_comparison", "plot_frontier", "save"]
