"""Policy files: versioned, checksummed, and free of executable content.

A policy file is sealed (`vulcan.runtime.files`). Its content is MessagePack, arrays as
little-endian bytes:

    format 1   `Content`            a deterministic policy
    format 2   `RandomisedContent`  weights, and a `Content` for each member
    format 3   `Content`            a deterministic policy, and what bounds its frontier
    format 4   either of the first two, with constraints and what outcomes are charged for them
    format 5   likewise, with the chain on (decision, hidden state) of each member

docs/reference/policy-format.md describes the format for other readers.

Policies are written in the lowest format that can hold them, so that old versions read them. A file
that was truncated, changed or written by another program is refused, and so is one whose content
passes the checksum but is no policy.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from vulcan.constraints import Risk, RiskAhead, read_constraint, read_quantity
from vulcan.errors import OptionError, PolicyError, PolicyFileError, VulcanError
from vulcan.model.rules import LONGEST_HORIZON
from vulcan.numerics import LARGEST_REWARD, SUM_TOLERANCE, UNPLANNED
from vulcan.policy.policy import About, AnyPolicy, Beyond, Policy, RandomisedPolicy
from vulcan.runtime.files import Seal

SEAL: Final = Seal("policy", b"VULCAN\x1a\n", 5, PolicyFileError)

TYPES: Final = {
    "action": "<i4",
    "first_outcome": "<i8",
    "label": "<i4",
    "probability": "<f8",
    "reward": "<f8",
    "child": "<i4",
}


BOUNDED: Final = "a plan that is only bounded beyond its frontier has no file with constraints"

Decoded = TypeVar("Decoded")


class BeyondContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What bounds the frontier of a policy: a `Beyond`."""

    claim: str
    risk: bytes
    reward: bytes


class Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of a file with a deterministic policy."""

    about: About
    labels: list[str]
    arrays: dict[str, bytes]
    beyond: BeyondContent | None = None
    charges: dict[str, bytes] | None = None
    unfolded: Content | bool | None = None  # False: none is known, or it is one


class RandomisedContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file with a randomised policy."""

    weights: list[float]
    members: list[Content]


def encode_policy(policy: Policy) -> bytes:
    """Return a deterministic policy as bytes, without the seal of a file."""
    return msgspec.msgpack.encode(_describe(policy))


def decode_policy(content: bytes) -> Policy:
    """Return a deterministic policy from bytes, validated."""
    try:
        return _build(_decode(content, Content))
    except PolicyError as error:
        raise PolicyFileError(f"the content is not a policy: {error}") from error


def save_policy(policy: AnyPolicy, path: str | os.PathLike[str]) -> None:
    """Write a policy to a file, atomically."""
    content: Content | RandomisedContent
    seen = any(member.unfolded is not None for member in policy.members)
    if isinstance(policy, Policy):
        content, version = _describe(policy, seen), 1 if policy.beyond is None else 3
    else:
        members = [_describe(member, seen) for member in policy.members]
        content, version = RandomisedContent(list(policy.weights), members), 2
    if any(member.about.constraints or member.charges for member in policy.members):
        if version == 3:
            raise PolicyError(BOUNDED)
        version = 4
    version = 5 if seen else version
    replace(SEAL, version=version).write(path, msgspec.msgpack.encode(content))


def load_policy(path: str | os.PathLike[str]) -> AnyPolicy:
    """Return a policy of either kind from a file, validated."""
    content = SEAL.read(path)
    try:
        if "members" not in _decode(content, dict[str, msgspec.Raw]):
            return _build(_decode(content, Content))
        mixture, members = _decode(content, RandomisedContent), []
        for number, member in enumerate(mixture.members, 1):
            try:
                members.append(_build(member))
            except PolicyError as error:
                raise PolicyError(f"member {number}: {error}") from error
        return RandomisedPolicy(members, mixture.weights)
    except PolicyError as error:
        raise PolicyFileError(f"{path}: the content is not a policy: {error}") from error


def _decode(content: bytes, kind: type[Decoded]) -> Decoded:
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except (ValueError, RecursionError) as error:
        raise PolicyError(str(error)) from error


def _describe(policy: Policy, seen: bool = False) -> Content:
    arrays = {name: getattr(policy, name).astype(kind).tobytes() for name, kind in TYPES.items()}
    beyond = None
    if policy.beyond is not None:
        claim, *numbers = policy.beyond
        beyond = BeyondContent(claim, *(column.astype("<f8").tobytes() for column in numbers))
    charges = None
    if seen or policy.about.constraints or policy.charges or policy.unfolded is not None:
        charges = {name: c.astype("<f8").tobytes() for name, c in policy.charges.items()}
    unfolded: Content | bool | None = False if seen else None
    if policy.unfolded is not None:
        unfolded = _describe(policy.unfolded, True)
    return Content(policy.about, list(policy.labels), arrays, beyond, charges, unfolded)


