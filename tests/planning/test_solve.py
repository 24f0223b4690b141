"""The one way to solve: limits, progress, interruption, results, and checks of what was found."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import re
import signal
import threading
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

import vulcan
from tests.helpers.mixtures import mix_bandit
from tests.helpers.tables import Table, one_action
from vulcan import Outcome
from vulcan.cli.documents import describe_result
from vulcan.domains import Bandit, TreasureGrid
from vulcan.errors import DisagreementError, ModelError
from vulcan.planning import Progress, Status
from vulcan.solvers.base import load_solvers

LINEAR = vulcan.Linear(0.002)
FORWARD_SEARCH = vulcan.ForwardSearch()


def test_limit_of_histories_returns_the_best_so_far() -> None:
    problem = vulcan.Problem(Bandit(8), LINEAR)
    whole = vulcan.solve(problem, FORWARD_SEARCH)
    part = vulcan.solve(
        problem, FORWARD_SEARCH, limits=vulcan.Limits(histories=whole.statistics.histories // 2)
    )
    assert part.status is Status.STOPPED
    assert "limit of histories" in part.explanation
    assert part.statistics.histories == pytest.approx(whole.statistics.histories // 2, abs=10)
    assert part.safe
    assert part.certificate.complete
    assert part.certificate.reward <= whole.certificate.reward
    # Stopping pays 0.25 a step and is tried first, so that even the first answer is that good.
    assert part.certificate.reward >= 0.25 * 8
    none = vulcan.solve(problem, FORWARD_SEARCH, limits=vulcan.Limits(histories=0))
    assert none.status is Status.STOPPED
    assert none.policy is None
    assert none.certificate is None
    assert "no complete policy yet" in none.explanation


@pytest.mark.parametrize(
    "limits",
    [
        {"time_limit": -1},
        {"time_limit": float("nan")},
        {"time_limit": "soon"},
        {"samples": -1},
        {"samples": 2.5},
        {"samples": "3"},
    ],
)
def test_limits_that_make_no_sense(limits: dict[str, float]) -> None:
    with pytest.raises(vulcan.errors.OptionError, match="at least 0"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), **limits)


def test_terminals_do_not_keep_a_search_from_stopping() -> None:
    # Every action ends in a known terminal: nothing counts as a history, yet there is work.
    names = [f"end {k}" for k in range(300)]
    ends = {name: [Outcome(1.0, 0.0, "end")] for name in names}
    moves = {f"move {k}": [Outcome(1.0, 0.0, k)] for k in range(300)}
    table = Table({"root": moves, **{k: {**ends, **moves} for k in range(300)}}, 4, start="root")
    result = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), FORWARD_SEARCH, time_limit=1.0)
    assert result.stopped_by == "time limit"
    assert result.statistics.search_seconds < 60


@pytest.mark.parametrize("solver", [vulcan.ForwardSearch, 5])
def test_solver_that_is_none(solver) -> None:
    with pytest.raises(vulcan.errors.OptionError, match=r"such as Vulcan\(\)"):
        vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), solver)
    with pytest.raises(vulcan.errors.OptionError, match="SurvivalConstraint"):
        vulcan.ForwardSearch(solver)


@pytest.mark.usefixtures("processor_clock")
def test_progress_is_told() -> None:
    told: list[Progress] = []
    vulcan.solve(
        vulcan.Problem(Bandit(13), LINEAR), FORWARD_SEARCH, time_limit=1.0, progress=told.append
    )
    for before, after in itertools.pairwise(told):
        assert after.seconds > before.seconds
        assert after.histories >= before.histories
        if before.phase is after.phase:  # the share is that of the phase
            assert 0 <= before.fraction <= after.fraction <= 1
    searching = [progress for progress in told if progress.phase == "searching"]
    assert len(searching) >= 3
    assert searching[0].histories < searching[-1].histories
    assert told[-1].reward is not None
    assert told[-1].evaluations > 0


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]
)
def test_signals_return_the_best_so_far(number: int, name: str) -> None:
    usual = signal.getsignal(number)

    pressed: list[float] = []

    def press(progress: Progress) -> None:
        if progress.reward is not None and not pressed:
            pressed.append(progress.reward)
            signal.raise_signal(number)

    result = vulcan.solve(vulcan.Problem(Bandit(14), LINEAR), FORWARD_SEARCH, progress=press)
    assert result.status is Status.STOPPED
    assert f"stopped by {name} after" in result.explanation
    assert result.safe
    assert signal.getsignal(number) is usual


def test_a_signal_with_a_handler_is_left_to_the_handler() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        result = vulcan.solve(vulcan.Problem(Bandit(14), LINEAR), FORWARD_SEARCH, time_limit=0.3)
        timer.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert result.stopped_by == "time limit"
    assert seen == [signal.SIGTERM]


def test_ctrl_c_elsewhere_than_in_a_search_is_left_alone() -> None:
    vulcan.solve(vulcan.Problem(Bandit(2), LINEAR), FORWARD_SEARCH)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_model_that_raises_names_the_place() -> None:
    class Broken(Table):
        def outcomes(self, state, action):
            if state == 1:
                raise RuntimeError("sensor lost")
            return super().outcomes(state, action)

    table = Broken({0: {"go": [Outcome(1, 0, 1)]}, 1: {"on": [Outcome(1, 0, 1)]}}, horizon=2)
    with pytest.raises(ModelError, match=r"sensor lost.*state 1, action 'on'") as caught:
        vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.violation.state == 1


def test_a_bound_that_is_not_concave_gets_no_policy() -> None:
    convex = vulcan.Concave(lambda x: 0.001 * x * x)
    with pytest.raises(vulcan.errors.BoundError, match="not concave"):
        vulcan.solve(vulcan.Problem(Bandit(4), convex))
    nowhere = vulcan.Concave(lambda x: 0.001 * x * x - 1)
    with pytest.raises(vulcan.errors.BoundError, match="not concave"):
        vulcan.solve(vulcan.Problem(Bandit(4), nowhere))
    falling = vulcan.Concave(lambda x: 0.05 - 0.01 * x)
    with pytest.raises(vulcan.errors.BoundError, match="decreas"):
        vulcan.solve(vulcan.Problem(Bandit(4), falling))


def test_a_second_ctrl_c_while_certifying_keeps_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    problem = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))
    certified = vulcan.solve(problem)
    monkeypatch.setattr("vulcan.planning.solve.certify", interrupt)
    result = vulcan.solve(problem)
    assert result.policy == certified.policy
    assert result.certificate is None
    assert not result.safe
    assert result.status is vulcan.planning.Status.STOPPED
    assert "certif" in result.explanation
    assert "certif" in str(result)


@pytest.mark.parametrize(
    ("most_ways", "explanation"),
    [(300_000, "because of rounding in the search"), (0, "that roundings decide")],
)
@pytest.mark.parametrize("solver", [None, FORWARD_SEARCH, vulcan.Pareto()], ids=str)
def test_roundings_prove_nothing(solver, most_ways, explanation, monkeypatch):
    monkeypatch.setattr("vulcan.certificate.certify.MOST_WAYS", most_ways)
    rewards = [88180747.6, -20541439.5, -67639307.76666667]
    outcomes = [Outcome(0.3, reward, k) for k, reward in enumerate(rewards, 1)]
    outcomes.append(Outcome.failure(0.1))
    model = Table({0: {"go": outcomes}}, 1)
    result = vulcan.solve(vulcan.Problem(model, vulcan.Linear(1.0)), solver)
    assert not result.safe
    assert result.status is not Status.SOLVED
    if result.policy is not None:
        assert explanation in result.explanation
        assert result.gap is None


def test_the_gain_of_randomising_is_told_where_it_is_worth_it() -> None:
    caught = vulcan.solve(vulcan.Problem(TreasureGrid(horizon=20, map="BTG"), 0.15))
    assert caught.relaxed == pytest.approx(0.6)
    assert "has reward 0.600000 (Automatic(randomised=True), --randomised)" in str(caught)
    drawn = vulcan.solve(caught.problem, vulcan.Automatic(randomised=True))
    assert drawn.certificate.reward == pytest.approx(0.6)
    assert "would earn" not in str(drawn)
    close = vulcan.solve(vulcan.Problem(Bandit(3), vulcan.Linear(0.002)))
    assert 0 < close.gain_of_randomising < 0.01
    assert "would earn" not in str(close)


@pytest.mark.parametrize(
    ("solver", "options"),
    [(vulcan.Vulcan(), {"samples": 50}), (vulcan.baselines.LinearProgram(), {})],
)
def test_results_pass_to_another_process_without_what_the_search_knew(solver, options) -> None:
    result = vulcan.solve(vulcan.Problem(Bandit(4), LINEAR), solver, **options)
    sent = pickle.loads(pickle.dumps(result))
    assert (sent.policy, sent.certificate, sent.problem) == (
        result.policy,
        result.certificate,
        result.problem,
    )
    assert str(sent) == str(result)
    for member in sent.policy.members:
        assert member.reader.model is sent.problem.model
        assert not member.action.flags.writeable
    assert sent.policy.start(seed=1).action == result.policy.start(seed=1).action
    assert pickle.loads(pickle.dumps(result.policy.attach(None))).members[0].reader is None


PROBLEM = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))


@pytest.mark.parametrize("change", [{"reward": 0.5}, {"risk": 0.01}], ids=str)
@pytest.mark.parametrize("name", load_solvers())
def test_a_search_that_errs_is_found_out(name, change, monkeypatch):
    kind = load_solvers()[name]
    search = kind.search
    problem = PROBLEM
    if kind.constant_bounds:
        problem = vulcan.Problem(PROBLEM.model, vulcan.Constant(0.01))
    # As printed, a search does not know when it is done.
    limits = {"samples": 2000} if name == "paper-vulcan" else {}

    def err(self: Any, *arguments: Any) -> Any:
        finding = search(self, *arguments)
        return replace(finding, **{of: getattr(finding, of) + by for of, by in change.items()})

    assert vulcan.solve(problem, kind(), **limits).certificate is not None
    monkeypatch.setattr(kind, "search", err)
    with pytest.raises(DisagreementError, match=f"the search found {next(iter(change))}"):
        vulcan.solve(problem, kind(), **limits)


PROBLEM_CARDS = vulcan.Problem(Bandit(3), "0.002*x")
RESULT = vulcan.solve(PROBLEM_CARDS)
UNSAFE = vulcan.solve(PROBLEM_CARDS, vulcan.baselines.UCT(), samples=2_000)
NOTHING = vulcan.solve(vulcan.Problem(Bandit(3), vulcan.Constant(-1)))
FRONTIER = vulcan.trace_frontier(Bandit(3), points=3)
SCALED = vulcan.trace_frontier(PROBLEM_CARDS, scales=[0.01, 1])
COMPARISON = vulcan.compare(
    PROBLEM_CARDS,
    [vulcan.Pareto(), vulcan.baselines.RAOStar(update="exact"), vulcan.baselines.UCT()],
    samples=500,
)

THINGS = {
    "result": RESULT,
    "unsafe": UNSAFE,
    "nothing": NOTHING,
    "certificate": RESULT.certificate,
    "nothing allowed": replace(RESULT.certificate, allowed=-math.inf),
    "exact": vulcan.certify(PROBLEM_CARDS, RESULT.policy, exact=True),
    "policy": RESULT.policy,
    "randomised": mix_bandit(),
    "frontier": FRONTIER,
    "scaled": SCALED,
    "empty frontier": replace(FRONTIER, points=()),
    "comparison": COMPARISON,
    "empty comparison": replace(COMPARISON, rows=()),
    "table": RESULT.policy.table(),
}


class Checker(HTMLParser):
    """Collects tags that are not closed, and attributes that are no numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), name
            assert "nan" not in value.split(), value
            assert "inf" not in value.split(), value

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", THINGS)
def test_html_is_well_formed(name: str) -> None:
    html = THINGS[name]._repr_html_()
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert "script" not in checker.tags
    assert not re.search(r"\b(src|href)=", html)


