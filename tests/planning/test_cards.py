"""What notebooks show of results: well-formed, harmless, and short where it is text."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

import vulcan
from tests.helpers.mixtures import mix_bandit
from vulcan.domains import Bandit
from vulcan.runtime.sketch import Sketch

PROBLEM = vulcan.Problem(Bandit(3), "0.002*x")
RESULT = vulcan.solve(PROBLEM)
UNSAFE = vulcan.solve(PROBLEM, vulcan.UCT(), samples=2_000)
NOTHING = vulcan.solve(vulcan.Problem(Bandit(3), "-1"))
FRONTIER = vulcan.trace_frontier(Bandit(3), points=3)
SCALED = vulcan.trace_frontier(PROBLEM, scales=[0.01, 1])
COMPARISON = vulcan.compare(PROBLEM, [vulcan.Pareto(), vulcan.RAOStar(), vulcan.UCT()], samples=500)

THINGS = {
    "result": RESULT,
    "unsafe": UNSAFE,
    "nothing": NOTHING,
    "certificate": RESULT.certificate,
    "nothing allowed": replace(RESULT.certificate, allowed=-math.inf),
    "exact": vulcan.certify(PROBLEM, RESULT.policy, exact=True),
    "policy": RESULT.policy,
    "randomised": mix_bandit(),
    "frontier": FRONTIER,
    "scaled": SCALED,
    "empty frontier": replace(FRONTIER, points=()),
    "comparison": COMPARISON,
    "empty comparison": replace(COMPARISON, rows=()),
    "table": RESULT.policy.table(),
    "matrix": RESULT.policy.table().matrix(),
    "constant": vulcan.Constant(0.01),
    "never": vulcan.Constant(-1),
    "linear": vulcan.Linear(0.002, offset=0.06),
    "far": vulcan.Linear(0.002, offset=-10),
    "bent": vulcan.PiecewiseLinear([(0, 0), (3, 0.02), (5, 0.025)]),
    "text": vulcan.parse("(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"),
    "function": vulcan.Concave(lambda x: math.sqrt(x) / 100 if x >= 0 else -math.inf),
}
VOID = {"meta", "br", "hr", "img", "path", "rect", "circle"}


class Checker(HTMLParser):
    """Collects tags that are not closed, and attributes that are no numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), name
            assert "nan" not in value.split(), value
            assert "inf" not in value.split(), value

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", THINGS)
def test_html_is_well_formed(name: str) -> None:
    html = THINGS[name]._repr_html_()
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    assert "script" not in checker.tags
    assert not re.search(r"\b(src|href)=", html)
    assert not re.search(r"[MLHVh ](nan|inf)\b", html)


@pytest.mark.parametrize("name", ["result", "certificate", "policy", "frontier", "comparison"])
def test_html_has_a_plot(name: str) -> None:
    assert "<svg " in THINGS[name]._repr_html_()


@pytest.mark.parametrize("name", [name for name in THINGS if name not in ("table", "matrix")])
def test_texts_for_programmers_are_short(name: str) -> None:
    assert len(repr(THINGS[name])) < 400


def test_a_result_says_what_matters() -> None:
    numbers = r"reward [\d.]+, risk [\d.]+ of [\d.]+ allowed, gap 0 %"
    assert re.fullmatch(rf"<Result for Bandit\(horizon=3\): solved, safe, {numbers}>", repr(RESULT))
    assert repr(THINGS["exact"]).endswith(", exact>")
    assert "not safe" in repr(UNSAFE)
    assert "infeasible, no policy" in repr(NOTHING)
    assert repr(FRONTIER.points[0]).startswith("<FrontierPoint at 0: reward ")
    assert "best safe reward" in repr(COMPARISON)
    assert len(repr(vulcan.explain(PROBLEM, RESULT.policy))) < 200
    assert len(repr(vulcan.simulate(RESULT.policy, episodes=100))) < 200


def test_verdicts_are_said_and_coloured() -> None:
    assert "✓ safe" in RESULT._repr_html_()
    assert "✗ not safe" in UNSAFE._repr_html_()
    assert "✗ no policy" in NOTHING._repr_html_()
    assert "✓ safe" in RESULT.certificate._repr_html_()


def test_the_limit_is_mentioned_where_it_is_drawn() -> None:
    assert "dotted" in RESULT._repr_html_()
    assert "dotted" not in replace(RESULT, upper_bound=None)._repr_html_()


def test_labels_are_written_out() -> None:
    class Loud(Bandit):
        def __repr__(self) -> str:
            return "<script>alert(1)</script>"

        def action_label(self, action: Any) -> str:
            return f"<b onclick='x'>{action}</b>"

    problem = vulcan.Problem(Loud(2), "0.002*x")
    result = vulcan.solve(problem)
    for thing in (result, result.policy, vulcan.compare(problem, [vulcan.Pareto()])):
        html = thing._repr_html_()
        assert "<script>" not in html
        assert "<b onclick" not in html


def test_a_sketch_of_one_point_has_axes() -> None:
    sketch = Sketch("x", "y")
    sketch.add_point(3.0, 0.0)
    assert sketch.build().count("<circle") == 1
    assert "nan" not in sketch.build()
    assert Sketch("x", "y").build() == ""


def test_bars_stand_on_zero() -> None:
    sketch = Sketch("step", "risk")
    sketch.add_bars([0.0, 1.0, 2.0])
    heights = [float(h) for h in re.findall(r'<rect[^>]* height="([\d.]+)"', sketch.build())]
    assert heights[0] == 0
    assert heights[2] == pytest.approx(2 * heights[1], abs=0.11)
