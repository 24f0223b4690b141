"""Compiled models: the same answers and the same searches as the plain form."""

from __future__ import annotations

import dataclasses
import random
import re
import sys
import textwrap
from collections.abc import Callable
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.charts import CONSTRAINTS, CURVED, HONEST, Asked, Chart, draw_chart, solve
from vulcan import SequenceConstraint, Status, SurvivalConstraint
from vulcan.compiled import CompiledModel
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.model import MOVES, Exploration, History

# The exploration mission


class PlainExploration(Exploration):
    """A subclass, which has no compiled form."""


class WithoutBound(Exploration):
    """The compiled form without its bound, so that the search is that of the plain one."""

    @cached_property
    def compiled(self) -> CompiledModel | None:
        whole = Exploration(**{f.name: getattr(self, f.name) for f in dataclasses.fields(self)})
        return dataclasses.replace(whole.compiled, bound=None)


@st.composite
def missions(draw: Callable[..., Any]) -> Exploration:
    """Missions of at most nine moves, so that there are two sizes of records to compile."""
    columns, rows = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    start = (draw(st.integers(0, columns - 1)), draw(st.integers(0, rows - 1)))
    spacing, origin = draw(st.sampled_from([1.0, 0.7])), (draw(st.floats(-2, 2)), 0.5)
    obstacles = []
    for _ in range(draw(st.integers(0, 3))):
        left, bottom = draw(st.floats(-1, 7)), draw(st.floats(-1, 7))
        wide, high = draw(st.floats(0.2, 3)), draw(st.floats(0.2, 3))
        obstacle = Obstacle.rectangle(left, left + wide, bottom, bottom + high)
        place = (origin[0] + spacing * start[0], origin[1] + spacing * start[1])
        if not obstacle.contains(place):
            obstacles.append(obstacle)
    slope = (draw(st.floats(-0.3, 0.3)), draw(st.floats(-0.3, 0.3)))
    return Exploration(
        horizon=draw(st.integers(1, 9)),
        map=Map(columns, rows, start, obstacles, spacing, origin),
        field=Field(
            draw(st.floats(-1, 2)), slope, draw(st.floats(0.05, 2)), draw(st.floats(0.5, 2))
        ),
        vehicle=Vehicle(draw(st.sampled_from([0.0, 0.005, 0.3])), 0.01),
        degree=draw(st.integers(1, 5)),
        first_sample=draw(st.none() | st.floats(-2, 3)),
        collision_reward=draw(st.sampled_from([0.0, -3.0, 1.5])),
        discount=draw(st.sampled_from([1.0, 0.8, 0.0])),
    )


def compare_answers(
    mission: Exploration, asked: Asked, state: History, record: np.ndarray
) -> list[tuple[History, np.ndarray]]:
    """Compare all answers about one history, and return the histories after it."""
    step, moves = len(state.path) - 1, mission.actions(state)
    limit = mission.reward_to_go_bound(state, step)
    assert asked.bound(record, step) == pytest.approx(limit, abs=1e-9, rel=1e-9)
    after = []
    for number, move in enumerate(MOVES):
        answers, records = asked.outcomes(record, number)
        plain = mission.outcomes(state, move) if move in moves else []
        assert len(answers) == len(plain)
        for (probability, reward, fails), outcome, then in zip(
            answers, plain, records, strict=True
        ):
            assert probability == pytest.approx(outcome.probability, abs=1e-9)
            assert reward == pytest.approx(outcome.reward, abs=1e-9)
            assert fails == outcome.fails
            if not fails:
                after.append((outcome.state, then.reshape(1)))
    return after


@settings(max_examples=60)
@given(mission=missions(), seed=st.integers(0, 1 << 32))
def test_compiled_exploration_says_what_the_plain_one_says(mission: Exploration, seed: int) -> None:
    asked, rng = Asked(mission.compiled), random.Random(seed)
    state, record = mission.initial_state(), mission.compiled.initial
    for step in range(mission.horizon):
        assert len(state.path) == step + 1
        after = compare_answers(mission, asked, state, record)
        if not after:
            break
        state, record = rng.choice(after)


@settings(max_examples=20)
@given(mission=missions(), seed=st.integers(0, 1 << 32))
def test_order_of_questions_does_not_matter(mission: Exploration, seed: int) -> None:
    """What the functions note in their parameters must never show."""
    rng, fresh = random.Random(seed), lambda: Asked(mission.compiled)
    known = [(0, mission.compiled.initial)]
    for _ in range(60):  # histories, many of which return to cells that they know
        step, record = rng.choice(known)
        records = [
            then.reshape(1)
            for number in range(len(MOVES))
            for answers, following in [fresh().outcomes(record, number)]
            for (_, _, fails), then in zip(answers, following, strict=True)
            if not fails and step + 1 < mission.horizon
        ]
        known += [(step + 1, record) for record in rng.sample(records, min(2, len(records)))]
    asked = fresh()
    for _ in range(200):
        step, record = rng.choice(known)
        if rng.random() < 0.5:
            number = rng.randrange(len(MOVES))
            (answers, after), (new, new_after) = (
                one.outcomes(record, number) for one in (asked, fresh())
            )
            assert answers == new  # to the last bit
            safe = [k for k, answer in enumerate(new) if not answer[2]]
            assert (after[safe] == new_after[safe]).all()
        else:
            other = rng.randrange(mission.horizon + 1)  # of a step that is not the history's own
            when = rng.choice([step, max(step, other)])
            assert asked.bound(record, when) == fresh().bound(record, when)


