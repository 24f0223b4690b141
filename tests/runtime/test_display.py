"""Live progress, on a terminal and elsewhere."""

import io
import re

import pytest
from rich.console import Console

import vulcan
from vulcan.certificates.certificate import Judgement
from vulcan.domains import Bandit
from vulcan.runtime import display
from vulcan.runtime.progress import Progress


def report(seconds, fraction, reward=None):
    return Progress(seconds, fraction, int(1e6 * seconds), 100, reward)


def sampled(seconds, reward=None, *, frontier=0.0, allowed=0.012, fraction=None):
    """A report of a tree search."""
    judgement = None
    if reward is not None:
        judgement = Judgement(
            reward=reward,
            risk=0.01,
            allowed=allowed,
            complete=frontier == 0,
            frontier=frontier,
        )
    return Progress(
        seconds,
        fraction,
        int(4e5 * seconds),
        100,
        reward,
        samples=int(1e5 * seconds),
        memory=int(1e8 * seconds),
        judgement=judgement,
    )


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


def last_picture(written):
    """Return the lines of what is shown at the end."""
    text = re.sub(r"\x1b\[\??[0-9;]*[A-Zhl]|\r", "\f", written.getvalue())
    return re.split("\f+", text)[-1].rstrip("\n").split("\n")


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


@pytest.mark.parametrize("width", [80, 120])
def test_a_tree_search_shows_what_it_has_certified(monkeypatch, width):
    terminal = open_terminal(monkeypatch, width=width)
    with display.show_progress() as show:
        show(sampled(0.2, fraction=0.02))
        show(sampled(0.4, 4.0, fraction=0.04))
        show(sampled(1, 5.0, fraction=0.1))
        show(sampled(2, 6.0, fraction=0.2))
        first, second, third = last_picture(terminal)
    assert "20 %" in first
    assert "2 s, about 8 s left" in first
    assert second.startswith("200,000 samples   100 k/s   800,000 histories   200 MB   ")
    assert second.endswith("Ctrl-C stops")
    assert third.startswith(
        "reward 6.000000   risk 0.010000 of 0.012000 allowed   planned 100 %   "
    )
    curve = third.rpartition("%   ")[2]
    assert re.fullmatch(" +▁+▅+█", curve)
    # There is room for the ^C of the terminal.
    assert len(first) == len(second) == len(third) == width - 4


def test_a_tree_search_that_can_not_be_measured(terminal):
    with display.show_progress() as show:
        show(sampled(1))
        first, _, third = last_picture(terminal)
        assert third.strip() == "no policy yet"
        show(sampled(75, 4.5))
        first, _, third = last_picture(terminal)
    assert "%" not in first
    assert "left" not in first
    assert first.endswith("1 min 15 s")
    assert third.startswith("reward 4.500000")


def test_colours_tell_what_is_wrong_with_a_policy(monkeypatch):
    terminal = open_terminal(monkeypatch, color_system="standard", no_color=False)
    with display.show_progress() as show:
        show(sampled(1, 4.0))
        assert "\x1b[32mrisk 0.01" in terminal.getvalue()
        show(sampled(2, 5.0, allowed=0.009, frontier=1e-7))
        assert "\x1b[31mrisk 0.01" in terminal.getvalue()
        assert "\x1b[33mplanned 99.99 %" in terminal.getvalue()


def test_a_terminal_without_blocks_has_no_curve(monkeypatch):
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    open_terminal(monkeypatch, file=file)
    with display.show_progress() as show:
        show(sampled(1, 4.0))
        assert b"planned 100 %" in file.buffer.getvalue()


def test_files_get_lines_of_a_tree_search_too(capsys):
    with display.show_progress() as show:
        show(sampled(0.5))
        show(sampled(1, 4.0, frontier=0.25, fraction=0.5))
    assert capsys.readouterr().err.splitlines() == [
        "searching   0 s   50,000 samples   100 k/s   200,000 histories   50 MB   no policy yet",
        "searching   50 %   1 s   100,000 samples   100 k/s   400,000 histories   100 MB   "
        "reward 4.000000   risk 0.010000 of 0.012000 allowed   planned 75 %",
    ]


@pytest.mark.parametrize(
    ("steps", "seconds", "curve"),
    [
        ([], 8, "        "),
        ([(0, 3)], 8, "████████"),
        ([(4, 3)], 8, "   █████"),
        ([(k, k) for k in range(1, 9)], 8, "▁▂▃▄▅▆▇█"),
        ([(1, 5), (3, -5), (5, 5)], 8, "██▁▁████"),  # a safe policy replaces a richer one
        ([(1, 0), (1.1, 1), (1.2, 2)], 8e3, "████████"),
        ([(1, 1e300), (4, 1.7e300)], 8, "▁▁▁█████"),
    ],
)
def test_curves(steps, seconds, curve):
    assert display._draw_curve(steps, seconds, 8) == curve
    assert display._draw_curve(steps, seconds, 0) == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999.4, "999"),
        (999.6, "1 k"),
        (999_400, "999 k"),
        (999_600, "1 M"),
        (4 << 30, "4.29 G"),
    ],
)
def test_short_numbers(number, text):
    assert display._short(number) == text


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


def test_a_tree_search_shows_its_progress(terminal):
    bound = vulcan.Linear(0.002)
    vulcan.solve(vulcan.Problem(Bandit(horizon=1), bound), vulcan.Vulcan())
    problem = vulcan.Problem(Bandit(horizon=12, merges=False), bound)
    vulcan.solve(problem, vulcan.Vulcan(), time_limit=1.5, progress=True)
    assert re.search(r"[\d,]+ samples   [\d.]+ k/s   [\d,]+ histories", terminal.getvalue())
    assert re.search(r"reward [\d.]+   risk [\d.]+ of [\d.]+ allowed", terminal.getvalue())
