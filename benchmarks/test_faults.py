"""Machines that die under a search: a Ray cluster of four nodes on this one, with a core each.

In each run a node, not the one that the program is connected to, is killed at a random moment. A
search with a number of samples must end with a certified policy about as good as that of an
unbroken one; a search with a time limit with one that is at least as good as the best before the
kill.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import vulcan
from tests.helpers.cluster import add_node, open_cluster
from vulcan.domains import Exploration
from vulcan.parallel.ray_cluster import Ray

Report = Callable[[str, str], None]

RUNS = 20
SAMPLES = 40_000
SECONDS = 5.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    with open_cluster(cores=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def problem() -> vulcan.Problem:
    bound = vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")
    return vulcan.Problem(Exploration(horizon=7), bound)


class Killer:
    """Kills a node some seconds after a search has begun.

    Attributes
    ----------
    killed
        Whether it did.
    before
        The reward of the best policy when it did; None if there was none.
    """

    def __init__(self, cluster: Any, node: Any, seconds: float) -> None:
        self._cluster, self._node, self._seconds = cluster, node, seconds
        self._reward: float | None = None
        self._timer: threading.Timer | None = None
        self.before: float | None = None
        self.killed = False

    def watch(self, progress: vulcan.planning.Progress) -> None:
        """Begin to count when the search does, and note its best reward."""
        if progress.judgement is not None and progress.judgement.safe:
            self._reward = progress.reward
        if self._timer is None:
            self._timer = threading.Timer(self._seconds, self._kill)
            self._timer.start()

    def _kill(self) -> None:
        self.before, self.killed = self._reward, True
        self._cluster.remove_node(self._node, allow_graceful=False)

    def close(self) -> None:
        """Stop killing workers."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()


def search(problem: vulcan.Problem, cluster: Any, run: int, longest: float, **limits: Any) -> Any:
    """Return what a search found during which a node was killed, and who did it."""
    luck = random.Random(run)
    with ExitStack() as stack:
        nodes = [stack.enter_context(add_node(cluster)) for _ in range(3)]
        killer = Killer(cluster, luck.choice(nodes), luck.uniform(0.0, longest))
        stack.callback(killer.close)
        found = vulcan.solve(
            problem, vulcan.Vulcan(), parallel=Ray(workers=4), progress=killer.watch, **limits
        )
    return found, killer


def test_a_number_of_samples_earns_about_as_much(
    problem: vulcan.Problem, cluster: Any, report: Report
) -> None:
    alone = vulcan.solve(problem, vulcan.Vulcan(), samples=SAMPLES)
    seconds, killed, lost = alone.statistics.search_seconds, 0, 0
    least = 1.0
    for run in range(RUNS):
        found, killer = search(problem, cluster, run, seconds, samples=SAMPLES)
        killed += killer.killed
        lost += found.statistics.lost_workers
        assert found.safe
        least = min(least, found.certificate.reward / alone.certificate.reward)
    told = f"{killed} nodes killed, {lost} workers lost: at least {least:.1%} of the reward"
    report(f"a node killed in {RUNS} searches of {SAMPLES:,} samples", told)
    assert least > 0.95
    assert lost >= RUNS // 2


def test_a_time_limit_gives_no_less_than_there_was(
    problem: vulcan.Problem, cluster: Any, report: Report
) -> None:
    killed, lost = 0, 0
    for run in range(RUNS):
        found, killer = search(problem, cluster, RUNS + run, SECONDS / 2, time_limit=SECONDS)
        killed += killer.killed
        lost += found.statistics.lost_workers
        assert found.safe
        assert killer.before is None or found.certificate.reward >= killer.before - 1e-9
    told = f"{killed} nodes killed, {lost} workers lost: never worse than before"
    report(f"a node killed in {RUNS} searches of {SECONDS:g} s", told)
    assert lost >= RUNS // 2
