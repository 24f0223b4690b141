"""Charts: models that are tables, plain and compiled, for the tests of compiled models."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

import vulcan
from vulcan import Outcome
from vulcan.model.compiled import (
    CompiledModel,
    bound_signature,
    outcomes_signature,
    value_bound_signature,
)
from vulcan.solvers import SequenceConstraint, SurvivalConstraint

CURVED = vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")
STEEP = vulcan.parse("min(0.01*x, 0.05)")
CONSTRAINTS = [SurvivalConstraint(), SequenceConstraint(), SequenceConstraint("received")]


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


@numba.cfunc(value_bound_signature(STATE, CHART), cache=True)
def plan_to_the_end(parameters, state, step, price):
    """Return the value of a place; the horizon is the first bound."""
    chart, place = numba.carray(parameters, 1)[0], numba.carray(state, 1)[0].place
    after, before = np.zeros(PLACES), np.zeros(PLACES)
    for _ in range(int(chart.bounds[0, 0]) - step):
        for where in range(PLACES):
            best, count = -np.inf, 0
            for action in range(len(NAMES)):
                worth = 0.0
                for k in range(chart.counts[where, action]):
                    to_go = after[chart.after[where, action, k]]
                    to_go = -price if chart.fails[where, action, k] else to_go
                    reward = chart.reward[where, action, k]
                    worth += chart.probability[where, action, k] * (reward + to_go)
                if chart.counts[where, action]:
                    best, count = max(best, worth), count + 1
            before[where] = best if count else 0.0
        after[:] = before
    return after[place]


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


HONEST: Answers = {
    (0, "left"): [(0.5, 1.0, 1), (0.375, 2.0, 2), (0.125, 0.0, None)],
    (0, "right"): [(1.0, 0.25, 2)],
    (1, "ahead"): [(0.75, 4.0, 2), (0.25, 1.0, 1)],
    (2, "left"): [(1.0, 3.0, 1)],
}
