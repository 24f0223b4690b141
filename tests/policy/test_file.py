"""Policies saved and loaded: whole, or refused."""

from __future__ import annotations

import base64
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import vulcan
from tests.helpers.sealed import seal, unseal
from tests.helpers.tables import one_action
from tests.policy.test_policy import make_chain
from vulcan import Outcome, Policy
from vulcan.domains import Bandit
from vulcan.errors import CheckpointError, PolicyFileError
from vulcan.numerics import UNPLANNED
from vulcan.policy.file import SEAL, decode_policy, encode_policy
from vulcan.runtime.files import DIGEST_SIZE, HEADER, Seal


def test_round_trip(policy: Policy, saved: Path) -> None:
    loaded = Policy.load(saved)
    assert loaded == policy
    assert loaded.about == policy.about
    assert loaded.about.risk_bound == "0.002 * x"
    assert len(loaded) == 15
    assert loaded.complete
    problem = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))
    assert vulcan.certify(problem, loaded) == vulcan.certify(problem, policy)


def test_file_cut_at_every_length(saved: Path) -> None:
    make_chain(1).save(saved)
    data = saved.read_bytes()
    for length in range(len(data)):
        saved.write_bytes(data[:length])
        with pytest.raises(PolicyFileError, match=r"cut off|not a Vulcan policy"):
            Policy.load(saved)
    saved.write_bytes(data + b"x")
    with pytest.raises(PolicyFileError, match="bytes too many: it should end after"):
        Policy.load(saved)


def test_file_changed_at_every_byte(saved: Path) -> None:
    make_chain(1).save(saved)
    data = saved.read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x41
        saved.write_bytes(bytes(changed))
        with pytest.raises(PolicyFileError):
            Policy.load(saved)


def test_foreign_and_missing_files(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04 a zip file", b"VULCAX", b"{}" * 100):
        path = tmp_path / "foreign"
        path.write_bytes(content)
        with pytest.raises(PolicyFileError, match=r"foreign: (this is not|the file is cut)"):
            Policy.load(path)
    with pytest.raises(PolicyFileError, match=r"nowhere: can't be read: No such file"):
        Policy.load(tmp_path / "nowhere")


# Written by the first version that wrote files at all.
OLD_FILE = (
    "R#i+xK~5S90RR91djS9d00000gQa0&Z*_ErrEPCyWo+3eRAFLlWhiKGa%p;RZapz9AY^HCV{dhCbUiUHFf1T*bYXIIJuoS&"
    "W@&C`WpZ$GX>N4cAY(UTF=S+BIAvilH)3NqHa9ajV>V)AG-Nh1He+FAWv6Iwa%p;RZULxdX>((5b#8RaKkxtm00000s&Z*_"
    "YhPk-b#7#%FfKKwb8l>RWpdd*MsIR=VRB?sWnpq-XeeWEZgX^UVQFr3JyUgZc4>BDY(sBub98cHX>N2VDJ&pkb#z~IXm4_K"
    "JyddaWhtg?VPa)$bCaTHZ>4l-WpZVwW?^Y;b#i5<VRCX|d2@!QVPkY@Z*If{00000t!8O*b97&Cb#!BIZDqs|0000000000"
    "0ssI200000rEFnhWo*O<0RR910ssI2t8j8}Vqs!wY-x0P#1H@g00000=sy4e00000&_AYfWp`n6WW*2v000000PsHm00000"
    "0001`V`yn?WW)&n|NsB~|NsA<7=?FS%@yuqhv!m|&a5wt;CBC$;H&9kq9tpJjMLK"
)


def test_old_files_stay_readable_and_are_written_as_ever(tmp_path: Path) -> None:
    old = base64.b85decode(OLD_FILE)
    path = tmp_path / "old.vulcan"
    path.write_bytes(old)
    policy = Policy.load(path)
    table = one_action(Outcome(0.75, 1.0, 1, "there"), Outcome.failure(0.25))
    assert vulcan.certify(vulcan.Problem(table, vulcan.Constant(0.5)), policy).risk == 0.25
    policy.save(path)
    assert path.read_bytes() == old


def test_newer_format_is_refused(saved: Path) -> None:
    saved.write_bytes(seal(b"anything", SEAL.version + 1))
    with pytest.raises(PolicyFileError, match="format 6; this Vulcan reads up to 5"):
        Policy.load(saved)


def test_differences_too_large_for_a_number_are_refused(saved: Path) -> None:
    """Each is positive, if it is computed with 64 bits, and together they come around."""
    largest = (1 << 63) - 1
    content = unseal(saved)
    rows = len(content["arrays"]["label"]) // 4
    content["arrays"]["action"] = np.zeros(3, "<i4").tobytes()
    content["arrays"]["first_outcome"] = np.array([0, largest, -2, rows], "<i8").tobytes()
    saved.write_bytes(seal(content))
    with pytest.raises(PolicyFileError, match="does not partition"):
        Policy.load(saved)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"horizon": 0}, "its horizon is not from 1"),
        ({"horizon": 10**9}, "its horizon is not from 1"),
        ({"horizon": 2}, "it acts beyond its horizon"),
        ({"discount": 1.5}, "its discount is not from 0 to 1"),
        ({"discount": math.nan}, "its discount is not from 0 to 1"),
    ],
)
def test_what_a_policy_says_of_itself_is_checked(saved, change, problem):
    content = unseal(saved)
    content["about"].update(change)
    saved.write_bytes(seal(content))
    with pytest.raises(PolicyFileError, match=problem):
        Policy.load(saved)


