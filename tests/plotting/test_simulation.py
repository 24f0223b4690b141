"""Figures of simulations."""

import pytest

import vulcan
from tests.helpers.figures import PROBLEM, draw, legend
from vulcan import plotting
from vulcan.plotting.simulation import MOST_BARS, extract_episodes


@pytest.fixture(scope="module")
def simulation():
    return vulcan.simulate(vulcan.solve(PROBLEM).policy, episodes=20_000)


def test_the_bars_are_all_episodes(simulation):
    curves = extract_episodes(simulation)
    assert sum(curves.shares) == pytest.approx(1)
    assert len(curves.edges) == len(curves.shares) + 1 <= MOST_BARS + 1
    assert curves.survival == simulation.survival


def test_a_simulation_is_drawn_in_two_panels(simulation):
    ax = plotting.plot_simulation(simulation)
    top, bottom = ax.get_figure().axes
    assert top is ax
    mean, exact = (line.get_xdata()[0] for line in top.lines)
    assert (mean, exact) == (simulation.reward.value, simulation.reward.exact)
    assert bottom.lines[0].get_ydata().tolist() == list(simulation.survival)
    assert bottom.lines[1].get_ydata().tolist() == list(simulation.exact_survival)
    assert legend(ax)[0] == "episodes"
    assert ax.get_title(loc="left").startswith(simulation.model)
    assert draw(ax).std() > 1


def test_a_simulation_is_drawn_into_given_axes(simulation):
    first = plotting.plot_simulation(simulation)
    figure = first.get_figure()
    again = plotting.plot_simulation(simulation, ax=figure.axes[0])
    assert again is figure.axes[0]
    assert len(figure.axes) == 2
