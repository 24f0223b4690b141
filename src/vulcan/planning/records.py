"""What a sweep has found so far, in a file, so that an interrupted one is resumed.

A search that ended is an answer, by what was asked: solver, limits, seed and bound. A resumed sweep
takes the answers that are there and searches for the rest, so that it ends as an unbroken one. It
may also ask for more than before: another solver, more points.

Policies are kept, and no certificates: those are computed anew, from the model, when an answer is
taken from the file. The file is sealed (`vulcan.runtime.files`), replaced at once, and written
about once a second at most.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from vulcan.bounds.reward_limit import RewardLine
from vulcan.certificates.certificate import certify
from vulcan.certificates.problem import Problem
from vulcan.errors import CheckpointError, MismatchError, OptionError, PolicyError
from vulcan.model.reader import ModelReader
from vulcan.planning.jobs import Answer, Job
from vulcan.planning.result import Result
from vulcan.policies.file import decode_policy, encode_policy
from vulcan.policies.randomised import AnyPolicy, RandomisedPolicy
from vulcan.runtime.files import Seal
from vulcan.runtime.limits import StopReason
from vulcan.solvers.finding import Statistics, Status, Sufficient, Trial, Worth
from vulcan.solvers.tree.checkpoint import require_free

__all__ = ["Records", "open_records"]

SEAL: Final = Seal("record of a sweep", b"VULSWEEP", 1, CheckpointError)

BETWEEN_WRITES: Final = 1.0
"""Seconds."""


class Found(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer, as it is kept.

    Attributes
    ----------
    members, weights
        The policies, each as `encode_policy` writes it; weights of a randomised one.
    """

    solver: str
    status: Status
    explanation: str
    stopped_by: StopReason | None
    members: list[bytes]
    weights: list[float]
    statistics: Statistics
    evaluations: int
    upper_bound: float | None
    trials: list[Trial]
    price: float | None
    lines: list[RewardLine]
    estimate: float | None
    relaxed: float | None
    safest: Worth | None
    sufficient: Sufficient | None


class Content(msgspec.Struct, forbid_unknown_fields=True):
    """What the file holds.

    Attributes
    ----------
    model
        The model's fingerprint.
    answers
        By what was asked.
    numbers
        What else is not to be found again, by name.
    """

    model: str
    answers: dict[str, Found] = {}
    numbers: dict[str, list[float]] = {}


SAME: Final = ("solver", "status", "explanation", "stopped_by", "statistics", "upper_bound")
SAME_TOO: Final = ("price", "estimate", "relaxed", "safest", "sufficient")


class Records:
    """The answers of a sweep.

    Parameters
    ----------
    path
        The file; None if nothing is kept.
    problem
        What is searched.
    resume
        Whether what is in the file is used; else it is lost.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, problem: Problem, *, resume: bool
    ) -> None:
        self._path, self._problem = path, problem
        self._written, self._changed = 0.0, False
        if path is not None:
            model = ModelReader(problem.model).fingerprint()
            there = Path(path).exists() and resume
            self._content = _read(path, model) if there else Content(model)

    def find(self, job: Job) -> Answer | None:
        """Return the answer that is known, certified anew; None if it is not."""
        if self._path is None:
            return None
        problem = job.pose(self._problem)
        found = self._content.answers.get(_describe(job, problem))
        if found is None:
            return None
        try:
            policy = _build_policy(found)
            certificate = None if policy is None else certify(problem, policy)
        except (PolicyError, MismatchError) as error:
            raise CheckpointError(f"{self._path}: a policy in it can't be used: {error}") from error
        same = {name: getattr(found, name) for name in (*SAME, *SAME_TOO)}
        result = Result(
            problem=None,  # type: ignore[arg-type]
            policy=policy,
            certificate=certificate,
            trials=tuple(found.trials),
            lines=tuple(found.lines),
            **same,
        )
        return Answer(result, found.evaluations)

    def add(self, job: Job, answer: Answer) -> None:
        """Keep an answer, unless its search was interrupted or its model failed."""
        result = answer.result
        ended = result.stopped_by is not StopReason.INTERRUPTED and result.error is None
        if self._path is None or not ended:
            return
        policy, same = result.policy, {name: getattr(result, name) for name in (*SAME, *SAME_TOO)}
        self._content.answers[_describe(job, job.pose(self._problem))] = Found(
            members=[] if policy is None else [encode_policy(member) for member in policy.members],
            weights=list(policy.weights) if isinstance(policy, RandomisedPolicy) else [],
            evaluations=answer.evaluations,
            trials=list(result.trials),
            lines=list(result.lines),
            **same,
        )
        self._changed = True
        if time.monotonic() - self._written >= BETWEEN_WRITES:
            self.write()

    def remember(self, name: str, count: int, find: Callable[[], list[float]]) -> list[float]:
        """Return so many numbers: those that are known, or those that are found and kept now."""
        if self._path is None:
            return find()
        if name not in self._content.numbers:
            self._content.numbers[name] = find()
            self._changed = True
        numbers = self._content.numbers[name]
        if len(numbers) != count or not all(map(math.isfinite, numbers)):
            raise CheckpointError(f"{self._path}: {name}: {count} finite numbers are wanted")
        return numbers

    def write(self) -> None:
        """Write down what has changed."""
        if self._changed and self._path is not None:
            SEAL.write(self._path, msgspec.msgpack.encode(self._content))
            self._written, self._changed = time.monotonic(), False


def open_records(
    path: str | os.PathLike[str] | None, problem: Problem, *, resume: bool, overwrite: bool
) -> Records:
    """Return what is kept in a file, which must be free, resumed or overwritten."""
    if path is not None:
        require_free(path, resume=resume, overwrite=overwrite)
    return Records(path, problem, resume=resume)


def _read(path: str | os.PathLike[str], model: str) -> Content:
    """Return what is in a file about a model, or raise what is wrong with it."""
    try:
        content = msgspec.msgpack.decode(SEAL.read(path), type=Content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: the content is no record of a sweep: {error}") from error
    if content.model != model:
        raise CheckpointError(f"{path} belongs to another model: it answers otherwise here")
    return content


def _describe(job: Job, problem: Problem) -> str:
    """Return what was asked, as text."""
    bound = problem.risk_bound.text
    if bound is None:
        raise OptionError(
            "a bound that is a function can't be told from another one when a sweep is resumed: "
            "give it as text (vulcan.parse), or omit the checkpoint"
        )
    asked: dict[str, Any] = {
        "bound": bound,
        "solver": job.solver,
        "limits": job.limits,
        "seed": job.options.seed,
        "upper bound": job.bound,
    }
    return ", ".join(f"{name}: {value}" for name, value in asked.items())


def _build_policy(found: Found) -> AnyPolicy | None:
    """Return the policy of an answer."""
    members = [decode_policy(member) for member in found.members]
    if found.weights:
        return RandomisedPolicy(members, found.weights)
    if len(members) > 1:
        raise PolicyError("several policies without weights")
    return members[0] if members else None
