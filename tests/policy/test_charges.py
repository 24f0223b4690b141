"""Policies planned under constraints: what they record of them, in memory and in files."""

from __future__ import annotations

import pickle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import vulcan
import vulcan_check
from tests.helpers.plans import edit
from tests.helpers.sealed import seal, unseal
from tests.helpers.tables import Table
from tests.oracles.several import RandomModel, draw_problem
from vulcan import Outcome, Policy
from vulcan.constraints import Cost, RiskAhead
from vulcan.errors import MismatchError, PolicyError, PolicyFileError
from vulcan.numerics import UNPLANNED
from vulcan.policy.policy import AnyPolicy, Beyond, RandomisedPolicy
from vulcan.runtime.files import HEADER
from vulcan_check import BAD_FILE, CANNOT_SAY, NOT_SAFE, OWN_BOUND, SAFE


class InFloats(RandomModel):
    """A random model whose numbers are those that files hold."""

    def outcomes(self, state: int, action: str) -> list[Outcome]:
        return [
            Outcome(float(o.probability), o.reward, o.state, o.label, costs=o.costs, event=o.event)
            for o in super().outcomes(state, action)
        ]


def draw(seed: int) -> vulcan.Problem:
    """Return a random problem with constraints, in floats."""
    exact = draw_problem(seed)
    model = InFloats(seed, exact.model.horizon)
    return vulcan.Problem(model, exact.risk_bound, constraints=exact.constraints)


def plan(problem: vulcan.Problem, randomised: bool = False) -> Any:
    return vulcan.solve(problem, vulcan.Automatic(randomised=randomised), gap=0).policy


def mix(problem: vulcan.Problem) -> AnyPolicy | None:
    """Return a mixture of the plan with that of another risk bound."""
    other = vulcan.Problem(problem.model, 1.0, constraints=problem.constraints)
    members = [plan(problem), plan(other)]
    return None if None in members else RandomisedPolicy(members, [0.25, 0.75])


ROUTE = Table(
    {
        0: {"go": [Outcome(0.5, 1.0, 1, costs={"fuel": 2.5}, event="late"), Outcome(0.5, 1.0, 1)]},
        1: {
            "go": [Outcome(0.75, 1.0, 2, costs={"fuel": 1.0}, event="late"), Outcome.failure(0.25)]
        },
    },
    horizon=2,
)
LIMITS = ["fuel <= 5", "risk(late) <= 0.9", "risk ahead <= 0.3"]


@pytest.fixture
def route() -> Policy:
    found = plan(vulcan.Problem(ROUTE, 0.5, constraints=LIMITS))
    assert isinstance(found, Policy)
    return found


@pytest.fixture
def saved(route: Policy, tmp_path: Path) -> Path:
    route.save(tmp_path / "plan.vulcan")
    return tmp_path / "plan.vulcan"


def check(path: Path, *options: str) -> int:
    return vulcan_check.main([str(path), *options])


def test_a_plan_records_charges_with_events_that_have_happened_before(route: Policy) -> None:
    assert route.about.constraints == ("fuel <= 5.0", "risk(late) <= 0.9", "risk ahead <= 0.3")
    assert set(route.charges) == {"fuel", "risk(late)"}
    assert len(route) == 3  # after being late, and in time
    late = [route.charges["risk(late)"][list(route.outcomes(node))].tolist() for node in range(3)]
    assert sorted(late) == [[1.0, 0.0]] * 3
    assert sorted(route.charges["fuel"].tolist()) == [0.0, 0.0, 0.0, 1.0, 1.0, 2.5]


