"""Smaller problems with the same fault.

One thing after another is left out or made simpler (actions, outcomes, steps, starts, labels,
numbers, options), as long as the same check finds the same kind of fault. The order is from what
removes most to what only makes numbers shorter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fuzzing.checks.case import Case
from fuzzing.planners import Planner
from fuzzing.problems import Bound, PlainProblem, Way
from fuzzing.risk_bounds import is_straight

__all__ = ["minimise"]

Ways = tuple[Way, ...]


def minimise(case: Case, fails: Callable[[Case], bool], seconds: float = 20.0) -> Case:
    """Return a smaller case that still fails.

    Parameters
    ----------
    case
        What fails.
    fails
        Whether a case fails in the same way.
    seconds
        When to be content with what was found.
    """
    ends = time.monotonic() + seconds
    tried: set[str] = set()
    smaller = True
    while smaller:
        smaller = False
        for candidate in _simplify(case):
            if time.monotonic() > ends:
                return case
            text = repr(candidate)
            if text in tried:
                continue
            tried.add(text)
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _simplify(case: Case) -> Iterator[Case]:
    for problem in _simplify_problem(case.problem):
        yield replace(case, problem=problem)
    for planner in _simplify_planner(case.planner):
        yield replace(case, planner=planner)
    if case.seed > 4:
        yield replace(case, seed=case.seed % 4)


def _simplify_planner(planner: Planner) -> Iterator[Planner]:
    for name in planner.parameters:
        yield replace(planner, parameters=_without(planner.parameters, name))
    for name in planner.options:
        yield replace(planner, options=_without(planner.options, name))
    if planner.options.get("seed", 0) > 9:
        yield replace(planner, options={**planner.options, "seed": planner.options["seed"] % 10})


def _simplify_problem(problem: PlainProblem) -> Iterator[PlainProblem]:
    if problem.tags:
        yield replace(problem, tags=())
    for horizon in {1, problem.horizon - 1} - {0, problem.horizon}:
        yield replace(problem, horizon=horizon)
    yield from _simplify_start(problem)
    yield from _simplify_states(problem)
    if problem.discount != 1.0:
        yield replace(problem, discount=1.0)
    for bound in _simplify_bound(problem.bound):
        yield replace(problem, bound=bound)
    yield from _simplify_limits(problem)


def _simplify_states(problem: PlainProblem) -> Iterator[PlainProblem]:
    for state, actions in problem.states.items():
        if actions:
            yield replace(problem, states=_without(problem.states, state))
        for action in actions:
            if len(actions) > 1:
                states = {**problem.states, state: _without(actions, action)}
                yield replace(problem, states=states)
    for state, actions in problem.states.items():
        for action, ways in actions.items():
            for fewer in _simplify_ways(tuple(ways)):
                states = {**problem.states, state: {**actions, action: fewer}}
                yield replace(problem, states=states)


def _simplify_limits(problem: PlainProblem) -> Iterator[PlainProblem]:
    for k, limit in enumerate(problem.limits):
        yield replace(problem, limits=problem.limits[:k] + problem.limits[k + 1 :])
        for bound in _simplify_bound(limit.bound):
            limits = _put(problem.limits, k, limit._replace(bound=bound))
            yield replace(problem, limits=limits)


def _simplify_start(problem: PlainProblem) -> Iterator[PlainProblem]:
    if isinstance(problem.start, int):
        return
    for action, ways in problem.start.items():
        for way in ways:
            if way.target is not None:
                yield replace(problem, start=way.target)
        if len(problem.start) > 1:
            yield replace(problem, start=_without(problem.start, action))
        for fewer in _simplify_ways(tuple(ways)):
            yield replace(problem, start={**problem.start, action: fewer})


def _simplify_ways(ways: Ways) -> Iterator[Ways]:
    for k, way in enumerate(ways):
        rest = ways[:k] + ways[k + 1 :]
        if rest:
            yield _spread(rest)
        if way.label is not None:
            yield _put(ways, k, way._replace(label=None))
        for reward in _simplify_number(way.reward):
            yield _put(ways, k, way._replace(reward=reward))
        if way.event is not None:
            yield _put(ways, k, way._replace(event=None))
        for place, (name, cost) in enumerate(way.costs):
            yield _put(ways, k, way._replace(costs=way.costs[:place] + way.costs[place + 1 :]))
            for other in _simplify_number(cost):
                costs = _put(way.costs, place, (name, other))
                yield _put(ways, k, way._replace(costs=costs))
        for chance in _simplify_number(way.probability):
            if 0 < chance < 1 and len(ways) > 1:
                changed = _spread(_put(ways, k, way._replace(probability=chance)), but=k)
                if all(0 < other.probability <= 1 for other in changed):
                    yield changed


def _spread(ways: Ways, but: int | None = None) -> Ways:
    """Return outcomes whose probabilities sum to 1: the largest, or another, takes the rest."""
    places = [k for k in range(len(ways)) if k != but]
    largest = max(places, key=lambda k: ways[k].probability)
    rest = sum(way.probability for k, way in enumerate(ways) if k != largest)
    return _put(ways, largest, ways[largest]._replace(probability=1.0 - rest))


def _simplify_bound(bound: Bound) -> Iterator[Bound]:
    if bound.kind in ("pieces", "lines") and len(bound.numbers) > 2:
        for k in range(len(bound.numbers)):
            yield bound._replace(numbers=bound.numbers[:k] + bound.numbers[k + 1 :])
    if bound.form == "text" and is_straight(bound):
        yield bound._replace(form="class")
    for numbers in _simplify_numbers(bound.numbers):
        yield bound._replace(numbers=numbers)


def _simplify_numbers(numbers: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for k, number in enumerate(numbers):
        simpler = _simplify_numbers if isinstance(number, tuple) else _simplify_number
        for other in simpler(number):
            yield _put(tuple(numbers), k, other)


def _simplify_number(number: float) -> Iterator[float]:
    """Return shorter numbers close to one, the shortest first."""
    seen = {repr(number)}
    for simple in (0.0, 1.0, *(float(f"{number:.{digits}g}") for digits in (1, 2, 3, 6, 9))):
        if repr(simple) not in seen and len(repr(simple)) <= len(repr(number)):
            seen.add(repr(simple))
            if simple not in (0.0, 1.0) or number not in (0.0, 1.0):
                yield simple


def _put(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _without(items: Mapping[Any, Any], key: Any) -> dict[Any, Any]:
    return {other: item for other, item in items.items() if other != key}
