"""Workers: the same answers from several processes, and errors that come through."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import Any

import pytest

import vulcan
from tests.helpers.cluster import add_node
from tests.helpers.workers import is_first
from vulcan import Outcome
from vulcan.cli.documents import describe_result
from vulcan.domains import Bandit
from vulcan.errors import ModelError
from vulcan.parallel.executors import Executor
from vulcan.parallel.ray_cluster import Ray

BOUND = vulcan.Linear(0.002)


@dataclass(frozen=True)
class Breaking(Bandit):
    """Raises, or lies, in one state."""

    lies: bool = False

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if state == (0, 1, 0, 0, 0, 0) and action == "play 2":
            if self.lies:
                return [Outcome(0.5, 0.0, state)]
            raise RuntimeError("sensor lost")
        return super().outcomes(state, action)


def test_the_number_of_workers_changes_nothing() -> None:
    problem = vulcan.Problem(Bandit(4), BOUND)
    for workers in (1, 2):
        solve_alone_and_shared(problem, workers)
    forward = vulcan.solve(problem, parallel=2)
    assert forward.policy == vulcan.solve(problem).policy


def test_errors_come_through_with_their_place() -> None:
    with pytest.raises(ModelError, match=r"sensor lost.*\(0, 1, 0, 0, 0, 0\).*'play 2'"):
        vulcan.solve(vulcan.Problem(Breaking(4), BOUND), parallel=2)
    with pytest.raises(ModelError, match=r"sum to 0\.5"):
        vulcan.solve(vulcan.Problem(Breaking(4, lies=True), BOUND), parallel=1)


def test_models_that_cannot_be_sent() -> None:
    class Local(Bandit):
        pass

    with pytest.raises(vulcan.errors.OptionError, match="must be picklable"):
        vulcan.solve(vulcan.Problem(Local(3), BOUND), parallel=2)
    for workers in (0, -1, 1.5, "2"):
        with pytest.raises(vulcan.errors.OptionError, match=r"at least 1|a number of workers"):
            vulcan.solve(vulcan.Problem(Bandit(3), BOUND), parallel=workers)


@dataclass(frozen=True)
class Dying(Bandit):
    """Takes its process with it in one state, as a crash or the out-of-memory killer would."""

    owner: int = 0

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if (
            sum(count for count in state if isinstance(count, int)) == 3
            and os.getpid() != self.owner
        ):
            os._exit(9)
        return super().outcomes(state, action)


def test_worker_that_dies_leaves_the_error() -> None:
    problem = vulcan.Problem(Dying(5, owner=os.getpid()), BOUND)
    result = vulcan.solve(problem, vulcan.Vulcan(), samples=500, parallel=2)
    assert result.stopped_by == "error in the model"
    assert "the workers gave no answer" in str(result.error)
    assert "exit code 9" in str(result.error)
    assert result.error.violation.state is not None
    assert result.statistics.lost_workers >= 3
    assert dict(result.rows())["workers"].endswith("lost")


@dataclass(frozen=True)
class Costly(Bandit):
    """Takes its time, and is killed once on the way, where there is a file to remember that."""

    file: str = ""
    owner: int = 0

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        if os.getpid() != self.owner:
            time.sleep(0.001)
            if self.file and sum(map(int, state)) == 2 and is_first(self.file):
                os.kill(os.getpid(), signal.SIGKILL)
        return super().outcomes(state, action)


def solve_alone_and_shared(
    problem: vulcan.Problem, executor: Executor | str | int, **options: Any
) -> vulcan.Result:
    """Return the result of several workers, which must be that of one process."""
    alone = vulcan.solve(problem, vulcan.Vulcan(), samples=300, seed=1)
    shared = vulcan.solve(
        problem, vulcan.Vulcan(), samples=300, seed=1, parallel=executor, **options
    )
    assert shared.policy == alone.policy
    assert shared.certificate == alone.certificate
    assert shared.statistics.evaluations == alone.statistics.evaluations
    assert alone.statistics.lost_workers == 0
    return shared


@pytest.mark.parametrize("name", ["processes", "ray"])
def test_a_worker_that_is_killed_changes_nothing_and_is_counted(name, tmp_path, request):
    executor = request.getfixturevalue("ray_executor") if name == "ray" else name
    model = Costly(4, file=str(tmp_path / "killed"), owner=os.getpid())
    result = solve_alone_and_shared(vulcan.Problem(model, BOUND), executor)
    assert result.statistics.lost_workers == 1
    assert "1 lost; others took over their work" in str(result)
    assert describe_result(result, 0)["statistics"]["lost_workers"] == 1


def test_a_machine_that_is_gone_changes_nothing(ray_cluster: Any) -> None:
    with add_node(ray_cluster) as node:

        def remove(progress: vulcan.planning.Progress) -> None:
            if progress.evaluations > 100 and node in ray_cluster.worker_nodes:
                ray_cluster.remove_node(node, allow_graceful=False)

        problem = vulcan.Problem(Costly(5, owner=os.getpid()), BOUND)
        result = solve_alone_and_shared(problem, Ray(workers=4), progress=remove)
        assert node not in ray_cluster.worker_nodes
        # A worker that Ray had not started there yet is replaced without having been lost.
        assert result.statistics.lost_workers <= 1
