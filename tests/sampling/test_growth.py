"""Plans that grow from the root, over histories that never merge."""

from __future__ import annotations

import heapq
import itertools
import math
import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome
from vulcan.certificate.certify import Certifier
from vulcan.kernels.growth import CLOSED, UNREACHED, PlanArrays, choose_plan
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import StopReason, listen
from vulcan.sampling import growth
from vulcan.sampling.groups import ActionEvaluator
from vulcan.sampling.growth import GrowingPlan, Growth
from vulcan.sampling.plan_tree import find_default


@dataclass(frozen=True)
class Well:
    """Draw from a well whose level readings tell; stop whenever you like. The level is enough."""

    horizon: int = 4
    merged: bool = False

    def initial_state(self) -> Any:
        return 2 if self.merged else ()

    def actions(self, state: Any) -> list[str]:
        return [] if state == "ended" or state[-1:] == ("ended",) else ["draw", "pump", "stop"]

    def level(self, state: Any) -> int:
        level = 2
        for reading in state:
            level = reading
        return level

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        level = state if self.merged else self.level(state)
        if action == "stop":
            return [Outcome(1.0, 0.1, self.after(state, "ended"), "ended")]
        risk = (0.002 if action == "draw" else 0.01) * (5 - level)
        gain = 1.0 if action == "draw" else 2.0
        weights = [math.exp(-((k - level + gain / 2) ** 2)) for k in range(5)]
        chances = [(1 - risk) * weight / sum(weights) for weight in weights]
        found = [
            Outcome(p, gain * (k + 1) / 3, self.after(state, k), str(k))
            for k, p in enumerate(chances)
        ]
        return [*found, Outcome.failure(1 - math.fsum(chances))]

    def after(self, state: Any, reading: Any) -> Any:
        if self.merged:
            return reading if reading == "ended" else int(reading)
        return (*state, reading)


class WellMerged(Well):
    def actions(self, state: Any) -> list[str]:
        return [] if state == "ended" else ["draw", "pump", "stop"]


BOUND = "0.012*x"


def solve(samples: int, bound: str = BOUND, **parameters: Any) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(Well(**parameters), bound), Growth(), samples=samples)


def optimum(bound: str = BOUND, **parameters: Any) -> float:
    model = WellMerged(merged=True, **parameters)
    return float(vulcan.solve(vulcan.Problem(model, bound), gap=1e-3).certificate.reward)


def test_a_small_mission_is_planned_nearly_as_well_as_can_be() -> None:
    for bound in (BOUND, "0.5"):
        best, result = optimum(bound), solve(40_000, bound)
        assert result.safe
        assert result.policy.complete
        assert 0.97 * best <= result.certificate.reward <= best * 1.001


def test_more_samples_never_earn_less_and_the_first_plan_comes_soon() -> None:
    rewards = [solve(n, horizon=7).certificate.reward for n in (300, 1_000, 4_000, 16_000)]
    assert rewards[0] > 0.1  # better than to stop at once
    assert rewards == sorted(rewards)


def test_the_bound_is_spent_up_to_single_histories() -> None:
    result = solve(30_000, "0.004*x + 0.01", horizon=6)
    certificate = result.certificate
    assert certificate.safe
    assert certificate.risk > 0.98 * certificate.allowed


def test_the_same_samples_give_the_same_policy() -> None:
    assert solve(3_000, horizon=6).policy == solve(3_000, horizon=6).policy


class Forgetful(Well):
    """A model by whose answers a clock goes; answers that it gave before take long in the end."""

    clock, delay, repeated, seen = 0.0, 1e-3, 0, set[Any]()

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        kind = type(self)
        kind.repeated += (state, action) in kind.seen
        kind.seen.add((state, action))
        kind.clock += kind.delay if kind.repeated < 10_000 else 1.0
        return super().outcomes(state, action)


def test_a_certificate_without_end_leaves_a_plan_that_was_certified_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = solve(2_000, "0.5", horizon=8)
    monkeypatch.setattr(time, "perf_counter", lambda: Forgetful.clock)
    problem = vulcan.Problem(Forgetful(horizon=8), "0.5")
    result = vulcan.solve(problem, Growth(), time_limit=100)
    assert result.safe
    assert Forgetful.repeated > 10_000
    assert result.certificate.reward > first.certificate.reward


@pytest.mark.usefixtures("processor_clock")
def test_the_default_solver_grows_where_every_history_is_a_state() -> None:
    solve(300)  # kernels are loaded
    result = vulcan.solve(vulcan.Problem(Well(horizon=12), BOUND), time_limit=2.0)
    assert result.safe
    assert result.certificate.reward > 1
    assert "grown" in result.explanation


