"""What a policy of Vulcan does, as a plain tree: an action, and what follows each observation.

`read_tree` reads it off the policy's arrays. `execute` follows the policy as its user does, step by
step and told nothing but what can be observed; it takes longer. Both trees must be the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import vulcan
from fuzzing.models import TableModel
from fuzzing.oracle import UNPLANNED, Oracle, Point, Tree
from fuzzing.problems import Key, PlainProblem, Way
from vulcan.numerics import FAILED
from vulcan.numerics import UNPLANNED as LEFT

__all__ = [
    "MisfitError",
    "actions_of",
    "begin",
    "evaluate",
    "execute",
    "list_decisions",
    "observable",
    "read_tree",
    "tell",
]


class MisfitError(Exception):
    """What a policy says does not fit the problem."""


def observable(ways: Sequence[Way]) -> list[Way]:
    """Return one outcome for each observation, safe ones first: the order that Vulcan has."""
    seen: dict[Key, Way] = {}
    for way in sorted(ways, key=lambda way: way.target is None):
        if way.probability:
            seen.setdefault(way.key, way)
    return list(seen.values())


def evaluate(
    oracle: Oracle, trees: Sequence[Tree], weights: Sequence[float]
) -> tuple[Point, Fraction]:
    """Return what a policy risks and earns, and how probably it leaves its plan.

    A randomised policy has several trees. Its weights sum to 1 up to a rounding, which the largest
    takes.
    """
    shares = [Fraction(weight) for weight in weights]
    shares[shares.index(max(shares))] += 1 - sum(shares)
    risk = reward = lost = Fraction(0)
    for share, tree in zip(shares, trees, strict=True):
        point, left = oracle.evaluate(tree)
        risk += share * point.risk
        reward += share * point.reward
        lost += share * left
    return Point(risk, reward), lost


def actions_of(problem: PlainProblem, state: int | None) -> Any:
    """Return the actions of a state, or of the start."""
    return problem.start if state is None else problem.states.get(state, {})


def begin(problem: PlainProblem) -> int | None:
    """Return the initial state; None if there is an initial action."""
    return problem.start if isinstance(problem.start, int) else None


def read_tree(problem: PlainProblem, policy: vulcan.Policy) -> Tree:
    """Return what a policy does, from its arrays."""
    first = policy.first_outcome.tolist()
    actions, children = policy.action.tolist(), policy.child.tolist()
    known: dict[tuple[int, int | None], Tree] = {}

    def visit(node: int, state: int | None) -> Tree:
        if node == LEFT:
            return UNPLANNED
        if node < 0:
            return None
        if (node, state) not in known:
            action = policy.labels[actions[node]]
            ways = observable(actions_of(problem, state).get(action, ()))
            rows = children[first[node] : first[node + 1]]
            if len(rows) != len(ways):
                raise MisfitError(f"{action!r} has {len(rows)} outcomes in the policy, not {ways}")
            following = {}
            for way, child in zip(ways, rows, strict=True):
                if (child == FAILED) != (way.target is None):
                    raise MisfitError(f"{way} of {action!r} is {child} in the policy")
                following[way.key] = None if way.target is None else visit(child, way.target)
            known[node, state] = (action, following)
        return known[node, state]

    return visit(0 if len(policy) else -1, begin(problem))


def execute(
    problem: PlainProblem,
    run: vulcan.policy.Run,
    model: TableModel | None = None,
    on_the_way: Callable[[vulcan.policy.Run], object] = lambda run: None,
) -> Tree:
    """Return the tree of actions taken by following a policy through observations.

    Parameters
    ----------
    problem
        What happens.
    run
        A run that has not begun.
    model
        The model that its policy is bound to. Without one, observations are told by their labels
        alone.
    on_the_way
        Called with the run of every history before its next action, which it may change.
    """

    def visit(run: vulcan.policy.Run, state: int | None, there: Any) -> Tree:
        if run.finished:
            return UNPLANNED if run.unplanned else None
        on_the_way(run)
        action = run.action_label
        following: dict[Key, Tree] = {}
        ways = observable(actions_of(problem, state).get(action, ()))
        for position, way in enumerate(ways):
            after = copy.copy(run)
            place = None
            if model is not None and way.target is not None:
                place = model.follow(() if state is None else there, action, way)
            tell(after, ways, position, place)
            following[way.key] = None
            if after.failed != (way.target is None):
                raise MisfitError(f"after {way} of {action!r} the run is {after!r}")
            if way.target is not None:
                following[way.key] = visit(after, way.target, place)
        return action, following

    return visit(run, begin(problem), None if model is None else model.initial_state())


def tell(run: vulcan.policy.Run, ways: Sequence[Way], position: int, place: Any) -> None:
    """Report an outcome to a run, as an observer would.

    Parameters
    ----------
    run
        The run.
    ways, position
        What can be observed, and which of it happened.
    place
        The model's own state that it led to; None if unknown.
    """
    way = ways[position]
    alike = [other for other in ways if other.target == way.target]
    if way.label is not None:
        run.observe(way.label)
    elif place is None:
        text = "failure" if way.target is None else str(way.target)
        if sum(other.label is None for other in alike) > 1:
            text += f", reward {_write_number(way.reward)}"
            paid = [other.label is None and other.reward == way.reward for other in alike]
            if sum(paid) > 1:
                costs = [f"{name} {_write_number(cost)}" for name, cost in way.costs]
                text = ", ".join([text, *costs, *([way.event] if way.event else [])])
        run.observe(text)
    elif len(alike) == 1:
        run.observe(state=place)
    else:
        run.observe(list(run.expected)[position])


def _write_number(number: float) -> str:
    return repr(number + 0.0).removesuffix(".0")  # -0 is written 0


def list_decisions(problem: PlainProblem, tree: Tree) -> set[tuple[int | None, str]]:
    """Return the actions that a policy takes, each with its state; None for an initial action."""
    found: set[tuple[int | None, str]] = set()

    def visit(state: int | None, tree: Tree) -> None:
        if isinstance(tree, tuple):
            action, following = tree
            found.add((state, action))
            for way in observable(actions_of(problem, state)[action]):
                if way.target is not None:
                    visit(way.target, following[way.key])

    visit(begin(problem), tree)
    return found
