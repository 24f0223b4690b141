"""Figures drawn for real, and looked at."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from vulcan import Linear, Problem
from vulcan.domains import Bandit
from vulcan.plotting.labels import Box

PROBLEM = Problem(Bandit(horizon=4), Linear(0.002))


@pytest.fixture(autouse=True)
def no_windows(monkeypatch):
    """Fail whatever would need a display, and whatever changes the user's own settings."""
    monkeypatch.delenv("DISPLAY", raising=False)
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def draw(ax):
    """Draw for real; warnings of the drawing are errors."""
    canvas = FigureCanvasAgg(ax.get_figure(root=True))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def text_boxes(ax):
    """The boxes of all labels, without the lines to their points."""
    draw(ax)
    extents = [Text.get_window_extent(label) for label in ax.texts]
    return [Box(extent.x0, extent.y0, extent.x1, extent.y1) for extent in extents]


def run_python(code, folder):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