def test_long_missions_have_no_compiled_form_and_subclasses_neither() -> None:
    assert Exploration(horizon=41).compiled is None
    assert PlainExploration().compiled is None
    assert Exploration(horizon=2).compiled.actions == tuple(MOVES)


# Crooked enough that no two plans are worth the same.
CROOKED = {
    "field": Field(1.0, (0.0713, 0.0429), 0.16, 2.0),
    "map": Map(9, 8, (3, 4), [Obstacle.rectangle(4.3, 5.7, 4.4, 9.0)]),
    "vehicle": Vehicle(0.02, 0.011),
}


@pytest.mark.parametrize("horizon", [2, 3])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_forward_search_is_the_same(constraint: Any, horizon: int) -> None:
    solver = vulcan.ForwardSearch(constraint)
    options: dict[str, Any] = {**CROOKED, "degree": 3 if horizon == 2 else 2, "horizon": horizon}
    form, plain = (
        solve(kind(**options), solver, CURVED) for kind in (Exploration, PlainExploration)
    )
    assert (form.status, form.policy) == (Status.SOLVED, plain.policy)
    assert plain.status is Status.SOLVED
    assert form.certificate.reward == pytest.approx(plain.certificate.reward, rel=1e-12)
    assert form.statistics.histories == plain.statistics.histories
    # Solved to its end, Vulcan finds the same, with the bound or without it.
    for kind in (Exploration, WithoutBound):
        tree = solve(kind(**options), vulcan.Vulcan(constraint=constraint), CURVED)
        assert tree.status is Status.SOLVED
        assert tree.certificate.reward == pytest.approx(form.certificate.reward, rel=1e-9)


SAMPLERS = [
    *(vulcan.Vulcan(constraint=constraint) for constraint in CONSTRAINTS),
    vulcan.Vulcan(default_policy="random"),
    vulcan.UCT(),
]


@pytest.mark.parametrize("solver", SAMPLERS, ids=str)
def test_same_seed_and_samples_give_the_same_policy(solver: Any) -> None:
    options: dict[str, Any] = {**CROOKED, "degree": 2, "horizon": 4}
    form, plain = (
        solve(kind(**options), solver, CURVED, samples=1200, seed=7)
        for kind in (WithoutBound, PlainExploration)
    )
    assert form.statistics.samples == plain.statistics.samples == 1200
    assert form.statistics.histories == plain.statistics.histories
    assert form.policy == plain.policy
    assert form.certificate.safe == plain.certificate.safe


# Charts


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("solver", [*map(vulcan.ForwardSearch, CONSTRAINTS), *SAMPLERS], ids=str)
def test_charts_are_solved_alike(solver: Any, seed: int) -> None:
    chart = draw_chart(seed, 4)
    options = {} if isinstance(solver, vulcan.ForwardSearch) else {"samples": 300, "seed": seed}
    form, plain = (solve(model, solver, **options) for model in (chart, chart.plain()))
    assert (form.status, form.policy) == (plain.status, plain.policy)
    assert form.statistics.histories == plain.statistics.histories
    assert form.statistics.samples == plain.statistics.samples


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=str)
def test_charts_solved_to_the_end(constraint: Any, seed: int) -> None:
    chart = draw_chart(seed, 5)
    whole = solve(chart, vulcan.ForwardSearch(constraint))
    tree = solve(chart, vulcan.Vulcan(constraint=constraint))
    assert whole.status is tree.status
    if whole.certificate is not None:
        assert tree.certificate.reward == pytest.approx(whole.certificate.reward, rel=1e-9)


def test_rows_that_are_released_are_not_missed() -> None:
    chart = draw_chart(1, 8)  # with more rows than a forward search keeps
    form = solve(chart, vulcan.ForwardSearch())
    chart.merges, chart.compiled = True, None
    plain = solve(chart, vulcan.ForwardSearch())
    assert form.statistics.evaluations > 50_000
    assert form.certificate.reward == pytest.approx(plain.certificate.reward, rel=1e-12)


SOLVERS = [vulcan.Vulcan(), vulcan.ForwardSearch(), vulcan.UCT()]


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_initial_state_that_is_terminal(solver: Any) -> None:
    result = solve(Chart({(1, "left"): [(1.0, 1.0, 1)]}, 3), solver)
    assert result.status is Status.SOLVED
    assert result.safe
    assert result.certificate.reward == 0


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_terminal_state_in_the_middle(solver: Any) -> None:
    chart = Chart(
        {
            (0, "left"): [(0.5, 1.0, 1), (0.5, 0.0, 2)],
            (2, "right"): [(0.99, 3.0, 1), (0.01, 0.0, None)],
        },
        4,
    )
    result = solve(chart, solver, vulcan.Constant(0.1))
    assert result.status is Status.SOLVED
    assert result.safe
    assert result.certificate.reward == pytest.approx(0.5 + 0.5 * 0.99 * 3.0)