class Harbour(Well):
    """Nothing ends at once: "stop" only leads to the harbour, from which one more step ends."""

    def actions(self, state: Any) -> list[str]:
        if state[-1:] == ("ended",):
            return ["moor"]
        return [] if state[-1:] == ("moored",) else ["draw", "stop"]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if action == "moor":
            return [Outcome(1.0, 0.0, (*state, "moored"), "moored")]
        return super().outcomes(state, action)


def test_a_default_may_take_several_decisions() -> None:
    result = vulcan.solve(vulcan.Problem(Harbour(horizon=6), BOUND), Growth(), samples=5_000)
    assert result.safe
    assert result.certificate.reward > 0.5


class Endless(Well):
    def actions(self, state: Any) -> list[str]:
        return ["draw", "pump"]


def test_without_an_end_nothing_grows_and_the_result_says_why() -> None:
    result = vulcan.solve(vulcan.Problem(Endless(horizon=9), BOUND), Growth(), samples=5_000)
    assert result.policy is None
    assert "no action ends the mission" in result.explanation


class Default(Endless):
    def default_action(self, state: Any) -> str:
        return "wait"


class Claims(Endless):
    def default_action(self, state: Any) -> str:
        return "draw"

    def default_bounds(self, state: Any, step: int) -> tuple[float, float]:
        return 0.01 * (self.horizon - step), 0.0


@dataclass(frozen=True)
class Islands(Well):
    """The action that ends the mission has another name on each island."""

    def actions(self, state: Any) -> list[str]:
        ways = super().actions(state)
        return [*ways[:2], f"stop at {self.level(state) % 2}"] if ways else []

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        return super().outcomes(state, "stop" if action.startswith("stop") else action)


def test_what_ends_the_mission_may_have_other_names_in_other_states() -> None:
    problem = vulcan.Problem(Islands(horizon=6), BOUND)
    result = vulcan.solve(problem, Growth(), samples=4_000)
    assert result.certificate.reward > 0.9 * solve(4_000, horizon=6).certificate.reward


@dataclass(frozen=True)
class Kinds(Well):
    """Which actions there are differs from history to history."""

    def actions(self, state: Any) -> list[str]:
        ways = super().actions(state)
        return ways[random.Random(repr(state)).randrange(3) if state else 0 :]


def test_histories_whose_actions_differ_are_opened_by_their_own() -> None:
    first, more = (
        vulcan.solve(vulcan.Problem(Kinds(horizon=7), "0.9"), Growth(), samples=n)
        for n in (200, 2_000)
    )
    assert more.certificate.reward > first.certificate.reward > 0.1


@dataclass(frozen=True)
class Noise(Well):
    """Rewards are noise: what was learnt from some histories is wrong for others."""

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        luck = random.Random(repr((state, action))).random()
        found = super().outcomes(state, action)
        return [
            msgspec.structs.replace(o, reward=2 * luck) if action != "stop" else o for o in found
        ]


def test_histories_that_are_not_alike_are_opened_by_their_own_answers() -> None:
    model = Noise(horizon=7)
    result = vulcan.solve(vulcan.Problem(model, "0.9"), Growth(), samples=20_000)
    earned, seen, waiting = 0.0, 0, [(-1.0, 0, ())]
    while waiting and seen < 10_000:  # with half of the evaluations: the best action at once
        likely, _, state = heapq.heappop(waiting)
        ways = [model.outcomes(state, action) for action in ("draw", "pump")]
        best = max(ways, key=lambda way: sum(o.probability * o.reward for o in way))
        seen += len(ways)
        earned -= likely * sum(o.probability * o.reward for o in best)
        if len(state) + 1 < model.horizon:
            safe = (o for o in best if not o.fails)
            for o in safe:
                heapq.heappush(waiting, (likely * o.probability, seen, o.state))
    assert result.certificate.reward > 0.9 * earned


def test_a_slow_model_gets_a_plan_from_the_first_answers_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for seconds, least, solver in ((1.5, 0.1, Growth()), (9.0, 0.9, Growth()), (14.0, 0.9, None)):
        fresh = {"clock": 0.0, "delay": 0.03, "repeated": 0, "seen": set()}
        kind = type("Slow", (Forgetful,), fresh)
        monkeypatch.setattr(time, "perf_counter", lambda kind=kind: kind.clock)
        result = vulcan.solve(vulcan.Problem(kind(horizon=12), BOUND), solver, time_limit=seconds)
        assert result.safe
        assert result.certificate.reward >= least


def test_a_default_action_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(vulcan.VulcanError, match="default_action must be one of the actions"):
        vulcan.solve(vulcan.Problem(Default(horizon=9), BOUND), Growth(), samples=5_000)


class Lying(Well):
    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        outcomes = super().outcomes(state, action)
        return outcomes[1:] if len(state) == 2 and action == "draw" else outcomes


