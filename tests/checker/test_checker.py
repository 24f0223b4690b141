"""`vulcan_check`: it says what exact certificates say, needs nothing, and survives any file."""

from __future__ import annotations

import ast
import math
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import vulcan.bounds.parse
import vulcan_check
from tests.helpers.mixtures import mix, mix_bandit, take
from tests.helpers.sealed import seal, unseal
from tests.helpers.tables import Table, one_action
from tests.oracles.checker import compare
from vulcan import Outcome, Policy, Start
from vulcan.domains import Bandit
from vulcan.runtime.files import HEADER
from vulcan_check import BAD_FILE, CANNOT_SAY, NOT_SAFE, OWN_BOUND, SAFE

SOURCE = Path(vulcan_check.__file__)


@pytest.fixture(scope="module")
def policy() -> Policy:
    found = vulcan.solve(vulcan.Problem(Bandit(3), vulcan.Linear(0.002)), vulcan.ForwardSearch())
    assert found.policy is not None
    return found.policy


@pytest.fixture
def saved(policy: Policy, tmp_path: Path) -> Path:
    path = tmp_path / "plan.vulcan"
    policy.save(path)
    return path


def test_it_is_short_and_imports_the_standard_library_only() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert max(map(len, text.splitlines())) <= 100
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add(str(node.module).partition(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"eval", "exec", "compile", "__import__"}
    assert names <= sys.stdlib_module_names
    assert not names & {"pickle", "marshal", "importlib", "ctypes", "subprocess"}


def test_it_runs_alone_where_nothing_is_installed(saved: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copied" / "check.py"
    copy.parent.mkdir()
    shutil.copy(SOURCE, copy)
    command = [sys.executable, "-I", "-S", str(copy), str(saved), "--bound", "0.002*x"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=copy.parent)
    assert (found.returncode, found.stderr) == (SAFE, "")
    assert found.stdout.startswith("safe: the risk is acceptable for the reward by --bound\n")


def test_it_agrees_with_exact_certificates(tmp_path: Path) -> None:
    answers = {compare(number, tmp_path / "plan.vulcan") for number in range(120)}
    assert answers == {"safe", "not safe", "incomplete"}


@pytest.mark.parametrize("wrong", [{"discount": 1.0}, {"initial_action": False}])
def test_a_difference_would_be_noticed(wrong, tmp_path, monkeypatch):
    right = vulcan_check.evaluate_member
    monkeypatch.setattr(
        vulcan_check, "evaluate_member", lambda about, columns: right({**about, **wrong}, columns)
    )
    noticed = 0
    for number in range(100):
        try:
            compare(number, tmp_path / "plan.vulcan")
        except (AssertionError, KeyError):
            noticed += 1
    assert noticed > 5


def test_its_answers_are_ascii(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tmp_path / "é.vulcan") == BAD_FILE
    assert capsys.readouterr().out.isascii()


def check(path: Path, *options: str) -> int:
    return vulcan_check.main([str(path), *options])


def test_answers_and_exit_codes(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(saved, "--bound", "0.002*x") == SAFE
    told = capsys.readouterr().out
    assert told.startswith("safe: ")
    assert "'Bandit(horizon=3)'" in told
    assert "'0.002*x'" in told
    assert check(saved) == OWN_BOUND
    told = capsys.readouterr().out
    assert "'0.002 * x'" in told
    assert check(saved, "--bound", "1e-9") == NOT_SAFE
    assert check(saved, "--bound", "nonsense(x)") == CANNOT_SAY
    assert check(saved.with_name("nowhere")) == BAD_FILE
    assert check(saved.parent) == BAD_FILE
    assert "Traceback" not in capsys.readouterr().out


def test_a_bound_in_the_file_never_makes_a_policy_safe(saved, capsys):
    content = unseal(saved)
    for text, code in (("0.9", OWN_BOUND), ("1e-9", NOT_SAFE), ("0.9 # *x", CANNOT_SAY)):
        content["about"]["risk_bound"] = text
        saved.write_bytes(seal(content))
        assert check(saved) == code
        first = capsys.readouterr().out.splitlines()[0]
        assert not first.startswith("safe")
        assert ("the bound in the file" in first) == (code != CANNOT_SAY)
    assert check(saved, "--bound", "0.001*x") == NOT_SAFE
    assert check(saved, "--bound", "0.002*x") == SAFE


def test_the_discount_that_it_counts_with_is_shown(saved, capsys):
    content = unseal(saved)
    content["about"]["discount"] = 0.75
    saved.write_bytes(seal(content))
    check(saved)
    assert "  discount  0.75\n" in capsys.readouterr().out


def test_every_byte_that_changes_and_every_cut_is_noticed(saved, capsys):
    take("leap").save(saved)
    data = saved.read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x41
        for damaged in (bytes(changed), data[:place]):
            saved.write_bytes(damaged)
            assert check(saved) == BAD_FILE, place
    saved.write_bytes(data + b"x")
    assert check(saved) == BAD_FILE
    assert capsys.readouterr().out.count("bad file: ") == 2 * len(data) + 1


@pytest.mark.parametrize("version", [1, 2])
def test_damage_under_a_right_checksum_gives_an_answer(version: int, tmp_path: Path) -> None:
    """A wrong file with a right checksum gets one of the answers, never a traceback or "safe"."""
    path = tmp_path / "plan.vulcan"
    (mix_bandit() if version == 2 else mix().members[0]).save(path)
    content = path.read_bytes()[HEADER.size : -32]
    random, answers = Random(version), []
    for _ in range(500):
        changed = bytearray(content)
        for _ in range(random.choice([1, 1, 2, 8])):
            changed[random.randrange(len(changed))] = random.randrange(256)
        path.write_bytes(seal(bytes(changed), version))
        answers.append(check(path))
        if answers[-1] in (OWN_BOUND, NOT_SAFE):
            Policy.load(path)  # which refuses whatever the format does not allow
    assert answers.count(BAD_FILE) > 100
    assert set(answers) <= {OWN_BOUND, NOT_SAFE, BAD_FILE, CANNOT_SAY}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\x81\xa5about" * 50_000,
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x81\xa1\xff\x01",
        b"\x82\xa1a\x01\xa1a\x01",
        b"\x80\x80",
    ],
)
def test_content_that_is_no_policy_is_refused_at_once(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "plan.vulcan"
    for version in (1, 2):
        path.write_bytes(seal(content, version))
        assert check(path) == BAD_FILE


def test_a_length_beyond_the_file_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "plan.vulcan"
    path.write_bytes(HEADER.pack(b"VULCAN\x1a\n", 1, 1 << 62) + bytes(100))
    assert check(path) == BAD_FILE
    path.write_bytes(seal(b"\x80", 3))
    assert check(path) == BAD_FILE


@pytest.mark.parametrize(
    ("array", "kind", "position", "value", "problem"),
    [
        ("child", "<i4", 0, 0, "no later node"),
        ("child", "<i4", 0, 99, "no later node"),
        ("child", "<i4", 0, -4, "no later node"),
        ("action", "<i4", 0, 99, "a label is missing"),
        ("label", "<i4", 1, -1, "a label is missing"),
        ("label", "<i4", 1, 1, "labels are not unique"),
        ("first_outcome", "<i8", 1, 0, "first_outcome is no partition"),
        ("first_outcome", "<i8", -1, 99, "first_outcome is no partition"),
        ("probability", "<f8", 0, math.nan, "not a probability"),
        ("probability", "<f8", 0, 1e-9, "probabilities sum to"),
        ("reward", "<f8", 0, math.inf, "not a reward"),
        ("reward", "<f8", 0, math.nan, "not a reward"),
    ],
)
def test_sealed_nonsense_is_refused(saved, array, kind, position, value, problem, capsys):
    content = unseal(saved)
    changed = np.frombuffer(content["arrays"][array], kind).copy()
    changed[position] = value
    content["arrays"][array] = changed.tobytes()
    saved.write_bytes(seal(content))
    assert check(saved) == BAD_FILE
    assert problem in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        {"horizon": 0},
        {"horizon": 2},
        {"horizon": True},
        {"discount": 1.5},
        {"discount": "1"},
        {"model": None},
        {"risk_bound": 3},
        {"initial_action": 1},
    ],
)
def test_a_wrong_description_is_refused(saved: Path, change: dict[str, Any]) -> None:
    content = unseal(saved)
    content["about"].update(change)
    saved.write_bytes(seal(content))
    assert check(saved) == BAD_FILE