@pytest.mark.parametrize("randomised", [False, True])
def test_round_trips(randomised: bool, tmp_path: Path) -> None:
    path, kept = tmp_path / "plan.vulcan", 0
    for seed in range(60):
        problem = draw(seed)
        policy = mix(problem) if randomised else plan(problem)
        if policy is None:
            continue
        policy.save(path)
        before, loaded = path.read_bytes(), Policy.load(path)
        assert HEADER.unpack_from(before)[1] == 4
        loaded.save(path)
        assert path.read_bytes() == before
        summed = {c.quantity for c in problem.constraints if not isinstance(c, RiskAhead)}
        assert loaded == policy
        for member, own in zip(loaded.members, policy.members, strict=True):
            assert set(own.charges) == summed
            assert member.about == own.about
            for other in (member.bind(problem.model), member.cut_off(), unpickled(member)):
                assert other == own
        assert vulcan.certify(problem, loaded) == vulcan.certify(problem, policy)
        kept += bool(summed)
    assert kept > 15


def unpickled(policy: Policy) -> Any:
    return pickle.loads(pickle.dumps(policy))


def test_policies_with_other_charges_differ(route: Policy) -> None:
    assert edit(route) != route
    assert route != edit(route)
    changed = edit(route)
    changed.charges = route.charges | {"fuel": route.charges["fuel"] + 1}
    assert changed != route


def test_one_risk_bound_is_saved_as_ever(tmp_path: Path) -> None:
    policy = plan(vulcan.Problem(ROUTE, 0.5))
    policy.save(tmp_path / "plan.vulcan")
    assert HEADER.unpack_from((tmp_path / "plan.vulcan").read_bytes())[1] == 1
    content = unseal(tmp_path / "plan.vulcan")
    assert set(content) == {"about", "labels", "arrays"}
    assert "constraints" not in content["about"]


def test_a_limit_that_is_a_function_has_no_text(tmp_path: Path) -> None:
    limit = vulcan.bounds.Concave(lambda x: 5.0 + 0 * x)
    policy = plan(vulcan.Problem(ROUTE, 0.5, constraints=[Cost("fuel", limit)]))
    assert policy.about.constraints == ("fuel <= ?",)
    path = tmp_path / "plan.vulcan"
    policy.save(path)
    assert Policy.load(path) == policy
    assert check(path, "--bound", "0.5") == CANNOT_SAY
    assert check(path, "--bound", "0.5", "--constraint", "fuel <= 5") == SAFE


def test_another_charge_of_the_model_is_a_mismatch(route: Policy) -> None:
    assert vulcan.certify(vulcan.Problem(ROUTE, 0.5), route).safe
    for name, charges in route.charges.items():
        other = edit(route)
        other.charges = {name: charges + (charges > 0)}
        with pytest.raises(MismatchError, match=f"charged .* for .*{name[:4]}"):
            vulcan.certify(vulcan.Problem(ROUTE, 0.5, constraints=LIMITS), other)
        run = other.bind(ROUTE).start()
        with pytest.raises(MismatchError, match="charged"):
            print(run.action)


def test_members_of_a_mixture_record_the_same_charges(route: Policy) -> None:
    with pytest.raises(PolicyError, match="charges for different constraints"):
        RandomisedPolicy([route, edit(route)], [0.5, 0.5])


def test_a_frontier_has_no_file_with_constraints(route: Policy, tmp_path: Path) -> None:
    nothing = np.zeros(1)
    bounded = edit(route, first_child=UNPLANNED)
    bounded.beyond = Beyond("any continuation", nothing, nothing)
    with pytest.raises(PolicyError, match="bounded beyond its frontier"):
        bounded.save(tmp_path / "plan.vulcan")