def test_a_lying_model_gets_an_error_that_names_the_state() -> None:
    with pytest.raises(vulcan.VulcanError, match=r"sum to .*state \("):
        vulcan.solve(vulcan.Problem(Lying(), BOUND), Growth(), samples=5_000)


class Breaking(Well):
    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if len(state) == 3:
            raise OSError("sensor lost")
        return super().outcomes(state, action)


def test_a_model_that_breaks_leaves_what_was_certified() -> None:
    result = vulcan.solve(vulcan.Problem(Breaking(horizon=6), BOUND), Growth(), samples=50_000)
    assert result.stopped_by == "error in the model"
    assert "sensor lost" in str(result.error)


@st.composite
def trees(draw: st.DrawFn) -> PlanArrays:
    """Draw histories: each has up to two openings with up to two children."""
    count = draw(st.integers(1, 7))
    numbers = st.floats(-4, 4)
    first_opening, next_opening, first_child, child_count = [-1] * count, [], [], []
    used = 1
    for n in range(count):
        for _ in range(draw(st.integers(0, 2))):
            children = min(draw(st.integers(0, 2)), count - used)
            next_opening.append(first_opening[n])
            first_opening[n] = len(first_child)
            first_child.append(used)
            child_count.append(children)
            used += children

    def real(size: int) -> Any:
        return np.array(draw(st.lists(numbers, min_size=size, max_size=size)), np.float64)

    def whole(numbers: list[int]) -> Any:
        return np.array(numbers, np.int32)

    edges = len(first_child)
    return PlanArrays(
        real(count),
        np.abs(real(count)),
        np.ones(count),
        whole(first_opening),
        whole(next_opening),
        real(edges),
        np.abs(real(edges)),
        whole(first_child),
        whole(child_count),
    )


def list_plans(tree: PlanArrays, n: int) -> list[tuple[float, float, int]]:
    """Return reward, risk and decisions of all plans from a history on."""
    plans = [(float(tree.close_reward[n]), float(tree.close_risk[n]), 1)]
    opening = int(tree.first_opening[n])
    while opening != CLOSED:
        first = int(tree.first_child[opening])
        children = range(first, first + int(tree.child_count[opening]))
        for parts in itertools.product(*(list_plans(tree, child) for child in children)):
            own = (float(tree.reward[opening]), float(tree.risk[opening]), 1)
            sums = [sum(column) for column in zip(own, *parts, strict=True)]
            plans.append((sums[0], sums[1], int(sums[2])))
        opening = int(tree.next_opening[opening])
    return plans


@given(trees(), st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([0.0, 0.3]))
def test_the_chosen_plan_is_the_best_of_all(tree, price, decision_price):
    count = len(tree.first_opening)
    values, chosen, found = np.zeros(count), np.zeros(count, np.int32), np.zeros(3)
    choose_plan(tree, price, decision_price, np.full_like(chosen, UNREACHED), values, chosen, found)
    best = max(
        reward - price * risk - decision_price * size for reward, risk, size in list_plans(tree, 0)
    )
    assert values[0] == pytest.approx(best)
    assert found[0] - price * found[1] - decision_price * found[2] == pytest.approx(best)


def test_a_bound_without_a_value_for_some_rewards() -> None:
    bound = vulcan.Concave(lambda x: 0.01 * math.sqrt(x - 0.05))
    result = vulcan.solve(vulcan.Problem(Well(horizon=5), bound), Growth(), samples=3_000)
    assert result.safe
    assert result.certificate.reward > 0.5


def test_a_plan_is_made_smaller_where_there_is_little_time_to_certify_it() -> None:
    problem = vulcan.Problem(Well(horizon=7), "0.004*x + 0.01")
    evaluator = ActionEvaluator(ModelReader(problem.model), lambda: False)
    plan = GrowingPlan(problem, evaluator, lambda state, actions: "stop")
    plan.grow(20_000)
    large = plan.best
    for most in (1_000, 100, 1):
        small = plan.choose_small(most)
        assert small.size <= most
        assert small.risk <= problem.risk_bound(small.reward) + 1e-12
        assert small.reward <= large.reward
    assert plan.choose_small(1_000).reward > plan.choose_small(100).reward > 0.1


class Uneven(Well):
    """Once the level is low, one reading less is possible, and one more failure in its place."""

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        outcomes = super().outcomes(state, action)
        if action != "stop" and self.level(state) == 0:
            last = outcomes[4]
            outcomes[4] = Outcome.failure(last.probability, last.reward, "dry")
        return outcomes


def test_groups_never_share_children_of_other_numbers() -> None:
    """A group used those of another with as many outcomes, of which more were safe."""
    result = vulcan.solve(vulcan.Problem(Uneven(horizon=6), "0.5"), Growth(), samples=8_000)
    assert result.safe


