"""Progress on a terminal and elsewhere, and numbers for people."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

import vulcan
from vulcan.domains import Bandit
from vulcan.runtime import display
from vulcan.runtime.formatting import show_percent, show_probability, show_reward
from vulcan.runtime.limits import Progress


def report(seconds, fraction, reward=None):
    return Progress(seconds, fraction, int(1e6 * seconds), 100, reward)


def open_terminal(monkeypatch, **options):
    written = options.pop("file", None) or io.StringIO()
    options = {"force_terminal": True, "width": 80, "color_system": None, **options}
    console = Console(file=written, **options)
    monkeypatch.setattr(display, "Console", lambda **_: console)
    return written


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns, and what was written to it."""
    return open_terminal(monkeypatch)


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
    assert lines[0] == "searching   5 %   0 s   500,000 histories   1.0 M/s   no policy yet"
    assert lines[-1].startswith("searching   80 %   8 s, about 2 s left   ")


@pytest.mark.usefixtures("processor_clock")
def test_a_tree_search_shows_its_progress(terminal):
    bound = vulcan.Linear(0.002)
    vulcan.solve(vulcan.Problem(Bandit(horizon=1), bound), vulcan.Vulcan())
    problem = vulcan.Problem(Bandit(horizon=12, merges=False), bound)
    vulcan.solve(problem, vulcan.Vulcan(), time_limit=1.5, progress=True)
    assert re.search(r"[\d,]+ samples   [\d,]+/s   [\d,]+ histories", terminal.getvalue())
    assert re.search(r"reward [\d.]+   risk [\d.]+ of [\d.]+ allowed", terminal.getvalue())


@pytest.mark.parametrize(
    ("probability", "text", "percent"),
    [
        (0.0, "0.000000", "0 %"),
        (6.7e-50, "< 1e-12", "< 1e-10 %"),
        (9.9e-13, "< 1e-12", "< 1e-10 %"),
        (1e-12, "1.00e-12", "1e-10 %"),
        (1.267e-05, "1.27e-05", "0.0013 %"),
        (0.0005, "0.000500", "0.05 %"),
        (0.5, "0.500000", "50.0 %"),
        (1.0, "1.000000", "100.0 %"),
    ],
)
def test_tiny_probabilities_have_no_digits(probability, text, percent):
    assert show_probability(probability) == text
    assert show_percent(probability) == percent


def test_small_rewards_have_their_digits():
    rewards = (None, 0.0, -0.0, 1.25, 1e-4, 9.9e-5, 5.25e-10, -3e-9)
    texts = "– 0.000000 0.000000 1.250000 0.000100 9.90e-05 5.25e-10 -3.00e-09"
    assert list(map(show_reward, rewards)) == texts.split()
