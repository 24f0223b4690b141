"""Damaged files: they are refused with an error of ours, or are what they were.

A byte is changed, or the file is cut off, at every place. A checksum finds all of that. So files
are also changed and sealed again, as an attacker would: then a policy may be another one,
and a certificate must still be true of it, or refused; nothing may raise or crash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import vulcan
from fuzzing.checks.case import Trial
from fuzzing.claims import Fault
from vulcan.errors import VulcanError

__all__ = ["check_checkpoint_bytes", "check_policy_bytes", "check_resealed_policy"]

HEADER, DIGEST = 20, 32
"""Bytes before the content of a sealed file, and after it."""

MOST_DAMAGES = 400
"""Number of damaged places in longer files."""


def _damage(trial: Trial, data: bytes) -> Iterator[bytes]:
    """Return files with a byte changed, or cut off, at every place."""
    places: Any = range(len(data))
    if len(data) > MOST_DAMAGES:
        places = trial.random.sample(places, MOST_DAMAGES)
    for place in places:
        change = 1 << trial.random.randrange(8)
        yield data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]
        if trial.random.random() < 0.3:
            yield data[:place]
    yield data + b"\0"


def check_policy_bytes(trial: Trial) -> Iterator[Fault]:
    """Damage a policy's file everywhere."""
    policy = trial.solve(trial.make()).policy
    if policy is None:
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.vulcan"
        policy.save(path)
        loaded = trial.means.load(path)
        if loaded.members != policy.members:
            yield Fault("policy file", "a policy comes back as another")
        for data in _damage(trial, path.read_bytes()):
            trial.counts["damages"] += 1
            path.write_bytes(data)
            yield from _try("policy file", lambda: trial.means.load(path), policy)


def check_resealed_policy(trial: Trial) -> Iterator[Fault]:
    """Change the content of a policy's file, and seal it again."""
    problem = trial.make()
    policy = trial.solve(problem).policy
    if policy is None:
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "plan.vulcan"
        policy.save(path)
        whole = path.read_bytes()
        for content in _damage(trial, whole[HEADER:-DIGEST]):
            length = len(content).to_bytes(8, "little")
            data = whole[: HEADER - 8] + length + content
            path.write_bytes(data + hashlib.sha256(data).digest())
            trial.counts["damages"] += 1
            yield from _use(trial, problem, path)


def _use(trial: Trial, problem: vulcan.Problem, path: Path) -> Iterator[Fault]:
    """Load a policy that may be another one, certify it, and look at it."""
    try:
        policy = trial.means.load(path)
        str(policy)
        certificate = trial.means.certify(problem, policy)
        trial.counts["certified"] += 1
        point, _ = trial.weigh(policy)
    except VulcanError:
        return
    except Exception as error:
        yield Fault("resealed policy", f"raises {type(error).__name__}: {error}")
        return
    if abs(float(point.risk) - float(certificate.risk)) > 1e-12:
        yield Fault("resealed policy", f"{certificate!r}, but it is worth {point}")


def check_checkpoint_bytes(trial: Trial) -> Iterator[Fault]:
    """Damage a checkpoint everywhere."""
    problem = trial.make()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "search.ckpt"
        policy = trial.solve(problem, checkpoint=vulcan.Checkpoint(path, every=0.0)).policy
        if not path.exists():
            trial.counts["no checkpoint"] += 1
            return

        def resume() -> Any:
            return trial.solve(problem, checkpoint=vulcan.Checkpoint(path, resume=True)).policy

        whole = path.read_bytes()
        for data in trial.random.sample(list(_damage(trial, whole)), 40):
            trial.counts["damages"] += 1
            path.write_bytes(data)
            yield from _try("checkpoint", resume, policy)


def _try(name: str, load: Callable[[], Any], policy: Any) -> Iterator[Fault]:
    """Load what is damaged: it is refused, or the same."""
    try:
        loaded = load()
    except VulcanError:
        return
    except Exception as error:
        yield Fault(name, f"a damaged one raises {type(error).__name__}: {error}")
        return
    same = loaded is policy is None or (
        loaded is not None and policy is not None and loaded.members == policy.members
    )
    if not same:
        yield Fault(name, "a damaged one gives another policy")
