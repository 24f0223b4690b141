"""`vulcan_check` beside `certify(..., exact=True)`, on random policies of random problems.

The two share no line. Policy k comes from `random.Random(k)` alone:

- its model is a random table (`tests.helpers.tables`) of horizon 1 to 6: terminal states, sure
  failures, rewards of either sign, discounts from 0 to 1; one in four has a start that is drawn or
  chosen, and of the others one in three has whole histories as states;
- its actions are chosen by chance, node by node; decisions that meet in a state and step are one
  node or several; one policy in eight has outcomes after which nothing is planned, one in five is a
  mixture of up to three, and one in twenty is that of a solver;
- its bound is any of the language.

    python -m tests.oracles.checker FIRST COUNT

compares COUNT policies, and ends with their number and the answers.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgspec

import vulcan
import vulcan_check
from tests.helpers.builder import PolicyBuilder
from tests.helpers.plans import about
from tests.helpers.tables import REWARDS, random_bound, random_table
from vulcan import Outcome, Policy, Start
from vulcan.bounds.forms import Concave
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, UNPLANNED
from vulcan.policy.policy import AnyPolicy, RandomisedPolicy

CURVES = (  # concave and nondecreasing on the rewards that there are
    "0.1 * log1p(x + 30) - 0.2",
    "tanh((x + 30) / 20) / 5 - 0.1",
    "atan((x + 30) / 20) / 4 - 0.1",
    "0.05 * sqrt(x + 50)",
    "min(0.02 * x, 0.1, 0.2 - exp(-x) / 20)",
    "0.3 - (x - 40) ** 2 / 5000",
    "expm1(-x / pi) / -10",
    "0.1 * (x + 40) ** 0.3 - log(e) / 10",
)


def make_problem(random: Random) -> vulcan.Problem:
    """Return a random problem."""
    table = random_table(random, REWARDS, sure_failure=True)
    table.horizon = random.choice([table.horizon, table.horizon, 4, 5, 6])
    states = list(table.table)
    kind = random.randrange(12)
    if kind < 2:
        weights = [random.randint(1, 9) for _ in states]
        drawn = zip(weights, states, strict=True)
        reward = random.choice([0.0, 0.3])
        table.start = Start.draw([Outcome(w / sum(weights), reward, s) for w, s in drawn])
    elif kind == 2:
        table.start = Start.choose({f"in {state}": state for state in states})
    elif kind < 6:
        table.merges = False
    curved = random.random() < 0.25
    bound = vulcan.parse(random.choice(CURVES)) if curved else random_bound(random)
    return vulcan.Problem(table, bound)


def make_policy(random: Random, problem: vulcan.Problem) -> AnyPolicy:
    """Return a random policy for a problem, or that of a solver."""
    if random.random() < 0.05:
        solver = random.choice(
            [vulcan.ForwardSearch(), vulcan.Lagrangian(), vulcan.baselines.UCT()]
        )
        found = vulcan.solve(
            problem, solver, samples=100 if solver == vulcan.baselines.UCT() else None
        )
        if found.policy is not None:
            return found.policy
    unplanned = random.choice([0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    if random.random() < 0.8:
        return _build(random, problem, unplanned)
    members = [_build(random, problem, unplanned) for _ in range(random.choice([1, 2, 2, 3]))]
    weights = [random.random() + 1e-3 for _ in members]
    return RandomisedPolicy(members, [weight / sum(weights) for weight in weights])


def _build(random: Random, problem: vulcan.Problem, unplanned: float) -> Policy:
    reader = ModelReader(problem.model)
    said = msgspec.structs.replace(about(problem.model), risk_bound=problem.risk_bound.text)
    builder, merged = PolicyBuilder(said), random.random() < 0.7
    places: list[Any] = [reader.root] if reader.actions(reader.root) else []
    count = len(places)
    for level in range(reader.levels):
        following: dict[Any, int] = {}
        for place in places:
            label, action = random.choice(list(reader.actions(place).items()))
            outcomes = reader.outcomes(place, action)
            children = []
            for outcome in outcomes:
                if outcome.fails:
                    children.append(FAILED)
                elif level + 1 == reader.levels or not reader.actions(outcome.state):
                    children.append(END)
                elif random.random() < unplanned:
                    children.append(UNPLANNED)
                else:
                    # Small trees only: what has many places is merged.
                    alone = not merged and len(following) < 100
                    key = (outcome.state, len(following) if alone else -1)
                    children.append(following.setdefault(key, count + len(following)))
            builder.decide(label, outcomes, children)
        places, count = [state for state, _ in following], count + len(following)
    return builder.build()


def compare(number: int, path: Path) -> str:
    """Return the answer about a policy on which both agree."""
    random = Random(number)
    problem = make_problem(random)
    policy = make_policy(random, problem)
    policy.save(path)
    try:
        theirs = vulcan.certify(problem, policy, exact=True)
    except vulcan.errors.BoundError:
        theirs = None  # the bound has no value there
    found: dict[str, Any] = {}
    try:
        _, code = vulcan_check.judge(str(path), None, found)
    except vulcan_check.NoAnswerError as error:
        _, code = error.args
    if theirs is None:
        assert code == vulcan_check.CANNOT_SAY or not policy.complete, number
        return vulcan_check.ANSWERS[code]
    for name in ("reward", "risk", "frontier"):
        assert found[name] == getattr(theirs, name), (number, name)
    assert code == (vulcan_check.OWN_BOUND if theirs.safe else vulcan_check.NOT_SAFE), number
    if policy.complete:
        off = abs(found["allowed"] - theirs.allowed)
        # A certificate evaluates a function in floating point, at the nearest reward.
        rounding = 1e-13 * max(1, abs(theirs.allowed))
        assert off <= (rounding if isinstance(problem.risk_bound, Concave) else 0), (number, off)
    if not policy.complete:
        return "incomplete"
    text = str(problem.risk_bound.text)
    _, code = vulcan_check.judge(str(path), text, {})  # the same bound, given by its reader
    assert code == (vulcan_check.SAFE if theirs.safe else vulcan_check.NOT_SAFE), number
    return vulcan_check.ANSWERS[code]


def main() -> None:
    first, count = map(int, sys.argv[1:])
    warnings.simplefilter("ignore", vulcan.errors.BoundWarning)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.vulcan"
        answers = Counter(compare(number, path) for number in range(first, first + count))
    print(f"{count} policies from {first} on: all agree. {dict(answers)}")


if __name__ == "__main__":
    main()
