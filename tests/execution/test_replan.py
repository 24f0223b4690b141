"""Plans that change on the way keep what was promised at the start."""

from __future__ import annotations

import copy
import math
import pickle
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

import vulcan
from tests.helpers.tables import REWARDS, SEEDS, Table, random_bound, random_table
from tests.helpers.wholes import Adversary, put_together
from vulcan import Outcome, Start
from vulcan.domains import Bandit, Exploration, TreasureGrid
from vulcan.execution.replan import open_account
from vulcan.numerics import TOLERANCE
from vulcan.policy import Run
from vulcan.solvers.finding import Worth
from vulcan.testing import check_compiled

SAMPLING: list[Any] = [vulcan.LocalVulcan(), vulcan.Vulcan()]
PLANNERS: list[Any] = [vulcan.Automatic(), vulcan.ForwardSearch(), *SAMPLING]

BOUNDS = [
    vulcan.Constant(0.1),
    vulcan.Linear(0.05, 0.02),
    vulcan.PiecewiseLinear([(0, 0), (1, 0.1), (2, 0.14), (4, 0.15)]),
    vulcan.parse("0.1 * sqrt(x + 1)"),
    vulcan.Concave(lambda reward: 0.3 - 0.3 * math.exp(-reward)),
]


def draw_tempting(random: Random) -> Table:
    """Return a model in which much can be earned by risks; failures may pay as well."""
    table: dict[Any, dict[str, list[Outcome]]] = {}
    for state in range(3):
        table[state] = {}
        for action in "abc"[: random.choice([2, 2, 3])]:
            risk = random.choice([0.0, 0.01, 0.05, 0.1])
            pay = random.choice([0.0, 0.5, 1.0]) + 10 * risk * random.random()
            first, second = random.sample(range(3), 2)
            share = random.choice([0.1, 0.5, 0.8])
            table[state][action] = [
                Outcome((1 - risk) * share, pay, first, "one"),
                Outcome((1 - risk) * (1 - share), pay / 2, second, "other"),
                Outcome.failure(risk, random.choice([0.0, -1.0, 1.0])),
            ]
    return Table(table, random.choice([2, 3, 3]), random.choice([1.0, 1.0, 0.8]))


def draw_problem(random: Random) -> vulcan.Problem:
    """Return a problem: rewards of either sign, merging states or not, a start of any kind."""
    tempting = random.random() < 0.7
    table = draw_tempting(random) if tempting else random_table(random, REWARDS, True)
    table.merges = random.random() < 0.7
    if table.merges and random.random() < 0.3:
        there = [Outcome(0.5, random.choice(REWARDS), state) for state in (0, len(table.table) - 1)]
        table.start = Start({"draw": there, "stay": [Outcome(1.0, 0.0, 0)]})
    return vulcan.Problem(table, random.choice(BOUNDS) if tempting else random_bound(random))


def replan_by(random: Random, problem: vulcan.Problem, counts: list[int]) -> Any:
    """Return what replans a run now and then, by one planner or another."""
    chance = random.choice([0.4, 0.75])

    def replanner(run: Run) -> None:
        while random.random() < chance:
            solver = random.choice(PLANNERS)
            if random.random() < 0.7:
                weight = run.reader.weights[run.level]
                least = run.reward_ahead / weight if weight else -math.inf
                solver = Adversary(random.randrange(1 << 30), random.random() < 0.8, least)
            limits = {"samples": 50} if solver in SAMPLING else {}
            bound = problem.risk_bound
            counts[vulcan.replan(run, solver, risk_bound=bound, **limits).changed] += 1

    return replanner


def solve_first(random: Random, problem: vulcan.Problem) -> vulcan.Result:
    """Return a plan to begin with, most often one that is far from the best."""
    poor = Adversary(random.randrange(1 << 30), daring=random.random() < 0.2)
    return vulcan.solve(problem, random.choice([poor, poor, vulcan.Lagrangian()]))


@settings(max_examples=50)
@given(seed=SEEDS)
def test_any_replanning_keeps_the_promise_of_the_whole(seed: int) -> None:
    random = Random(seed)
    problem = draw_problem(random)
    first = solve_first(random, problem)
    if first.policy is None or not len(first.policy):
        return
    whole = put_together(first.policy.start(), replan_by(random, problem, [0, 0]))
    before, after = (
        vulcan.certify(problem, policy, exact=True) for policy in (first.policy, whole)
    )
    assert after.reward >= before.reward - 1e-12
    assert after.slack >= min(before.slack, 0) - TOLERANCE
    assert after.safe == before.safe


def test_replans_of_the_property_test_change_plans() -> None:
    counts = [0, 0]
    for seed in range(30):
        random = Random(seed)
        problem = draw_problem(random)
        first = solve_first(random, problem)
        if first.policy is not None and len(first.policy):
            put_together(first.policy.start(), replan_by(random, problem, counts))
    assert counts[True] > 15


