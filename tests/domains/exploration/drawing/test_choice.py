"""The routes of journeys, and the choice of telling ones."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.rule_policies import (
    WALL,
    find_journey,
    plan_by_rule,
)
from vulcan import OptionError, RandomisedPolicy
from vulcan.domains.exploration import Exploration, Map, Obstacle, drawing
from vulcan.domains.exploration.drawing.routes import AWAY, FREE, INTO, THROUGH, TURNED, find_routes


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
    outcomes = drawing.choose_outcomes(journeys)
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
    for outcome in drawing.choose_outcomes(journeys):
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
    shares = [drawing.describe_outcome(journeys, number).share for number in numbers]
    assert len(shares) == len(keys)
    assert sum(shares) == pytest.approx(1 - journeys.risk, rel=1e-12)


def test_the_most_probable_group_is_always_shown(journeys):
    _, group = np.unique(find_routes(journeys).keys, axis=0, return_inverse=True)
    shares = np.bincount(group.ravel(), journeys.probability)
    (one,) = drawing.choose_outcomes(journeys, 1)
    assert one.share == pytest.approx(shares.max())
    few, many = (drawing.choose_outcomes(journeys, count) for count in (3, 200))
    assert {outcome.number for outcome in few} <= {outcome.number for outcome in many}
    assert len({outcome.number for outcome in many}) == min(200, len(journeys))
    with pytest.raises(OptionError, match="count must be a whole number from 1, not 0"):
        drawing.choose_outcomes(journeys, 0)


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
    outcomes = drawing.choose_outcomes(journeys)
    shown = [tuple(routes.keys[outcome.number].tolist()) for outcome in outcomes]
    assert shown == sorted(chosen, key=lambda key: (key[0], -share[key]))
    assert [outcome.share for outcome in outcomes] == pytest.approx([share[key] for key in shown])


def test_a_policy_without_risk_or_with_few_outcomes():
    mission = Exploration(map=WALL, horizon=3, degree=1)
    single = drawing.follow_policy(plan_by_rule(mission, lambda state: "N"), mission)
    (outcome,) = drawing.choose_outcomes(single)
    assert outcome.words == "hardly any risk, to the north, after a fair sample; fair ones follow"
    assert find_routes(single).kind.tolist() == [FREE]
    assert outcome.numbers.endswith("probability 100 % (100 % such)")
    drawing.plot_outcomes(single)


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
    journeys = drawing.follow_policy(plan, mission)
    assert drawing.describe_outcome(journeys, 0).words.startswith(words)


def test_a_journey_that_ends_beside_a_gap():
    mission = Exploration(map=replace(WALL, start=(1, 2)), horizon=2, degree=1)
    ways = (("E", "E"), ("N", "E"), ("NE", "N"))
    members = [
        plan_by_rule(mission, lambda state, way=way: way[len(state.path) - 1]) for way in ways
    ]
    journeys = drawing.follow_policy(RandomisedPolicy(members, [0.5, 0.3, 0.2]), mission)
    assert [outcome.words for outcome in drawing.choose_outcomes(journeys)] == [
        "into the gap at (3, 2) at step 2, after fair samples; fair ones from there on",
        "up to the gap at (3, 2) and no further, after fair samples",
        "turned away from the gap at (3, 2) at step 1, after fair samples, then to the north",
    ]


def test_a_risk_beside_one_obstacle_is_no_gap():
    area = Map(5, 3, (0, 1), [Obstacle.rectangle(1.5, 2.5, 1.15, 9)])
    mission = Exploration(map=area, horizon=3, degree=1)
    journeys = drawing.follow_policy(plan_by_rule(mission, lambda state: "E"), mission)
    words = drawing.describe_outcome(journeys, 0).words
    assert words == "past the obstacle at (2, 1) at step 2, after fair samples; fair ones " + (
        "from there on"
    )