@pytest.mark.parametrize("name", ["model", "fingerprint", "horizon", "discount", "risk_bound"])
def test_a_description_that_lacks_something_is_refused(saved: Path, name: str) -> None:
    content = unseal(saved)
    del content["about"][name]
    saved.write_bytes(seal(content))
    assert check(saved) == BAD_FILE
    with pytest.raises(vulcan.errors.PolicyFileError, match=name):
        Policy.load(saved)


def test_weights_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "plan.vulcan"
    mix_bandit().save(path)
    content = unseal(path)
    for weights in ([0.6, 0.5], [1.4, -0.4], [math.nan, 0.4], [1.0], [], ["0.6", 0.4], 1):
        path.write_bytes(seal({**content, "weights": weights}, 2))
        assert check(path) == BAD_FILE, weights
    content["members"][1]["about"]["discount"] = 0.5
    path.write_bytes(seal(content, 2))
    assert check(path) == BAD_FILE


def test_an_old_file_that_does_not_say_how_it_is_discounted_gets_no_answer(tmp_path: Path) -> None:
    steps = {s: {"go": [Outcome(1.0, 1.0, 2)]} for s in (0, 1)}
    steps[2] = {"go": [Outcome(1.0, 1.0, 3)]}
    path = tmp_path / "plan.vulcan"
    drawn = Start.draw([Outcome(0.5, 0.0, 0), Outcome(0.5, 0.0, 1)])
    for start, horizon, code in ((0, 2, CANNOT_SAY), (drawn, 3, CANNOT_SAY), (drawn, 2, OWN_BOUND)):
        problem = vulcan.Problem(Table(steps, horizon, 0.5, start), 0.1)
        vulcan.solve(problem).policy.save(path)
        assert check(path) == OWN_BOUND
        content = unseal(path)
        del content["about"]["initial_action"]
        path.write_bytes(seal(content))
        assert check(path) == code  # three decisions in two steps: the first is none of them


