"""Plans that grow under several constraints, over histories that never merge."""

from __future__ import annotations

import random
from functools import cache

import pytest

import vulcan
from vulcan import Cost, Outcome, Risk, RiskAhead
from vulcan.errors import PolicyError
from vulcan.sampling.groups import compress, expand
from vulcan.sampling.growth import Growth


class Merged:
    """A small random model that can stop at any time; its states merge."""

    def __init__(self, seed: int, horizon: int, refund: float = 0.0) -> None:
        self.horizon = horizon
        stream = random.Random(seed)
        self._rows = {
            (s, a): self._draw(stream, refund) for s in range(3) for a in ("left", "right")
        }

    @staticmethod
    def _draw(stream: random.Random, refund: float):
        weights = [stream.randint(1, 4) for _ in range(stream.randint(2, 3))]
        fails = stream.choice((0.0, 0.0, 0.2))
        rows = [Outcome.failure(fails / (sum(weights) + fails))] if fails else []
        for k, weight in enumerate(weights):
            costs = {"fuel": stream.uniform(0, 3) - refund}
            chance, reward = weight / (sum(weights) + fails), stream.uniform(0, 4)
            event = stream.choice((None, None, "late"))
            after = stream.randint(0, 2)
            rows.append(Outcome(chance, reward, after, f"o{k}", costs=costs, event=event))
        return rows

    def initial_state(self):
        return 0

    def actions(self, state):
        return [] if state == "end" else ["left", "right", "stop"]

    def outcomes(self, state, action):
        return [Outcome(1.0, 0.0, "end")] if action == "stop" else self._rows[state, action]


class Histories(Merged):
    """The same, with the whole history as the state."""

    def initial_state(self):
        return (0,)

    def actions(self, state):
        return super().actions(state[-1])

    def outcomes(self, state, action):
        return [
            o
            if o.fails
            else Outcome(
                o.probability,
                o.reward,
                (*state, action, o.state),
                o.label,
                costs=o.costs,
                event=o.event,
            )
            for o in super().outcomes(state[-1], action)
        ]


LIMITS = [Cost("fuel", 4.5), Risk(0.3, event="late")]


@cache
def solve_merged(seed, refund=0.0):
    return vulcan.solve(vulcan.Problem(Merged(seed, 7, refund), "0.01*x", constraints=LIMITS))


@pytest.mark.parametrize(("seed", "share"), [(5, 0.9), (6, 0.9)])
def test_plans_keep_all_limits_and_come_close_to_the_bound_of_the_twin_that_merges(seed, share):
    problem = vulcan.Problem(Histories(seed, 7), "0.01*x", constraints=LIMITS)
    result = vulcan.solve(problem, Growth(), samples=6_000)
    upper = solve_merged(seed).upper_bound
    assert result.safe
    assert share * upper <= result.certificate.reward <= upper + 1e-9
    exact = vulcan.certify(problem, result.policy, exact=True)
    assert exact.safe
    for rough, fine in zip(result.certificate.constraints, exact.constraints, strict=True):
        assert rough.value == pytest.approx(float(fine.value), abs=1e-9)


@pytest.mark.parametrize("seed", [0, 5, 6])
def test_limits_that_nothing_exceeds_change_nothing(seed):
    model = Histories(seed, 7)
    alone = vulcan.solve(vulcan.Problem(model, "0.01*x"), Growth(), samples=5_000)
    loose = vulcan.Problem(
        model, "0.01*x", constraints=[Cost("fuel", 100), Risk(1.0, event="late")]
    )
    several = vulcan.solve(loose, Growth(), samples=5_000)
    assert several.certificate.reward >= 0.97 * alone.certificate.reward
    assert len(several.certificate.constraints) == 2


def test_costs_may_be_negative():
    problem = vulcan.Problem(
        Histories(5, 7, refund=1.5), "0.01*x", constraints=[Cost("fuel", -0.5)]
    )
    result = vulcan.solve(problem, Growth(), samples=6_000)
    (fuel,) = result.certificate.constraints
    assert result.safe
    assert fuel.value <= -0.5 + 1e-9
    assert result.certificate.reward > 0


def test_the_default_solver_grows_where_histories_never_merge():
    model = Histories(5, 12)
    result = vulcan.solve(vulcan.Problem(model, "0.01*x", constraints=LIMITS), time_limit=3)
    assert result.safe
    assert "grown" in result.explanation
    assert result.certificate.reward > 5


