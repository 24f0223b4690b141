"""The speed of the compiled exploration mission, beside the same model in plain Python."""

from __future__ import annotations

import random
import time

import pytest

import vulcan
from vulcan.domains import Exploration

BOUND = vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")


def measure_plain_answers(mission: Exploration, seconds: float) -> float:
    """Return how many (history, action) the plain model answers in a second."""
    draw = random.Random(0)
    answers, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        state = mission.initial_state()
        for _ in range(mission.horizon):
            outcomes = [mission.outcomes(state, action) for action in mission.actions(state)]
            answers += len(outcomes)
            state = draw.choice([o.state for some in outcomes for o in some if not o.fails])
    return answers / (time.perf_counter() - began)


@pytest.mark.parametrize("area", ["narrow", "wide"])
@pytest.mark.parametrize(
    "solver", [vulcan.LocalVulcan(0.1), vulcan.baselines.UCT(0.1)], ids=["vulcan", "uct"]
)
def test_expansions(area: str, solver: object) -> None:
    mission = Exploration(map=area)
    problem = vulcan.Problem(mission, BOUND)
    plain = measure_plain_answers(mission, 2.0)
    result = vulcan.solve(problem, solver, time_limit=5)
    statistics = result.statistics
    answers = statistics.evaluations / statistics.search_seconds
    print(
        f"\n{area}, {type(solver).__name__}: {answers:,.0f} expansions and "
        f"{statistics.samples / statistics.search_seconds:,.0f} samples a second, "
        f"{answers / plain:.1f} times the plain model alone ({plain:,.0f} answers a second); "
        f"reward {float(result.certificate.reward):.3f}, "
        f"certificate of {len(result.policy):,} decisions in {statistics.certificate_seconds:.1f} s"
    )
    assert result.certificate.complete
    assert answers > 6 * plain


@pytest.mark.parametrize("area", ["narrow", "wide"])
def test_forward_search_of_five_moves(area: str) -> None:
    mission = Exploration(map=area, horizon=5)
    problem = vulcan.Problem(mission, BOUND)
    plain = measure_plain_answers(mission, 2.0)
    vulcan.solve(
        problem, vulcan.ForwardSearch(), limits=vulcan.Limits(histories=1)
    )  # compiled by now
    statistics = vulcan.solve(problem, vulcan.ForwardSearch()).statistics
    answers = statistics.evaluations / statistics.search_seconds
    print(
        f"\n{area}, five moves: {statistics.histories:,} histories in "
        f"{statistics.search_seconds:.2f} s, {answers:,.0f} expansions a second, "
        f"{answers / plain:.0f} times the plain model alone"
    )
    assert answers > 20 * plain