def change(content: dict[str, Any], name: str, place: int, value: float) -> None:
    charges = np.frombuffer(content["charges"][name], "<f8").copy()
    charges[place] = value
    content["charges"][name] = charges.tobytes()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda c: change(c, "fuel", 0, np.nan), "a charge for 'fuel' is not a number"),
        (lambda c: change(c, "fuel", 0, np.inf), "a charge for 'fuel' is not a number"),
        (lambda c: change(c, "fuel", 5, -1.1e100), "a charge for 'fuel' is not a number"),
        (lambda c: change(c, "risk(late)", 0, 0.5), "something else than 0 or 1"),
        (lambda c: change(c, "risk(late)", 0, np.nan), "something else than 0 or 1"),
        (lambda c: c["charges"].update(fuel=bytes(8 * 5)), "not one for each outcome"),
        (lambda c: c["charges"].update(fuel=bytes(8 * 7)), "not one for each outcome"),
        (lambda c: c["charges"].update(fuel=bytes(7)), "multiple of element size"),
        (lambda c: c["charges"].update(fuel="text"), "Expected `bytes`"),
        (lambda c: c["charges"].update({"risk ahead": bytes(8 * 6)}), "not one for each"),
        (lambda c: c["charges"].update({"risk": bytes(8 * 6)}), "'risk' is nothing"),
        (lambda c: c["charges"].update({" fuel": bytes(8 * 6)}), "' fuel' is nothing"),
        (lambda c: c["charges"].update({"risk(a": bytes(8 * 6)}), "not 'risk"),
        (lambda c: c.update(charges=[]), "Expected `object"),
        (lambda c: c.update(more=1), "unknown field"),
        (lambda c: c["about"].update(constraints=["fuel"]), "a constraint has no limit"),
        (lambda c: c["about"].update(constraints=["fuel <= "]), "a constraint has no limit"),
        (lambda c: c["about"].update(constraints=["risk <= 1"]), "'risk' is nothing"),
        (lambda c: c["about"].update(constraints=["(fuel) <= 1"]), "a constraint is"),
        (lambda c: c["about"].update(constraints=["1fuel <= 1"]), "words of letters"),
        (lambda c: c["about"].update(constraints=[1]), "Expected `str`"),
        (lambda c: c["about"].update(constraints="fuel <= 1"), "Expected `array`"),
    ],
)
def test_damage_under_a_right_checksum_is_refused(saved: Path, damage: Any, problem: str) -> None:
    content = unseal(saved)
    damage(content)
    saved.write_bytes(seal(content, 4))
    with pytest.raises(PolicyFileError, match=problem):
        Policy.load(saved)
    assert check(saved, "--bound", "0.5") == BAD_FILE


def test_charges_may_be_missing(saved: Path) -> None:
    """Then it cannot be said whether the constraint is kept."""
    content = unseal(saved)
    content["charges"] = {}
    saved.write_bytes(seal(content, 4))
    assert Policy.load(saved).members[0].charges == {}
    assert check(saved) == CANNOT_SAY
    assert check(saved, "--bound", "0.5", "--constraint", "risk ahead <= 0.3") == SAFE


@pytest.mark.parametrize("randomised", [False, True])
def test_random_damage_gets_an_answer_and_never_safe(randomised, tmp_path, route):
    path, random, answers = tmp_path / "plan.vulcan", Random(4), []
    (RandomisedPolicy([route, route], [0.5, 0.5]) if randomised else route).save(path)
    content = path.read_bytes()[HEADER.size : -32]
    for _ in range(400):
        changed = bytearray(content)
        for _ in range(random.choice([1, 1, 2, 8])):
            changed[random.randrange(len(changed))] = random.randrange(256)
        path.write_bytes(seal(bytes(changed), 4))
        answers.append(check(path))
        if answers[-1] == BAD_FILE:
            continue
        Policy.load(path)  # which refuses whatever the format does not allow
    assert answers.count(BAD_FILE) > 100
    assert {OWN_BOUND} <= set(answers) <= {OWN_BOUND, NOT_SAFE, BAD_FILE, CANNOT_SAY}


def test_every_byte_that_changes_and_every_cut_is_noticed(saved: Path) -> None:
    data = saved.read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x41
        for damaged in (bytes(changed), data[:place]):
            saved.write_bytes(damaged)
            with pytest.raises(PolicyFileError):
                Policy.load(saved)
            assert check(saved) == BAD_FILE


# `vulcan-check` beside exact certificates.