def test_a_plan_that_is_saved_has_its_charges(tmp_path):
    problem = vulcan.Problem(Histories(5, 5), "0.01*x", constraints=LIMITS)
    policy = vulcan.solve(problem, Growth(), samples=2_000).policy
    policy.save(tmp_path / "plan.vulcan")
    loaded = vulcan.Policy.load(tmp_path / "plan.vulcan")
    assert set(loaded.charges) == {"fuel", "risk(late)"}
    other = vulcan.Problem(Histories(5, 5, refund=0.25), "0.01*x", constraints=LIMITS)
    with pytest.raises(PolicyError, match="fuel"):
        vulcan.certify(other, loaded)


@pytest.mark.parametrize(
    ("seed", "horizon", "limits"),
    [
        (8, 3, ("fuel <= 2.17", "risk(late) <= 0.14")),
        (30, 3, ("fuel <= 3.25", "risk(late) <= 0.42")),
    ],
)
def test_a_tree_that_is_small_is_searched_wholly(seed, horizon, limits):
    bound = {8: "0.01*x", 30: "0.03*x"}[seed]
    best = vulcan.solve(vulcan.Problem(Merged(seed, horizon), bound, constraints=limits))
    problem = vulcan.Problem(Histories(seed, horizon), bound, constraints=limits)
    grown = vulcan.solve(problem, Growth(), samples=3_000)
    assert grown.certificate.reward >= 0.98 * best.certificate.reward > 1


@pytest.mark.parametrize(
    ("seed", "horizon", "limits"),
    [(0, 5, ("risk ahead <= 0.08",)), (25, 5, ("risk ahead <= 0.05", "fuel <= 7"))],
)
def test_caps_hold_at_every_history_and_cost_no_more_than_they_must(seed, horizon, limits):
    best = vulcan.solve(vulcan.Problem(Merged(seed, horizon), 1.0, constraints=limits), gap=0.02)
    problem = vulcan.Problem(Histories(seed, horizon), 1.0, constraints=limits)
    grown = vulcan.solve(problem, Growth(), samples=2_000)
    free = vulcan.solve(vulcan.Problem(problem.model, 1.0), Growth(), samples=2_000)
    ahead = grown.certificate.constraints[0]
    assert grown.safe
    assert (
        0 < ahead.value <= ahead.allowed < vulcan.certify(problem, free.policy).constraints[0].value
    )
    assert 0.95 * best.certificate.reward <= grown.certificate.reward <= best.upper_bound + 1e-9


class Detour:
    """A safe way home that leads past a gamble: what ends the mission breaks a cap later on."""

    horizon = 3

    def initial_state(self):
        return ()

    def actions(self, history):
        return {0: ["wait", "walk"], 1: ["run"]}.get(len(history), [])

    def outcomes(self, history, action):
        if action == "run":
            failure = Outcome.failure(0.5)
            return [Outcome(0.5, 1.0, (*history, "home")), failure]
        likely = 0.9 if action == "walk" else 0.0
        return [
            Outcome(1 - likely, 2.0, (*history, action)),
            *([Outcome(likely, 0.0, (action, "home"))] if likely else []),
        ]


def test_a_cap_looks_beyond_what_is_unlikely():
    capped = vulcan.Problem(Detour(), 0.2, constraints=[RiskAhead(0.3)])
    assert not vulcan.solve(capped, Growth(), samples=200).safe
    roomy = vulcan.Problem(Detour(), 0.2, constraints=[RiskAhead(0.6)])
    result = vulcan.solve(roomy, Growth(), samples=200)
    assert result.safe
    assert result.certificate.constraints[0].value == pytest.approx(0.5)
    assert result.certificate.risk == pytest.approx(0.05)


def test_limits_next_to_nothing_have_prices():
    problem = vulcan.Problem(Histories(5, 4), 1.0, constraints=["fuel <= 1e-308*x"])
    result = vulcan.solve(problem, Growth(), samples=500)
    assert result.safe


@pytest.mark.parametrize("risk", [-1e6, -2.0, -1e-6, 0.0, 1e-8, 0.3, 50.0, 1e6])
def test_priced_sums_of_any_sign_are_read_back(risk):
    assert expand(compress(risk)) == pytest.approx(risk, rel=1e-9, abs=1e-12)
