"""Every public figure, of several models: no text lies over another, over hatching or the edge."""

from dataclasses import dataclass

import pytest

import vulcan
from examples.exploration import drawing
from reproduction.figures.convergence import Curve, Panel, plot_convergence
from reproduction.figures.curves import plot_curves, plot_penalties
from reproduction.figures.policy_space import plot_policy_space
from tests.helpers.figures import find_clashes, no_windows
from tests.helpers.rule_policies import MISSION, cross_wall, go_east, plan_by_rule
from vulcan import Linear, Problem, plotting
from vulcan.domains import Bandit, Exploration, ThreeActions

__all__ = ["no_windows"]


@dataclass(frozen=True)
class Talkative(Bandit):
    """A model with a long name."""

    remark: str = "the one that has a name which is far too long for any figure, and goes on and on"


PROBLEMS = {
    "bandit": Problem(Bandit(horizon=5), Linear(0.002)),
    "three": Problem(ThreeActions(), Linear(0.004)),
    "named": Problem(Talkative(horizon=3), "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"),
}


@pytest.fixture(scope="module", params=["wall", "narrow", "wide", "short"])
def journeys(request):
    """All outcomes of policies on several maps."""
    if request.param == "wall":
        mission, policy = MISSION, plan_by_rule(MISSION, cross_wall)
    elif request.param == "short":
        mission = Exploration(map="wide", horizon=1, degree=2)
        policy = plan_by_rule(mission, go_east)
    else:
        mission = Exploration(map=request.param, horizon=5)
        problem = Problem(mission, "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")
        policy = vulcan.solve(problem, vulcan.Vulcan(), samples=3000).policy
    return drawing.follow_policy(policy, mission)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(
    "options", [{}, {"scales": vulcan.planning.Span()}, {"levels": [-0.01, 0, 0.02]}]
)
def test_frontiers(name, options):
    frontier = vulcan.trace_frontier(PROBLEMS[name], points=8, **options)
    assert find_clashes(plotting.plot_frontier(frontier)) == []


@pytest.mark.parametrize("name", PROBLEMS)
def test_comparisons(name):
    comparison = vulcan.compare(PROBLEMS[name], samples=500)
    assert find_clashes(plotting.plot_comparison(comparison)) == []


@pytest.mark.parametrize("name", PROBLEMS)
def test_simulations(name):
    simulation = vulcan.simulate(vulcan.solve(PROBLEMS[name]).policy, episodes=500, seed=1)
    assert find_clashes(plotting.plot_simulation(simulation)) == []


def test_missions(journeys):
    for outcome in drawing.choose_outcomes(journeys)[:3]:
        assert find_clashes(drawing.plot_mission(outcome)) == []


def test_outcomes(journeys):
    assert find_clashes(drawing.plot_outcomes(journeys)) == []


def test_visits(journeys):
    assert find_clashes(drawing.plot_visits(journeys)) == []


def test_risks_and_rewards(journeys):
    for bound in (None, Linear(0.002), vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")):
        assert find_clashes(drawing.plot_risk_reward(journeys, bound)) == []


@pytest.mark.parametrize(
    "choices",
    [
        {"a1": (5.0, 0.01), "a2": (6.0, 0.02), "a3": (10.0, 0.05)},
        {f"choice {k}": (5.0 + k - 0.1 * k * k, 0.01 * k) for k in range(5)},
    ],
)
def test_penalties(choices):
    assert find_clashes(plot_penalties(choices, 250.0, title="Choices")) == []


def test_figures_of_the_reproduction():
    curves = {f"curve number {k}": [(n, n**k) for n in range(1, 9)] for k in range(4)}
    levels = {"an hour": 300.0, "a second": 3.0}
    labels = {"x_label": "horizon", "y_label": "time (s)", "title": "Some curves"}
    assert find_clashes(plot_curves(curves, levels=levels, logarithmic=True, **labels)) == []
    groups = {"all": [(k / 10, k / 1000) for k in range(30)], "some": [(1.0, 0.002)]}
    space = plot_policy_space(groups, Linear(0.002), {"the best": (2.0, 0.001)}, title="Policies")
    assert find_clashes(space) == []
    runs = [Curve(f"solver {k}", [1, 10, 1000], [[k, k + 1.0]] * 3) for k in range(1, 4)]
    panels = [Panel(runs, "samples", "reward", title=f"horizon {k}") for k in range(4)]
    assert find_clashes(plot_convergence(panels, title="Convergence")) == []


def test_clashes_are_seen():
    ax = plot_curves({"one": [(1, 1), (2, 2)]}, x_label="x", y_label="y")
    ax.text(1.5, 1.5, "hidden")
    ax.text(1.5, 1.5, "below")
    ax.text(2.05, 1.2, "far beyond the edge of the figure", in_layout=False)
    ax.axvspan(1.1, 1.2, hatch="//")
    ax.text(1.1, 1.2, "hatched")
    clashes = find_clashes(ax)
    assert ("hidden", "below") in clashes
    assert ("far beyond the edge of the figure", "the edge") in clashes
    assert ("hatched", "hatching") in clashes