def test_nothing_to_decide_is_safe(tmp_path: Path) -> None:
    path = tmp_path / "plan.vulcan"
    vulcan.solve(vulcan.Problem(Table({}, horizon=3), 0.1)).policy.save(path)
    assert check(path, "--bound", "0.1") == SAFE


def enclose(text: str, x: float) -> tuple[Fraction, Fraction]:
    numbers = {"x": x, "pi": math.pi, "e": math.e}
    names = {k: (Fraction(v), Fraction(v)) for k, v in numbers.items()}
    return vulcan_check.enclose(vulcan_check.parse(text), names)


@pytest.mark.parametrize("function", sorted(vulcan.bounds.parse.FUNCTIONS))
def test_functions_are_enclosed_narrowly(function: str) -> None:
    random = Random(function)
    exact = getattr(math, function)
    for _ in range(30):
        x = random.choice([1, -1]) * 10 ** random.uniform(-6, 2)
        x = abs(x) if function in ("log", "sqrt") else max(x, -0.9) if function == "log1p" else x
        low, high = enclose(f"{function}(x)", x)
        size = max(1, abs(low))
        assert 0 <= high - low <= size * Fraction(1, 10**20)
        assert abs(float(low) - exact(x)) <= 1e-14 * size


def test_powers_are_those_of_real_numbers() -> None:
    for base, exponent, power in ((-2, 3, -8), (-2, 2, 4), (4, 0.5, 2), (0, 0.5, 0), (2, -2, 0.25)):
        low, high = enclose(f"({base}) ** ({exponent})", 0.0)
        assert low <= power <= high
        assert high - low < 1e-20
    for text in ("(-2) ** 0.5", "0 ** (-1)", "log(0)", "1 / (x - x)", "exp(5000)", "9 ** 9 ** 9"):
        with pytest.raises((vulcan_check.NoAnswerError, ArithmeticError)):
            float(enclose(text, 1.0)[0])


@pytest.mark.parametrize(
    "text",
    [
        *("", "x +", "__import__('os')", "x.real", "[x]", "min()", "exp(x, x)", "x if x else x"),
        *("piecewise()", "piecewise((1, 0), (0, 1))", "piecewise((x, 0), (1, 1))", "exp(x=1)"),
        *("(" * 5000 + "x" + ")" * 5000, "-" * 5000 + "x", "+".join("x" * 300), "1e999", "x @ x"),
        *(
            "1j",
            "True",
            "0.9 # *x",
            "0x1*x",
            "0b1",
            "1_0*x",
            "0.9\n",
            "\u0660.9",
            "0.1 0.2",
            "x // 2",
        ),
        *("min(x,)", "min(*x)", "(x)(1)", "u", "du", "share", "exp", "0.9;", "0.9, 0.9", "x1"),
        *(
            "piecewise((0, 0), (1, 1),)",
            "piecewise((0, 0x0), (1, 1))",
            "2 * piecewise((0, 0), (1, 1))",
        ),
    ],
)
def test_what_is_no_bound_is_never_run(saved: Path, text: str) -> None:
    assert check(saved, f"--bound={text}") == CANNOT_SAY


