"""A hostile world: models that lie, processes that are killed, memory that is short."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import vulcan
from fuzzing.checks.case import Trial
from fuzzing.claims import Fault, check_claims, check_verdict
from fuzzing.models import TableModel
from vulcan import Outcome
from vulcan.errors import ModelError, VulcanError

__all__ = ["check_kill", "check_lies", "check_memory"]

Answer = list[Outcome]


def _scale(factor: float) -> Callable[[Outcome], Outcome]:
    return lambda o: Outcome(
        o.probability * factor, o.reward, o.state, o.label, costs=o.costs, event=o.event
    )


def _pay(reward: Any) -> Callable[[Outcome], Outcome]:
    return lambda o: Outcome(o.probability, reward, o.state, o.label, costs=o.costs, event=o.event)


def _cost(costs: Any, event: Any = None) -> Callable[[Outcome], Outcome]:
    def lie(o: Outcome) -> Outcome:
        return Outcome(o.probability, o.reward, o.state, o.label, costs=costs, event=event)

    return lie


def _lead(state: Any) -> Callable[[Outcome], Outcome]:
    return lambda o: Outcome(o.probability, o.reward, state, o.label)


LIES: dict[str, Callable[[Outcome], Any]] = {
    "half": _scale(0.5),
    "a little more": _scale(1 + 1e-9),
    "negative": _scale(-1.0),
    "nan": _scale(float("nan")),
    "infinite": _scale(float("inf")),
    "nan reward": _pay(float("nan")),
    "infinite reward": _pay(float("inf")),
    "no reward": _pay(None),
    "a text": _pay("1.0"),
    "nan cost": _cost({"fuel": float("nan")}),
    "infinite cost": _cost({"dose": float("inf")}),
    "a cost beyond": _cost({"dose": 1e101}),
    "no cost": _cost({"fuel": None}),
    "a text as cost": _cost({"fuel": "1.0"}),
    "a cost without a name": _cost([(1, 1.0)]),
    "costs without names": _cost([1.0]),
    "a number as event": _cost((), 1),
    "nowhere": _lead(None),
    "unhashable": _lead([0]),
    "no outcome": lambda o: (o.probability, o.reward, o.state),
}


class _Liar(TableModel):
    """Lies about one outcome of one action: always, or from the second evaluation on."""

    def lie(self, random: Random) -> None:
        """Choose where to lie, and how."""
        self.where = random.choice([(s, a) for s, a in self._keys if s is not None])
        self.place = random.randrange(len(self._keys[self.where]))
        self.changes = random.random() < 0.3
        self.of_costs = random.random() < 0.5
        self.name = "changes" if self.changes else random.choice(list(LIES))
        self.evaluated = 0

    def outcomes(self, state: Any, action: str) -> Any:
        """Return the outcomes of an action; one of them is a lie."""
        answer: list[Any] = super().outcomes(state, action)
        if (self._last(state), action) != self.where:
            return answer
        self.evaluated += 1
        if self.changes:
            # Another reward, or another cost, at each evaluation.
            old, more = answer[self.place], self.evaluated
            if self.of_costs:
                answer[self.place] = _cost({**dict(old.costs), "fuel": float(more)})(old)
            else:
                answer[self.place] = _pay(old.reward + more)(old)
        elif answer[self.place].probability:
            answer[self.place] = LIES[self.name](answer[self.place])
        return answer


def check_lies(trial: Trial) -> Iterator[Fault]:
    """Solve a model that lies: it must be reported, and no policy returned."""
    if not any(state is not None for state, *_ in trial.problem.answers()):
        return
    honest = trial.make()
    model = _Liar(trial.problem, honest.model.merges)
    model.lie(trial.random)
    way = trial.problem.states[model.where[0]][model.where[1]][model.place]
    try:
        result = trial.solve(vulcan.Problem(model, honest.risk_bound))
    except VulcanError as error:
        trial.counts["lies found"] += 1
        if isinstance(error, ModelError) and "state" not in str(error):
            yield Fault("lies", f"{model.name}: the error names no state: {error}")
        return
    except Exception as error:
        yield Fault("lies", f"{model.name}: {type(error).__name__}: {error}")
        return
    if model.changes:
        # Only the actions of the policy are evaluated again, and costs matter only if limited.
        limited = any(limit.name == "fuel" for limit in trial.problem.limits)
        believed = (
            result.policy is not None
            and way.probability > 0
            # Else it is the same each time.
            and (limited if model.of_costs else way.reward + 1 < way.reward + 2 < way.reward + 3)
            and _takes(trial, result.policy, model.where)
        )
    else:
        believed = model.evaluated > 0 and way.probability > 0 and _matters(model.name, way)
    if believed:
        found = f"{model.name} was evaluated {model.evaluated} times and believed: {result!r}"
        yield Fault("lies", found)
    trial.counts["lies not evaluated"] += not model.evaluated


def _takes(trial: Trial, policy: Any, where: tuple[Any, str]) -> bool:
    """Whether a policy ever takes an action in a state."""
    from fuzzing.following import list_decisions, read_tree

    trees = [read_tree(trial.problem, member) for member in policy.members]
    return any(where in list_decisions(trial.problem, tree) for tree in trees)


def _matters(name: str, way: Any) -> bool:
    """Whether a lie says anything else than the truth: a rounding is none."""
    if name == "a little more":
        return bool(way.probability * 1e-9 > 2e-12)
    if name == "half":
        return bool(way.probability > 1e-11)
    if name == "negative":
        return bool(way.probability > 0)
    if name in ("nowhere", "unhashable"):
        return way.target is not None
    return True


def check_memory(trial: Trial) -> Iterator[Fault]:
    """Solve with little memory: whatever comes of it is true."""
    problem = trial.make()
    cap = trial.random.choice((1, 1_000, 10_000, 100_000, 1_000_000))
    result = trial.solve(problem, limits=vulcan.Limits(memory=cap))
    trial.counts[f"{result.status.value}"] += 1
    point = None
    if result.policy is not None and result.certificate is not None:
        point, _ = trial.weigh(result.policy)
        yield from check_verdict(trial.truth, result.certificate, point)
    yield from check_claims(trial.truth, trial.case.planner, result, point)


def check_kill(trial: Trial) -> Iterator[Fault]:
    """Kill a search that writes checkpoints, and resume it: the answer is the same, bit for bit."""
    problem = trial.make()
    whole = trial.solve(problem)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "search.ckpt"
        kills = 0
        for _ in range(3):
            process = os.fork()
            if process == 0:
                _search_for_ever(trial, problem, path)
            time.sleep(trial.random.random() * 0.02)
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            kills += os.WIFSIGNALED(status)
        trial.counts["kills"] += kills
        resumed = trial.solve(problem, checkpoint=vulcan.Checkpoint(path, resume=True))
    same = resumed.policy is whole.policy is None or (
        resumed.policy is not None
        and whole.policy is not None
        and resumed.policy.members == whole.policy.members
    )
    if not same:
        yield Fault("kill", f"{resumed!r} instead of {whole!r} after {kills} kills")


def _search_for_ever(trial: Trial, problem: vulcan.Problem, path: Path) -> None:
    """Search in a process of its own, which ends here."""
    try:
        trial.solve(problem, checkpoint=vulcan.Checkpoint(path, every=0.0, resume=True))
    finally:
        os._exit(0)
