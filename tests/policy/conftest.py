"""A policy and a randomised one, each with its file."""

from __future__ import annotations

from pathlib import Path

import pytest

import vulcan
from tests.helpers.mixtures import mix_bandit
from vulcan import Policy
from vulcan.domains import Bandit
from vulcan.policy import RandomisedPolicy


@pytest.fixture(scope="module")
def result() -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(Bandit(4), vulcan.Linear(0.002)), vulcan.ForwardSearch())


@pytest.fixture
def policy(result: vulcan.Result) -> Policy:
    assert result.policy is not None
    return result.policy


@pytest.fixture
def saved(policy: Policy, tmp_path: Path) -> Path:
    path = tmp_path / "plan.vulcan"
    policy.save(path)
    return path


@pytest.fixture
def bandit() -> RandomisedPolicy:
    return mix_bandit()


@pytest.fixture
def saved_bandit(bandit: RandomisedPolicy, tmp_path: Path) -> Path:
    path = tmp_path / "plan.vulcan"
    bandit.save(path)
    return path
