"""Files of randomised policies."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vulcan
from tests.helpers.sealed import seal, unseal
from vulcan import Policy
from vulcan.domains import Bandit
from vulcan.errors import PolicyFileError
from vulcan.policy.policy import RandomisedPolicy
from vulcan.runtime.files import HEADER


def test_round_trip(bandit: RandomisedPolicy, saved_bandit: Path) -> None:
    loaded = Policy.load(saved_bandit)
    assert isinstance(loaded, RandomisedPolicy)
    assert loaded == bandit
    assert [m.about for m in loaded.members] == [m.about for m in bandit.members]
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    assert vulcan.certify(problem, loaded) == vulcan.certify(problem, bandit)
    before = saved_bandit.read_bytes()
    loaded.save(saved_bandit)
    assert saved_bandit.read_bytes() == before
    assert HEADER.unpack_from(before)[1] == 2


def change_weights(content: dict[str, Any], *weights: Any) -> None:
    content["weights"] = list(weights)


def change_array(content: dict[str, Any], name: str, kind: str, value: float) -> None:
    array = np.frombuffer(content["members"][1]["arrays"][name], kind).copy()
    array[0] = value
    content["members"][1]["arrays"][name] = array.tobytes()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda c: change_weights(c, 0.6, 0.5), r"weights sum to 1\.1, not to 1"),
        (lambda c: change_weights(c, math.nan, 0.4), "the weight nan is not positive"),
        (lambda c: change_weights(c, 0.6, "0.4"), r"Expected `float`, got `str`.*weights"),
        (lambda c: c.update(members=[], weights=[]), "at least one member"),
        (lambda c: c.update(members=[1, 2]), r"Expected `object`, got `int`.*members"),
        (lambda c: c.update(members={}), r"Expected `array`, got `object`.*members"),
        (lambda c: c.update(more=1), "unknown field `more`"),
        (lambda c: c.pop("weights"), "missing required field `weights`"),
        (
            lambda c: c["members"].__setitem__(1, {"weights": [1.0]}),
            r"unknown field `weights`.*members",
        ),
        (lambda c: c["members"][1]["arrays"].pop("child"), "member 2: it has other arrays"),
        (lambda c: c["members"][0]["arrays"].update(child=b"123"), "member 1: buffer size"),
        (lambda c: change_array(c, "child", "<i4", 0), "member 2: a child is neither"),
        (lambda c: change_array(c, "probability", "<f8", 2), "member 2: a probability is not"),
        (lambda c: c["members"][1]["about"].update(fingerprint="f"), r"different models.*'f'"),
        (
            lambda c: c["members"][1]["about"].update(horizon=4),
            r"different models.*horizon 3 and 4",
        ),
        (lambda c: c["members"][1]["about"].update(discount=0.5), r"discount 1\.0 and 0\.5"),
    ],
)
def test_sealed_nonsense_is_refused(saved_bandit: Path, change: Any, problem: str) -> None:
    content = unseal(saved_bandit)
    change(content)
    saved_bandit.write_bytes(seal(content, 2))
    with pytest.raises(PolicyFileError, match=r"plan.vulcan: the content is not a policy: "):
        Policy.load(saved_bandit)
    with pytest.raises(PolicyFileError, match=problem):
        Policy.load(saved_bandit)
