"""What people ask of a plan first, answered in words.

A *bad outcome* is the outcome of the first decision, failures aside, that leaves the least reward
to expect; the *worst branch* is the one after which a failure is likeliest, or all that are alike
in that. First is where the plan branches for the first time: a decision with one outcome needs no
answer. Of a randomised plan that is what the likeliest draw leads to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from vulcan.certificates.explanation import Explanation
from vulcan.pages.arrays import PlanArrays
from vulcan.pages.differences import Parting
from vulcan.pages.plan import PagePlan
from vulcan.sentinels import END, FAILED, UNPLANNED

__all__ = ["Answer", "answer_questions", "tell_percent"]

ENDINGS: Final = {END: "the plan ends there", UNPLANNED: "nothing is planned"}

LONGEST_HISTORY: Final = 3
"""Steps of a history that are told; of a longer one the last."""

MOST_NAMES: Final = 3
"""Outcomes that are named one by one."""

SMALLEST: Final = 1e-5
"""A probability below this is not told in digits."""


def tell_percent(probability: float) -> str:
    """Return a probability in percent as the page shows it, to three digits."""
    if 0 < probability < SMALLEST:
        return f"< {100 * SMALLEST:.3f} %"
    return f"{100 * probability:.3g} %"


@dataclass(frozen=True)
class Answer:
    """An answer.

    Attributes
    ----------
    question, words, detail
        The question, the answer in a few words, and the rest of it.
    place
        Where on the page it can be seen; None if nowhere.
    """

    question: str
    words: str
    detail: str
    place: int | None = None


def answer_questions(plans: Sequence[PagePlan], explanation: Explanation) -> list[Answer]:
    """Return the answers about a plan.

    Parameters
    ----------
    plans
        The plan, and then those for other bounds.
    explanation
        Where the plan takes its risk.
    """
    plan = plans[0]
    if not len(plan.places):
        return [Answer("What is done first?", "nothing", "the start has no actions")]
    branch = _find_branching(plan.places)
    return [
        _answer_first(plan.places),
        _answer_bad(plan, branch),
        _answer_risk(plan),
        _answer_less(plans, explanation),
        _answer_worst(plan, branch),
    ]


def _find_branching(places: PlanArrays) -> int:
    """Return the first place with more than one safe outcome; the start if there is none."""
    here = start = places.starts()[0]
    while True:
        safe = [row for row in places.outcomes(here) if places.child[row] != FAILED]
        if len(safe) > 1:
            return here
        if not safe or places.child[safe[0]] < 0:
            return start
        here = int(places.child[safe[0]])


def _answer_first(places: PlanArrays) -> Answer:
    start, *others = places.starts()
    more = ""
    if places.fails[start] >= SMALLEST:
        more = f"; it fails at once with {tell_percent(places.fails[start])}"
    if others:
        chance = tell_percent(places.reach[start])
        more += f"; a draw chose this plan of {1 + len(others)}, with {chance}"
    return Answer(
        "What is done first?",
        places.text(places.action[start]),
        f"in {places.text(places.state[start])}{more}",
        start,
    )


def _answer_bad(plan: PagePlan, branch: int) -> Answer:
    places = plan.places
    question = "What after a bad outcome?"
    safe = [row for row in places.outcomes(branch) if places.child[row] != FAILED]
    if not safe:
        return Answer(question, "nothing", "every outcome is a failure", branch)
    worst = min(safe, key=lambda row: places.expected(row, branch))
    child = int(places.child[worst])
    name = places.text(places.label[worst])
    action = ENDINGS.get(child, "it goes on") if child < 0 else places.text(places.action[child])
    return Answer(
        question,
        action,
        f"after “{name}”, the poorest outcome of {places.text(places.action[branch])} "
        f"(probability {tell_percent(places.chance[worst])}): "
        f"reward {places.expected(worst, branch):.2f} to expect instead of "
        f"{places.reward[branch]:.2f}",
        child if child >= 0 else branch,
    )


def _answer_risk(plan: PagePlan) -> Answer:
    places, question = plan.places, "Where is most of the risk taken?"
    taken = places.reach * places.fails
    total = float(taken.sum())
    if total <= 0:
        return Answer(question, "nowhere", "the plan takes no risk at all")
    pairs = np.stack((places.action, places.state), axis=1)
    kinds, kind = np.unique(pairs, axis=0, return_inverse=True)
    share = np.bincount(kind.ravel(), taken) / total
    first = int(share.argmax())
    action, state = (places.text(number) for number in kinds[first])
    place = int(np.where(kind.ravel() == first, taken, -1.0).argmax())
    return Answer(
        question,
        f"{action} in {state}",
        f"{tell_percent(share[first])} of all risk, {tell_percent(taken[place] / total)} at one "
        f"place: step {places.depth[place] + 1}, reached with {tell_percent(places.reach[place])}, "
        f"where {tell_percent(places.fails[place])} fail at once",
        place,
    )


def _answer_less(plans: Sequence[PagePlan], explanation: Explanation) -> Answer:
    question = "What with less allowed risk?"
    plan = plans[0]
    less = [other for other in plans[1:] if other.allowed < plan.allowed and other.difference]
    if not less:
        price = next((case for case in explanation.what_if if case.scale < 1), None)
        if price is not None and price.reward is not None:
            words = f"about {price.reward - plan.reward:+.3g} of reward"
            detail = f"for {price.scale:g} times the allowed risk, by the price of risk"
            return Answer(question, words, f"{detail}; what would be done was not looked at")
        return Answer(question, "not known", "no plan for less risk is on this page")
    other = max(less, key=lambda one: one.difference.probability if one.difference else 0.0)
    assert other.difference is not None
    rewards = f"reward {other.reward:.3f} instead of {plan.reward:.3f}"
    if other.remark:  # a plan that was searched for too short a time may differ by that alone
        rewards += f" ({other.remark})"
    case = f"{other.name} ({tell_percent(other.allowed)})"
    if not other.difference.partings:
        return Answer(question, "the same", f"{case}: {rewards}")
    parting = other.difference.partings[0]
    return Answer(
        question,
        f"{parting.instead} instead of {parting.action}",
        f"{case}: {_tell(parting)}. The plans part in {tell_percent(other.difference.probability)} "
        f"of all missions; {rewards}",
        plan.places.find((outcome for _, outcome in parting.history), parting.action),
    )


def _tell(parting: Parting) -> str:
    """Return where two plans part, in words."""
    if not parting.history:
        return "at once"
    steps = [f"{action} → {outcome}" for action, outcome in parting.history]
    told = ", ".join(steps[-LONGEST_HISTORY:])
    cut = "… " if len(steps) > LONGEST_HISTORY else ""
    return f"likeliest at step {len(steps) + 1}, after {cut}{told}"


def _answer_worst(plan: PagePlan, branch: int) -> Answer:
    places, question = plan.places, "How probable is the worst branch?"
    ahead = {
        row: float(places.risk[places.child[row]])
        for row in places.outcomes(branch)
        if places.child[row] >= 0
    }
    failing = math.fsum(
        float(places.chance[row]) for row in places.outcomes(branch) if places.child[row] == FAILED
    )
    if not ahead:
        return Answer(question, tell_percent(failing), "the first action fails", branch)
    worst = max(ahead, key=lambda row: (ahead[row], -places.expected(row, branch)))
    # Risks that are told alike are alike to whoever reads this.
    told = tell_percent(ahead[worst])
    alike = [row for row in ahead if ahead[row] > 0 and tell_percent(ahead[row]) == told] or [worst]
    names = [f"“{places.text(places.label[row])}”" for row in alike]
    name = " or ".join(names) if len(names) <= MOST_NAMES else f"any of {len(names):,} outcomes"
    at_once = f", {tell_percent(failing)} at once" if failing >= SMALLEST else ""
    return Answer(
        question,
        tell_percent(math.fsum(places.chance[row] for row in alike)),
        f"{name} after {places.text(places.action[branch])}: from there on {told} fail; of the "
        f"whole plan {tell_percent(plan.risk)}{at_once}",
        int(places.child[max(alike, key=lambda row: places.chance[row])]),
    )
