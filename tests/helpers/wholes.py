"""Whole policies put together from runs that replan, and a solver that risks what it can."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, ClassVar

from tests.helpers.builder import PolicyBuilder
from vulcan import Policy, Problem
from vulcan.errors import BoundError
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED
from vulcan.policy import Run
from vulcan.runtime.limits import Monitor
from vulcan.solvers import Solver
from vulcan.solvers.base import Options, describe_origin
from vulcan.solvers.finding import Finding, Statistics, Status

Replanner = Callable[[Run], None]
"""May replan a run; called wherever a run can come."""


def put_together(run: Run, replanner: Replanner) -> Policy:
    """Return the policy that runs follow that replan on the way, each history in its own way."""
    about, nodes = run.policy.about, []

    def visit(here: Run) -> int:
        if here.finished:
            return FAILED if here.failed else END
        replanner(here)
        number = len(nodes)
        nodes.append(None)
        expected, children = here.expected, []
        for label in expected:
            after = copy.copy(here)
            after.observe(label)
            children.append(visit(after))
        row = here.policy.outcomes(here.place)
        paid = here.policy.reward[row.start : row.stop].tolist()
        nodes[number] = (here.action_label, [*expected], [*expected.values()], paid, children)
        return number

    visit(run)
    builder = PolicyBuilder(about)
    for node in nodes:
        builder.add(*node)
    return builder.build()


@dataclass(frozen=True)
class Adversary(Solver):
    """Of all policies within the bound, one that risks as much as it can, or any.

    Parameters
    ----------
    seed
        Of the choice.
    daring
        Whether it takes the one of most risk.
    least
        What it earns at least: no less than the plan that it is to replace.
    """

    finds: ClassVar[str] = "the worst policy that is allowed"

    seed: int = 0
    daring: bool = True
    least: float = -math.inf

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        random = Random(self.seed)
        found = []
        for choice, reward, risk in _list_choices(reader, reader.root, 0, random):
            if reward >= self.least and _is_allowed(problem, reward, risk):
                found.append((choice, reward, risk))
        statistics = Statistics(0.0, 0, 0)
        if not found:
            return Finding(Status.DONE, "none", None, 0.0, 0.0, [], statistics)
        choice, reward, risk = (
            max(found, key=lambda one: (one[2], one[1])) if self.daring else random.choice(found)
        )
        policy = _build(problem, reader, self, choice)
        return Finding(Status.DONE, "found", policy, reward, risk, [reward], statistics)


def _is_allowed(problem: Problem, reward: float, risk: float) -> bool:
    """Whether a bound, which may have no value there, allows a risk for a reward."""
    try:
        return risk <= problem.risk_bound(reward) + 1e-12
    except BoundError:
        return False


MOST_CHOICES = 60
"""Policies of one state and step that an adversary looks at."""


def _list_choices(
    reader: ModelReader, state: Any, level: int, random: Random
) -> list[tuple[Any, float, float]]:
    """Return policies from a state on, with reward and risk; a part of them if there are many."""
    answers = reader.evaluate(state) if level < reader.levels else []
    if not answers:
        return [(None, 0.0, 0.0)]
    found: list[tuple[Any, float, float]] = []
    for label, _, outcomes in answers:
        mean = sum(float(o.probability) * float(o.reward) for o in outcomes)
        fails = sum(float(o.probability) for o in outcomes if o.fails)
        safe = [o for o in outcomes if not o.fails]
        parts = [_list_choices(reader, o.state, level + 1, random) for o in safe]
        for chosen in _combine(parts, random):
            later = sum(float(o.probability) * c[1] for o, c in zip(safe, chosen, strict=True))
            risk = sum(float(o.probability) * c[2] for o, c in zip(safe, chosen, strict=True))
            reward = mean + float(reader.discounts[level]) * later
            found.append(((label, outcomes, [c[0] for c in chosen]), reward, fails + risk))
    return random.sample(found, min(MOST_CHOICES, len(found)))


def _combine(parts: list[list[Any]], random: Random) -> list[tuple[Any, ...]]:
    count = 1
    for part in parts:
        count *= len(part)
    if count <= MOST_CHOICES:
        return list(product(*parts))
    return [tuple(random.choice(part) for part in parts) for _ in range(MOST_CHOICES)]


def _build(problem: Problem, reader: ModelReader, solver: Solver, choice: Any) -> Policy:
    nodes: list[Any] = []

    def visit(choice: Any) -> int:
        if choice is None:
            return END
        label, outcomes, later = choice
        number, following = len(nodes), iter(later)
        nodes.append(None)
        children = [FAILED if o.fails else visit(next(following)) for o in outcomes]
        nodes[number] = (label, outcomes, children)
        return number

    visit(choice)
    builder = PolicyBuilder(describe_origin(problem, reader, solver))
    for node in nodes:
        builder.decide(*node)
    return builder.build()
