"""Journeys of exploration missions against a direct enumeration."""

import math
from dataclasses import replace

import numpy as np
import pytest

import vulcan
from tests.helpers.rule_policies import (
    BOUND,
    MISSION,
    cross_wall,
    find_journey,
    plan_by_rule,
)
from vulcan import MismatchError, OptionError, Policy, Problem, RandomisedPolicy
from vulcan.domains import Bandit
from vulcan.domains.exploration import Exploration, Map, Obstacle, Vehicle, drawing


def edit(policy, **arrays):
    """The same policy with some of its arrays replaced."""
    kept = {name: getattr(policy, name) for name in policy.ARRAYS}
    return Policy(policy.about, policy.labels, **(kept | arrays))


def test_journeys_are_all_safe_histories(journeys, truth):
    assert len(journeys) == len(truth.histories)
    for state, (rewards, risks, probability) in truth.histories.items():
        number = find_journey(journeys, state.path, rewards)
        journey = journeys.journey(number)
        assert journey.path == state.path
        assert journey.risks == journeys.journey(number).risks == risks
        assert journey.probability == pytest.approx(probability, rel=1e-12)
        new = [cell not in state.path[:k] for k, cell in enumerate(state.path)][1:]
        assert journey.sampled == tuple(new)
        earned = sum(0.9**k * reward for k, reward in enumerate(rewards))
        survival = math.prod(1 - risk for risk in risks)
        assert journey.earned[-1] == pytest.approx(earned, rel=1e-12)
        assert journeys.earned[number] == pytest.approx(earned, rel=1e-12)
        assert journey.risked[-1] == pytest.approx(1 - survival, abs=1e-15)
        assert journeys.risked[number] == pytest.approx(1 - survival, abs=1e-15)
        assert len(journey.earned) == len(journey.risked) == 5
        assert (journey.earned[0], journey.risked[0]) == (0, 0)


def test_the_sums_are_those_of_the_certificate(policy, journeys, truth):
    certificate = vulcan.certify(Problem(MISSION, vulcan.parse(BOUND)), policy)
    assert journeys.reward == pytest.approx(certificate.reward, rel=1e-12)
    assert journeys.reward == pytest.approx(truth.reward, rel=1e-12)
    assert journeys.risk == pytest.approx(certificate.risk, rel=1e-12)
    assert journeys.probability.sum() + journeys.risk == pytest.approx(1, rel=1e-12)
    survival = 1 - journeys.risked
    mean = journeys.probability / survival @ journeys.risked
    assert journeys.risk == pytest.approx(mean, rel=1e-9)
    assert journeys.planned.all()


def test_visits_are_counted_once_and_exactly(journeys, truth):
    visits = journeys.visits
    shown = {tuple(cell): k for k, cell in enumerate(visits.cells.tolist())}
    assert set(shown) == set(truth.visits) | set(truth.collisions)
    for cell, number in shown.items():
        assert visits.probability[number] == pytest.approx(truth.visits[cell], rel=1e-12)
        assert visits.collision[number] == pytest.approx(truth.collisions[cell], rel=1e-12)
    assert visits.probability[shown[0, 2]] == 1  # the start, although some come back to it
    assert visits.collision.sum() == pytest.approx(journeys.risk, rel=1e-12)


def test_the_samples_of_a_journey_so_far(journeys, truth):
    state, (rewards, _, _) = next(
        (state, found) for state, found in truth.histories.items() if state.path[2] == (0, 2)
    )
    journey = journeys.journey(find_journey(journeys, state.path, rewards))
    start = (0, 2), MISSION.field.mean((0.0, 2.0))
    assert journey.samples(0) == ([start[0]], [start[1]])
    first = ([(0, 2), (1, 2)], [start[1], rewards[0]])
    assert journey.samples(1) == first
    assert journey.samples(2) == first  # back at the start, where there was nothing to sample
    assert journey.samples(3) == ([*first[0], state.path[3]], [*first[1], rewards[2]])
    assert journey.samples() == journey.samples(4)
    given = replace(journey, mission=replace(MISSION, first_sample=2.5))
    assert given.samples(0) == ([(0, 2)], [2.5])


def test_a_policy_that_a_search_found():
    mission = Exploration(map="wide", horizon=3, degree=2)
    problem = Problem(mission, vulcan.parse(BOUND))
    result = vulcan.solve(problem, vulcan.ForwardSearch())
    journeys = drawing.follow_policy(result.policy, mission)
    assert journeys.reward == pytest.approx(result.certificate.reward, rel=1e-12)
    assert journeys.risk == pytest.approx(result.certificate.risk, rel=1e-9)