def test_a_claim_of_length_takes_no_memory(saved: Path) -> None:
    header = HEADER.pack(SEAL.magic, 1, 1 << 60)
    saved.write_bytes(header + bytes(100))
    with pytest.raises(PolicyFileError, match="claims 1152921504606846976 bytes"):
        Policy.load(saved)
    with saved.open("wb") as stream:  # which takes no room on the disk either
        stream.write(HEADER.pack(b"VULCAX\x1a\n", 1, 1 << 60))
        stream.truncate(1 << 40)
    with pytest.raises(PolicyFileError, match="this is not a Vulcan policy"):
        Policy.load(saved)


def test_sealed_content_of_another_kind_is_refused(saved: Path) -> None:
    for content in (
        b"",
        msgspec.msgpack.encode({"about": 1}),
        msgspec.msgpack.encode([1, 2]),
        b"\x81\xa1\xff\x01",  # a key that is no UTF-8
        b"\x81\xa5about" + b"\x91" * 100_000,  # a list in a list in a list
    ):
        saved.write_bytes(seal(content))
        with pytest.raises(PolicyFileError, match="not a policy"):
            Policy.load(saved)


def test_all_files_are_written_in_one_way() -> None:
    source = Path(vulcan.__file__).parent
    ways = (r"\.write_(text|bytes)\(", r"\bopen\([^()]*[\"'][wax]b?[\"']", r"os\.(replace|rename)")
    writing = re.compile("|".join(ways))
    found = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if writing.search(path.read_text())
    }
    # What writes for all others; temporary files; and compiled kernels, each sealed by itself.
    assert found == {"runtime/files.py", "kernels/compilation.py"}


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
        ("first_outcome", 0, 1, "does not partition"),
        ("first_outcome", 1, 6, "does not partition"),  # none is left for the next one
        ("first_outcome", 3, 8, "does not partition"),
        ("first_outcome", 3, 10, "does not partition"),
        ("probability", 0, 0.0, "not in"),
        ("probability", 0, np.nextafter(1.0, 2.0), "not in"),
        ("probability", 0, 5e-324, "don't sum to 1"),
        ("probability", 0, np.nan, "not in"),
        ("probability", 0, -0.5, "not in"),
        ("reward", 8, np.nan, "not a number of at most"),
        ("reward", 8, np.inf, "not a number of at most"),
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
        with pytest.raises(PolicyFileError, match="does not partition"):
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
def test_content_of_other_parts_is_refused(change, problem):
    content = describe()
    change(content)
    with pytest.raises(PolicyFileError, match=f"the content is not a policy: .*{problem}"):
        read(content)


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
