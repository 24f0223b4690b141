"""Bad input and defects on the command line."""

import pytest

import vulcan
from tests.helpers.command_line import BOUND, FORWARD, SMALL
from vulcan.domains import DOMAINS

SAMPLED = ("solve", *SMALL, *BOUND, "--solver", "vulcan", "--samples", "2000")
LOCAL = (*SAMPLED, "--solver", "local-vulcan")
COMPARE = ("compare", *SMALL, *BOUND)
FRONTIER = ("frontier", *SMALL)
EXHAUSTIVE = ("solve", *SMALL, *BOUND, *FORWARD)


# Bad input: one message on standard error, nothing on standard output, exit code 2.


BAD_INPUT = [
    (["solve", "bandot", *BOUND], ["no model 'bandot'; did you mean 'bandit'?", *DOMAINS]),
    (["solve", "nothing", *BOUND], ["no model 'nothing'", "module:Class", "file.py:Class"]),
    (["solve", "bandit"], ["Missing option '--bound'"]),
    (["solve", *SMALL, "--bound", "0.1*y"], ["unknown name 'y':\n  0.1*y\n      ^\n"]),
    (["solve", *SMALL, "--bound", "-0.1*x"], ["must not decrease"]),
    (["solve", *SMALL, "--bound", "x**2", *FORWARD], ["not concave"]),
    (["solve", "bandit", "--set", "horizon=0", *BOUND], ["horizon must be", "not 0"]),
    (["solve", "bandit", "--set", "horizn=3", *BOUND], ["'horizn'; did you mean 'horizon'?"]),
    (["solve", "harbour:Harbour", "--set", "leak=1", *BOUND], ["probability", "'quay'"]),
    (["solve", "harbour:Raising", *BOUND], ["no chart", "'quay'", "VULCAN_DEBUG=1"]),
    ([*EXHAUSTIVE, "--credit", "expected"], ["--credit belongs to --local-test A"]),
    (
        ["solve", *SMALL, *BOUND, "--credit", "expected"],
        ["--credit is for --solver forward-search, local-vulcan or vulcan-fs, not"],
    ),
    (["solve", *SMALL, *BOUND, "--local-test", "C"], ["--local-test", "'C' is not one of"]),
    (["solve", *SMALL, *BOUND, "--solver", "magic"], ["no solver 'magic'", "forward-search"]),
    (["solve", *SMALL, *BOUND, "--time-limit", "-1"], ["time_limit must be", "at least 0"]),
    (["solve", *SMALL, *BOUND, "--time-limit", "nan"], ["limit"]),
    (["solve", *SMALL, *BOUND, "--depth", "-1"], ["Invalid value for '--depth'"]),
    (
        [*EXHAUSTIVE, "--samples", "9"],
        ["--samples is for --solver automatic, vulcan, growth, local-vulcan, paper-vulcan or"],
    ),
    ([*EXHAUSTIVE, "--complete"], ["--complete is for --solver local-vulcan,"]),
    ([*SAMPLED, "--on", "forest"], ["'--on'", "'forest' is not one of 'graph', 'tree'"]),
    ([*LOCAL, "--paper", "--local-test", "A"], ["--paper has its own --local-test"]),
    ([*LOCAL, "--paper", "--credit", "expected"], ["--paper has its own --credit"]),
    ([*LOCAL, "--credit", "expected"], ["--credit belongs to --local-test A"]),
    ([*SAMPLED, "--exploration", "-1"], ["exploration must be a number from 0 on, not -1.0"]),
    ([*SAMPLED, "--exploration", "nan"], ["xploration"]),
    ([*SAMPLED, "--seed", "-1"], ["seed must be a whole number from 0"]),
    ([*SAMPLED, "--samples", "-1"], ["samples must be", "at least 0"]),
    ([*SAMPLED, "--memory", "4G"], ["--memory is a number of bytes", "MiB", "not '4G'"]),
    ([*LOCAL, "--parallel", "0"], ["at least 1"]),
    ([*LOCAL, "--parallel", "cloud"], ["parallel must be a number of workers"]),
    ([*LOCAL, "--parallel", "threads@auto"], ["parallel must be a number of workers"]),
    ([*LOCAL, "--resume"], ["--resume needs a file: give it with --checkpoint"]),
    (["solve", *SMALL, *BOUND, "--what"], ["No such option: --what"]),
    (["check", "harbour.py"], ["harbour.py needs a class name", "harbour.py:Harbour"]),
    (["certify", "missing.vulcan", *SMALL], ["missing.vulcan: can't be read: No such file"]),
    (["show", "missing.vulcan"], ["missing.vulcan: can't be read: No such file"]),
    (["show", "harbour.py"], ["harbour.py: this is not a Vulcan policy"]),
    (["show", "."], ["Is a directory"]),
    (["sole"], ["No such command 'sole'; did you mean 'solve'?"]),
    (["solve", *SMALL, *BOUND, "--solver", "paretto"], ["did you mean 'pareto'"]),
    (["compare", *SMALL, *BOUND, "--solvers", "RAOStar"], ["did you mean 'rao-star'"]),
    (["solve", *SMALL, *BOUND, "--timelimit", "3"], ["--time-limit"]),
    (["solve", *SMALL, *BOUND, "--workers=3"], ["use --parallel 4"]),
    (["solve", *SMALL, "--bound", "5%"], ["0.05"]),
    (["solve", *SMALL, "--bound", "-0.1"], ["at least 0"]),
    (
        [*COMPARE, "--solvers", "parteo"],
        ["no solver 'parteo'; did you mean 'pareto'?\nsolvers are"],
    ),
    ([*COMPARE, "--solvers", ""], ["no solver ''"]),
    *(
        ([*COMPARE, "--solvers", name], [f"solver '{name}' sets no --exploration constant"])
        for name in ("pareto:2", "vulcan-fs:2", "paper-vulcan:x")
    ),
    ([*COMPARE, "--bound", "x*"], ["this is not an expression"]),
    ([*COMPARE, "--time-limit", "-1"], ["time_limit must be"]),
    ([*COMPARE, "--plot", "."], ["figures can be saved as .png, .svg, .pdf"]),
    ([*COMPARE, "--plot", "no/a.svg"], ["no: No such file or directory"]),
    (
        [*FRONTIER, "--levels", "0,x"],
        ["--levels takes numbers with commas between them, such as 0,0.005"],
    ),
    ([*FRONTIER, "--levels", "0,nan"], ["each of the levels must be a finite number, not nan"]),
    ([*FRONTIER, *BOUND, "--levels", "0"], ["multiples of --bound are given by --scales"]),
    ([*FRONTIER, "--scales", "1"], ["--scales are multiples of a bound: give it with --bound"]),
    (
        [*FRONTIER, *BOUND, "--scales", "0"],
        ["scales must be above 0; level 0 allows no risk at all"],
    ),
    ([*FRONTIER, "--levels", "0", "--points", "3"], ["--levels and --points exclude each other"]),
    (
        [*FRONTIER, *BOUND, "--scales", "1", "--points", "3"],
        ["--scales and --points exclude each other"],
    ),
    ([*FRONTIER, "--points", "1"], ["points must be a whole number from 2 to 10,000, not 1"]),
    ([*FRONTIER, "--solver", "pareto", "--samples", "3"], ["--samples is for --solver automatic,"]),
    ([*FRONTIER, "--on", "tree"], ["--on is for --solver linear-program or integer-program"]),
    ([*FRONTIER, "--plot", "a.txt"], ["figures can be saved as .png, .svg, .pdf, not 'a.txt'"]),
]


