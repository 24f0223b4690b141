"""Labels that lie over neither each other nor the edge."""

import math
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

from tests.helpers.figures import text_boxes
from vulcan.plotting.labels import Box, Place, place_labels


def test_a_box():
    box = Box(0, 0, 10, 4)
    assert box.overlap(Box(5, 2, 20, 20)) == 10
    assert box.overlap(Box(10, 0, 20, 4)) == box.overlap(Box(11, 0, 20, 4)) == 0
    assert box.excess(Box(0, 0, 10, 4)) == 0
    assert box.excess(Box(1, 1, 8, 8)) == 1 + 2 + 1
    assert box.holds((10, 4))
    assert not box.holds((5, 5))
    assert not box.holds((math.nan, 2))


def test_the_box_of_a_place():
    place = Place((10.0, -5.0), ("left", "top"), 10.0)
    assert place.box((100.0, 100.0), (30.0, 8.0), 2.0) == Box(120.0, 82.0, 150.0, 90.0)
    middle = Place((0.0, 5.0), ("center", "bottom"), 5.0)
    assert middle.box((100.0, 100.0), (30.0, 8.0), 1.0) == Box(85.0, 105.0, 115.0, 113.0)


def test_labels_of_many_points_close_together():
    figure = Figure(figsize=(6, 4))
    ax = figure.subplots()
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    points = [((0.5 + 0.01 * k, 0.5 + 0.02 * (k % 3)), f"solver {k}") for k in range(8)]
    place_labels(ax, points, [[(0.5, y) for y in np.linspace(0, 1, 100)]], "black")
    boxes = text_boxes(ax)
    assert len(boxes) == 8
    assert all(a.overlap(b) == 0 for a, b in combinations(boxes, 2))
