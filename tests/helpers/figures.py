"""Figures drawn for real, and looked at."""

from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from vulcan import Linear, Problem
from vulcan.domains import Bandit

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


def list_texts(figure):
    """All texts that are seen, with their boxes."""
    FigureCanvasAgg(figure).draw()
    ticks, seen = set(), []
    for ax in figure.findobj(Axes):
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            room = 1e-9 * (high - low)
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                ticks |= {tick.label1, tick.label2}
                if low - room <= tick.get_loc() <= high + room and ax.get_visible():
                    seen += [tick.label1, tick.label2]
    seen += [text for text in figure.findobj(Text) if text not in ticks]
    shown = [text for text in seen if text.get_visible() and text.get_text().strip()]
    return [(text, Text.get_window_extent(text)) for text in shown]


def find_clashes(ax):
    """What can't be read: texts over each other, over hatching, or beyond the edge."""
    figure = ax.get_figure(root=True)
    texts = list_texts(figure)
    width, height = figure.canvas.get_width_height()
    clashes = [
        (one.get_text(), other.get_text())
        for (one, box), (other, rest) in combinations(texts, 2)
        if Bbox.intersection(box.padded(-0.5), rest.padded(-0.5))
    ]
    clashes += [
        (text.get_text(), "the edge")
        for text, box in texts
        if min(box.x0, box.y0, width - box.x1, height - box.y1) < -1
    ]
    for patch in figure.findobj(Patch):
        if patch.get_hatch():
            area = patch.get_transform().transform_path(patch.get_path())
            clashes += [
                (text.get_text(), "hatching")
                for text, box in texts
                if text.axes is patch.axes
                and text.get_bbox_patch() is None
                and area.intersects_bbox(box)
                if text in patch.axes.texts
            ]
    return clashes
