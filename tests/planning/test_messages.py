"""What is wrong, and what is allowed: messages for mistakes that people make."""

from __future__ import annotations

from typing import Any

import pytest

import vulcan
from vulcan.domains import Bandit
from vulcan.errors import BoundError, ModelError, OptionError
from vulcan.solvers import SurvivalConstraint

PROBLEM = vulcan.Problem(Bandit(2), "0.002*x")


def test_a_class_in_place_of_a_model() -> None:
    with pytest.raises(ModelError, match=r"Bandit is a class, not a model; .*Bandit\(\.\.\."):
        vulcan.Problem(Bandit, 0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: vulcan.solve(PROBLEM, timelimit=3),
        lambda: vulcan.compare(PROBLEM, timelimit=3),
        lambda: vulcan.trace_frontier(Bandit(2), timelimit=3),
        lambda: vulcan.Limits(timelimit=3),
    ],
)
def test_a_misspelled_keyword(call) -> None:
    with pytest.raises(OptionError, match="no parameter 'timelimit'; did you mean 'time_limit'"):
        call()


def test_keywords_of_classes_and_of_certify() -> None:
    with pytest.raises(OptionError, match=r"Automatic has no parameter.*did you mean 'randomised'"):
        vulcan.Automatic(randomized=True)
    use = r"has no parameter 'bound'; use vulcan\.Problem\(model, risk_bound=\.\.\.\)"
    with pytest.raises(OptionError, match=f"Problem {use}"):
        vulcan.Problem(Bandit(2), bound=0.1)
    with pytest.raises(OptionError, match=f"certify {use}"):
        vulcan.certify(PROBLEM, vulcan.solve(PROBLEM).policy, bound=0.1)


@pytest.mark.parametrize("function", [vulcan.certify, vulcan.explain, vulcan.explore])
@pytest.mark.parametrize("wrong", [vulcan.Policy, None, PROBLEM])
def test_something_in_place_of_a_policy(function, wrong) -> None:
    with pytest.raises(OptionError, match=r"a policy is missing, such as solve\(problem\)\.policy"):
        function(PROBLEM, wrong)


def test_an_unknown_keyword_lists_those_there_are() -> None:
    with pytest.raises(OptionError, match=r"no parameter 'quick'.*time_limit, gap, samples"):
        vulcan.solve(PROBLEM, quick=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"workers": 2}, "use parallel=4"),
        ({"memory": 10**9}, r"use limits=vulcan.Limits\(memory="),
        ({"resume": True}, r"use checkpoint=vulcan.Checkpoint\(path, resume=True"),
        ({"randomised": True}, r"use solver=vulcan.Automatic\(randomised=True"),
    ],
)
def test_an_old_keyword_names_the_new_one(old: dict[str, Any], new: str) -> None:
    with pytest.raises(OptionError, match=new):
        vulcan.solve(PROBLEM, **old)


@pytest.mark.parametrize("place", ["ForwardSearch", "LocalVulcan", "VulcanFS", "PaperVulcan"])
def test_a_local_test_was_called_constraint(place: str) -> None:
    kind = getattr(vulcan.baselines if place in ("VulcanFS", "PaperVulcan") else vulcan, place)
    assert kind(local_test=SurvivalConstraint()).local_test == SurvivalConstraint()
    with pytest.raises(OptionError, match="no parameter 'constraint'; use local_test="):
        kind(constraint=SurvivalConstraint())
    with pytest.raises(OptionError, match=r"local_test must be SurvivalConstraint\(\) or"):
        kind(local_test="B")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("RAOStar", r"vulcan\.RAOStar is vulcan\.baselines\.RAOStar"),
        ("Frontier", r"is vulcan\.planning\.Frontier"),
        ("ModelError", r"is vulcan\.errors\.ModelError"),
        ("Paretto", "vulcan has no 'Paretto'; did you mean 'Pareto'"),
    ],
)
def test_a_name_that_is_elsewhere_or_misspelled(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(vulcan, name)


def test_a_limit_is_given_once() -> None:
    with pytest.raises(OptionError, match="samples is given twice"):
        vulcan.solve(PROBLEM, samples=3, limits=vulcan.Limits(samples=4))
    with pytest.raises(OptionError, match="limits must be Limits"):
        vulcan.solve(PROBLEM, limits=3)


def test_solvers_by_name() -> None:
    named = vulcan.solve(PROBLEM, "pareto")
    made = vulcan.solve(PROBLEM, vulcan.Pareto())
    assert (named.solver, named.certificate) == (made.solver, made.certificate)
    assert vulcan.solve(PROBLEM, vulcan.Lagrangian(randomised=True)).safe
    several = vulcan.compare(PROBLEM, ["pareto", vulcan.baselines.Penalty(), "linear-program"])
    assert [row.name for row in several] == ["pareto", "Penalty", "linear-program"]
    assert all(row.safe for row in several)
    assert [row.name for row in vulcan.compare(PROBLEM, "pareto")] == ["pareto"]
    assert [row.name for row in vulcan.compare(PROBLEM, {"fronts": "pareto"})] == ["fronts"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: vulcan.solve(PROBLEM, "paretto"),
        lambda: vulcan.solve(PROBLEM, solver="PARETO"),
        lambda: vulcan.compare(PROBLEM, ["pareto", "paretto"]),
        lambda: vulcan.compare(PROBLEM, {"fronts": "paretto"}),
    ],
)
def test_a_solver_that_is_not_there(call) -> None:
    with pytest.raises(OptionError, match=r"did you mean 'pareto'.*\nsolvers are automatic, "):
        call()


@pytest.mark.parametrize("text", ["5%", "5 %"])
def test_a_bound_in_percent(text) -> None:
    with pytest.raises(BoundError, match=r"'%' is not allowed; 5% is written 0\.05"):
        vulcan.Problem(Bandit(2), text)


@pytest.mark.parametrize("bound", [-0.1, "-0.1", "0.1 - 0.2"])
def test_a_bound_that_accepts_nothing(bound) -> None:
    with pytest.raises(BoundError, match=r"-0\.1.* accepts no policy.*at least 0"):
        vulcan.Problem(Bandit(2), bound)
    # Of a bound that depends on the reward, values below 0 are as good as any.
    assert vulcan.Problem(Bandit(2), "0.01*x - 0.1").risk_bound(0.0) == -0.1
    assert vulcan.Problem(Bandit(2), vulcan.Constant(-0.1)).risk_bound(0.0) == -0.1
