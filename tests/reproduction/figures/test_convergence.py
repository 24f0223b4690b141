"""Curves that are means of runs."""

import pytest

from reproduction.figures.convergence import Curve, Panel, plot_convergence, summarise_runs
from vulcan import OptionError


def test_a_curve_is_the_mean_of_its_runs():
    curve = Curve("a", [1, 10], [[0.0, 1.0], [2.0]])
    assert summarise_runs(curve) == ([0.5, 2.0], [0.1, 2.0], [0.9, 2.0])
    axes = plot_convergence([Panel([curve], "samples", "error", up_scale=0.1)])
    (line,) = axes.get_lines()
    assert line.get_ydata().tolist() == [0.5, 2.0]


def test_a_curve_looks_the_same_in_all_panels():
    one, two = (Curve(name, [1, 2], [[1.0], [2.0]]) for name in "ab")
    axes = plot_convergence([Panel([one, two], "x", "y"), Panel([two], "x", "y", {"end": 2.0})])
    left, right = axes.get_figure(root=True).axes
    assert left.get_lines()[1].get_marker() == right.get_lines()[-1].get_marker()


def test_what_can_not_be_drawn():
    with pytest.raises(OptionError, match="at least one run"):
        Curve("a", [1], [[]])
    with pytest.raises(OptionError, match="at least one panel"):
        plot_convergence([])
    with pytest.raises(OptionError, match="as many axes"):
        plot_convergence([Panel([], "x", "y")], axes=[])
