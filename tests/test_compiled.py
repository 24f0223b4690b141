"""Compiled models: the same answers, the same searches, and no lie believed."""

from __future__ import annotations

import dataclasses
import math
import random
import re
import sys
import textwrap
from collections.abc import Callable
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from vulcan import ModelError, OptionError, Outcome, SequenceConstraint, Status, SurvivalConstraint
from vulcan.compiled import ANSWER, CompiledModel, bound_signature, outcomes_signature
from vulcan.domains.exploration.collision import Obstacle, Vehicle
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map
from vulcan.domains.exploration.model import MOVES, Exploration, History

CURVED = vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")
STEEP = vulcan.parse("min(0.01*x, 0.05)")

CONSTRAINTS = [SurvivalConstraint(), SequenceConstraint(), SequenceConstraint("received")]


class Asked:
    """A compiled model, asked from Python."""

    def __init__(self, form: CompiledModel) -> None:
        self.form, self.parameters = form, form.parameters.copy()
        self.answers = np.zeros(form.most_outcomes, ANSWER)
        self.following = np.zeros(form.most_outcomes, form.initial.dtype)

    def outcomes(self, record: np.ndarray, number: int) -> tuple[list[tuple[Any, ...]], np.ndarray]:
        """Return (probability, reward, fails) of each outcome, and the records after them."""
        places = (self.parameters.ctypes.data, record.ctypes.data, number)
        written = (self.answers.ctypes.data, self.following.ctypes.data)
        count = self.form.outcomes.ctypes(*places, *written)
        return self.answers[:count].tolist(), self.following[:count].copy()

    def bound(self, record: np.ndarray, step: int) -> float:
        return self.form.bound.ctypes(self.parameters.ctypes.data, record.ctypes.data, step)


# A chart: a model that is a table, in its plain form and in its compiled one. A lie is another one.

PLACES, LONGEST, MOST = 12, 8, 4
NAMES = ("left", "ahead", "right")
STATE = np.dtype([("place", "i8")])
ROWS = (PLACES, len(NAMES), MOST)
CHART = np.dtype(
    [
        ("counts", "i8", ROWS[:2]),
        ("probability", "f8", ROWS),
        ("reward", "f8", ROWS),
        ("fails", "i8", ROWS),
        ("after", "i8", ROWS),
        ("bounds", "f8", (PLACES, LONGEST + 1)),
    ],
    align=True,
)

Answers = dict[tuple[int, str], list[tuple[float, float, int | None]]]


@numba.cfunc(outcomes_signature(STATE, CHART), cache=True)
def look_up(parameters, state, action, answers, following):
    chart, place = numba.carray(parameters, 1)[0], numba.carray(state, 1)[0].place
    answer, after = numba.carray(answers, MOST), numba.carray(following, MOST)
    for k in range(min(MOST, chart.counts[place, action])):
        answer[k].probability = chart.probability[place, action, k]
        answer[k].reward = chart.reward[place, action, k]
        answer[k].fails = chart.fails[place, action, k]
        after[k].place = chart.after[place, action, k]
    return chart.counts[place, action]


@numba.cfunc(bound_signature(STATE, CHART), cache=True)
def look_ahead(parameters, state, step):
    chart, place = numba.carray(parameters, 1)[0], numba.carray(state, 1)[0].place
    return chart.bounds[place, step]


class Chart:
    """Outcomes (probability, reward, place after, None for a failure) of each place and action."""

    merges = False
    fingerprint = "chart"

    def __init__(self, answers: Answers, horizon: int) -> None:
        self.answers, self.horizon = answers, horizon
        self.table = np.zeros(1, CHART)
        for (place, action), outcomes in answers.items():
            where = (0, place, NAMES.index(action))
            self.table["counts"][where] = len(outcomes)
            for k, (probability, reward, after) in enumerate(outcomes):
                self.table["probability"][*where, k] = probability
                self.table["reward"][*where, k] = reward
                self.table["fails"][*where, k] = after is None
                self.table["after"][*where, k] = 0 if after is None else after
        self.compiled: Any = CompiledModel(np.zeros(1, STATE), self.table, NAMES, MOST, look_up)

    def initial_state(self) -> int:
        return 0

    def actions(self, place: int) -> list[str]:
        return [name for name in NAMES if (place, name) in self.answers]

    def outcomes(self, place: int, action: str) -> list[Outcome]:
        return [
            Outcome.failure(p, r, str(k)) if after is None else Outcome(p, r, after, str(k))
            for k, (p, r, after) in enumerate(self.answers[place, action])
        ]

    def plain(self) -> Chart:
        """Return the same model without its compiled form."""
        copy = Chart(self.answers, self.horizon)
        copy.compiled = None
        return copy