def start_poorly(model: Any, bound: Any, **limits: Any) -> Run:
    """Return a run of a plan that leaves much to be improved."""
    return vulcan.solve(vulcan.Problem(model, bound), Adversary(1, False), **limits).policy.start()


def test_a_better_plan_is_followed_and_a_run_goes_on_with_it() -> None:
    run = start_poorly(Bandit(3), "0.002 * x")
    run.observe(0)
    before = Worth(run.reward_ahead, run.risk)
    done = vulcan.replan(run)
    assert done.changed
    assert done.kept
    assert done.before == before
    assert done.after == Worth(run.reward_ahead, run.risk)
    assert run.reward_ahead > before.reward
    again = vulcan.replan(run)
    assert (again.changed, again.before, again.after) == (False, done.after, done.after)
    while not run.finished:
        run.observe(0)
    assert (run.step, len(run.history)) == (3, 3)
    with pytest.raises(vulcan.errors.PolicyError, match="nothing left to plan"):
        vulcan.replan(run)


def test_randomised_policies_are_replanned_under_the_promise_of_the_whole() -> None:
    grid = TreasureGrid(6)
    problem = vulcan.Problem(grid, 0.05)
    result = vulcan.solve(problem, vulcan.Automatic(randomised=True))
    run = result.policy.start(seed=1)
    vulcan.replan(run)
    whole = Worth(result.certificate.reward, result.certificate.risk)
    assert run.whole is result.policy
    expected = open_account(problem.risk_bound, whole)
    assert run.account.rate == expected.rate
    assert run.account.slack >= -TOLERANCE


def test_a_randomised_continuation_is_drawn_in_each_mission_anew() -> None:
    """The promise is one about the mean: the same draw in all missions would break it."""
    dare = [Outcome(0.5, 10.0, "end"), Outcome.failure(0.5)]
    stop = [Outcome(1.0, 0.0, "end")]
    problem = vulcan.Problem(Table({0: {"stop": stop, "dare": dare}}), 0.2)
    run = vulcan.solve(problem, Adversary(1, False)).policy.start()
    assert run.risk == 0
    drawn = []
    for _ in range(100):
        mission = copy.copy(run)
        done = vulcan.replan(mission, vulcan.baselines.LinearProgram())
        assert done.changed
        assert done.after.risk == pytest.approx(0.2)
        drawn.append(mission.risk)
    assert set(drawn) == {0.0, 0.5}


def test_states_that_end_a_mission_belong_to_the_rest_of_it() -> None:
    risky = [Outcome.failure(7e-9), Outcome(0.999999993, 1.0, 2)]
    table = {
        0: {"a": [Outcome(0.1, 0.0, 1, "low"), Outcome(0.9, 1.0, 1, "high")]},
        1: {"a": [Outcome(1.0, 0.0, 2)], "b": risky},
        2: {},
    }
    bound = vulcan.Concave(lambda reward: 0.0 if reward > 0 else -math.inf)
    problem = vulcan.Problem(Table(table, horizon=3, merges=False), bound)
    run = vulcan.solve(problem, vulcan.Automatic()).policy.start()
    vulcan.replan(run, risk_bound=bound)
    run.observe(next(iter(run.expected)))
    assert not vulcan.replan(run, risk_bound=bound).changed


def test_a_limit_that_is_refused_changes_nothing() -> None:
    run = start_poorly(Bandit(2), 0.1)
    with pytest.raises(vulcan.errors.OptionError, match="time_limit"):
        vulcan.replan(run, risk_bound=0.5, time_limit=-1)
    assert run.account is None


def test_a_bound_without_a_text_has_to_be_given() -> None:
    bound = vulcan.Concave(lambda reward: 0.002 * reward)
    run = start_poorly(Bandit(2), bound)
    with pytest.raises(vulcan.errors.OptionError, match="risk_bound="):
        vulcan.replan(run)
    for other in (1.0, vulcan.Concave(bound.function)):
        with pytest.raises(vulcan.errors.OptionError, match="was made for the risk bound Concave"):
            vulcan.replan(run, risk_bound=other)
    assert vulcan.replan(run, risk_bound=bound).changed


def test_a_policy_from_a_file_keeps_the_bound_of_its_first_replan(tmp_path: Path) -> None:
    bandit, bound = Bandit(6), vulcan.Concave(lambda reward: 0.002 * reward)
    result = vulcan.solve(vulcan.Problem(bandit, bound), vulcan.Automatic(randomised=True))
    pickle.loads(pickle.dumps(result.policy)).save(tmp_path / "plan.vulcan")
    run = vulcan.Policy.load(tmp_path / "plan.vulcan").bind(bandit).start()
    assert vulcan.replan(run, risk_bound=bound).kept
    with pytest.raises(vulcan.errors.OptionError, match="first replanned for the risk bound Conc"):
        vulcan.replan(run, risk_bound=1.0)