@pytest.mark.parametrize(
    ("bound", "code"),
    [
        ("0.25 - 1e-12", SAFE),
        ("0.25 - 1.0001e-12", NOT_SAFE),
        ("0.25 - 0.9999e-12 * exp(0)", SAFE),
        ("0.25 - 1.0001e-12 * exp(0)", NOT_SAFE),
        ("0.25 - 1e-12 * exp(0)", CANNOT_SAY),  # between numbers below and above the risk
    ],
)
def test_the_tolerance_is_exact_and_what_is_too_close_is_not_decided(bound, code, tmp_path, capsys):
    table = one_action(Outcome(0.75, 1.0, 1), Outcome.failure(0.25))
    path = tmp_path / "plan.vulcan"
    vulcan.solve(vulcan.Problem(table, 0.5)).policy.save(path)
    assert check(path, "--bound", bound) == code
    assert ("too close" in capsys.readouterr().out) == (code == CANNOT_SAY)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "x*x + 1",
            "-x",
            "1 - x",
            "exp(x)",
            "2 ** x",
            "x ** 1.5",
            "1 / x",
            "-log(x)",
            "tanh(x - 9)",
        ),
        *(
            "max(0, 0.002*x)",
            "max(x, 1)",
            "min(x*x, 1)",
            "1 + min(x, x*x)",
            "exp(min(x, 1))",
            "-1 * x",
        ),
        *("piecewise((0, 0), (1, 0.1), (2, 0.9))", "piecewise((0, 0.9), (1, 0.1))"),
        *("piecewise((0, 0.5), (0, 0.6))", "0.9 + (x - 1) ** 3"),
    ],
)
def test_a_bound_that_is_not_concave_and_nondecreasing_is_refused(saved, text, capsys):
    assert check(saved, f"--bound={text}") == CANNOT_SAY
    told = capsys.readouterr().out
    assert "concave and nondecreasing" in told or "must go to the right" in told


@pytest.mark.parametrize(
    "text",
    [
        *("0.9", "x", "0.5 * x + 0.1", "0.1 + 0.5 * x", "x / 2 - 0.1", "min(x, 0.5, 0.1 + 0.3*x)"),
        *(
            "2.0 * (min(sqrt(x), 0.3))",
            "min(x, 1) / 2 + x",
            "sqrt(x - 1)",
            "x ** 0.5",
            "log(x + 1)",
        ),
        *("1 - exp(-x)", "-expm1(-x)", "log1p(x) / 3", "tanh(x)", "atan(x)", "1 - 2 ** (-x)"),
        *("1 - 1 / (1 + x)", "-1 / (1 + x) + 1", "5 - (x - 2) ** 2", "1 - (1 + x) ** (-2)"),
        *("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)", "x * x / x", "+x", "-(-x)", "x * pi / e"),
        *("piecewise((0, 0), (1, 0.1), (2, 0.2), (3, 0.30000000000000004))", ".5e0*x", " 1. "),
        vulcan.PiecewiseLinear([(-1, -0.1), (1 / 3, 0.1), (1e3, 0.7)]).text,
        vulcan.Linear(1e-5, -1e-7).scale(1e4).text,
        vulcan.parse("sqrt(x) - 0.01").scale(0.5).text,
    ],
)
def test_a_bound_that_is_concave_and_nondecreasing_is_proved_to_be(saved: Path, text: str) -> None:
    """The plan has a reward of 1.528 and a risk of 0.003."""
    assert check(saved, f"--bound={text}") == SAFE


def test_a_root_at_its_edge_is_concave(tmp_path: Path) -> None:
    path = tmp_path / "plan.vulcan"
    vulcan.solve(vulcan.Problem(Table({}, horizon=3), 0.1)).policy.save(path)
    assert check(path, "--bound", "0.1 * sqrt(x)") == SAFE
