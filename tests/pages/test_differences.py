"""Where two plans part, beside a walk along every history."""

from __future__ import annotations

import pytest

import vulcan
from vulcan.domains import Bandit
from vulcan.pages.differences import Difference, find_difference


def list_partings(one, other, here=0, there=0, chance=1.0, history=()):
    """Follow both plans along each history by itself."""
    names = [p.labels[p.action[k]] for p, k in ((one, here), (other, there))]
    if names[0] != names[1]:
        return [(chance, history, *names)]
    after = {other.labels[other.label[row]]: int(other.child[row]) for row in other.outcomes(there)}
    found = []
    for row in one.outcomes(here):
        label, child = one.labels[one.label[row]], int(one.child[row])
        if child >= 0 and after[label] >= 0:
            step = (*history, (names[0], label))
            found += list_partings(
                one, other, child, after[label], chance * one.probability[row], step
            )
    return found


@pytest.mark.parametrize("bounds", [("0.002*x", "0.001*x"), ("0.02", "0.001"), ("1", "0.001*x")])
def test_plans_part_where_single_histories_do(bounds):
    one, other = (vulcan.solve(vulcan.Problem(Bandit(horizon=4), bound)).policy for bound in bounds)
    expected = list_partings(one, other)
    assert expected
    found = find_difference(one, other, most=10_000)
    assert found.probability == pytest.approx(sum(parting[0] for parting in expected))
    assert sum(parting.reach for parting in found.partings) == pytest.approx(found.probability)
    told = {(history, *actions) for _, history, *actions in expected}
    assert all((p.history, p.action, p.instead) in told for p in found.partings)
    reaches = [parting.reach for parting in found.partings]
    assert reaches == sorted(reaches, reverse=True)


def test_a_plan_does_not_part_from_itself():
    policy = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "0.002*x")).policy
    assert find_difference(policy, policy) == Difference(0.0, ())
