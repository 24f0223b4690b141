"""The paper's numbers of a history."""

from __future__ import annotations

import math

import pytest

import vulcan
from tests.helpers.tables import one_action
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.errors import OptionError
from vulcan.policy.histories import er, f1, g, ser

PROBLEM = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))
POLICY = vulcan.solve(PROBLEM, vulcan.ForwardSearch(vulcan.solvers.SequenceConstraint())).policy


def list_ends(policy: vulcan.Policy) -> list[tuple[float, list[tuple[str, str]]]]:
    """Return the probability of each history of a policy from its start to its end."""
    ends, waiting = [], [(0, 1.0, [])]
    while waiting:
        node, probability, history = waiting.pop()
        for k in policy.outcomes(node):
            pair = (policy.labels[policy.action[node]], policy.labels[policy.label[k]])
            after = (probability * float(policy.probability[k]), [*history, pair])
            child = int(policy.child[k])
            if child >= 0:
                waiting.append((child, *after))
            else:
                ends.append(after)
    return ends


def test_execution_risk_is_the_mean_of_the_sequence_execution_risks() -> None:
    ends = list_ends(POLICY)
    assert math.fsum(p * ser(PROBLEM.model, h) for p, h in ends) == pytest.approx(er(POLICY))
    for of in (g, f1):
        mean = math.fsum(p * of(PROBLEM.model, h) for p, h in ends)
        assert mean == pytest.approx(float(vulcan.certify(PROBLEM, POLICY).reward))


def test_every_history_of_an_admitted_policy_passes_the_local_test() -> None:
    for _, history in list_ends(POLICY):
        assert ser(PROBLEM.model, history) <= 0.002 * f1(PROBLEM.model, history) + 1e-12


def test_execution_risk_after_a_history() -> None:
    action = POLICY.start().action_label
    outcomes = {"pays 0": 0.5, "pays 1": 0.5}
    after = {label: er(POLICY, [(action, label)]) for label in outcomes}
    assert action == "play 1"
    mean = 0.001 + 0.999 * sum(p * after[label] for label, p in outcomes.items())
    assert er(POLICY) == pytest.approx(mean)
    assert er(POLICY, [(action, "failure")]) == 0


def test_histories_that_do_not_exist_are_refused() -> None:
    with pytest.raises(OptionError, match=r"step 1: no action 'jump'; there is 'stop"):
        g(PROBLEM.model, [("jump", "far")])
    with pytest.raises(OptionError, match=r"step 1: 'play 1' has no outcome 'far'"):
        ser(PROBLEM.model, [("play 1", "far")])
    with pytest.raises(OptionError, match=r"step 2: .* the history has ended"):
        g(PROBLEM.model, [("stop", "stopped"), ("play 1", "pays 0")])
    with pytest.raises(vulcan.errors.PolicyError, match=r"takes 'play 1', not 'play 2'"):
        er(POLICY, [("play 2", "pays 0.2")])


def test_sure_failure_has_no_sequence_execution_risk_but_0() -> None:
    doomed = one_action(Outcome.failure(1.0, 3.0))
    assert ser(doomed, [("go", "failure")]) == 0
    assert g(doomed, [("go", "failure")]) == 3.0
