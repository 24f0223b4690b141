"""What all figures share: axes, titles, files, and no windows."""

import sys

import pytest
from matplotlib.figure import Figure

from tests.helpers.figures import draw, run_python
from vulcan import Linear, OptionError, Pareto, Problem, plotting
from vulcan.domains import Bandit
from vulcan.planning.compare import compare
from vulcan.planning.frontier import trace_frontier
from vulcan.plotting.style import LONGEST_TITLE, make_axes


def test_axes_that_are_given_are_drawn_into(frontier, comparison):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plotting.plot_frontier(frontier, left) is left
    assert plotting.plot_comparison(comparison, right) is right
    assert figure.axes == [left, right]
    assert left.get_xlabel() == "allowed probability of failure"
    draw(left)
    top, bottom = Figure().subplots(2)
    plotting.plot_frontier(frontier, top, bottom)
    assert bottom.lines


def test_names_of_models_are_not_mathematics_and_command_nothing():
    class Costly(Bandit):
        def __repr__(self):
            return "Costly($\\frac{1}$, \x1b[31m" + "x" * 200

    named = trace_frontier(Costly(horizon=2), levels=[0.001])
    ax = plotting.plot_frontier(named)
    first, second = ax.get_title(loc="left").splitlines()
    assert first.startswith("Costly($\\frac{1}$, ?[31mxxx")
    assert len(first + second) == LONGEST_TITLE
    draw(ax)
    comparison = compare(Problem(Costly(horizon=2), Linear(0.002)), {"$x_": Pareto()})
    draw(plotting.plot_comparison(comparison))


# Files.


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")]
)
def test_figures_are_written_to_files(frontier, comparison, tmp_path, ending, start):
    for name, make in (
        ("a", lambda: plotting.plot_frontier(frontier)),
        ("b", lambda: plotting.plot_comparison(comparison)),
    ):
        path = tmp_path / f"{name}.{ending}"
        path.write_text("something else")
        plotting.save(make(), path)
        assert path.read_bytes().startswith(start)
        assert path.stat().st_size > 5000
        again = tmp_path / f"{name}2.{ending}"
        plotting.save(make(), again)
        assert again.read_bytes() == path.read_bytes()
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("name", ["figure", "figure.jpg", "figure.png.txt", ".png"])
def test_other_endings_are_refused(frontier, tmp_path, name):
    message = r"a figure is written to \.png, \.svg, \.pdf; not to '.*'"
    with pytest.raises(OptionError, match=message):
        plotting.check_figure_file(tmp_path / name)
    with pytest.raises(OptionError, match=message):
        plotting.save(plotting.plot_frontier(frontier), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_there_is_a_readable_error(frontier, comparison, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for act in (
        lambda: plotting.plot_frontier(frontier),
        lambda: plotting.plot_comparison(comparison),
        lambda: plotting.check_figure_file(tmp_path / "a.png"),
    ):
        with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[plot\]'"):
            act()


def test_importing_vulcan_and_its_figures_imports_no_matplotlib(tmp_path):
    code = "import sys, vulcan, vulcan.plotting; print('matplotlib' in sys.modules)"
    assert run_python(code, tmp_path) == "False\n"


def test_figures_are_drawn_without_the_library_that_opens_windows(tmp_path):
    code = """
import sys
from vulcan import trace_frontier
from vulcan.domains import Bandit
from vulcan.plotting import plot_frontier, save
save(plot_frontier(trace_frontier(Bandit(horizon=2), levels=[0, 0.001])), "a.png")
print("matplotlib.pyplot" in sys.modules)
"""
    assert run_python(code, tmp_path) == "False\n"
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_axes_show_their_figure_in_a_notebook() -> None:
    (ax,) = make_axes(2.0)
    content, size = ax._repr_png_()
    assert content.startswith(b"\x89PNG")
    assert size == {"width": 630, "height": 200}
