"""Plain problems as models and bounds of Vulcan."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import vulcan
from fuzzing.problems import Bound, Key, Limit, PlainProblem, Way
from fuzzing.risk_bounds import EPSILON, ROUNDINGS, evaluate_float, write_text
from vulcan import Outcome, Start
from vulcan.constraints import Constraint, Cost, Risk, RiskAhead
from vulcan.numerics import TOLERANCE

__all__ = ["TableModel", "has_values", "make_arrays", "make_bound", "make_problem"]


class TableModel:
    """A plain problem as a model.

    Parameters
    ----------
    problem
        What it says.
    merges
        False for a model whose states are whole histories: all observations so far.
    """

    def __init__(self, problem: PlainProblem, merges: bool = True) -> None:
        self.horizon, self.discount, self.merges = problem.horizon, problem.discount, merges
        self._states = {
            state: {action: [_to_outcome(way) for way in ways] for action, ways in actions.items()}
            for state, actions in problem.states.items()
        }
        self._keys = {
            (state, action): [way.key for way in ways] for state, action, ways in problem.answers()
        }
        self._start: Any = problem.start
        if not isinstance(problem.start, int):
            self._start = Start(
                {
                    action: [self._extend(_to_outcome(way), (), action, way.key) for way in ways]
                    for action, ways in problem.start.items()
                }
            )
        elif not merges:
            self._start = (problem.start,)

    def __repr__(self) -> str:
        return f"TableModel(horizon={self.horizon}, merges={self.merges})"

    def initial_state(self) -> Any:
        """Return the initial state, or the start."""
        return self._start

    def actions(self, state: Any) -> list[str]:
        """Return the actions of a state."""
        return list(self._states.get(self._last(state), ()))

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        """Return the outcomes of an action."""
        here = self._last(state)
        outcomes = self._states[here][action]
        if self.merges:
            return list(outcomes)
        keys = self._keys[here, action]
        return [self._extend(o, state, action, key) for o, key in zip(outcomes, keys, strict=True)]

    def follow(self, state: Any, action: str, way: Way) -> Any:
        """Return the model's own state after an outcome."""
        return self._extend(_to_outcome(way), state, action, way.key).state

    def _last(self, state: Any) -> int:
        last: int = state if self.merges else state[-1]
        return last

    def _extend(self, outcome: Outcome, state: Any, action: str, key: Key) -> Outcome:
        """Return an outcome with the whole history as its state, where that is wanted."""
        if self.merges or outcome.fails:
            return outcome
        after = (*state, action, key, outcome.state)
        more = {"costs": outcome.costs, "event": outcome.event}
        return Outcome(outcome.probability, outcome.reward, after, outcome.label, **more)


def _to_outcome(way: Way) -> Outcome:
    more: dict[str, Any] = {"costs": way.costs, "event": way.event}
    if way.target is None:
        return Outcome.failure(way.probability, way.reward, way.label, **more)
    return Outcome(way.probability, way.reward, way.target, way.label, **more)


def make_arrays(problem: PlainProblem) -> vulcan.model.ArrayModel | None:
    """Return the same model as arrays; None where arrays can't say it."""
    start = problem.start
    if problem.needs_labels or problem.limits:
        return None
    rows = [
        (state, ord(action) - ord("a"), -1 if way.target is None else way.target, *way[:2])
        for state, action, ways in problem.answers()
        if state is not None
        for way in ways
    ]
    if not rows:
        return None
    begin: Any = start
    if not isinstance(start, int):
        if list(start) != ["start"] or any(w.reward or w.target is None for w in start["start"]):
            return None
        begin = np.zeros(1 + max(w.target for w in start["start"] if w.target is not None))
        for way in start["start"]:
            begin[way.target] += way.probability
    state, action, target, chance, reward = (np.array(column) for column in zip(*rows, strict=True))
    return vulcan.model.ArrayModel(
        *(state, action, target, chance, reward),
        horizon=problem.horizon,
        start=begin,
        discount=problem.discount,
        action_labels=tuple("abcd"),
    )


def make_bound(bound: Bound) -> vulcan.RiskBound:
    """Return the risk bound of a problem."""
    if bound.form == "text":
        return vulcan.parse(write_text(bound))
    if bound.form == "function":
        return vulcan.Concave(_make_function(bound))
    kinds: dict[str, Callable[..., vulcan.RiskBound]] = {
        "constant": vulcan.Constant,
        "linear": vulcan.Linear,
        "pieces": lambda *points: vulcan.PiecewiseLinear(points),
    }
    return kinds[bound.kind](*bound.numbers)


def _make_function(bound: Bound) -> Callable[[float], float]:
    def function(reward: float) -> float:
        return evaluate_float(bound, reward)[0]

    return function


def make_problem(problem: PlainProblem, merges: bool = True) -> vulcan.Problem:
    """Return a problem for Vulcan."""
    constraints = [make_constraint(limit) for limit in problem.limits]
    model, bound = TableModel(problem, merges), make_bound(problem.bound)
    return vulcan.Problem(model, bound, constraints=constraints)


def make_constraint(limit: Limit) -> Constraint:
    """Return a limit for Vulcan."""
    if limit.kind == "cap":
        return RiskAhead(limit.bound.numbers[0])
    bound = make_bound(limit.bound)
    return Risk(bound, limit.name) if limit.kind == "event" else Cost(limit.name, bound)


def has_values(bound: Bound, reach: float) -> bool:
    """Whether a bound has a value wherever a search may look, so that it can't be refused.

    A text has none below its floor; a function may overflow, and one whose large terms cancel
    changes its values near 0 by more than rounding explains.
    """
    if bound.form == "text" and bound.kind in ("root", "logarithm"):
        return False
    try:
        found = [evaluate_float(bound, place) for place in (-reach, 0.0, reach)]
    except ArithmeticError:
        return False
    return all(
        not math.isnan(value) and ROUNDINGS * EPSILON * size <= TOLERANCE for value, size in found
    )