@pytest.mark.parametrize(("arguments", "messages"), BAD_INPUT)
def test_bad_input_gets_one_message(run, arguments, messages):
    answer = run(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("Error: ") == 1
    assert "Traceback" not in answer.err
    for message in messages:
        assert message in answer.err


@pytest.mark.parametrize("way", ["option", "environment"])
def test_debug_shows_the_traceback(run, monkeypatch, way):
    if way == "environment":
        monkeypatch.setenv("VULCAN_DEBUG", "1")
    options = ["--debug"] if way == "option" else []
    answer = run(*options, "solve", "harbour:Raising", *BOUND)
    assert answer.code == 2
    assert "Traceback" in answer.err
    assert 'raise RuntimeError("no chart")' in answer.err
    assert "Error: Raising.outcomes raised" in answer.err


def test_a_model_that_can_not_show_itself_is_no_defect(run):
    answer = run("solve", "harbour:Defective", *BOUND)
    assert answer.code == 0
    assert "<harbour.Defective object at" in answer.out


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (RuntimeError("no idea"), 70, "RuntimeError: no idea\n\nThis is a defect in Vulcan"),
        (vulcan.errors.DisagreementError("found 1, not 2"), 70, "Error: found 1, not 2\n"),
        (KeyboardInterrupt(), 130, "Error: interrupted\n"),
    ],
)
def test_defects_and_ctrl_c_have_exit_codes_of_their_own(run, monkeypatch, error, code, told):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("vulcan.planning.solve.plan_and_certify", fail)
    answer = run("solve", *SMALL, *BOUND)
    assert (answer.code, answer.out) == (code, "")
    assert told in answer.err
    assert ("Traceback" in answer.err) == isinstance(error, RuntimeError)
