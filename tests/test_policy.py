"""Policies: saved and loaded, followed, drawn and compared."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import vulcan
from tests.brute_force import policy_choice
from tests.tables import Table, one_action
from vulcan import Outcome, Policy
from vulcan.domains import Bandit
from vulcan.files import HEADER
from vulcan.policy_file import RANDOMISED_SEAL, SEAL, Content

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def result() -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(Bandit(4), vulcan.Linear(0.002)), vulcan.ForwardSearch())


@pytest.fixture
def policy(result: vulcan.Result) -> Policy:
    assert result.policy is not None
    return result.policy


@pytest.fixture
def saved(policy: Policy, tmp_path: Path) -> Path:
    path = tmp_path / "plan.vulcan"
    policy.save(path)
    return path


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
    with pytest.raises(vulcan.PolicyFileError, match="1 bytes too many"):
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
        ("reward", 0, np.inf, "reward is not finite"),
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


def test_nothing_in_a_file_is_run() -> None:
    source = Path(vulcan.__file__).parent
    for path in source.rglob("*.py"):
        text = path.read_text()
        assert "import pickle" not in text, path
        assert "allow_pickle=True" not in text, path


def test_run_follows_labels_without_a_model(saved: Path) -> None:
    run = Policy.load(saved).start()
    assert run.action == "play 1"
    assert list(run.expected) == ["pays 0", "pays 1", "failure"]
    run.observe("pays 1")
    run.observe(0)
    assert run.history == [("play 1", "pays 1"), ("play 1", "pays 0")]
    while not run.finished:
        run.observe(0)
    assert not run.failed
    with pytest.raises(vulcan.PolicyError, match="finished"):
        _ = run.action
    assert run.policy == Policy.load(saved)


def test_run_ends_in_failure(policy: Policy) -> None:
    run = policy.start()
    run.observe("failure")
    assert run.finished
    assert run.failed
    assert not run.unplanned


def test_run_refuses_what_cannot_happen(policy: Policy) -> None:
    run = policy.start()
    for wrong in ("pays 2", 3, -1, True, 1.0):
        with pytest.raises(vulcan.PolicyError, match=r"0: 'pays 0', 1: 'pays 1', 2: 'failure'"):
            run.observe(wrong)
    assert run.history == []


def test_run_refuses_a_number_that_may_be_two_things() -> None:
    table = Table({0: {"go": [Outcome(0.5, 1, 1), Outcome(0.5, 2, 0)]}})
    run = vulcan.solve(
        vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()
    ).policy.start()
    with pytest.raises(vulcan.PolicyError, match="a position or the label"):
        run.observe(0)
    run.observe("0")
    assert run.history == [("go", "0")]


def test_bound_policy_gives_the_models_own_actions(tmp_path: Path) -> None:
    class Moves(Table):
        def actions(self, state: Any) -> list[Any]:
            return [("move", name) for name in super().actions(state)]

        def outcomes(self, state: Any, action: Any) -> list[Outcome]:
            return super().outcomes(state, action[1])

        def action_label(self, action: Any) -> str:
            return f"move {action[1]}"

    table = Moves({0: {"east": [Outcome(0.5, 1, 0), Outcome(0.5, 2, 1)]}}, horizon=2)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    assert policy.start().action == ("move", "east")
    policy.save(tmp_path / "plan")
    loaded = Policy.load(tmp_path / "plan")
    assert loaded.start().action == "move east"
    run = loaded.bind(table).start()
    run.observe("0")
    assert run.action == ("move", "east")
    run.observe("1")
    assert run.finished
    with pytest.raises(vulcan.MismatchError, match="answers differently"):
        loaded.bind(Bandit(2))


def test_drawing(policy: Policy) -> None:
    lines = str(policy).splitlines()
    assert lines[0] == "play 1  (fails 0.1 %)"
    assert lines[1].startswith("├─ 50.0 %  pays 0 → play")
    assert lines[-1].startswith("      └─ 63.7 %  pays 1 → play 1  (fails 0.1 %) …")
    assert policy.draw(depth=1).splitlines() == [
        "play 1  (fails 0.1 %)",
        "├─ 50.0 %  pays 0 → play 2  (fails 0.05 %) …",
        "└─ 50.0 %  pays 1 → play 1  (fails 0.1 %) …",
    ]
    short = policy.draw(depth=4, most_lines=5).splitlines()
    assert len(short) == 6
    assert "15 decision nodes" in short[-1]
    assert "nothing to decide" in str(
        vulcan.solve(
            vulcan.Problem(Table({}, 1), vulcan.Constant(0)), vulcan.ForwardSearch()
        ).policy
    )


def test_equality_is_about_what_a_policy_does(policy: Policy) -> None:
    again = vulcan.solve(
        vulcan.Problem(Bandit(4), vulcan.Linear(0.002)), vulcan.ForwardSearch()
    ).policy
    other = vulcan.solve(
        vulcan.Problem(Bandit(4), vulcan.Constant(0)), vulcan.ForwardSearch()
    ).policy
    assert policy == again
    assert policy != other
    assert policy != "policy"


@pytest.mark.parametrize("letter", ["A", "B"])
@pytest.mark.parametrize("horizon", [3, 5])
def test_golden_policies(letter: str, horizon: int) -> None:
    """Compare with files; `UPDATE_GOLDEN=1` writes them anew, to be read before they are kept."""
    constraint = {"A": vulcan.SequenceConstraint(), "B": vulcan.SurvivalConstraint()}[letter]
    solver = vulcan.ForwardSearch(constraint)
    result = vulcan.solve(vulcan.Problem(Bandit(horizon), vulcan.Linear(0.002)), solver)
    found = {
        "reward": result.certificate.reward,
        "risk": result.certificate.risk,
        "policy": json.loads(json.dumps(policy_choice(result.policy))),
    }
    path = GOLDEN / f"bandit-{horizon}-{letter}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n")
    golden = json.loads(path.read_text())
    assert found["policy"] == golden["policy"]
    assert found["reward"] == pytest.approx(golden["reward"], abs=1e-12)
    assert found["risk"] == pytest.approx(golden["risk"], abs=1e-12)
