"""Live progress, on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

import vulcan
from vulcan import display
from vulcan.domains import Bandit
from vulcan.progress import Progress


def report(seconds, fraction, reward=None):
    return Progress(seconds, fraction, int(1e6 * seconds), 100, reward)


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns, and what was written to it."""
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(display, "Console", lambda **_: console)
    return written


def test_short_runs_show_nothing(terminal):
    with display.show_progress() as show:
        show(report(0.4, 0.9))
    assert terminal.getvalue() == ""


def test_a_terminal_shows_a_picture_and_clears_it(terminal):
    with display.show_progress() as show:
        show(report(1, 0.25))
        show(report(2, 0.30, reward=3.25))
        shown = terminal.getvalue()
    assert "25 %" in shown
    assert "no policy yet" in shown
    assert "30 %" in shown
    assert "2 s, about 14 s left" in shown
    assert "reward so far 3.250000" in shown
    assert "Ctrl-C stops" in shown
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K")


def test_the_terminal_is_put_right_after_an_error(terminal):
    def interrupt():
        with display.show_progress() as show:
            show(report(1, 0.25))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is back


def test_files_get_lines_at_times_that_double(capsys):
    with display.show_progress() as show:
        for tenths in range(1, 100):
            show(report(tenths / 10, tenths / 100))
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 5
    assert lines[0] == "searching   5 %   0 s   500,000 histories   1 M/s   no policy yet"
    assert lines[-1].startswith("searching   80 %   8 s, about 2 s left   ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (125, "2 min 5 s"),
        (3 * 3600 + 61, "3 h 1 min"),
        (2.5 * 86400, "2 d 12 h"),
        (1e300, "a year or more"),
    ],
)
def test_durations(seconds, text):
    assert display._duration(seconds) == text


def test_solve_shows_its_progress(terminal):
    bound = vulcan.Linear(0.002)
    vulcan.solve(vulcan.Problem(Bandit(horizon=1), bound))  # compiles, if nobody has
    problem = vulcan.Problem(Bandit(horizon=15), bound)
    reports = []
    vulcan.solve(problem, time_limit=1.2, progress=True, on_progress=reports.append)
    assert "searching" in terminal.getvalue()
    assert reports