def _build(content: Content) -> Policy:
    """Return the policy that a content describes; raise a `PolicyError` if it is none."""
    if set(content.arrays) != set(TYPES):
        raise PolicyError("it has other arrays")
    try:
        arrays = {
            name: np.frombuffer(content.arrays[name], kind).astype(kind[1:])
            for name, kind in TYPES.items()
        }
        beyond = None
        if content.beyond is not None:
            columns = (content.beyond.risk, content.beyond.reward)
            numbers = (np.frombuffer(column, "<f8").astype("f8") for column in columns)
            beyond = Beyond(content.beyond.claim, *numbers)
        charges = {
            name: np.frombuffer(column, "<f8").astype("f8")
            for name, column in (content.charges or {}).items()
        }
    except ValueError as error:
        raise PolicyError(str(error)) from error
    policy = Policy(content.about, content.labels, **arrays, beyond=beyond, charges=charges)
    problem = _find_problem(policy)
    if problem:
        raise PolicyError(problem)
    if isinstance(content.unfolded, Content):
        policy.unfolded = _build(content.unfolded)
    for text in policy.about.constraints:  # a limit without a text is not known
        with suppress(VulcanError):
            policy.constraints += (read_constraint(text),)
    return policy


def _find_problem(policy: Policy) -> str | None:
    """Return why the arrays are no policy; None if they are one."""
    first, nodes, rows = policy.first_outcome, len(policy), len(policy.label)
    if any(len(getattr(policy, name)) != rows for name in ("probability", "reward", "child")):
        return "its outcome arrays differ in length"
    # Compared, not subtracted: differences may overflow.
    shared = len(first) == nodes + 1 and first[0] == 0 and first[-1] == rows
    if not shared or np.any(first[1:] <= first[:-1]):
        return "first_outcome does not partition the outcomes"
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
    sums = np.add.reduceat(policy.probability, first[:-1]) if nodes else np.ones(0)
    for node in np.flatnonzero(np.abs(sums - 1) > SUM_TOLERANCE / 2).tolist():
        # Rounded once, as in the check of models.
        if abs(math.fsum(policy.probability[first[node] : first[node + 1]]) - 1) > SUM_TOLERANCE:
            return f"the probabilities of node {node} don't sum to 1"
    if not np.all(np.abs(policy.reward) <= LARGEST_REWARD):
        return f"a reward is not a number of at most {LARGEST_REWARD:g}"
    if policy.beyond is not None and (problem := policy.beyond.find_problem(policy.child)):
        return problem
    return _find_wrong_charges(policy) or _find_wrong_origin(policy, parents)


def _find_wrong_charges(policy: Policy) -> str | None:
    """Return why constraints or charges are invalid; None if they are valid."""
    limited = [text.partition(" <= ")[::2] for text in policy.about.constraints]
    if len(dict(limited)) < len(limited) or not all(bound for _, bound in limited):
        return "a constraint has no limit, or two"
    if policy.beyond is not None and (limited or policy.charges):
        return BOUNDED
    try:
        for quantity, _ in limited:
            read_quantity(quantity)
        for quantity, charges in policy.charges.items():
            constraint = read_quantity(quantity)
            if isinstance(constraint, RiskAhead) or len(charges) != len(policy.label):
                return f"its charges for {quantity!r} are not one for each outcome"
            if isinstance(constraint, Risk) and not np.all((charges == 0) | (charges == 1)):
                return f"an outcome is charged something else than 0 or 1 for {quantity!r}"
            if not np.all(np.abs(charges) <= LARGEST_REWARD):
                return f"a charge for {quantity!r} is not a number of at most {LARGEST_REWARD:g}"
    except OptionError as error:
        return str(error)
    return None


def _find_wrong_origin(policy: Policy, parents: NDArray[np.intp]) -> str | None:
    """Return why horizon or discount are invalid; None if they are valid."""
    about = policy.about
    if not 1 <= about.horizon <= LONGEST_HORIZON:
        return f"its horizon is not from 1 to {LONGEST_HORIZON:,}"
    if not 0 <= about.discount <= 1:
        return "its discount is not from 0 to 1"
    levels = [0] + [-1] * (len(policy) - 1)
    follows = policy.child >= 0
    links = zip(parents[follows].tolist(), policy.child[follows].tolist(), strict=True)
    for parent, child in links:  # parents come before their children
        if levels[child] <= levels[parent] != -1:
            levels[child] = levels[parent] + 1
    if max(levels) >= about.horizon + (about.initial_action is not False):
        return "it acts beyond its horizon"
    return None
