"""The command line as a whole: version and help."""

import re
import warnings

import pytest

import vulcan
from tests.helpers.command_line import SMALL
from vulcan.cli.codes import ExitCode
from vulcan.solvers.registry import load_solvers


def test_version(run):
    assert run("--version").out == f"vulcan {vulcan.__version__}\n"


@pytest.mark.parametrize("command", ["solve", "frontier", "compare", "check", "certify", "show"])
def test_every_option_is_documented_and_every_command_has_examples(run, command):
    answer = run(command, "--help")
    assert answer.code == 0
    assert f"Examples:\n    vulcan {command} " in answer.out
    options = answer.out.partition("Options:\n")[2].partition("\n\n")[0]
    for option in re.findall(r"^  (-.*)$", options, re.MULTILINE):
        assert re.search(r"\S  +\S", option) or len(option) > 26, option
    assert all(len(line) <= 80 for line in answer.out.splitlines())
    assert command in run("--help").out


def test_options_of_solve_are_grouped(run):
    _, *sections = re.split(r"\n\n(?=[A-Z][a-z ]+:\n)", run("solve", "--help").out)
    found = {name: text for name, _, text in (section.partition(":\n") for section in sections)}
    assert list(found) == [
        "Arguments",
        "Model and bound",
        "Search",
        "Limits",
        "Options of solvers",
        "Workers",
        "Files",
        "Answer",
        "Options",
    ]
    for section, option in {
        "Model and bound": "--bound",
        "Search": "--solver",
        "Limits": "--time-limit",
        "Options of solvers": "--seeds",
        "Workers": "--workers",
        "Files": "--checkpoint",
        "Answer": "--json",
        "Options": "--help",
    }.items():
        assert option in found[section]


def test_a_bound_that_refuses_nothing_is_told_in_a_line(run):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        answer = run("solve", *SMALL, "--bound", "5")
    assert answer.code == 0
    assert "Warning: every policy is acceptable under this bound" in answer.err
    assert ".py" not in answer.err


def test_help_lists_the_exit_codes_and_asks_for_limits(run):
    overview = run("--help").out
    codes = [
        ExitCode.YES,
        ExitCode.NO,
        ExitCode.BAD_INPUT,
        ExitCode.DEFECT,
        ExitCode.INTERRUPTED,
        ExitCode.TERMINATED,
    ]
    assert re.findall(r"\b\d+ ", overview.partition("Exit codes:")[2]) == [f"{c} " for c in codes]
    assert "a limit is usually wanted" in " ".join(run("solve", "--help").out.split())


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("vulcan solve bandit --constraint ", ["A", "B"]),
        ("vulcan solve bandit --credit ", ["expected", "received"]),
        ("vulcan solve bandit --solver ", list(load_solvers())),
        ("vulcan frontier bandit --on ", ["graph", "tree"]),
        ("vulcan fron", ["frontier"]),
        ("vulcan cert", ["certify"]),
    ],
)
def test_words_are_completed(run, monkeypatch, words, completions):
    monkeypatch.setenv("_VULCAN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert run().out.split() == completions