def make_toll() -> Table:
    """Getting there risks more than the bound leaves for a bold step after each of the readings."""

    def cross(gain: float) -> dict[str, list[Outcome]]:
        safe = [Outcome(0.049, gain, k) for k in range(20)]
        return {"cross": [*safe, Outcome.failure(0.02)], "stop": [Outcome(1.0, 0.1, "ended")]}

    table = {k: cross(2.0 + 0.01 * k) for k in range(20)}
    return Table({"here": cross(0.0), **table}, 2, start="here", merges=False)


def test_a_price_that_decides_the_whole_mission_is_left_to_the_histories_after_it() -> None:
    """One price of failure risked too much, and for a little more nothing was worth doing."""
    result = vulcan.solve(vulcan.Problem(make_toll(), 0.03), Growth(), samples=2_000)
    assert result.safe
    assert result.certificate.risk > 0.95 * 0.03
    assert result.certificate.reward > 1.0  # half of the histories after it; 0.1 to stop at once


@pytest.mark.parametrize("model", [Well(horizon=5), Harbour(horizon=5)], ids=["one", "several"])
def test_a_plan_that_is_written_out_earns_and_risks_what_was_chosen(model: Any) -> None:
    problem = vulcan.Problem(model, "0.004*x + 0.01")
    reader = ModelReader(model)
    default = find_default(ActionEvaluator(reader), vulcan.parse("1.0"))
    assert default is not None
    plan = GrowingPlan(problem, ActionEvaluator(reader, lambda: False), default)
    about = solve(300, horizon=5).policy.about
    about = msgspec.structs.replace(about, fingerprint=reader.fingerprint())
    for budget in (100, 1_000, 5_000):
        plan.grow(budget)
        best = plan.best
        assert best is not None
        policy = plan.tree.write(best.openings, about)
        certificate = vulcan.certify(problem, policy)
        assert certificate.complete
        assert len(policy) == best.size
        assert certificate.reward == pytest.approx(best.reward)
        assert certificate.risk == pytest.approx(best.risk)


def test_ties_at_every_price_do_not_keep_a_search_from_its_end() -> None:
    model = Table({0: {"wait": [Outcome(1.0, 0.0, 0)], "drop": [Outcome.failure(1.0)]}}, horizon=2)
    assert vulcan.solve(vulcan.Problem(model, 0), Growth(), samples=2_000).certificate.risk == 0


def test_a_request_in_a_certificate_leaves_a_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requested: list[int] = []

    class Interrupted(Certifier):
        """Certifies small plans; in the middle of a large one Ctrl-C comes."""

        def certify_next(self, policy: Any) -> Any:
            if len(policy) > 5_000 and not requested:
                requested.append(len(policy))
            return super().certify_next(policy)

    monkeypatch.setattr(growth, "Certifier", Interrupted)
    with listen(lambda: bool(requested)):
        result = vulcan.solve(vulcan.Problem(Well(12), BOUND), Growth(), samples=40_000)
    assert requested
    assert result.safe
    assert result.stopped_by is StopReason.INTERRUPTED
    # That plan, or another one for which a second suffices.
    assert len(result.policy) > 1


@pytest.mark.parametrize("kind", ["well", "claims"])
def test_a_certifier_asks_nothing_twice_and_says_what_certify_says(kind: str) -> None:
    model: Any = Well(horizon=6) if kind == "well" else Claims(horizon=6)
    problem = vulcan.Problem(model, "0.1 + 0.02*x")
    plans = [vulcan.solve(problem, Growth(), samples=n).policy for n in (300, 2_000, 5_000)]
    calls: Counter[Any] = Counter()

    class Counting(type(model)):  # type: ignore[misc]
        """Counts its answers."""

        def outcomes(self, state: Any, action: str) -> list[Outcome]:
            calls[state, action] += 1
            return super().outcomes(state, action)

        def default_bounds(self, state: Any, step: int) -> Any:
            calls[state, step] += 1
            return super().default_bounds(state, step)

    Counting.__name__ = type(model).__name__  # it is the model that the plans were made for
    certifier = Certifier(vulcan.Problem(Counting(horizon=6), "0.1 + 0.02*x"))
    for plan in (*plans, plans[0]):
        before = calls.total()
        assert certifier.certify_next(plan) == vulcan.certify(problem, plan)
    assert calls.total() == before  # the first plan again
    assert calls.total() < len(calls) + 100  # at the start, where models are compared


@pytest.mark.parametrize("samples", [1, 8, 33])
def test_few_samples_suffice_to_close_the_root(samples: int) -> None:
    """A limit in the middle of the first plan left none, and a search for its price without end."""
    result = vulcan.solve(vulcan.Problem(Well(horizon=6), BOUND), Growth(), samples=samples)
    assert result.safe
    assert result.certificate.complete
