"""Policies and trees that were once read and found right, in files.

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
from tests.helpers.diaries import keep_diary
from tests.helpers.diary_cases import STEPS
from tests.helpers.recorded import CASES, record
from tests.helpers.small_cases import SMALL
from tests.helpers.trees import SHORT, TINY, TINY_BOUND, as_document, sample, start, unfold
from tests.oracles.brute_force import policy_choice
from vulcan.domains import Bandit

FOLDER = Path(__file__).parent
LETTERS = {"A": vulcan.SequenceConstraint(), "B": vulcan.SurvivalConstraint()}
HORIZONS = (3, 5)
SAMPLES = (1, 2, 5, 10)


def find_policy(horizon: int, letter: str) -> dict[str, Any]:
    """Return the policy that forward search finds for the bandit, as a document."""
    solver = vulcan.ForwardSearch(LETTERS[letter])
    result = vulcan.solve(vulcan.Problem(Bandit(horizon), vulcan.Linear(0.002)), solver)
    return {
        "reward": result.certificate.reward,
        "risk": result.certificate.risk,
        "policy": json.loads(json.dumps(policy_choice(result.policy))),
    }


def grow_trees(as_printed: bool) -> dict[str, Any]:
    """Return a tree after each of some numbers of samples, as a document."""
    under = LETTERS["A" if as_printed else "B"]
    model = TINY if as_printed else SHORT
    run = start(model, TINY_BOUND, under, seed=7, as_printed=as_printed)
    found = {}
    for samples in SAMPLES:
        sample(run, samples)
        assert run.samples == samples
        found[str(samples)] = as_document(unfold(run))
        # Stopping in between makes no difference.
        unbroken = start(model, TINY_BOUND, under, seed=7, as_printed=as_printed)
        sample(unbroken, samples)
        assert as_document(unfold(unbroken)) == found[str(samples)]
    return found


def keep_diaries() -> dict[str, Any]:
    """Return what kernels leave behind in small searches, by their names."""
    searches = {name: partial(record, case) for name, case in SMALL.items()} | STEPS
    found = {}
    for name, search in searches.items():
        with keep_diary() as diary:
            search()
        found[name] = diary.close()
    return found


DOCUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "certificates.json": lambda: {n: record_certificate(case) for n, case in CERTIFIED.items()},
    "recorded.json": lambda: {name: record(case) for name, case in CASES.items()},
    "small.json": lambda: {name: record(case) for name, case in SMALL.items()},
    "diaries.json": keep_diaries,
    "tree.json": partial(grow_trees, as_printed=False),
    "paper-tree.json": partial(grow_trees, as_printed=True),
} | {
    f"bandit-{horizon}-{letter}.json": partial(find_policy, horizon, letter)
    for horizon in HORIZONS
    for letter in LETTERS
}


def read_golden(name: str) -> dict[str, Any]:
    """Return what a file says."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))
