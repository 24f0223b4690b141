"""Documents have all that results hold."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

import vulcan
from vulcan.cli.documents import describe_result, print_document
from vulcan.domains import Bandit
from vulcan.planning.result import Result


class Flaky(Bandit):
    """A bandit that fails to answer where it has paid twice."""

    def outcomes(self, state, action):
        if sum(state) == 2:
            raise RuntimeError("no answer")
        return super().outcomes(state, action)


def test_a_document_has_every_field_of_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=5)
    print_document(describe_result(result, depth=1))
    document = json.loads(capsys.readouterr().out)
    named = {field.name for field in fields(Result)} - {"problem", "knowledge", "lines"}
    assert named | {"model", "bound", "safe", "gap"} == set(document)
    assert document["estimate"] == result.estimate
    assert document["error"] is None


def test_a_document_says_what_the_model_raised(capsys: pytest.CaptureFixture[str]) -> None:
    problem = vulcan.Problem(Flaky(4), vulcan.Linear(0.002))
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=50)
    print_document(describe_result(result, depth=0))
    assert "no answer" in json.loads(capsys.readouterr().out)["error"]
