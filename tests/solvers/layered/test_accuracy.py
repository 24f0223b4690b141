"""How far what a search computes may be from what it would be without rounding."""

from __future__ import annotations

import vulcan
from tests.helpers.charts import draw_chart
from vulcan.graphs.levels import build_levels
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.solvers.layered.accuracy import find_extremes


def test_actions_of_the_last_step_count_though_a_compiled_model_does_not_store_them() -> None:
    model = draw_chart(14, 3)
    problem = vulcan.Problem(model, vulcan.parse("min(0.01*x, 0.05)"))
    found = vulcan.solve(problem, vulcan.Vulcan(), samples=300, seed=2, keep=True)
    assert found.status is vulcan.Status.SOLVED
    compiled = found.knowledge.graph
    unstored = compiled.actions.array["first_outcome"][: compiled.actions.count] < 0
    assert unstored.any()
    plain = StateGraph(ModelReader(model.plain()))
    build_levels(plain)
    assert find_extremes(compiled) == find_extremes(plain)
