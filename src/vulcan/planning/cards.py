"""Results, comparisons and frontiers as cards for notebooks: what is said of them, and a plot."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from vulcan.bounds.picture import draw_bound
from vulcan.certificates.text import judge_certificate
from vulcan.model.interface import describe_model
from vulcan.runtime.formatting import TextTable, show_probability, show_reward
from vulcan.runtime.markup import BAD, BLUE, GOOD, build_card, build_table
from vulcan.runtime.sketch import Sketch

if TYPE_CHECKING:
    from vulcan.planning.comparison import Comparison
    from vulcan.planning.frontier.point import Frontier
    from vulcan.planning.result import Result

__all__ = ["write_comparison", "write_frontier", "write_result"]

LONGEST: Final = 90
"""Characters of a model's text."""


def write_result(result: Result) -> str:
    """Return a card of a result: reward and risk beside what the bound allows."""
    certificate = result.certificate
    verdict, colour = (
        ("✗ no policy", BAD) if certificate is None else judge_certificate(certificate)
    )
    rows = [("model", _clip(describe_model(result.problem.model))), *result.rows()]
    rows = [row for row in rows if row[0] != "status"]
    sketch = Sketch("expected reward", "risk")
    if certificate is not None:
        reward, risk = float(certificate.reward), float(certificate.risk)
        limits = [limit for limit in (result.upper_bound,) if limit is not None]
        draw_bound(sketch, result.problem.risk_bound, [0.0, reward, *filter(math.isfinite, limits)])
        for limit in limits:
            sketch.add_upright(limit, f"no policy earns more than {show_reward(limit)}")
        title = f"reward {show_reward(reward)}, risk {show_probability(risk)}"
        sketch.add_point(reward, risk, GOOD if certificate.safe else BAD, title)
    table, plot = build_table((), rows), _caption(sketch, "no policy earns more")
    return build_card(verdict, table, plot, remark=result.explanation, colour=colour)


def write_comparison(comparison: Comparison) -> str:
    """Return a card of a comparison: a point for each solver, and what the bound allows."""
    sketch = Sketch("expected reward", "risk")
    found = [row for row in comparison if row.reward is not None and row.risk is not None]
    if found:
        rewards = [row.reward for row in found if row.reward is not None]
        draw_bound(sketch, comparison.problem.risk_bound, rewards)
        for row in found:
            assert row.reward is not None
            assert row.risk is not None
            title = f"{row.name}: {show_reward(row.reward)}, risk {show_probability(row.risk)}"
            sketch.add_point(row.reward, row.risk, GOOD if row.safe else BAD, title)
        if comparison.upper_bound is not None:
            sketch.add_upright(comparison.upper_bound, "no deterministic policy earns more")
    model = _clip(describe_model(comparison.problem.model))
    return build_card(
        f"{len(comparison)} solvers",
        _to_html(comparison.tabulate(wide=False)),
        _caption(sketch, "no deterministic policy earns more"),
        remark=f"{model}, Δ(x) = {comparison.problem.risk_bound}",
    )


def write_frontier(frontier: Frontier) -> str:
    """Return a card of a frontier: what each allowed risk earns, and what it can't earn more than.

    Both are proved between the points as well; see `vulcan.planning.frontier.enclosure`.
    """
    sketch = Sketch(
        "allowed risk" if frontier.bound is None else "scale of the bound", "reward", None
    )
    earned = [(point.at, point.reward) for point in frontier if point.reward is not None]
    places = [point.at for point in frontier]
    if places:
        ends = (min(places), max(places))
        sketch.add_line(frontier.enclosure.trace_limit(*ends), dashed=True)
        sketch.add_line(frontier.enclosure.trace_reward(*ends), BLUE)
    for at, reward in earned:
        sketch.add_point(at, reward, BLUE, f"{at:.4g}: {show_reward(reward)}")
    plot, kind = sketch.build(), "deterministic policy" if frontier.deterministic else "policy"
    bound = "constant bounds" if frontier.bound is None else f"multiples of {frontier.bound}"
    return build_card(
        f"Frontier of {len(frontier)} points",
        _to_html(frontier.tabulate()),
        plot and f"{plot}<p>line: earned by a certified policy; dashed: no {kind} earns more</p>",
        remark=f"{_clip(frontier.model)}, {bound}",
    )


def _caption(sketch: Sketch, limit: str) -> str:
    """Return a plot of risk over reward, and what its lines are."""
    plot = sketch.build()
    dotted = f"; dotted: {limit}" if sketch.uprights else ""
    return plot and f"{plot}<p>line: the risk that the bound allows{dotted}</p>"


def _to_html(table: TextTable) -> str:
    return build_table(table.header, table.rows, table.left)


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
