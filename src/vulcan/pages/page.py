"""The page of a plan: one HTML file with everything in it.

Answers to the first questions about a plan are plain HTML, shown at once and without a program. The
rest is drawn by the program in `assets`, from plans that it unpacks: the first one when the page
opens, others when they are selected.

**Answers.** A *bad outcome* is the outcome of the first decision, failures aside, that leaves the
least reward to expect; the *worst branch* is the one after which a failure is likeliest, or all
that are alike in that. The first decision is the first one with more than one outcome; in a
randomised plan, that of the most likely member.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.certificate.certify import Certificate, describe_frontier, describe_limited
from vulcan.errors import BoundError
from vulcan.numerics import END, FAILED, UNPLANNED
from vulcan.pages.arrays import Places, pack_arrays
from vulcan.pages.maps import PageMap
from vulcan.policy.policy import AnyPolicy
from vulcan.runtime.files import write_atomically
from vulcan.runtime.formatting import show_reward

if TYPE_CHECKING:
    from vulcan.planning.explain import Explanation, RiskyPlace


@dataclass(frozen=True)
class PagePlan:
    """A plan on a page: its name, the bound that it was made for, and how good it is, if known."""

    name: str
    policy: AnyPolicy
    places: Places
    bound: RiskBound
    certificate: Certificate
    remark: str = ""
    own_bound: bool = False  # whether only the policy's own file says that bound

    @property
    def reward(self) -> float:
        """Expected reward of the plan."""
        return float(self.places.reward[0]) if len(self.places) else 0.0

    @property
    def risk(self) -> float:
        """Probability of failure of the plan."""
        return float(self.places.risk[0]) if len(self.places) else 0.0

    @property
    def allowed(self) -> float:
        """The risk that the bound accepts for this reward; -inf where nothing is."""
        return float(self.certificate.allowed)

    def describe(self) -> dict[str, Any]:
        """Return the header of the plan: all but its places."""
        low, high = _find_span(self.places)
        room = 0.06 * (high - low) or 0.5
        rewards = np.linspace(low - room, high + room, 81).tolist()
        curve: list[tuple[float, float | None]] = []
        for reward in rewards:
            allowed = -math.inf
            with suppress(BoundError):  # it can't be evaluated there
                allowed = float(self.bound(reward))
            curve.append((reward, allowed if math.isfinite(allowed) else None))
        limited = list(map(describe_limited, self.certificate.constraints))
        return {
            "name": self.name,
            "bound": str(self.bound),
            "reward": self.reward,
            "risk": self.risk,
            "allowed": self.allowed if math.isfinite(self.allowed) else None,
            "safe": self.certificate.safe,
            "beyond": self.certificate.beyond,
            "complete": self.policy.complete,
            "decisions": self.places.total,
            "weights": self.places.weights,
            "curve": curve,
            "remark": self.remark,
            "randomised": len(self.policy.members) > 1,
        } | ({"constraints": limited} if limited else {})


def _find_span(places: Places) -> tuple[float, float]:
    """Return the least and the largest reward that can be expected anywhere on the way."""
    count = len(places)
    if not count:
        return 0.0, 0.0
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    least[0] = most[0] = 0.0
    weights = np.array(places.weights)
    owner = np.repeat(np.arange(count), np.diff(places.first))
    earned = weights[places.depth[owner]] * places.pay
    earned += weights[places.depth[owner] + 1] * places.later_reward
    goes_on = places.child >= 0
    for depth in range(int(places.depth[-1]) + 1):
        rows = goes_on & (places.depth[owner] == depth)
        targets = places.child[rows]
        np.minimum.at(least, targets, least[owner[rows]] + earned[rows])
        np.maximum.at(most, targets, most[owner[rows]] + earned[rows])
    ahead = weights[places.depth] * places.reward
    ends = places.child < 0
    low = min((least + ahead).min(), (least[owner] + earned)[ends].min(initial=np.inf))
    high = max((most + ahead).max(), (most[owner] + earned)[ends].max(initial=-np.inf))
    return float(low), float(high)


SMALLEST: Final = 1e-5  # a probability below this is not told in digits


def tell_percent(probability: float) -> str:
    """Return a probability in percent as the page shows it, to three digits."""
    if 0 < probability < SMALLEST:
        return f"< {100 * SMALLEST:.3f} %"
    return f"{100 * probability:.3g} %"


@dataclass(frozen=True)
class PageAnswer:
    """An answer in a few words, the rest of it, and where on the page it can be seen."""

    question: str
    words: str
    detail: str
    place: int | None = None


def answer_questions(plans: Sequence[PagePlan], explanation: Explanation) -> list[PageAnswer]:
    """Return the answers about the first of some plans; the others are for other bounds."""
    plan = plans[0]
    if not len(plan.places):
        return [PageAnswer("What is done first?", "nothing", "the start has no actions")]
    branch = _find_branching(plan.places)
    return [
        _answer_first(plan.places),
        _answer_bad(plan.places, branch),
        _answer_risk(plan.places, explanation),
        _answer_less(plans, explanation),
        _answer_worst(plan, branch),
    ]


def _find_branching(places: Places) -> int:
    """Return the first place with more than one safe outcome; the start if there is none."""
    here = start = places.starts()[0]
    while len(safe := [row for row in places.outcomes(here) if places.child[row] != FAILED]) == 1:
        here = int(places.child[safe[0]])
        if here < 0:
            return start
    return here if safe else start


def _answer_first(places: Places) -> PageAnswer:
    start, *others = places.starts()
    detail = f"in {places.text(places.state[start])}"
    if places.fails[start] >= SMALLEST:
        detail += f"; it fails at once with {tell_percent(places.fails[start])}"
    if others:
        chance = tell_percent(places.reach[start])
        detail += f"; a draw chose this plan of {1 + len(others)}, with {chance}"
    return PageAnswer("What is done first?", places.text(places.action[start]), detail, start)


def _answer_bad(places: Places, branch: int) -> PageAnswer:
    question = "What happens after a bad outcome?"
    safe = [row for row in places.outcomes(branch) if places.child[row] != FAILED]
    if not safe:
        return PageAnswer(question, "nothing", "every outcome is a failure", branch)
    worst = min(safe, key=lambda row: places.expected(row, branch))
    child = int(places.child[worst])
    words = {END: "the plan ends there", UNPLANNED: "nothing is planned"}.get(child, "it goes on")
    detail = (
        f"after “{places.text(places.label[worst])}”, the poorest outcome of "
        f"{places.text(places.action[branch])} (probability {tell_percent(places.chance[worst])}): "
        f"reward {places.expected(worst, branch):.2f} to expect instead of "
        f"{places.reward[branch]:.2f}"
    )
    if child < 0:
        return PageAnswer(question, words, detail, branch)
    return PageAnswer(question, places.text(places.action[child]), detail, child)


def _answer_risk(places: Places, explanation: Explanation) -> PageAnswer:
    question = "Where is most of the risk accepted?"
    accepted = explanation.places[0].alike_accepted if explanation.places else 0.0
    if explanation.claimed > accepted:
        share = tell_percent(explanation.claimed / explanation.risk)
        return PageAnswer(question, "beyond the frontier", f"{share} of all risk is claimed there")
    if not accepted:
        words = "the plan takes no risk at all" if explanation.risk <= 0 else "no policy avoids it"
        return PageAnswer(question, "nowhere", words)
    most, total = explanation.places[0], explanation.risk
    return PageAnswer(
        question,
        f"{most.action} in {most.state}",
        f"{tell_percent(most.alike_accepted / total)} of all risk, "
        f"{tell_percent(most.accepted / total)} at one place: step {most.step + 1}, reached with "
        f"{tell_percent(most.reach)}, where {tell_percent(most.fails)} fail at once",
        places.find((outcome for _, outcome in most.history), most.action),
    )


def _answer_less(plans: Sequence[PagePlan], explanation: Explanation) -> PageAnswer:
    question, plan = "What if less risk is allowed?", plans[0]
    other = min(plans[1:], key=lambda one: one.allowed, default=plan)
    if other.allowed < plan.allowed:
        first = other.places.text(other.places.action[other.places.starts()[0]])
        words = f"reward {other.reward:.3f} instead of {plan.reward:.3f}"
        remark = f" ({other.remark})" if other.remark else ""
        detail = f"{other.name} ({tell_percent(other.allowed)}), and first {first}{remark}"
        return PageAnswer(question, words, detail)
    if explanation.price is None:
        return PageAnswer(question, "not known", "no plan for less risk is on this page")
    saved = max(0.0, plan.risk - 0.9 * plan.allowed)
    words = f"about {-explanation.price * saved:+.3g} of reward"
    return PageAnswer(question, words, "for 0.9 times the allowed risk, by the price of risk")


def _answer_worst(plan: PagePlan, branch: int) -> PageAnswer:
    places, question = plan.places, "How probable is the worst branch?"
    ahead = {
        row: float(places.risk[child] if child >= 0 else places.later_risk[row])
        for row in places.outcomes(branch)
        if (child := places.child[row]) >= 0 or places.later_risk[row] > 0
    }
    if not ahead:
        failing = tell_percent(float(places.fails[branch]))
        return PageAnswer(question, failing, "the first action fails", branch)
    worst = max(ahead, key=lambda row: (ahead[row], -places.expected(row, branch)))
    # Risks that are told alike are alike to the reader.
    told = tell_percent(ahead[worst])
    alike = [row for row in ahead if ahead[row] > 0 and tell_percent(ahead[row]) == told] or [worst]
    names = [f"“{places.text(places.label[row])}”" for row in alike]
    name = " or ".join(names) if len(names) <= 3 else f"any of {len(names):,} outcomes"
    child = int(places.child[max(alike, key=lambda row: places.chance[row])])
    return PageAnswer(
        question,
        tell_percent(math.fsum(places.chance[row] for row in alike)),
        f"{name} after {places.text(places.action[branch])}: from there on {told} fail; of the "
        f"whole plan {tell_percent(plan.risk)}",
        branch if child < 0 else child,
    )


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
<p class="verdict {kind}"><strong>{verdict}</strong> <span>{summary}</span>{limits}</p>
</header>
<section class="answers" aria-label="Common questions">
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
        Common questions and their answers.
    """

    html: str
    answers: tuple[PageAnswer, ...]

    def __repr__(self) -> str:
        return f"<Page of {len(self.html.encode()):,} bytes>"

    def _repr_html_(self) -> str:
        """Show the page within a notebook."""
        style = "width:100%;height:760px;border:1px solid #ccc;border-radius:6px"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file: at once or not at all."""
        write_atomically(path, self.html.encode())


def make_page(plans: Sequence[PagePlan], explanation: Explanation, area: PageMap | None) -> Page:
    """Return the page of the first of some plans; the others are for other bounds."""
    plan, own_bound = plans[0], plans[0].own_bound
    about = plan.policy.about
    answers = answer_questions(plans, explanation)
    verdict = "? within its own bound" if own_bound else "✓ acceptable"
    if not plan.certificate.safe:
        verdict = "✗ too close to say" if plan.certificate.undecided else "✗ not acceptable"
    facts = {
        "plans": [one.describe() for one in plans],
        "riskiest": [_describe_risky(place, plan.places) for place in explanation.places],
        "compared": explanation.compared,
        "map": None if area is None else asdict(area),
        "horizon": about.horizon,
    }
    complete = "" if plan.policy.complete else "; not complete: some histories are not planned"
    if plan.certificate.beyond is not None:
        complete = f"; {describe_frontier(plan.certificate).removeprefix('no: ')}"
    summary = (
        f"fails with {tell_percent(plan.risk)} of {tell_percent(plan.allowed)} allowed · expected "
        f"reward {show_reward(plan.reward)} · {plan.places.total:,} decisions over "
        f"{about.horizon:,} steps{complete}"
    )
    if own_bound:
        summary = f"judged by the bound in its own file: {summary}"
    packed = "\n".join(
        f'<script type="text/plain" id="plan-{number}">{pack_arrays(one.places)}</script>'
        for number, one in enumerate(plans)
    )
    assets = files("vulcan.pages").joinpath("assets")
    html = TEMPLATE.format(
        title=escape(about.model),
        style=assets.joinpath("explorer.css").read_text("utf-8"),
        kind="bad" if not plan.certificate.safe else "" if own_bound else "good",
        verdict=verdict,
        summary=escape(summary),
        limits="".join(
            f"<br><span>{escape(quantity)}: {escape(text)}</span>"
            for quantity, text in map(describe_limited, plan.certificate.constraints)
        ),
        answers="\n".join(map(_show_answer, answers)),
        facts=json.dumps(facts, allow_nan=False).replace("<", "\\u003c"),
        plans=packed,
        about=escape(f"{about.solver} for Δ(x) = {plan.bound}"),
        program=assets.joinpath("explorer.js").read_text("utf-8"),
    )
    return Page(html, tuple(answers))


def _show_answer(answer: PageAnswer) -> str:
    tag, place = ("p", "") if answer.place is None else ("button", f' data-place="{answer.place}"')
    words, detail = (
        escape(text).replace(" %", "&nbsp;%") for text in (answer.words, answer.detail)
    )
    return (
        f'<{tag} class="answer"{place}><small>{escape(answer.question)}</small>'
        f"<strong>{words}</strong><span>{detail}</span></{tag}>"
    )


def _describe_risky(risky: RiskyPlace, places: Places) -> dict[str, Any]:
    """Return a place of the page that takes risk, and the action rejected there."""
    number = places.find((outcome for _, outcome in risky.history), risky.action)
    other = risky.alternative
    if other is None:
        return {"place": number, "instead": None}
    unclear = other.verdict == "not known"
    verdict = "whether that is better is not known" if unclear else other.verdict
    changes = f"reward {other.reward_change:+.2g}, risk {100 * other.risk_change:+.2g} %"
    return {"place": number, "instead": f"{other.action} instead: {verdict} ({changes})"}
