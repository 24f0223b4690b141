"""Journeys of exploration missions against a direct enumeration, and the choice of telling ones."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import vulcan
from tests.rule_policies import (
    BOUND,
    MISSION,
    WALL,
    cross_wall,
    enumerate_histories,
    find_journey,
    plan_by_rule,
)
from vulcan import MismatchError, OptionError, Policy, Problem, RandomisedPolicy, plotting
from vulcan.domains import Bandit
from vulcan.domains.exploration import Exploration, Map, Obstacle, Vehicle
from vulcan.plotting.routes import AWAY, FREE, INTO, THROUGH, TURNED, find_routes


@pytest.fixture(scope="module")
def policy():
    return plan_by_rule(MISSION, cross_wall)


@pytest.fixture(scope="module")
def journeys(policy):
    return plotting.follow_policy(policy, MISSION)


@pytest.fixture(scope="module")
def truth():
    return enumerate_histories(MISSION, cross_wall)


def edit(policy, **arrays):
    """The same policy with some of its arrays replaced."""
    kept = {name: getattr(policy, name) for name in policy.ARRAYS}
    return Policy(policy.about, policy.labels, **(kept | arrays))


# Journeys.


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
    journeys = plotting.follow_policy(result.policy, mission)
    assert journeys.reward == pytest.approx(result.certificate.reward, rel=1e-12)
    assert journeys.risk == pytest.approx(result.certificate.risk, rel=1e-9)


def test_a_randomised_policy_before_the_draw(policy):
    straight = plan_by_rule(MISSION, lambda state: "E")
    mixed = RandomisedPolicy([policy, straight], [0.25, 0.75])
    journeys = plotting.follow_policy(mixed, MISSION)
    certificate = vulcan.certify(Problem(MISSION, vulcan.parse(BOUND)), mixed)
    assert journeys.reward == pytest.approx(certificate.reward, rel=1e-12)
    assert journeys.risk == pytest.approx(certificate.risk, rel=1e-12)
    start = journeys.visits.cells.tolist().index([0, 2])
    assert journeys.visits.probability[start] == 1
    assert journeys.probability.sum() + journeys.risk == pytest.approx(1, rel=1e-12)


def test_an_incomplete_policy_has_shorter_journeys(policy):
    child = policy.child.copy()
    child[0] = -3
    journeys = plotting.follow_policy(edit(policy, child=child), MISSION)
    (number,) = np.flatnonzero(~journeys.planned)
    assert journeys.lengths[number] == 1
    assert journeys.cells[number].tolist() == [[0, 2], *[[1, 2]] * 4]
    assert journeys.probability.sum() + journeys.risk == pytest.approx(1, rel=1e-12)
    assert plotting.describe_outcome(journeys, number).words.endswith("; not planned further")
    plotting.plot_mission(journeys.journey(number))


def test_what_does_not_belong_together_is_refused(policy):
    for other in (replace(MISSION, horizon=5), replace(MISSION, first_sample=2.0)):
        with pytest.raises(MismatchError, match="this policy was made for"):
            plotting.follow_policy(policy, other)
    reward = policy.reward.copy()
    reward[-1] += 1e-9
    with pytest.raises(MismatchError, match=r"changed its answers for '\w+' in state"):
        plotting.follow_policy(edit(policy, reward=reward), MISSION)
    child = policy.child.copy()
    child[np.flatnonzero(child == -1)[-1]] = 1
    with pytest.raises(MismatchError, match="acts beyond the horizon"):
        plotting.follow_policy(edit(policy, child=child), MISSION)
    child = policy.child.copy()
    child[0] = -1
    with pytest.raises(MismatchError, match=r"ends in state .* which has actions"):
        plotting.follow_policy(edit(policy, child=child), MISSION)
    with pytest.raises(OptionError, match=r"has to be an Exploration .*, not Bandit\(horizon=9\)"):
        plotting.follow_policy(policy, Bandit())


def test_a_policy_whose_moves_the_map_does_not_have(policy):
    labels = tuple("W" if label == "E" else label for label in policy.labels)
    kept = {name: getattr(policy, name) for name in policy.ARRAYS}
    with pytest.raises(MismatchError, match="the policy takes 'W' in state"):
        plotting.follow_policy(Policy(policy.about, labels, **kept), MISSION)


def test_nothing_safe_and_nowhere_to_go():
    trap = Map(3, 1, (1, 0), [Obstacle.rectangle(1.5, 2.5, -9, 9)])
    doomed = Exploration(map=trap, horizon=1, vehicle=Vehicle(0.0, 0.0))
    journeys = plotting.follow_policy(plan_by_rule(doomed, lambda state: "E"), doomed)
    assert (len(journeys), journeys.risk) == (0, 1)
    plotting.plot_visits(journeys)
    for act in (
        plotting.choose_outcomes,
        plotting.plot_outcomes,
        plotting.plot_risk_reward,
        lambda journeys: journeys.draw(0),
    ):
        with pytest.raises(OptionError, match="every outcome of this policy ends in a collision"):
            act(journeys)
    alone = Exploration(map=Map(1, 1, (0, 0)), horizon=2)
    nothing = plan_by_rule(MISSION, cross_wall).about
    empty = Policy(
        vulcan.policy.About(
            nothing.model,
            vulcan.reader.ModelReader(alone).fingerprint(),
            2,
            1.0,
            None,
            "none",
        ),
        (),
        *(np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32)),
        *(np.zeros(0), np.zeros(0), np.zeros(0, np.int32)),
    )
    journeys = plotting.follow_policy(empty, alone)
    (outcome,) = plotting.choose_outcomes(journeys)
    assert (outcome.words, outcome.share) == ("no move at all", 1)
    plotting.plot_mission(outcome)
    plotting.plot_risk_reward(journeys)
    plotting.plot_outcomes(journeys)


def test_a_random_journey_is_as_probable_as_it_is(journeys):
    assert journeys.draw(3) == journeys.draw(3)
    drawn = [journeys.draw(seed) for seed in range(300)]
    share = np.mean([journeys.sampled[number].all() for number in drawn])
    safe = journeys.probability / journeys.probability.sum()
    assert share == pytest.approx(safe[journeys.sampled.all(axis=1)].sum(), abs=0.1)
    with pytest.raises(OptionError, match="from 0, not -1"):
        journeys.draw(-1)


# Routes, and the outcomes that are shown.


def test_routes_are_what_the_rule_did(journeys, truth):
    routes = find_routes(journeys)
    assert routes.gates == ((3, 2),)
    for state, (rewards, _, _) in truth.histories.items():
        number = find_journey(journeys, state.path, rewards)
        nodes = state.nodes
        if nodes[0] == 0:
            kind, moment = AWAY, 1
        elif nodes[0] == 1:
            kind, moment = TURNED, 2
        elif nodes[1] >= 2:
            kind, moment = (THROUGH if nodes[1] == 3 else INTO), 3
        else:
            kind, moment = TURNED, 3
        assert (routes.kind[number], routes.moment[number]) == (kind, moment)


def test_six_outcomes_are_distinct_and_of_the_policy(policy, journeys):
    outcomes = plotting.choose_outcomes(journeys)
    assert len({outcome.number for outcome in outcomes}) == len(outcomes) == 6
    kinds = [int(find_routes(journeys).kind[outcome.number]) for outcome in outcomes]
    assert kinds == sorted(kinds)
    assert set(kinds) == {THROUGH, INTO, TURNED, AWAY}
    for outcome in outcomes:
        run = policy.start()
        for reward, risk in zip(outcome.journey.rewards, outcome.journey.risks, strict=True):
            labels = run.expected
            label = next(
                label
                for label in labels
                if label.startswith(f"{reward:.3f} ") or (reward == 0 and label.startswith("visi"))
            )
            assert labels.get("collision", 0) == risk
            run.observe(label)
        assert run.finished
        assert not run.failed


def test_captions_say_what_happens_with_the_right_numbers(journeys, truth):
    for outcome in plotting.choose_outcomes(journeys):
        journey = outcome.journey
        numbers = re.fullmatch(
            r"reward (\S+), risk (\S+), probability (\S+) % \((\S+) % such\)", outcome.numbers
        )
        reward, risk, probability, share = map(float, numbers.groups())
        state = next(
            state
            for state, (rewards, _, _) in truth.histories.items()
            if state.path == journey.path and rewards == journey.rewards
        )
        rewards, risks, chance = truth.histories[state]
        assert reward == pytest.approx(sum(0.9**k * r for k, r in enumerate(rewards)), abs=0.005)
        assert risk == pytest.approx(1 - math.prod(1 - r for r in risks), rel=0.06)
        assert probability / 100 == pytest.approx(chance, rel=0.06)
        assert share / 100 == pytest.approx(outcome.share, rel=0.06)
        assert share >= probability
        if state.nodes[0] >= 2 and state.nodes[1] == 3:
            expected = "through the gap at (3, 2) at step 3, after good samples; "
        elif state.nodes[0] >= 2 and state.nodes[1] == 2:
            expected = "into the gap at (3, 2) at step 3 and back, after good samples; "
        elif state.nodes[0] == 0:
            expected = "away at once, to the north-east, after a poor sample; "
        else:
            expected = "turned away from the gap at (3, 2) at step "
        assert outcome.words.startswith(expected)


def test_the_share_is_that_of_all_journeys_like_it(journeys):
    routes = find_routes(journeys)
    keys, numbers = np.unique(routes.keys, axis=0, return_index=True)
    shares = [plotting.describe_outcome(journeys, number).share for number in numbers]
    assert len(shares) == len(keys)
    assert sum(shares) == pytest.approx(1 - journeys.risk, rel=1e-12)


def test_the_most_probable_group_is_always_shown(journeys):
    _, group = np.unique(find_routes(journeys).keys, axis=0, return_inverse=True)
    shares = np.bincount(group.ravel(), journeys.probability)
    (one,) = plotting.choose_outcomes(journeys, 1)
    assert one.share == pytest.approx(shares.max())
    few, many = (plotting.choose_outcomes(journeys, count) for count in (3, 200))
    assert {outcome.number for outcome in few} <= {outcome.number for outcome in many}
    assert len({outcome.number for outcome in many}) == min(200, len(journeys))
    with pytest.raises(OptionError, match="count must be a whole number from 1, not 0"):
        plotting.choose_outcomes(journeys, 0)


def test_groups_are_chosen_as_probable_yet_different(journeys):
    routes = find_routes(journeys)
    share = {}
    for key, probability in zip(routes.keys.tolist(), journeys.probability, strict=True):
        share[tuple(key)] = share.get(tuple(key), 0) + probability

    def apart(one, other):
        turn = abs(one[2] - other[2])
        kinds = 3 * (one[0] != other[0]) + min(turn, 8 - turn) / 4  # there is one gate
        return kinds + abs(one[3] - other[3]) / 2 + abs(one[4] - other[4]) / 2

    chosen = [max(share, key=share.get)]
    while len(chosen) < 6:
        scores = {
            key: math.sqrt(share[key]) * min(apart(key, other) for other in chosen) for key in share
        }
        chosen.append(max(scores, key=scores.get))
    outcomes = plotting.choose_outcomes(journeys)
    shown = [tuple(routes.keys[outcome.number].tolist()) for outcome in outcomes]
    assert shown == sorted(chosen, key=lambda key: (key[0], -share[key]))
    assert [outcome.share for outcome in outcomes] == pytest.approx([share[key] for key in shown])


def test_a_policy_without_risk_or_with_few_outcomes():
    mission = Exploration(map=WALL, horizon=3, degree=1)
    single = plotting.follow_policy(plan_by_rule(mission, lambda state: "N"), mission)
    (outcome,) = plotting.choose_outcomes(single)
    assert outcome.words == "hardly any risk, to the north, after a fair sample; fair ones follow"
    assert find_routes(single).kind.tolist() == [FREE]
    assert outcome.numbers.endswith("probability 100 % (100 % such)")
    plotting.plot_outcomes(single)


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        (("E", "E", "E"), "through the gap at (3, 2) at step 2"),
        (("NE", "SE", "NE"), "through the gap at (3, 2) at step 2"),  # a corner, but on
        (("NE", "SE", "SW"), "into the gap at (3, 2) at step 2 and back"),
        (("SE", "NE", "NW"), "into the gap at (3, 2) at step 2 and back"),
        (("N", "SE", "E"), "into the gap at (3, 2) at step 3, after"),  # it ends there
        (("N", "N", "N"), "hardly any risk, to the north"),
    ],
)
def test_ways_through_a_gap(moves, words):
    area = replace(WALL, start=(1, 2))
    mission = Exploration(map=area, horizon=3, degree=1)
    plan = plan_by_rule(mission, lambda state: moves[len(state.path) - 1])
    journeys = plotting.follow_policy(plan, mission)
    assert plotting.describe_outcome(journeys, 0).words.startswith(words)


def test_a_journey_that_ends_beside_a_gap():
    mission = Exploration(map=replace(WALL, start=(1, 2)), horizon=2, degree=1)
    ways = (("E", "E"), ("N", "E"), ("NE", "N"))
    members = [
        plan_by_rule(mission, lambda state, way=way: way[len(state.path) - 1]) for way in ways
    ]
    journeys = plotting.follow_policy(RandomisedPolicy(members, [0.5, 0.3, 0.2]), mission)
    assert [outcome.words for outcome in plotting.choose_outcomes(journeys)] == [
        "into the gap at (3, 2) at step 2, after fair samples; fair ones from there on",
        "up to the gap at (3, 2) and no further, after fair samples",
        "turned away from the gap at (3, 2) at step 1, after fair samples, then to the north",
    ]


def test_a_risk_beside_one_obstacle_is_no_gap():
    area = Map(5, 3, (0, 1), [Obstacle.rectangle(1.5, 2.5, 1.15, 9)])
    mission = Exploration(map=area, horizon=3, degree=1)
    journeys = plotting.follow_policy(plan_by_rule(mission, lambda state: "E"), mission)
    words = plotting.describe_outcome(journeys, 0).words
    assert words == "past the obstacle at (2, 1) at step 2, after fair samples; fair ones " + (
        "from there on"
    )