def draw_chart(seed: int, horizon: int) -> Chart:
    """Return a random model, with terminals in the middle and actions that surely fail."""
    rng = np.random.default_rng(seed)
    answers: Answers = {(0, "ahead"): [(1.0, 0.5, 1)]}
    for place in range(PLACES):
        if place and rng.random() < 0.15:
            continue
        for name in NAMES:
            kind = rng.random()
            if kind < 0.1:
                answers[place, name] = [(1.0, rng.random(), None)]
            elif kind < 0.9:
                chances = rng.dirichlet(np.ones(rng.integers(1, MOST)))
                risk = 0.02 * rng.random() * (rng.random() < 0.6)
                answers[place, name] = [
                    ((1 - risk) * chance, 2 * rng.random(), int(rng.integers(PLACES)))
                    for chance in chances.tolist()
                ]
                if risk:
                    answers[place, name].append((risk, rng.random(), None))
    return Chart(answers, horizon)


def solve(model: Any, solver: Any, allowed: Any = STEEP, **options: Any) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, allowed), solver, **options)


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


# Lies

HONEST: Answers = {
    (0, "left"): [(0.5, 1.0, 1), (0.375, 2.0, 2), (0.125, 0.0, None)],
    (0, "right"): [(1.0, 0.25, 2)],
    (1, "ahead"): [(0.75, 4.0, 2), (0.25, 1.0, 1)],
    (2, "left"): [(1.0, 3.0, 1)],
}
MIDDLE = (0, 1, 1)  # place 1, "ahead"


def put(name: str, position: int, value: float) -> Callable[[np.ndarray], None]:
    """Return a lie about one outcome of going ahead from place 1."""

    def tell(table: np.ndarray) -> None:
        table[name][*MIDDLE, position] = value

    return tell


def count(number: int) -> Callable[[np.ndarray], None]:
    """Return a lie about how many outcomes that has."""

    def tell(table: np.ndarray) -> None:
        table["counts"][MIDDLE] = number

    return tell


BROKEN = {
    "sum below 1": put("probability", 0, 0.5),
    "sum above 1": put("probability", 0, 0.8),
    "sum just off": put("probability", 0, 0.75 + 1e-7),
    "probability negative": put("probability", 1, -0.25),
    "probability zero": put("probability", 1, 0.0),
    "probability NaN": put("probability", 1, math.nan),
    "probability infinite": put("probability", 1, math.inf),
    "reward NaN": put("reward", 0, math.nan),
    "reward infinite": put("reward", 0, math.inf),
    "reward minus infinite": put("reward", 1, -math.inf),
    "reward beyond sums": put("reward", 1, 1e200),
    "failure before a safe outcome": put("fails", 0, 1),
    "too many outcomes": count(MOST + 1),
    "very many outcomes": count(1 << 40),
    "negative count": count(-1),
}


def lying(tell: Callable[[np.ndarray], None], horizon: int = 3) -> Chart:
    chart = Chart(HONEST, horizon)
    tell(chart.table)
    return chart


LIED_TO = [vulcan.Vulcan(), vulcan.ForwardSearch(), vulcan.UCT()]


@pytest.mark.parametrize("horizon", [2, 3])  # place 1 is at the last step, and before it
@pytest.mark.parametrize("solver", LIED_TO, ids=str)
@pytest.mark.parametrize("lie", BROKEN)
def test_answers_that_break_a_rule(lie: str, solver: Any, horizon: int) -> None:
    chart = lying(BROKEN[lie], horizon)
    with pytest.raises(ModelError, match="compiled outcomes break a rule; there must be") as caught:
        solve(chart, solver, vulcan.Constant(1.0))
    violation = caught.value.violation
    assert violation.rule == "compiled"
    assert violation.action == "ahead"
    assert violation.state["place"] == 1
    assert "at most 4 outcomes, safe ones first" in str(caught.value)


OTHERWISE = {
    "another reward": put("reward", 0, 4.0 + 1e-6),
    "a failure that is none": put("fails", 1, 1),
    "fewer outcomes": lambda table: (
        count(1)(table),
        put("probability", 0, 1.0)(table),
        put("reward", 0, 3.25)(table),
    ),
}


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
@pytest.mark.parametrize("lie", OTHERWISE)
def test_answers_that_the_plain_model_does_not_give(lie: str, solver: Any) -> None:
    with pytest.raises(ModelError, match="compiled and plain answers differ") as caught:
        solve(lying(OTHERWISE[lie]), solver, vulcan.Constant(1.0))
    assert caught.value.violation.state == 1
    assert caught.value.violation.action == "ahead"


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_rounding_is_no_lie(solver: Any) -> None:
    result = solve(lying(put("reward", 0, 4.0 + 1e-12)), solver, vulcan.Constant(1.0))
    assert result.certificate == solve(Chart(HONEST, 3), solver, vulcan.Constant(1.0)).certificate


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_action_that_the_plain_model_has_not(solver: Any) -> None:
    def tell(table: np.ndarray) -> None:
        table["counts"][0, 1, 2] = table["probability"][0, 1, 2, 0] = 1
        table["reward"][0, 1, 2, 0] = 9.0

    with pytest.raises(ModelError, match="has an action 'right' that the plain model has not"):
        solve(lying(tell), solver, vulcan.Constant(1.0))


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_states_that_the_plain_model_does_not_reach(solver: Any) -> None:
    def swap(table: np.ndarray) -> None:
        table["after"][0, 0, 0, :2] = [2, 1]

    with pytest.raises(ModelError, match="has an action 'left' that the plain"):
        solve(lying(swap), solver, vulcan.Constant(1.0))


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_terminal_that_is_none_in_the_plain_model(solver: Any) -> None:
    with pytest.raises((ModelError, vulcan.MismatchError), match="state 1"):
        solve(lying(count(0)), solver, vulcan.Constant(1.0))


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_what_is_no_compiled_model(solver: Any) -> None:
    chart = Chart(HONEST, 3)
    chart.compiled = look_up
    with pytest.raises(ModelError, match=r"compiled must be a vulcan.CompiledModel, not a CFunc"):
        solve(chart, solver)


