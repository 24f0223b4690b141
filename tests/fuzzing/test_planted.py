"""Every check finds a defect that was planted for it, and nothing where there is none."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import vulcan
from fuzzing.campaign import run_case
from fuzzing.checks.case import Case, Means
from fuzzing.checks.registry import CHECKS
from fuzzing.models import TableModel, make_problem
from fuzzing.planners import Planner
from fuzzing.problems import Bound, PlainProblem, Way
from vulcan.execution.replan import Account
from vulcan.solvers.finding import Status

RISKY = (Way(0.5, 3.0, 1), Way(0.25, 2.0, 2), Way(0.25, 0.0, None))
CAUTIOUS = (Way(0.5, 1.0, 1), Way(0.5, 0.5, 2))
BRAVE = (Way(0.875, 2.0, 1), Way(0.125, 0.0, None))

PROBLEM = PlainProblem(
    horizon=2,
    discount=1.0,
    states={
        0: {"a": CAUTIOUS, "b": BRAVE},
        1: {"a": CAUTIOUS, "b": RISKY},
        2: {"a": CAUTIOUS, "b": BRAVE},
    },
    start=0,
    bound=Bound("constant", "class", (0.15,)),
)
PARETO = Planner("pareto")
SAMPLING = Planner("local-vulcan", {"local_test": "B"}, {"samples": 200, "seed": 1})
FORWARD = Planner("forward-search", {"local_test": "B"})


def find(
    check: str, means: Means | None = None, planner: Planner = PARETO, seed: int = 1
) -> set[str]:
    """Return the kinds of faults that a check finds."""
    faults, _ = run_case(Case(check, PROBLEM, planner, seed), means or Means())
    return {fault.check for fault in faults}


def alter(**changes: Any) -> Means:
    """Return a solve that says something else."""
    return Means(
        solve=lambda *given, **options: dataclasses.replace(
            vulcan.solve(*given, **options), **changes
        )
    )


def forge(change: Callable[[Any], dict[str, Any]]) -> Means:
    """Return a solve whose certificate says something else."""

    def solve(*given: Any, **options: Any) -> Any:
        result = vulcan.solve(*given, **options)
        certificate = dataclasses.replace(result.certificate, **change(result.certificate))
        return dataclasses.replace(result, certificate=certificate)

    return Means(solve=solve)


def solve_otherwise(level: float, forged: bool = False) -> Callable[..., Any]:
    """Return a solve that takes another bound."""

    def solve(problem: vulcan.Problem, *given: Any, **options: Any) -> Any:
        other = vulcan.Problem(problem.model, vulcan.Constant(level))
        result = vulcan.solve(other, *given, **options)
        if forged and result.certificate is not None:
            certificate = dataclasses.replace(result.certificate, allowed=1.0)
            return dataclasses.replace(result, certificate=certificate)
        return result

    return solve


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_is_found_where_nothing_is_wrong(check: str) -> None:
    planner = SAMPLING if check in ("kill", "checkpoint bytes", "compiled") else PARETO
    for seed in (1,) if "bytes" in check or "resealed" in check else (0, 1, 2):
        assert find(check, planner=planner, seed=seed) == set()


DEFECTS: dict[str, tuple[str, Means]] = {
    "a policy that is too risky": ("unsafe", Means(solve=solve_otherwise(1.0, forged=True))),
    "a wrong risk": ("certificate's risk", forge(lambda c: {"risk": c.risk / 2})),
    "a wrong reward": ("certificate's reward", forge(lambda c: {"reward": c.reward + 1e-9})),
    "a wrong frontier": ("certificate's complete", forge(lambda c: {"complete": False})),
    "a refusal without cause": ("refused", forge(lambda c: {"allowed": -1.0})),
    "an upper bound that is too low": ("upper bound", alter(upper_bound=1.0)),
    "no policy at all": (
        "infeasible",
        alter(status=Status.INFEASIBLE, policy=None, certificate=None, upper_bound=None),
    ),
    "an upper bound of nothing": ("upper bound", alter(upper_bound=-float("inf"))),
    "a policy that is not the best": ("proved", Means(solve=solve_otherwise(0.01))),
    "a policy without a certificate": ("answer", alter(certificate=None)),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defective_answer_is_found(defect: str) -> None:
    fault, means = DEFECTS[defect]
    assert fault in find("answer", means)


def seeds_that(look: Callable[[int], bool]) -> int:
    return next(seed for seed in itertools.count() if look(seed))


def count(seed: int, name: str) -> bool:
    _, counts = run_case(Case("answer", PROBLEM, PARETO, seed), Means())
    return bool(counts[name])


def test_a_rounding_in_an_exact_certificate_is_found() -> None:
    def certify(*given: Any, **options: Any) -> Any:
        certificate = vulcan.certify(*given, **options)
        return dataclasses.replace(
            certificate, reward=certificate.reward + type(certificate.reward)(1, 10**30)
        )

    seed = seeds_that(lambda seed: count(seed, "exact"))
    assert find("answer", Means(certify=certify), seed=seed) == {"exact"}


def test_a_policy_that_acts_on_what_it_is_not_told_is_found() -> None:
    def solve(*given: Any, **options: Any) -> Any:
        result = vulcan.solve(*given, **options)
        policy = result.policy
        arrays = {name: getattr(policy, name).copy() for name in policy.ARRAYS}
        # The first two outcomes swap their names, and what is planned after them stays.
        arrays["label"][[0, 1]] = arrays["label"][[1, 0]]
        other = vulcan.Policy(policy.about, policy.labels, **arrays)
        return dataclasses.replace(result, policy=other)

    seed = seeds_that(lambda seed: count(seed, "executed"))
    assert find("answer", Means(solve=solve), seed=seed) & {"executed", "refused without cause"}


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ZeroDivisionError("0"), "raised ZeroDivisionError"),
        (vulcan.errors.BoundError("no"), "bound refused"),
        (vulcan.errors.OptionError("no"), "refused without cause"),
        (vulcan.errors.DisagreementError("no"), "disagreement"),
    ],
)
def test_whatever_is_raised_without_cause_is_found(error: Exception, fault: str) -> None:
    def solve(*given: Any, **options: Any) -> Any:
        raise error

    assert find("answer", Means(solve=solve)) == {fault}


def test_a_search_without_an_end_is_found() -> None:
    def solve(*given: Any, **options: Any) -> Any:
        while True:
            try:
                sum(range(1000))
            except Exception:  # as a caller of a model might
                continue

    assert find("answer", Means(solve=solve, answer_timeout=0.1)) == {"no answer"}


def test_what_a_constraint_admits_is_known() -> None:
    assert find("answer", planner=FORWARD) == set()
    assert "admitted" in find("answer", Means(solve=solve_otherwise(0.01)), FORWARD)
    none = alter(status=Status.INFEASIBLE, policy=None, certificate=None)
    assert find("answer", none, FORWARD) == {"not admitted"}


def solve_some_otherwise(differs: Callable[[Any, dict[str, Any]], bool]) -> Means:
    """Return a solve that takes another bound for some models or options."""

    def solve(problem: vulcan.Problem, *given: Any, **options: Any) -> Any:
        chosen = solve_otherwise(0.01) if differs(problem.model, options) else vulcan.solve
        return chosen(problem, *given, **options)

    return Means(solve=solve)


def test_forms_of_a_model_that_differ_are_found() -> None:
    unmerged = solve_some_otherwise(lambda model, options: not model.merges)
    assert {"merging", "proved"} <= find("merging", unmerged)
    arrays = solve_some_otherwise(lambda model, options: isinstance(model, vulcan.model.ArrayModel))
    assert "proved" in find("arrays", arrays)
    compiled = solve_some_otherwise(
        lambda model, options: getattr(model, "compiled", None) is not None
    )
    assert "compiled" in find("compiled", compiled, SAMPLING)
    calls = itertools.count()
    alternating = solve_some_otherwise(lambda model, options: next(calls) % 2 == 1)
    assert find("repetition", alternating) == {"repetition"}


def test_a_margin_that_is_too_wide_is_found() -> None:
    assert find("margin", forge(lambda c: {"margin": 1e9})) == {"margin"}


def test_other_opinions_are_heard() -> None:
    def solve(*given: Any, **options: Any) -> Any:
        result = vulcan.solve(*given, **options)
        other = solve_otherwise(1.0)(*given, **options)
        result.policy.save = other.policy.save
        return result

    assert "checker" in find("checker", Means(solve=solve))
    disagreeing = Means(verify=lambda *given: SimpleNamespace(agrees=False))
    assert find("Storm", disagreeing) == {"Storm"}


def test_replans_that_break_the_promise_are_found() -> None:
    def replan(run: vulcan.policy.Run, **options: Any) -> Any:
        run.account = Account(slack=1.0, room=0.0, rate=0.0)
        return vulcan.replan(run)

    found = [find("replans", Means(replan=replan), seed=seed) for seed in range(8)]
    assert {"replans"} in found


def test_episodes_of_another_world_are_found() -> None:
    def simulate(policy: Any, model: Any, **options: Any) -> Any:
        riskier = PROBLEM.change(
            lambda ways: [
                w._replace(probability=0.5 if len(ways) == 2 else w.probability) for w in ways
            ]
        )

        return vulcan.simulate(policy, TableModel(riskier), **options)

    assert find("simulation", Means(simulate=simulate)) == {"simulation"}


@pytest.mark.parametrize("check", ["policy bytes", "resealed policy"])
def test_a_loader_that_raises_anything_is_found(check: str) -> None:
    def load(path: Any) -> Any:
        try:
            return vulcan.Policy.load(path)
        except vulcan.VulcanError:
            raise KeyError("damaged") from None

    assert find(check, Means(load=load)) != set()


def test_a_loader_that_believes_everything_is_found() -> None:
    other = solve_otherwise(1.0)(*_solve_arguments()).policy
    calls = itertools.count()
    load = lambda path: other if next(calls) else vulcan.Policy.load(path)  # noqa: E731
    assert find("policy bytes", Means(load=load)) == {"policy file"}


def _solve_arguments() -> tuple[Any, Any]:
    return make_problem(PROBLEM), PARETO.make_solver()


def test_checkpoints_that_go_on_otherwise_are_found() -> None:
    resumed = solve_some_otherwise(lambda model, options: False)

    def solve(problem: vulcan.Problem, *given: Any, **options: Any) -> Any:
        checkpoint = options.get("checkpoint")
        if isinstance(checkpoint, vulcan.Checkpoint) and checkpoint.resume:
            del options["checkpoint"]
            return solve_otherwise(1.0)(problem, *given, **options)
        return resumed.solve(problem, *given, **options)

    assert find("checkpoint bytes", Means(solve=solve), SAMPLING) == {"checkpoint"}
    assert find("kill", Means(solve=solve), SAMPLING) == {"kill"}


def test_a_lie_that_is_believed_is_found() -> None:
    def solve(problem: vulcan.Problem, *given: Any, **options: Any) -> Any:
        model = problem.model
        for state, action, _ in PROBLEM.answers():
            model.outcomes(state if model.merges else (state,), action)
        return vulcan.solve(make_problem(PROBLEM), *given, **options)

    found = [find("lies", Means(solve=solve), seed=seed) for seed in (1, 2, 3)]
    assert {"lies"} in found
    raising = Means(solve=lambda *given, **options: 1 / 0)
    assert find("lies", raising) == {"lies"}


def test_false_claims_of_little_memory_are_found() -> None:
    none = alter(status=Status.INFEASIBLE, policy=None, certificate=None, upper_bound=None)
    assert find("memory", none) == {"infeasible"}
