"""What `Vulcan()` earns on exploration missions, beside C++ that was written for them alone.

Rows are: mean, worst and best reward; risk over allowed risk; how many are certified; samples per
second; seconds of search; and the share of a core that it had. VULCAN_SEEDS (10) and VULCAN_SECONDS
(10) make it shorter; VULCAN_SAMPLES gives both as many samples instead, whatever they take.
Targets are asserted for 10 seconds or more, and only where the search had a core for itself. The
yardstick needs VULCAN_YARDSTICKS, the folder of its source. Run alone with

    python -m pytest benchmarks/test_spend_risk.py --quiet

It takes about 45 minutes.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import Any

import pytest

import vulcan
from benchmarks.exploration_table import BOUNDS, Setting
from benchmarks.spend_risk import SETTINGS, TARGETS, Clock, Search, describe, find_problem
from tests.helpers.plain_models import PlainExploration

SEEDS = min(10, int(os.environ.get("VULCAN_SEEDS", "10")))
SECONDS = float(os.environ.get("VULCAN_SECONDS", "10"))
SAMPLES = int(os.environ.get("VULCAN_SAMPLES", "0")) or None
LONG = 60
PLAIN, PLAIN_TARGET = 20, 19.0  # seconds, certificate included, and reward
BESIDE = min(3, SEEDS)
DISTRIBUTED = 1_000_000
QUICK = SECONDS < 10 or SAMPLES is not None
MOST_SECONDS = 1000
"""What the yardstick is given where samples are counted instead."""

IDLE = 0.8
"""Share of a core with which seconds are what they say."""

YARDSTICK_BOUNDS = {"Δ/2": "D/2", "Δ": "D", "2Δ": "2D"}


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Load or compile all kernels before anything is timed."""
    for name in ("narrow", "wide"):
        problem = find_problem(Setting(name, None, 9, "Δ"))
        vulcan.solve(problem, vulcan.Vulcan(), samples=2000)


def require_core(searches: list[Search]) -> None:
    """Leave the targets open on a machine that had other work to do."""
    share = fmean(search.core for search in searches)
    if share < IDLE:
        pytest.skip(f"other programs took the core: the search had {share:.0%} of it")


def name_row(setting: Setting) -> str:
    """Return the first columns of a row."""
    gap = "" if setting.half_width is None else f" {setting.half_width:.2f}"
    return f"{setting.area}{gap}, {setting.horizon} moves, {setting.bound}"


@pytest.mark.parametrize(
    ("setting", "seconds"), TARGETS, ids=lambda one: getattr(one, "bound", one)
)
def test_rewards(setting: Setting, seconds: float, report: Any) -> None:
    target = TARGETS[setting, seconds]
    long = seconds == LONG
    if long and QUICK:
        pytest.skip("a minute each is not a quick look")
    clock = Clock(LONG if long else SECONDS, SAMPLES)
    problem = find_problem(setting)
    seeds = BESIDE if long else SEEDS
    searches = [clock.search(problem, vulcan.Vulcan(), seed) for seed in range(seeds)]
    report(f"{name_row(setting)}: Vulcan, {clock}", describe(searches))
    assert all(search.safe for search in searches)
    if not QUICK:
        require_core(searches)
        assert fmean(search.seconds for search in searches) <= 1.05 * clock.seconds
        assert fmean(search.reward for search in searches) >= target.mean
        assert min(search.reward for search in searches) >= target.worst


@dataclass(frozen=True)
class Yardstick:
    """What the yardstick printed."""

    reward: float
    risk: float
    allowed: float
    seconds: float
    samples: int

    @classmethod
    def read(cls, words: list[str]) -> Yardstick:
        """Read its line: names, each followed by its value."""
        after = dict(pairwise(words))
        numbers = (float(after[name]) for name in ("reward", "risk", "allowed"))
        return cls(*numbers, float(after["total"].removesuffix("s")), int(after["samples"]))

    @property
    def rate(self) -> float:
        """Samples per second, planning included."""
        return self.samples / self.seconds


