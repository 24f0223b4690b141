"""`vulcan explore`."""

from __future__ import annotations

SMALL = ("bandit", "--set", "horizon=3")


def test_explore_writes_a_page_and_says_the_answers(run, plan, tmp_path):
    answer = run("explore", plan, *SMALL, "-o", tmp_path / "plan.html")
    assert answer.code == 0
    assert "✓ written" in answer.out
    assert "What is done first?" in answer.out
    assert "play 1" in answer.out
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "0.5 times the allowed risk" in page


def test_explore_shows_plans_that_were_given(run, plan, tmp_path):
    other = tmp_path / "other.vulcan"
    assert run("solve", *SMALL, "--bound", "0.001*x", "--output", other).code == 0
    page = tmp_path / "plan.html"
    answer = run("explore", plan, *SMALL, "-o", page, "--what-if", "0", "--other", other)
    assert answer.code == 0
    html = page.read_text(encoding="utf-8")
    assert "times the allowed risk" not in html
    assert 'id="plan-1"' in html


def test_explore_refuses_what_it_can_not_do(run, plan, tmp_path):
    answer = run("explore", plan, *SMALL)
    assert answer.code == 2
    assert "--output" in answer.err
    answer = run("explore", plan, *SMALL, "-o", tmp_path / "none" / "plan.html")
    assert answer.code == 2
    answer = run("explore", plan, *SMALL, "-o", tmp_path / "plan.html", "--scales", "half")
    assert answer.code == 2
    assert "--scales takes numbers" in answer.err
    assert not (tmp_path / "plan.html").exists()
