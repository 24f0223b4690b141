"""Solves one field by default and prints what came out: `python -m benchmarks.fields NAME`.

A process of its own for each field, so that its peak of memory is that of this field.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import vulcan
from benchmarks.fields import FIELDS
from vulcan import Outcome, Start
from vulcan.domains import Bandit
from vulcan.testing import check_model

TIME_LIMIT = 20.0


def compile_kernels() -> None:
    """Load or compile what the default may use, on problems that take no time themselves."""
    for model in (Bandit(horizon=3), Bandit(horizon=3, merges=False)):
        for bound in ("0.002*x", "0.001", "-1"):
            problem = vulcan.Problem(model, vulcan.parse(bound))
            vulcan.solve(problem)
            vulcan.solve(problem, vulcan.Vulcan(), samples=10)


def count_pairs(model: Any) -> tuple[int, int]:
    """Return the state–step pairs that have actions, and the (state, action) among them."""
    start = model.initial_state()
    level = {start}
    if isinstance(start, Start):
        level = list_states(outcome for some in start.choices.values() for outcome in some)
    following: dict[Any, set[Any]] = {}
    actions: dict[Any, int] = {}
    pairs = 0
    for _ in range(model.horizon):
        for state in level - following.keys():
            chosen = list(model.actions(state))
            actions[state] = len(chosen)
            answers = (outcome for action in chosen for outcome in model.outcomes(state, action))
            following[state] = list_states(answers)
        pairs += sum(actions[state] > 0 for state in level)
        level = set().union(*(following[state] for state in level))
    return pairs, sum(actions.values())


def list_states(outcomes: Any) -> set[Any]:
    """Return the safe states that outcomes lead to."""
    return {o.state for o in outcomes if isinstance(o, Outcome) and o.probability and not o.fails}


def measure(name: str) -> dict[str, Any]:
    """Solve a field and return what came out."""
    field = next(field for field in FIELDS if field.name == name)
    compile_kernels()
    began, busy = time.perf_counter(), time.process_time()
    result = vulcan.solve(field.problem, time_limit=TIME_LIMIT)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    certificate = result.certificate
    pairs, questions = count_pairs(field.model)
    report = check_model(field.model, most_states=5_000)
    return {
        "status": result.status.value,
        "reward": None if certificate is None else float(certificate.reward),
        "risk": None if certificate is None else float(certificate.risk),
        "complete": certificate is not None and certificate.complete,
        "safe": result.safe,
        "upper_bound": result.upper_bound,
        "gap": result.gap,
        "seconds": seconds,
        "busy": busy,
        "megabytes": peak,
        "pairs": pairs,
        "questions": questions,
        "violations": [] if report.ok else str(report).splitlines(),
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