WHOLE = Chart(HONEST, 3).compiled


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"initial": (0,)}, "initial of a compiled model must be a numpy array"),
        ({"parameters": None}, "parameters of a compiled model must be a numpy array"),
        ({"initial": np.zeros(2, STATE)}, "one initial state"),
        ({"initial": np.zeros(0, STATE)}, "one initial state"),
        ({"initial": np.zeros(1, object)}, "no Python objects"),
        ({"parameters": np.zeros(1, object)}, "no Python objects"),
        ({"actions": ()}, "actions of a compiled model must be labels"),
        ({"actions": ("left", "left")}, "each of them once"),
        ({"most_outcomes": 0}, "most_outcomes of a compiled model must be at least 1"),
        ({"most_outcomes": 2.0}, "most_outcomes of a compiled model must be at least 1"),
        ({"outcomes": None}, "outcomes of a compiled model must be made with numba.cfunc"),
        ({"outcomes": look_up.__wrapped__}, "outcomes .* must be made with numba.cfunc"),
        ({"bound": numba.njit(lambda x: x)}, "bound .* must be made with numba.cfunc"),
    ],
)
def test_parts_that_are_refused(part: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        dataclasses.replace(WHOLE, **part)


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


# What was wrong once.


@pytest.mark.parametrize("limit", [{"samples": 1}, {"histories": 2}], ids=str)
def test_small_limits_hold(limit: dict[str, int]) -> None:
    chart = draw_chart(0, 6)
    form, plain = (solve(model, vulcan.Vulcan(), **limit) for model in (chart, chart.plain()))
    assert form.statistics.samples == plain.statistics.samples


def test_algorithm_as_printed() -> None:
    chart = draw_chart(0, 4)
    form, plain = (
        solve(model, vulcan.Vulcan.paper(), samples=300) for model in (chart, chart.plain())
    )
    assert form.policy == plain.policy


def test_infinite_bound_says_nothing() -> None:
    chart = draw_chart(3, 4)
    chart.table["bounds"] = math.inf
    free = solve(chart, vulcan.Vulcan())
    chart.compiled = dataclasses.replace(chart.compiled, bound=look_ahead)
    bounded = solve(chart, vulcan.Vulcan())
    assert bounded.status is free.status
    assert bounded.certificate.reward == pytest.approx(free.certificate.reward)


def test_bound_that_is_not_a_number() -> None:
    chart = draw_chart(3, 4)
    chart.table["bounds"] = math.nan
    chart.compiled = dataclasses.replace(chart.compiled, bound=look_ahead)
    with pytest.raises(ModelError, match="bound"):
        solve(chart, vulcan.Vulcan())


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_other_probabilities_with_the_same_mean(solver: Any) -> None:
    chart = Chart({(0, "left"): [(0.5, 1.0, 1), (0.5, 1.0, 2)], (2, "left"): [(1.0, 1.0, 2)]}, 2)
    chart.table["probability"][0, 0, 0, :2] = [0.25, 0.75]
    with pytest.raises(ModelError, match="compiled and plain answers differ"):
        solve(chart, solver)


def test_checkpoint_of_the_other_form_is_refused(tmp_path: Path) -> None:
    chart, options = draw_chart(3, 6), {"checkpoint": tmp_path / "search", "samples": 100}
    solve(chart.plain(), vulcan.Vulcan(), **options)
    with pytest.raises(vulcan.CheckpointError):
        solve(chart, vulcan.Vulcan(), resume=True, **options)


def test_upper_bound_after_a_forward_search() -> None:
    chart = draw_chart(0, 4)
    chart.merges = True
    form = solve(chart, vulcan.ForwardSearch(), bound=True)
    chart.compiled = None
    plain = solve(chart, vulcan.ForwardSearch(), bound=True)
    assert form.upper_bound == pytest.approx(plain.upper_bound)


def test_function_of_other_types_is_refused() -> None:
    for part in ({"outcomes": look_ahead}, {"initial": np.zeros(1, "f4")}):
        with pytest.raises(OptionError, match="outcomes"):
            dataclasses.replace(WHOLE, **part)


def test_smooth_fields_are_no_lies() -> None:
    mission = Exploration(9, field=Field(length=14.0), degree=2)
    assert solve(mission, vulcan.Vulcan(), CURVED, samples=3000).safe