@pytest.mark.parametrize("other", [1.0, "0.0021 * x", "0.001 * x", vulcan.Concave(math.sqrt)])
def test_a_bound_that_the_policy_was_not_made_for_is_refused(other: Any) -> None:
    run = start_poorly(Bandit(4), "0.002 * x")
    run.observe(0)
    before = dict(vars(run))
    with pytest.raises(vulcan.errors.OptionError, match=r"was made for the risk bound 0\.002 \* x"):
        vulcan.replan(run, risk_bound=other)
    assert vars(run) == before
    assert vulcan.replan(run, risk_bound="x / 500").kept
    with pytest.raises(vulcan.errors.OptionError, match="solve anew"):  # not only at the first time
        vulcan.replan(run, risk_bound=other)


def test_array_models_are_replanned_in_their_arrays() -> None:
    model = vulcan.model.ArrayModel(
        [0, 0, 0, 1, 1, 1, 2],
        [0, 1, 1, 0, 1, 1, 0],
        [1, 1, -1, 2, 2, -1, 2],
        [1.0, 0.9, 0.1, 1.0, 0.9, 0.1, 1.0],
        [1.0, 3.0, 0.0, 1.0, 3.0, 0.0, 0.1],
        horizon=4,
        action_labels=["walk", "run"],
    )
    run = start_poorly(model, 0.1)
    run.observe(state=1)
    before = run.reward_ahead
    done = vulcan.replan(run)
    assert isinstance(done.result.problem.model, vulcan.model.ArrayModel)
    assert done.result.problem.model.fingerprint != model.fingerprint
    assert run.reward_ahead >= before
    while not run.finished:
        run.observe(state=next(o.state for o in model.outcomes(run.state, run.action)))


def test_the_rest_of_a_compiled_mission_is_compiled() -> None:
    mission = Exploration(map="wide", horizon=4)
    run = vulcan.solve(vulcan.Problem(mission, "0.002 * x"), samples=400).policy.start()
    run.measure(1.31)
    done = vulcan.replan(run, samples=2000)
    rest = done.result.problem.model
    assert rest.compiled is not None
    assert check_compiled(rest).ok
    state = run.state
    assert rest.reward_to_go_bound(state, 0) == run.reader.model.reward_to_go_bound(state, 1)
    assert done.result.upper_bound is not None
    assert done.after.reward >= done.before.reward


def test_the_rest_of_a_compiled_bandit_is_compiled() -> None:
    bandit = Bandit(5, merges=False)
    run = vulcan.solve(vulcan.Problem(bandit, "0.002 * x"), samples=400).policy.start()
    run.observe(0)
    run.observe(0)
    done = vulcan.replan(run, samples=400)
    report = check_compiled(done.result.problem.model)
    assert report.ok, report
    assert (report.finished, bandit.count_paid(run.state)) == (True, [2, 0, 0, 0, 0, 0])


def test_a_frontier_is_planned_when_it_is_reached() -> None:
    problem = vulcan.Problem(Bandit(6, merges=False), "0.002 * x")
    policy = vulcan.solve(problem, vulcan.LocalVulcan(complete=False), samples=20).policy
    assert not policy.complete
    run = policy.start()
    while not run.unplanned:
        run.observe(0)
    done = vulcan.replan(run)
    assert (done.changed, done.before, run.unplanned) == (True, None, False)
    assert run.risk <= 0.002 * run.reward_ahead + 0.002 * vulcan.certify(problem, policy).reward


HARBOUR = Table(
    {
        "sea": {"sail": [Outcome(0.99, 1.0, "sea"), Outcome.failure(0.01)]},
        "ice": {
            "push": [Outcome(0.5, 5.0, "sea"), Outcome.failure(0.5)],
            "saw": [Outcome(0.9, 0.0, "sea"), Outcome.failure(0.1)],
        },
    },
    horizon=4,
    start="sea",
)


def test_after_leaving_its_plan_a_run_gets_the_safest_without_a_promise() -> None:
    run = vulcan.solve(vulcan.Problem(HARBOUR, 0.05)).policy.start()
    run.leave("ice")
    done = vulcan.replan(run)
    assert (done.changed, done.kept, done.before) == (True, False, None)
    assert (run.action, run.left_plan) == ("saw", True)
    assert run.risk == pytest.approx(1 - 0.9 * 0.99**2)
    assert not vulcan.replan(run).kept


def test_a_run_copied_before_replanning_keeps_its_plan() -> None:
    run = start_poorly(Bandit(3), "0.002 * x")
    other = copy.copy(run)
    vulcan.replan(run)
    assert other.policy is not run.policy
    assert other.account is None
