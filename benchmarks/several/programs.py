"""The best randomised policy by a linear program over occupation measures, without `vulcan.exact`.

The problem is unrolled step by step over states that know which limited events have happened. A
variable is the probability of being in such a state at a step and taking an action there; its flow
is kept, and reward and charges are linear in it. For linear bounds that is the whole problem. HiGHS
solves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

import vulcan
from tests.oracles.several import draw_problem
from vulcan.constraints import Cost, RiskAhead

__all__ = ["draw_problems", "solve_program"]


def draw_problems(count: int) -> Iterator[vulcan.Problem]:
    """Yield random problems without caps, which linear programs can't express."""
    seed = 0
    while count:
        problem = draw_problem(seed, horizon=2 + seed % 5)
        seed += 1
        if not any(isinstance(c, RiskAhead) for c in problem.constraints):
            count -= 1
            yield problem


def solve_program(problem: vulcan.Problem) -> float | None:
    """Return the largest reward within linear bounds; None if no policy is within them."""
    model, limits = problem.model, problem.constraints
    events = {c.event for c in limits if not isinstance(c, Cost)}
    rewards, charges, flows = [], [], []  # by variable
    rows = 0
    level = {(model.initial_state(), frozenset()): 0}
    sources = {0: 1.0}
    for step in range(model.horizon):
        following: dict[Any, int] = {}
        rows = max([rows, *(row + 1 for row in level.values())])
        for (state, happened), row in level.items():
            for action in model.actions(state):
                variable, reward = len(rewards), 0.0
                charged = np.zeros(1 + len(limits))
                flows.append((row, variable, 1.0))
                for outcome in model.outcomes(state, action):
                    p = float(outcome.probability)
                    reward += p * float(model.discount) ** step * float(outcome.reward)
                    charged[0] += p * outcome.fails
                    for k, limit in enumerate(limits, 1):
                        if isinstance(limit, Cost):
                            charged[k] += p * float(dict(outcome.costs).get(limit.name, 0))
                        else:
                            new = outcome.event == limit.event and limit.event not in happened
                            charged[k] += p * new
                    if outcome.fails:
                        continue
                    after = outcome.state, happened | (events & {outcome.event})
                    if after not in following:
                        following[after] = rows
                        rows += 1
                    flows.append((following[after], variable, -p))
                rewards.append(reward)
                charges.append(charged)
        # States of the last step, and those without actions, keep what flows into them.
        level = {key: row for key, row in following.items() if step + 1 < model.horizon}
    return _maximise(problem, rewards, charges, flows, sources)


def _maximise(
    problem: vulcan.Problem, rewards: Any, charges: Any, flows: Any, sources: Any
) -> float | None:
    places, variables, parts = map(np.array, zip(*flows, strict=True))
    kept = set(places[parts == 1.0].tolist())  # rows with a decision; a variable has one such entry
    decided = np.isin(places, list(kept))
    names = {row: k for k, row in enumerate(sorted(kept))}
    rows = [names[row] for row in places[decided].tolist()]
    shape = len(names), len(rewards)
    flow = csr_matrix((parts[decided], (rows, variables[decided])), shape)
    into = [sources.get(row, 0.0) for row in sorted(kept)]
    gains, table = np.array(rewards), np.array(charges)
    bounds = [problem.risk_bound, *(limit.bound for limit in problem.constraints)]
    slopes = np.array([bound(1.0) - bound(0.0) for bound in bounds])
    offsets = np.array([bound(0.0) for bound in bounds])
    limits = table - gains[:, None] * slopes
    found = linprog(-gains, limits.T, offsets, flow, into, method="highs")
    assert found.status in (0, 2), found.message
    return None if found.status == 2 else -found.fun


def compare(problem: vulcan.Problem) -> tuple[float, bool]:
    """Return by how much Vulcan's best randomised policy differs, and whether there is one."""
    best = solve_program(problem)
    result = vulcan.solve(problem, vulcan.Automatic(randomised=True), gap=0)
    if best is None or result.certificate is None:
        same = best is None and result.status is vulcan.planning.Status.INFEASIBLE
        return (0.0 if same else math.inf), False
    if not result.safe:
        return math.inf, True
    told = float(result.certificate.reward), float(result.upper_bound or math.inf)
    return max(abs(value - best) for value in told) / max(1.0, abs(best)), True
