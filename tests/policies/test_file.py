"""Policies saved and loaded: whole, or refused."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import re
import stat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import vulcan
from tests.helpers.tables import one_action
from vulcan import Outcome, Policy
from vulcan.domains import Bandit
from vulcan.policies.file import RANDOMISED_SEAL, SEAL, Content
from vulcan.runtime.files import HEADER


def test_round_trip(policy: Policy, saved: Path) -> None:
    loaded = Policy.load(saved)
    assert loaded == policy
    assert loaded.about == policy.about
    assert loaded.about.risk_bound == "0.002 * x"
    assert len(loaded) == 15
    assert loaded.complete
    problem = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))
    assert vulcan.certify(problem, loaded) == vulcan.certify(problem, policy)


def test_saving_replaces_at_once_or_not_at_all(
    policy: Policy, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        policy.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_saved_files_have_ordinary_permissions(saved: Path) -> None:
    plain = saved.with_name("plain")
    plain.write_bytes(b"")
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_file_cut_at_every_length(saved: Path) -> None:
    data = saved.read_bytes()
    for length in range(len(data)):
        saved.write_bytes(data[:length])
        with pytest.raises(vulcan.PolicyFileError, match=r"cut off|not a Vulcan policy"):
            Policy.load(saved)
    saved.write_bytes(data + b"x")
    with pytest.raises(vulcan.PolicyFileError, match="bytes too many: it should end after"):
        Policy.load(saved)


def test_file_changed_at_every_byte(saved: Path) -> None:
    data = saved.read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x41
        saved.write_bytes(bytes(changed))
        with pytest.raises(vulcan.PolicyFileError):
            Policy.load(saved)


def test_foreign_and_missing_files(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04 a zip file", b"VULCAX", b"{}" * 100):
        path = tmp_path / "foreign"
        path.write_bytes(content)
        with pytest.raises(vulcan.PolicyFileError, match=r"foreign: (this is not|the file is cut)"):
            Policy.load(path)
    with pytest.raises(vulcan.PolicyFileError, match=r"nowhere: can't be read: No such file"):
        Policy.load(tmp_path / "nowhere")


def seal(content: bytes, version: int = SEAL.version) -> bytes:
    data = HEADER.pack(SEAL.magic, version, len(content)) + content
    return data + hashlib.sha256(data).digest()


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
    saved.write_bytes(seal(b"anything", RANDOMISED_SEAL.version + 1))
    with pytest.raises(vulcan.PolicyFileError, match="format 3; this Vulcan reads up to 2"):
        Policy.load(saved)


@pytest.mark.parametrize(
    ("array", "position", "value", "problem"),
    [
        ("child", 0, 0, "neither a later node nor an end"),
        ("child", 0, 99, "neither a later node nor an end"),
        ("child", 0, -4, "neither a later node nor an end"),
        ("action", 0, 99, "a label is missing"),
        ("label", 1, -1, "a label is missing"),
        ("label", 1, 1, "the same label"),
        ("first_outcome", 1, 0, "don't share out"),
        ("first_outcome", -1, 99, "don't share out"),
        ("probability", 0, np.nan, "probability"),
        ("probability", 0, -0.5, "probability"),
        ("probability", 0, 1e-9, "probabilities of node 0 don't sum to 1"),
        ("reward", 0, np.inf, "reward is not a number of at most"),
        ("reward", 0, np.nan, "reward is not a number of at most"),
        ("reward", 0, 1e101, "reward is not a number of at most"),
    ],
)
def test_sealed_nonsense_is_refused(
    policy: Policy, saved: Path, array: str, position: int, value: float, problem: str
) -> None:
    content = msgspec.msgpack.decode(saved.read_bytes()[HEADER.size : -32], type=Content)
    changed = getattr(policy, array).copy()
    changed[position] = value
    content.arrays[array] = changed.tobytes()
    saved.write_bytes(seal(msgspec.msgpack.encode(content)))
    with pytest.raises(vulcan.PolicyFileError, match=problem):
        Policy.load(saved)


def test_differences_too_large_for_a_number_are_refused(saved: Path) -> None:
    """Each is positive, if it is computed with 64 bits, and together they come around."""
    largest = (1 << 63) - 1
    content = msgspec.msgpack.decode(saved.read_bytes()[HEADER.size : -32], type=Content)
    rows = len(content.arrays["label"]) // 4
    content.arrays["action"] = np.zeros(3, "<i4").tobytes()
    content.arrays["first_outcome"] = np.array([0, largest, -2, rows], "<i8").tobytes()
    saved.write_bytes(seal(msgspec.msgpack.encode(content)))
    with pytest.raises(vulcan.PolicyFileError, match="don't share out"):
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
def test_what_a_policy_says_of_itself_is_checked(
    saved: Path, change: dict[str, Any], problem: str
) -> None:
    content = msgspec.msgpack.decode(saved.read_bytes()[HEADER.size : -32])
    content["about"].update(change)
    saved.write_bytes(seal(msgspec.msgpack.encode(content)))
    with pytest.raises(vulcan.PolicyFileError, match=problem):
        Policy.load(saved)


def test_a_claim_of_length_takes_no_memory(saved: Path) -> None:
    header = HEADER.pack(SEAL.magic, 1, 1 << 60)
    saved.write_bytes(header + bytes(100))
    with pytest.raises(vulcan.PolicyFileError, match="claims 1152921504606846976 bytes"):
        Policy.load(saved)
    with saved.open("wb") as stream:  # which takes no room on the disk either
        stream.write(HEADER.pack(b"VULCAX\x1a\n", 1, 1 << 60))
        stream.truncate(1 << 40)
    with pytest.raises(vulcan.PolicyFileError, match="this is not a Vulcan policy"):
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
        with pytest.raises(vulcan.PolicyFileError, match="not a policy"):
            Policy.load(saved)


def test_only_plain_files_are_replaced(policy: Policy, tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="only plain files"):
        policy.save(pipe)
    link.symlink_to(tmp_path / "plan")
    policy.save(link)
    (tmp_path / "plan").chmod(0o600)
    policy.save(link)
    assert link.is_symlink()
    assert (tmp_path / "plan").stat().st_mode & 0o777 == 0o600
    assert Policy.load(tmp_path / "plan") == policy


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
    assert found == {"runtime/files.py", "runtime/leftovers.py", "kernels/cache.py"}