@pytest.mark.parametrize(
    ("constraint", "status"),
    [(SurvivalConstraint(), Status.SOLVED), (SequenceConstraint(), Status.INFEASIBLE)],
    ids=str,
)
def test_action_that_surely_fails(constraint: Any, status: Status) -> None:
    for solver in (vulcan.Vulcan(constraint=constraint), vulcan.ForwardSearch(constraint)):
        chart = Chart({(0, "left"): [(0.75, 2.0, None), (0.25, 0.0, None)]}, 2)
        result = solve(chart, solver, vulcan.Constant(1.0))
        assert result.status is status
        assert result.certificate is None or result.certificate.reward == pytest.approx(1.5)
        assert solve(chart, solver, vulcan.Constant(0.5)).status is Status.INFEASIBLE


# Searches


def test_parameters_are_copied_for_each_search() -> None:
    mission = Exploration(**CROOKED, horizon=4)
    before = mission.compiled.parameters.tobytes()
    first, second = (solve(mission, vulcan.Vulcan(), CURVED, samples=500) for _ in range(2))
    assert mission.compiled.parameters.tobytes() == before
    assert first.policy == second.policy


@pytest.mark.parametrize("first", [1000, 1024, 3333])
def test_checkpoints_resume_bit_for_bit(tmp_path: Path, first: int) -> None:
    mission, options = Exploration(**CROOKED, degree=2, horizon=6), {"seed": 5}
    unbroken = solve(mission, vulcan.Vulcan(), CURVED, samples=6000, **options)
    options["checkpoint"] = tmp_path / "search"
    broken = solve(mission, vulcan.Vulcan(), CURVED, samples=first, **options)
    assert broken.statistics.samples == first
    resumed = solve(mission, vulcan.Vulcan(), CURVED, samples=6000, resume=True, **options)
    assert resumed.policy == unbroken.policy
    assert resumed.certificate == unbroken.certificate
    for name in ("histories", "samples", "evaluations"):
        found, expected = (getattr(r.statistics, name) for r in (resumed, unbroken))
        assert found == expected, name


@pytest.mark.parametrize("limit", [1_000_000, 3_000_000, 20_000_000])
def test_memory_limit_holds(limit: int) -> None:
    mission = Exploration(**CROOKED, degree=2, horizon=6)
    result = solve(mission, vulcan.Vulcan(), CURVED, memory=limit)
    assert result.stopped_by == "limit of memory"
    assert result.statistics.memory <= limit
    assert result.safe


def test_bound_leads_to_the_same_reward_with_less_work() -> None:
    mission = {**CROOKED, "degree": 2, "horizon": 4}
    free = solve(WithoutBound(**mission), vulcan.Vulcan(), CURVED)
    bounded = solve(Exploration(**mission), vulcan.Vulcan(bounded=True), CURVED)
    assert free.status is bounded.status is Status.SOLVED
    assert bounded.certificate.reward == pytest.approx(free.certificate.reward, rel=1e-9)
    assert bounded.statistics.histories < free.statistics.histories


def test_models_that_are_asked_in_python_all_the_same() -> None:
    """A credit or a default policy of the user's own gets the model's own states."""
    seen: set[Any] = set()

    def credit(state: Any, action: Any) -> float:
        seen.add(type(state))
        return 0.0

    def choose(history: Any, state: Any) -> str:
        seen.add(type(state))
        return Chart(HONEST, 3).actions(state)[0]

    for solver in (
        vulcan.Vulcan(constraint=SequenceConstraint(credit)),
        vulcan.Vulcan(default_policy=choose),
        vulcan.ForwardSearch(SequenceConstraint(credit)),
    ):
        assert solve(Chart(HONEST, 3), solver, vulcan.Constant(1.0)).status is Status.SOLVED
    assert seen == {int}


def test_example_agrees_by_the_snippets_of_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[1]
    page = (root / "docs" / "compiled.md").read_text()
    snippets: dict[str, Any] = {}
    for code in re.findall(r"^  ```python\n(.*?)^  ```", page, re.DOTALL | re.MULTILINE):
        exec(textwrap.dedent(code), snippets)
    place = spec_from_file_location("glider", root / "examples" / "glider.py")
    module = module_from_spec(place)
    monkeypatch.setitem(sys.modules, "glider", module)  # where Numba's cache looks for it
    place.loader.exec_module(module)
    glider = module.Glider
    for seed in range(20):
        snippets["compare"](glider(), seed)
    other = glider()
    assert other.compiled.most_outcomes == 4
    other.worth = [[worth + 1e-6 for worth in column] for column in other.worth]
    with pytest.raises(AssertionError):
        snippets["compare"](other, 0)
