"""What else could be done in the rows of a table."""

from __future__ import annotations

import numpy as np
import pytest

import vulcan
from examples.treatment import Treatment
from vulcan.domains import Bandit
from vulcan.errors import MismatchError


def test_a_single_place_is_judged_as_explain_judges_it() -> None:
    problem = vulcan.Problem(Bandit(4), "0.002*x")
    policy = vulcan.solve(problem).policy
    table = vulcan.find_alternatives(problem, policy.table().where("risk>0"))
    single = table.where("decisions=1")
    places = vulcan.explain(problem, policy, places=1000).places
    wanted = {(p.step + 1, p.action, p.state): p for p in places}
    names = ("step", "action", "reach", "instead", "instead_reward", "instead_risk", "verdict")
    states = [table.places.states[table.places.rows["state"][place]] for place in single.place]
    assert len(single) > 3
    compared = 0
    for state, step, action, reach, instead, reward, risk, verdict in zip(
        states, *(single[name].tolist() for name in names), strict=True
    ):
        place = wanted.get((step, action, repr(state)))
        if place is None or place.reach != pytest.approx(reach):
            continue  # explained with others that are alike, by the riskiest of them
        compared += 1
        other = place.alternative
        assert (instead, verdict) == (other.action, other.verdict)
        assert reward == pytest.approx(other.reward_change, abs=1e-12)
        assert risk == pytest.approx(other.risk_change, abs=1e-12)
    assert compared > 3
    assert "found exactly over all states" in table.note


def test_joined_rows_are_judged_together() -> None:
    problem = vulcan.Problem(Treatment(weeks=6), 0.006)
    policy = vulcan.solve(problem).policy
    table = vulcan.find_alternatives(problem, policy.table())
    joined = table.where("decisions>1", "step=6")
    assert len(joined) > 0
    # In the last week nothing follows, so that the change is that of the week alone.
    for state, action, instead, reach, reward in zip(
        *(joined[n] for n in ("state", "action", "instead", "reach", "instead_reward")), strict=True
    ):
        patient = next(s for s in table.places.states if str(s) == state)
        means = {
            name: sum(o.probability * o.reward for o in problem.model.outcomes(patient, name))
            for name in (action, instead)
        }
        assert reward == pytest.approx(reach * (means[instead] - means[action]), abs=1e-12)


def test_where_states_do_not_merge_they_are_found_along_the_history() -> None:
    problem = vulcan.Problem(Bandit(3, merges=False), "0.002*x")
    merging = vulcan.Problem(Bandit(3), "0.002*x")
    table = vulcan.find_alternatives(problem, vulcan.solve(problem).policy.table())
    assert "the step alone" in table.note
    assert set(table["verdict"]) <= {"worth less", "as good", "too risky", "not known"}
    actions = set(merging.model.actions(merging.model.initial_state()))
    assert set(table["instead"]) <= {f"play {action}" for action in actions} | actions
    assert (table["instead"] != table["action"]).all()


def test_a_search_says_what_could_follow() -> None:
    problem = vulcan.Problem(Bandit(3, merges=False), "0.002*x")
    rows = vulcan.solve(problem).policy.table().top(1)
    table = vulcan.find_alternatives(problem, rows, look=0.5)
    assert "0.5 s of search" in table.note
    assert table["verdict"][0] in ("worth less", "as good", "too risky")
    with pytest.raises(vulcan.OptionError, match="look, a number of seconds"):
        vulcan.find_alternatives(problem, rows, look=0)


def test_where_nothing_else_can_be_done_that_is_said() -> None:
    class Only(Bandit):
        def actions(self, state):
            return super().actions(state)[:1]

    problem = vulcan.Problem(Only(2), 1.0)
    table = vulcan.find_alternatives(problem, vulcan.solve(problem).policy.table())
    assert set(table["instead"]) == {""}
    assert np.isnan(table["instead_reward"]).all()
    assert "–" in str(table)


def test_another_model_is_refused() -> None:
    policy = vulcan.solve(vulcan.Problem(Bandit(3), "0.002*x")).policy
    with pytest.raises(MismatchError):
        vulcan.find_alternatives(vulcan.Problem(Bandit(4), 1.0), policy.table())
    with pytest.raises(vulcan.OptionError, match="Problem"):
        vulcan.find_alternatives(Bandit(3), policy.table())