def test_vulcan_check_finds_what_exact_certificates_find(tmp_path: Path) -> None:
    path, verdicts = tmp_path / "plan.vulcan", []
    for seed in range(100):
        problem = draw(seed)
        plain = vulcan.solve(vulcan.Problem(problem.model, problem.risk_bound)).policy
        single, careless = plan(problem), record(plain, problem)
        mixture = None
        if single is not None and careless is not None:
            mixture = RandomisedPolicy([single, careless], [0.25, 0.75])
        for policy in (single, careless, mixture):
            if policy is None:
                continue
            policy.save(path)
            exact = vulcan.certify(problem, policy, exact=True)
            about, (reward, risk, _), _ = vulcan_check.evaluate_policy(str(path))
            assert (reward, risk) == (exact.reward, exact.risk), seed
            for limited in exact.constraints:
                assert about["totals"][limited.quantity] == limited.value, (seed, limited)
            _, code = vulcan_check.judge(str(path), None, {})
            assert code == (OWN_BOUND if exact.safe else NOT_SAFE), seed
            texts = [str(constraint.text) for constraint in problem.constraints]
            _, code = vulcan_check.judge(str(path), str(problem.risk_bound.text), {}, texts)
            assert code == (SAFE if exact.safe else NOT_SAFE), seed
            verdicts.append((exact.safe, isinstance(policy, Policy)))
    assert min(verdicts.count((safe, single)) for safe in (0, 1) for single in (0, 1)) > 5


def record(policy: Any, problem: vulcan.Problem) -> Any:
    """Return a policy of another problem with what that of this one would record."""
    if policy is None:
        return None
    constraints = tuple(str(c.text) for c in problem.constraints)
    summed = [c for c in problem.constraints if not isinstance(c, RiskAhead)]
    columns: dict[str, list[float]] = {c.quantity: [] for c in summed}
    states = {0: problem.model.initial_state()}
    for node in range(len(policy)):
        outcomes = problem.model.outcomes(states[node], policy.labels[policy.action[node]])
        by_label = {outcome.label or "failure": outcome for outcome in outcomes}
        for row in policy.outcomes(node):
            outcome = by_label[policy.labels[policy.label[row]]]
            states[int(policy.child[row])] = outcome.state
            for c in summed:
                event = getattr(c, "event", None)
                own = dict(outcome.costs).get(getattr(c, "name", ""), 0)
                columns[c.quantity].append(float(outcome.event == event if event else own))
    recorded = edit(policy, origin={"constraints": constraints})
    recorded.charges = {name: np.array(column) for name, column in columns.items()}
    return recorded


def test_answers_and_exit_codes(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--bound", "0.5", "--constraint", "fuel <= 2", "--constraint", "risk(late)<=0.8*x"]
    assert check(saved, *given) == SAFE
    told = capsys.readouterr().out
    assert "the fuel is acceptable for the reward by --constraint" in told
    assert "  'fuel <= 2'  2\n" in told
    assert "  'risk(late)<=0.8*x'  0.875\n" in told
    assert check(saved) == check(saved, "--bound", "0.5") == OWN_BOUND
    assert "'risk ahead <= 0.3'  0.25\n" in capsys.readouterr().out
    assert check(saved, *given, "--constraint", "fuel <= 1.9") == NOT_SAFE
    assert "not safe: the fuel is not acceptable" in capsys.readouterr().out
    assert check(saved, *given, "--constraint", "dose <= 1") == CANNOT_SAY
    assert "no charges for 'dose'" in capsys.readouterr().out
    assert check(saved, *given, "--constraint", "fuel <= x*x") == CANNOT_SAY
    assert check(saved, *given, "--constraint", "fuel <= 1", "--constraint", "y <= 1") == NOT_SAFE
    assert check(saved, *given[2:]) == OWN_BOUND
    assert check(saved, *given, "--constraint", "risk ahead <= 0.24") == NOT_SAFE


def test_files_of_one_risk_bound_say_nothing_of_costs(tmp_path: Path) -> None:
    path = tmp_path / "plan.vulcan"
    plan(vulcan.Problem(ROUTE, 0.5)).save(path)
    assert check(path, "--bound", "0.5") == SAFE
    assert check(path, "--bound", "0.5", "--constraint", "fuel <= 5") == CANNOT_SAY
    assert check(path, "--bound", "0.5", "--constraint", "risk ahead <= 0.25") == SAFE
