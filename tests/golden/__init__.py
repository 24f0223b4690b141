"""Results that were once read and found right, in files.

`python -m tests.golden` makes the files anew; read what has changed before you commit it. The tests
call the same functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import vulcan
from tests.helpers.certified import CERTIFIED, record_certificate
from tests.helpers.recorded import CASES, record
from tests.helpers.small_cases import SMALL
from tests.oracles.brute_force import policy_choice
from vulcan.domains import Bandit

FOLDER = Path(__file__).parent
LETTERS = {"A": vulcan.solvers.SequenceConstraint(), "B": vulcan.solvers.SurvivalConstraint()}
HORIZONS = (3, 5)


def find_policy(horizon: int, letter: str) -> dict[str, Any]:
    """Return the policy that forward search finds for the bandit, as a document."""
    solver = vulcan.ForwardSearch(LETTERS[letter])
    result = vulcan.solve(vulcan.Problem(Bandit(horizon), vulcan.Linear(0.002)), solver)
    return {
        "reward": result.certificate.reward,
        "risk": result.certificate.risk,
        "policy": json.loads(json.dumps(policy_choice(result.policy))),
    }


DOCUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "certificates.json": lambda: {n: record_certificate(case) for n, case in CERTIFIED.items()},
    "recorded.json": lambda: {name: record(case) for name, case in CASES.items()},
    "small.json": lambda: {name: record(case) for name, case in SMALL.items()},
} | {
    f"bandit-{horizon}-{letter}.json": partial(find_policy, horizon, letter)
    for horizon in HORIZONS
    for letter in LETTERS
}


def read_golden(name: str) -> dict[str, Any]:
    """Return what a file says."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))
