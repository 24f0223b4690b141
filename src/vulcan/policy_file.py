"""Policy files: versioned, checksummed, and without anything that runs.

A policy file is sealed (`vulcan.files`); its content is MessagePack of `Content`, arrays as
little-endian bytes. A file that was cut, changed or written by something else is refused, and so is
one whose content passes the checksum but is no policy.
"""

from __future__ import annotations

import os
from typing import Final

import msgspec
import numpy as np

from vulcan.errors import PolicyFileError
from vulcan.files import Seal
from vulcan.policy import UNPLANNED, About, Policy

__all__ = ["decode_policy", "encode_policy", "load_policy", "save_policy"]

SEAL: Final = Seal("policy", b"VULCAN\x1a\n", 1, PolicyFileError)

TYPES: Final = {
    "action": "<i4",
    "first_outcome": "<i8",
    "label": "<i4",
    "probability": "<f8",
    "reward": "<f8",
    "child": "<i4",
}


class Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is between header and checksum."""

    about: About
    labels: list[str]
    arrays: dict[str, bytes]


def encode_policy(policy: Policy) -> bytes:
    """Return a policy as bytes, without the seal of a file."""
    arrays = {name: getattr(policy, name).astype(kind).tobytes() for name, kind in TYPES.items()}
    return msgspec.msgpack.encode(Content(policy.about, list(policy.labels), arrays))


def decode_policy(content: bytes) -> Policy:
    """Return the policy that bytes hold, checking all of it."""
    try:
        return _build(msgspec.msgpack.decode(content, type=Content))
    except msgspec.DecodeError as error:
        raise PolicyFileError(f"the content is not a policy: {error}") from error


def save_policy(policy: Policy, path: str | os.PathLike[str]) -> None:
    """Write a policy to a file, atomically."""
    SEAL.write(path, encode_policy(policy))


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy from a file, checking all of it."""
    content = SEAL.read(path)
    try:
        return decode_policy(content)
    except PolicyFileError as error:
        raise PolicyFileError(f"{path}: {error}") from error.__cause__


def _build(content: Content) -> Policy:
    if set(content.arrays) != set(TYPES):
        raise PolicyFileError("the content is not a policy: it has other arrays")
    try:
        arrays = {
            name: np.frombuffer(content.arrays[name], kind).astype(kind[1:])
            for name, kind in TYPES.items()
        }
    except ValueError as error:
        raise PolicyFileError(f"the content is not a policy: {error}") from error
    policy = Policy(content.about, content.labels, **arrays)
    problem = _find_problem(policy)
    if problem:
        raise PolicyFileError(f"the content is not a policy: {problem}")
    return policy


def _find_problem(policy: Policy) -> str | None:
    """Return what keeps the arrays from being a policy, if anything does."""
    first, nodes, rows = policy.first_outcome, len(policy), len(policy.label)
    if any(len(getattr(policy, name)) != rows for name in ("probability", "reward", "child")):
        return "its outcome arrays differ in length"
    if len(first) != nodes + 1 or first[0] != 0 or first[-1] != rows or np.any(np.diff(first) < 1):
        return "its nodes don't share out its outcomes"
    for numbers in (policy.action, policy.label):
        if np.any(numbers < 0) or np.any(numbers >= len(policy.labels)):
            return "a label is missing"
    parents = np.repeat(np.arange(nodes), np.diff(first))
    later = (policy.child > parents) & (policy.child < nodes)
    ends = (policy.child < 0) & (policy.child >= UNPLANNED)
    if not np.all(later | ends):
        return "a child is neither a later node nor an end"
    pairs = parents * len(policy.labels) + policy.label
    if len(np.unique(pairs)) < rows:
        return "two outcomes of one node have the same label"
    if not np.all((policy.probability > 0) & (policy.probability <= 1)):
        return "a probability is not in (0, 1]"
    return None if np.all(np.isfinite(policy.reward)) else "a reward is not finite"