def test_labels_are_written_out() -> None:
    class Loud(Bandit):
        def __repr__(self) -> str:
            return "<script>alert(1)</script>"

        def action_label(self, action: Any) -> str:
            return f"<b onclick='x'>{action}</b>"

    problem = vulcan.Problem(Loud(2), "0.002*x")
    result = vulcan.solve(problem)
    for thing in (result, result.policy, vulcan.compare(problem, [vulcan.Pareto()])):
        html = thing._repr_html_()
        assert "<script>" not in html
        assert "<b onclick" not in html


def test_near_0_the_absolute_gap_is_told_as_well() -> None:
    result = vulcan.solve(vulcan.Problem(one_action(Outcome(1.0, 1e-7, 1)), 0.1))
    assert (result.gap, result.absolute_gap) == (0.0, 0.0)
    assert str(result).count("the best possible") == 1
    wider = replace(result, upper_bound=2e-7, rounding=0.0)
    assert wider.gap == pytest.approx(0.5)
    assert wider.absolute_gap == pytest.approx(1e-7)
    assert "at most 50 % (1e-07) below the best possible" in str(wider)
    assert "gap 50 % (1e-07)" in repr(wider)
    assert "at most 50 % (1e-07) below the best possible" in wider._repr_html_()
    assert describe_result(wider, 0)["absolute_gap"] == wider.absolute_gap
    # Far from 0 a share says enough.
    far = replace(vulcan.solve(vulcan.Problem(Bandit(3), LINEAR)), upper_bound=3.0)
    assert "%" in str(far)
    assert "% (" not in str(far).split("upper bound")[1].splitlines()[0]
    nothing = replace(wider, upper_bound=0.0)
    assert nothing.gap == 0.0
    unknown = replace(wider, upper_bound=None)
    assert unknown.absolute_gap is None


def test_a_gap_to_0_is_a_share_of_the_reward() -> None:
    result = vulcan.solve(vulcan.Problem(one_action(Outcome(1.0, -3.0, 1)), 0.1))
    below = replace(result, upper_bound=0.0, rounding=0.0)
    assert (below.gap, below.absolute_gap) == (1.0, 3.0)
    assert "at most 100 % (3) below the best possible" in str(below)