def test_a_randomised_policy_before_the_draw(policy):
    straight = plan_by_rule(MISSION, lambda state: "E")
    mixed = RandomisedPolicy([policy, straight], [0.25, 0.75])
    journeys = drawing.follow_policy(mixed, MISSION)
    certificate = vulcan.certify(Problem(MISSION, vulcan.parse(BOUND)), mixed)
    assert journeys.reward == pytest.approx(certificate.reward, rel=1e-12)
    assert journeys.risk == pytest.approx(certificate.risk, rel=1e-12)
    start = journeys.visits.cells.tolist().index([0, 2])
    assert journeys.visits.probability[start] == 1
    assert journeys.probability.sum() + journeys.risk == pytest.approx(1, rel=1e-12)


def test_an_incomplete_policy_has_shorter_journeys(policy):
    child = policy.child.copy()
    child[0] = -3
    journeys = drawing.follow_policy(edit(policy, child=child), MISSION)
    (number,) = np.flatnonzero(~journeys.planned)
    assert journeys.lengths[number] == 1
    assert journeys.cells[number].tolist() == [[0, 2], *[[1, 2]] * 4]
    assert journeys.probability.sum() + journeys.risk == pytest.approx(1, rel=1e-12)
    assert drawing.describe_outcome(journeys, number).words.endswith("; not planned further")
    drawing.plot_mission(journeys.journey(number))


def test_what_does_not_belong_together_is_refused(policy):
    for other in (replace(MISSION, horizon=5), replace(MISSION, first_sample=2.0)):
        with pytest.raises(MismatchError, match="this policy was made for"):
            drawing.follow_policy(policy, other)
    reward = policy.reward.copy()
    reward[-1] += 1e-9
    with pytest.raises(MismatchError, match=r"action '\w+' in state .* has another outcome"):
        drawing.follow_policy(edit(policy, reward=reward), MISSION)
    child = policy.child.copy()
    child[np.flatnonzero(child == -1)[-1]] = 1
    with pytest.raises(MismatchError, match="acts beyond the horizon"):
        drawing.follow_policy(edit(policy, child=child), MISSION)
    child = policy.child.copy()
    child[0] = -1
    with pytest.raises(MismatchError, match=r"ends in state .* which has actions"):
        drawing.follow_policy(edit(policy, child=child), MISSION)
    with pytest.raises(OptionError, match=r"has to be an Exploration .*, not Bandit\(horizon=9\)"):
        drawing.follow_policy(policy, Bandit())


def test_a_policy_whose_moves_the_map_does_not_have(policy):
    labels = tuple("W" if label == "E" else label for label in policy.labels)
    kept = {name: getattr(policy, name) for name in policy.ARRAYS}
    with pytest.raises(MismatchError, match="the policy takes 'W' in state"):
        drawing.follow_policy(Policy(policy.about, labels, **kept), MISSION)


def test_nothing_safe_and_nowhere_to_go():
    trap = Map(3, 1, (1, 0), [Obstacle.rectangle(1.5, 2.5, -9, 9)])
    doomed = Exploration(map=trap, horizon=1, vehicle=Vehicle(0.0, 0.0))
    journeys = drawing.follow_policy(plan_by_rule(doomed, lambda state: "E"), doomed)
    assert (len(journeys), journeys.risk) == (0, 1)
    drawing.plot_visits(journeys)
    for act in (
        drawing.choose_outcomes,
        drawing.plot_outcomes,
        drawing.plot_risk_reward,
        lambda journeys: journeys.draw(0),
    ):
        with pytest.raises(OptionError, match="every outcome of this policy ends in a collision"):
            act(journeys)
    alone = Exploration(map=Map(1, 1, (0, 0)), horizon=2)
    nothing = plan_by_rule(MISSION, cross_wall).about
    empty = Policy(
        vulcan.policies.policy.About(
            nothing.model,
            vulcan.model.reader.ModelReader(alone).fingerprint(),
            2,
            1.0,
            None,
            "none",
        ),
        (),
        *(np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32)),
        *(np.zeros(0), np.zeros(0), np.zeros(0, np.int32)),
    )
    journeys = drawing.follow_policy(empty, alone)
    (outcome,) = drawing.choose_outcomes(journeys)
    assert (outcome.words, outcome.share) == ("no move at all", 1)
    drawing.plot_mission(outcome)
    drawing.plot_risk_reward(journeys)
    drawing.plot_outcomes(journeys)


def test_a_random_journey_is_as_probable_as_it_is(journeys):
    assert journeys.draw(3) == journeys.draw(3)
    drawn = [journeys.draw(seed) for seed in range(300)]
    share = np.mean([journeys.sampled[number].all() for number in drawn])
    safe = journeys.probability / journeys.probability.sum()
    assert share == pytest.approx(safe[journeys.sampled.all(axis=1)].sum(), abs=0.1)
    with pytest.raises(OptionError, match="from 0, not -1"):
        journeys.draw(-1)
