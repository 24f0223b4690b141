"""What a policy file may just say: the last values that pass, and the first that fail."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.policies.test_policy_parts import make_chain
from vulcan import Policy, PolicyFileError, RandomisedPolicy
from vulcan.errors import CheckpointError
from vulcan.policies.file import RANDOMISED_SEAL, SEAL, decode_policy, encode_policy
from vulcan.runtime.files import DIGEST_SIZE, HEADER, Seal, write_atomically
from vulcan.sentinels import FAILED, UNPLANNED

POLICY = make_chain(3)  # nodes of three outcomes, of which the last fails; six labels


def describe(**changed: Any) -> dict[str, Any]:
    """Return the content of a policy, with some arrays changed."""
    content = msgspec.msgpack.decode(encode_policy(POLICY))
    for name, array in changed.items():
        content["arrays"][name] = array.tobytes()
    return content


def read(content: dict[str, Any]) -> Policy:
    return decode_policy(msgspec.msgpack.encode(content))


def put(name: str, place: int, value: float) -> dict[str, Any]:
    """Return the content with one entry of an array changed."""
    array = getattr(POLICY, name).copy()
    array[place] = value
    return describe(**{name: array})


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("child", 0, 2),
        ("child", 0, UNPLANNED),
        ("action", 0, 5),
        ("action", 1, 0),
        ("label", 0, 5),
        ("label", 0, 0),
        ("reward", 0, -1e100),
    ],
)
def test_the_last_values_that_pass(name: str, place: int, value: float) -> None:
    assert getattr(read(put(name, place, value)), name)[place] == value


@pytest.mark.parametrize(
    ("name", "place", "value", "problem"),
    [
        ("child", 0, 3, "neither a later node nor an end"),
        ("child", 3, 1, "neither a later node nor an end"),  # to itself
        ("child", 6, 1, "neither a later node nor an end"),
        ("child", 0, UNPLANNED - 1, "neither a later node nor an end"),
        ("action", 0, 6, "a label is missing"),
        ("action", 0, -1, "a label is missing"),
        ("label", 0, 6, "a label is missing"),
        ("label", 0, -1, "a label is missing"),
        ("label", 4, 1, "the same label"),
        ("label", 8, 1, "the same label"),
        ("first_outcome", 0, 1, "don't share out"),
        ("first_outcome", 1, 6, "don't share out"),  # none is left for the next one
        ("first_outcome", 3, 8, "don't share out"),
        ("first_outcome", 3, 10, "don't share out"),
        ("probability", 0, 0.0, "not in"),
        ("probability", 0, np.nextafter(1.0, 2.0), "not in"),
        ("probability", 0, 5e-324, "don't sum to 1"),
        ("reward", 8, np.nan, "not a number of at most"),
        ("reward", 8, np.nextafter(1e100, 2e100), "not a number of at most"),
    ],
)
def test_the_first_values_that_fail(name: str, place: int, value: float, problem: str) -> None:
    with pytest.raises(PolicyFileError, match=problem):
        read(put(name, place, value))


def test_no_label_stands_for_another_of_the_same_sum() -> None:
    # Node 0 with label 5 and node 1 with label 0 have a sum each that others have as well.
    content = put("label", 0, 5)
    content["arrays"]["label"] = np.array([5, 2, 3, 0, 1, 4, 5, 1, 0], np.int32).tobytes()
    assert read(content).label.tolist() == [5, 2, 3, 0, 1, 4, 5, 1, 0]


@pytest.mark.parametrize("name", ["probability", "reward", "child"])
def test_arrays_of_outcomes_have_one_length(name: str) -> None:
    array = getattr(POLICY, name)
    for other in (array[:-1], np.append(array, array[-1:])):
        with pytest.raises(PolicyFileError, match="differ in length"):
            read(describe(**{name: other}))


def test_nodes_and_their_outcomes_are_as_many() -> None:
    for other in (POLICY.action[:-1], np.append(POLICY.action, POLICY.action[:1])):
        with pytest.raises(PolicyFileError, match="don't share out"):
            read(describe(action=other))


def add_field(content: dict[str, Any]) -> None:
    content["more"] = 1


def add_array(content: dict[str, Any]) -> None:
    content["arrays"]["more"] = b""


def drop_array(content: dict[str, Any]) -> None:
    del content["arrays"]["reward"]


def cut_array(content: dict[str, Any]) -> None:
    content["arrays"]["reward"] = content["arrays"]["reward"][:-1]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (add_field, "unknown field"),
        (add_array, "other arrays"),
        (drop_array, "other arrays"),
        (cut_array, "multiple of element size"),
    ],
)
def test_content_of_other_parts_is_refused(
    change: Callable[[dict[str, Any]], None], problem: str
) -> None:
    content = describe()
    change(content)
    with pytest.raises(PolicyFileError, match=f"the content is not a policy: .*{problem}"):
        read(content)


def test_randomised_content_of_other_parts_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    bad = put("child", 0, 3)
    for content, problem in (
        ({"weights": [1.0], "members": [describe()], "more": 1}, "unknown field"),
        ({"weights": [0.5, 0.5], "members": [bad, describe()]}, "member 1: a child"),
        ({"weights": [0.5, 0.5], "members": [describe(), bad]}, "member 2: a child"),
    ):
        RANDOMISED_SEAL.write(path, msgspec.msgpack.encode(content))
        with pytest.raises(PolicyFileError, match=problem):
            Policy.load(path)


def test_kinds_of_policies_have_versions_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    for policy, version in ((POLICY, 1), (RandomisedPolicy([POLICY], [1.0]), 2)):
        policy.save(path)
        assert HEADER.unpack_from(path.read_bytes())[1] == version
        assert Policy.load(path) == policy
        assert Policy.load(path).members[0].child[2] == FAILED


# Sealed files.

OTHER = Seal("checkpoint", b"OTHER\x1a\r\n", 5, CheckpointError, oldest=3)


def write(path: Path, version: int, content: bytes = b"content") -> bytes:
    Seal("", OTHER.magic, version, CheckpointError).write(path, content)
    return path.read_bytes()


def test_versions_from_the_oldest_to_the_newest_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for version in (3, 4, 5):
        write(path, version)
        assert OTHER.read(path) == b"content"
    write(path, 2)
    with pytest.raises(CheckpointError, match="format 2, of an older Vulcan; this one reads 3"):
        OTHER.read(path)
    write(path, 6)
    with pytest.raises(CheckpointError, match="format 6; this Vulcan reads up to 5"):
        OTHER.read(path)
    SEAL.write(path, b"")
    assert SEAL.read(path) == b""
    Seal("", SEAL.magic, 0, CheckpointError).write(path, b"")
    with pytest.raises(PolicyFileError, match="format 0"):
        SEAL.read(path)


def test_damage_is_said_exactly(tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = write(path, 5)
    whole = len(data)
    assert whole == HEADER.size + len(b"content") + DIGEST_SIZE == 20 + 7 + 32
    least = HEADER.size + DIGEST_SIZE
    for damaged, problem in (
        (b"", "not a Vulcan checkpoint"),
        (b"X" + data[1:], "not a Vulcan checkpoint"),
        (b"OTHER\x1a\r" + b"x" + data[8:], "not a Vulcan checkpoint"),
        (data[:1], "cut off: only 1 bytes are left"),
        (data[: least - 1], f"cut off: only {least - 1} bytes are left"),
        (data[:least], f"cut off: {least} of {whole} bytes are left"),
        (data[:-1], f"cut off: {whole - 1} of {whole} bytes are left"),
        (data + b"xx", "bytes too many"),
        (data[:-1] + bytes([data[-1] ^ 1]), "checksum"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"file: .*{problem}"):
            OTHER.read(path)


def test_what_can_not_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path, b"a file in the place of a folder")
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "file", "text")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    write_atomically(tmp_path / "file", b"bytes")
    assert (tmp_path / "file").read_bytes() == b"bytes"


def test_writing_leaves_the_mask_of_the_process_alone(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"bytes")
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    finally:
        assert os.umask(before) == 0o027
