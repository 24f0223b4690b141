"""Missions that replan on the way keep the bound: treasure maps, 200 episodes each.

The maps are those of the file that VULCAN_TREASURE_MAPS names (what follows a line "Map:"); without
it nothing is run. VULCAN_TREASURE_COUNT limits how many of them, spread over the file. A plan is
made for each map and followed in episodes that replan before every second step; what happens is
drawn from the model. Episodes that are in the same place with the same plan and account share one
replan: it is a function of the history, as the theorem of docs/theory/proofs.md wants it.

What is promised is p <= 0.15 for each map. The level of error is 1 % for all tests together: the
promise counts as broken for a map if its number of failures has a probability of less than 0.5 % /
(number of maps and horizons) under p = 0.15, and for all episodes of a horizon if less than 0.25 %.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import vulcan
from benchmarks.test_treasure_maps import read_maps
from vulcan.domains import TreasureGrid

LEVEL = 0.15
EPISODES = 200
EVERY = 2
HORIZONS = (50, 100)
ERROR = 0.01


def find_chance(failures: int, episodes: int) -> float:
    """Return how probable this many failures or more are if each has the probability allowed."""
    logs = (
        math.lgamma(episodes + 1)
        - math.lgamma(k + 1)
        - math.lgamma(episodes - k + 1)
        + k * math.log(LEVEL)
        + (episodes - k) * math.log1p(-LEVEL)
        for k in range(failures, episodes + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logs)))


class Missions:
    """Episodes of one plan, and the replans that they share."""

    def __init__(self, text: str, horizon: int) -> None:
        self.model = TreasureGrid(horizon, map=text)
        self.result = vulcan.solve(vulcan.Problem(self.model, LEVEL), time_limit=2)
        self.known: dict[Any, Any] = {}
        self.seconds: list[float] = []
        self.changed = 0

    def carry_out(self, random: Random) -> vulcan.policy.Run:
        """Return an episode at its end."""
        run = self.result.policy.start()
        while not run.finished:
            if run.step % EVERY == 0:
                self._replan(run)
            outcomes = self.model.outcomes(run.state, run.action)
            chances = [outcome.probability for outcome in outcomes]
            run.observe(random.choices(outcomes, chances)[0].label)
        return run

    def _replan(self, run: vulcan.policy.Run) -> None:
        key = (id(run.policy), run.state, run.step, run.risk, run.account)
        if key not in self.known:
            began = time.process_time()
            replanned = vulcan.replan(run, time_limit=0.5)
            self.seconds.append(time.process_time() - began)
            self.changed += replanned.changed
            # The key names a plan by its place in memory: it has to stay there.
            self.known[key] = (run.policy, run.account, replanned.changed)
        policy, account, changed = self.known[key]
        if changed:
            run.follow(policy)
        run.account = account


@pytest.fixture(scope="module")
def maps() -> list[str]:
    path = os.environ.get("VULCAN_TREASURE_MAPS")
    if not path:
        pytest.skip("no maps; set VULCAN_TREASURE_MAPS")
    found = read_maps(Path(path))
    count = int(os.environ.get("VULCAN_TREASURE_COUNT", len(found)))
    return found[:: max(1, len(found) // count)][:count]


@pytest.mark.parametrize("horizon", HORIZONS)
def test_missions_that_replan_keep_the_bound(horizon: int, maps: list[str], report: Any) -> None:
    random = Random(horizon)
    failures, gains, seconds, changed = [], [], [], 0
    planned = []
    for text in maps:
        missions = Missions(text, horizon)
        runs = [missions.carry_out(random) for _ in range(EPISODES)]
        failures.append(sum(run.failed for run in runs))
        planned.append(float(missions.result.certificate.reward))
        gains.append(statistics.mean(run.reward for run in runs) - planned[-1])
        seconds += missions.seconds
        changed += missions.changed
    name = f"replanning, {len(maps)} maps, horizon {horizon}"
    worst, total = max(failures), EPISODES * len(maps)
    report(
        f"{name}: failures of {EPISODES} where 30 are allowed, mean, most",
        f"{statistics.mean(failures):.1f}, {worst}",
    )
    report(
        f"{name}: probability of that many at 0.15, worst map, all episodes",
        f"{find_chance(worst, EPISODES):.3f}, {find_chance(sum(failures), total):.3f}",
    )
    report(
        f"{name}: mean reward planned, earned",
        f"{statistics.mean(planned):.4f}, {statistics.mean(planned) + statistics.mean(gains):.4f}",
    )
    report(
        f"{name}: replans, of which changed the plan, seconds each, longest",
        f"{len(seconds)}, {changed}, {statistics.mean(seconds):.3f}, {max(seconds):.2f}",
    )
    assert find_chance(worst, EPISODES) > ERROR / 2 / (len(maps) * len(HORIZONS))
    assert find_chance(sum(failures), total) > ERROR / 2 / len(HORIZONS)
