"""The page itself: one HTML file with everything in it.

What people ask first is plain HTML, which is seen at once and without a program. The rest is drawn
by the program in `assets`, from a plan that it unpacks (`packing`): the first one as soon as the
page is open, others when somebody asks for them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from typing import Any, Final

from vulcan.certificates.certificate import Certificate
from vulcan.certificates.explanation import Explanation, RiskyPlace
from vulcan.pages.answers import Answer, answer_questions, tell_percent
from vulcan.pages.arrays import PlanArrays
from vulcan.pages.maps import PageMap
from vulcan.pages.packing import pack_arrays
from vulcan.pages.plan import PagePlan
from vulcan.runtime.files import write_atomically
from vulcan.runtime.formatting import show_reward

__all__ = ["Page", "make_page"]

VERDICTS: Final = {"not known": "whether that is better is not known"}
"""Verdicts on actions that were not taken, where the words alone say too little."""

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Vulcan">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header class="top">
<h1>{title}</h1>
<p class="verdict {kind}"><strong>{verdict}</strong> <span>{summary}</span></p>
</header>
<section class="answers" aria-label="What people ask first">
{answers}
</section>
<main id="explorer"><p class="loading">Unpacking the plan…</p></main>
<noscript><p>Without JavaScript this page shows the answers above only.</p></noscript>
<footer><p>{about} · made by Vulcan, from the model and the plan alone</p></footer>
<script type="application/json" id="facts">{facts}</script>
{plans}
<script>{program}</script>
</body>
</html>
"""


@dataclass(frozen=True, repr=False)
class Page:
    """A plan as one HTML file.

    Attributes
    ----------
    html
        All of it.
    answers
        What people ask first, and the answers.
    """

    html: str
    answers: tuple[Answer, ...]

    def __repr__(self) -> str:
        return f"<Page of {len(self.html.encode()):,} bytes>"

    def _repr_html_(self) -> str:
        """Show the page within a notebook."""
        style = "width:100%;height:760px;border:1px solid #ccc;border-radius:6px"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file: at once or not at all."""
        write_atomically(path, self.html.encode())


def make_page(
    plans: Sequence[PagePlan],
    explanation: Explanation,
    area: PageMap | None,
) -> Page:
    """Return the page of a plan.

    Parameters
    ----------
    plans
        The plan, and then those for other bounds.
    explanation
        Where the plan takes its risk, and what was rejected there.
    area
        The map; None without one.
    """
    plan = plans[0]
    about = plan.policy.about
    answers = answer_questions(plans, explanation)
    facts = {
        "plans": [one.describe() for one in plans],
        "riskiest": [_describe_risky(place, plan.places) for place in explanation.places],
        "compared": explanation.compared,
        "map": None if area is None else asdict(area),
        "horizon": about.horizon,
    }
    packed = "\n".join(
        f'<script type="text/plain" id="plan-{number}">{pack_arrays(one.places)}</script>'
        for number, one in enumerate(plans)
    )
    assets = files("vulcan.pages").joinpath("assets")
    html = TEMPLATE.format(
        title=escape(about.model),
        style=assets.joinpath("explorer.css").read_text("utf-8"),
        kind="good" if plan.certificate.safe else "bad",
        verdict=_judge(plan.certificate),
        summary=escape(_summarise(plan)),
        answers="\n".join(map(_show_answer, answers)),
        facts=json.dumps(facts, allow_nan=False).replace("<", "\\u003c"),
        plans=packed,
        about=escape(f"{about.solver} for Δ(x) = {plan.bound}"),
        program=assets.joinpath("explorer.js").read_text("utf-8"),
    )
    return Page(html, tuple(answers))


def _judge(certificate: Certificate) -> str:
    if certificate.safe:
        return "✓ acceptable"
    return "✗ too close to say" if certificate.undecided else "✗ not acceptable"


def _summarise(plan: PagePlan) -> str:
    complete = "" if plan.policy.complete else "; not complete: some histories are not planned"
    return (
        f"fails with {tell_percent(plan.risk)} of {tell_percent(plan.allowed)} allowed · expected "
        f"reward {show_reward(plan.reward)} · {plan.places.total:,} decisions over "
        f"{plan.policy.about.horizon:,} steps{complete}"
    )


def _show_answer(answer: Answer) -> str:
    tag, place = ("p", "") if answer.place is None else ("button", f' data-place="{answer.place}"')
    words, detail = (
        escape(text).replace(" %", "&nbsp;%") for text in (answer.words, answer.detail)
    )
    return (
        f'<{tag} class="answer"{place}><small>{escape(answer.question)}</small>'
        f"<strong>{words}</strong><span>{detail}</span></{tag}>"
    )


def _describe_risky(risky: RiskyPlace, places: PlanArrays) -> dict[str, Any]:
    """Return where risk is taken, as a place of the page, and what was rejected there."""
    number = places.find((outcome for _, outcome in risky.history), risky.action)
    other = risky.alternative
    if other is None:
        return {"place": number, "instead": None}
    verdict = VERDICTS.get(other.verdict, other.verdict)
    changes = f"reward {other.reward_change:+.2g}, risk {100 * other.risk_change:+.2g} %"
    return {"place": number, "instead": f"{other.action} instead: {verdict} ({changes})"}