@pytest.mark.parametrize("setting", SETTINGS, ids=name_row)
def test_beside_the_yardstick(setting: Setting, yardstick: Any, report: Any) -> None:
    clock, problem = Clock(SECONDS, SAMPLES), find_problem(setting)
    gap = "" if setting.half_width is None else f"{100 * setting.half_width:.0f}"
    ours, theirs = [], []
    for seed in range(BESIDE):
        options: tuple[object, ...] = ("v", 0, "sigma", 0.1, "share", 0.85)
        if SAMPLES is not None:
            options += ("samples", SAMPLES)
        seconds = SECONDS if SAMPLES is None else MOST_SECONDS
        bound = YARDSTICK_BOUNDS[setting.bound]
        words = yardstick("spend_risk", f"{setting.area}{gap}", seconds, bound, seed + 1, *options)
        theirs.append(Yardstick.read(words))
        ours.append(clock.search(problem, vulcan.Vulcan(), seed))
    share = fmean(one.reward for one in ours) / fmean(one.reward for one in theirs)
    speed = median(one.rate for one in ours) / median(one.rate for one in theirs)
    name = name_row(setting)
    report(f"{name}: Vulcan, {clock}", describe(ours))
    report(
        f"{name}: C++; our share of its reward, and of its samples per second",
        f"{fmean(one.reward for one in theirs):.4f}, "
        f"{fmean(one.risk / one.allowed for one in theirs):.1%} of the risk, "
        f"{median(one.rate for one in theirs):,.0f}/s; {share:.3%}, {speed:.2f}",
    )
    assert all(one.safe for one in ours)
    if not QUICK:
        require_core(ours)
        assert share >= 0.999
        assert speed >= 0.5


def test_a_plain_python_model_by_default(report: Any) -> None:
    problem = vulcan.Problem(PlainExploration(map="narrow", horizon=9), BOUNDS["Δ"])
    core = time.process_time()
    result = vulcan.solve(problem, time_limit=PLAIN)
    core = (time.process_time() - core) / PLAIN
    assert result.safe
    reward = float(result.certificate.reward)
    report(
        f"narrow, 9 moves, Δ: plain Python, by default, {PLAIN} s with the certificate",
        f"{reward:.4f}, {len(result.policy):,} decisions  {core:.0%}",
    )
    if core < IDLE:
        pytest.skip(f"other programs took the core: the search had {core:.0%} of it")
    assert reward >= PLAIN_TARGET


@pytest.mark.parametrize("area", ["narrow", "wide"])
@pytest.mark.parametrize("horizon", [5, 7])
def test_short_missions_are_nearly_proved(area: str, horizon: int, report: Any) -> None:
    setting = Setting(area, None, horizon, "Δ")
    clock = Clock(SECONDS, SAMPLES)
    found = clock.search(find_problem(setting), vulcan.Vulcan(), 0)
    gap = "no proved bound" if found.gap is None else f"gap {found.gap:.3%}"
    report(f"{name_row(setting)}: Vulcan, {clock}", f"{describe([found])}  {gap}")
    assert found.safe
    assert found.gap is not None
    assert found.gap <= 0.001 or QUICK


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else True,
    reason="two threads need two cores",
)
def test_two_threads(report: Any) -> None:
    problem = find_problem(Setting("narrow", None, 9, "Δ"))
    clocks = {workers: Clock(SECONDS) for workers in (1, 2)}
    pairs = []
    for seed in range(BESIDE):
        one, two = (
            clock.search(problem, vulcan.Vulcan(), seed, workers=workers)
            for workers, clock in clocks.items()
        )
        pairs.append((one, two))
    ratio = median(two.rate / one.rate for one, two in pairs)
    rewards = [fmean(found.reward for found in some) for some in zip(*pairs, strict=True)]
    report(
        f"narrow, 9 moves, Δ: two threads over one, {SECONDS:g} s, {BESIDE} seeds",
        f"{ratio:.2f} times the samples; reward {rewards[1]:.4f}, one thread {rewards[0]:.4f}",
    )
    assert ratio >= 1.6
    assert rewards[1] >= rewards[0]


def test_a_distributed_tree_of_two_processes(report: Any) -> None:
    problem = find_problem(Setting("narrow", None, 9, "Δ"))
    tree, distributed = (
        vulcan.solve(problem, vulcan.Vulcan(), samples=DISTRIBUTED, parallel=executor)
        for executor in ("here", vulcan.parallel.Processes(2))
    )
    assert distributed.policy == tree.policy
    speeds = [DISTRIBUTED / found.statistics.search_seconds for found in (tree, distributed)]
    report(
        f"narrow, 9 moves, Δ: {DISTRIBUTED:,} samples in a distributed tree of two processes",
        f"{speeds[1]:,.0f} a second; one tree, one thread {speeds[0]:,.0f}",
    )
