"""Exploring a plan: everything about it, and about its siblings under other bounds, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.parsing import parse
from vulcan.certificates.certificate import certify
from vulcan.certificates.problem import Problem, require_problem
from vulcan.errors import OptionError
from vulcan.model.reader import ModelReader
from vulcan.pages.arrays import collect_arrays
from vulcan.pages.differences import find_difference
from vulcan.pages.maps import Mapped
from vulcan.pages.page import Page, make_page
from vulcan.pages.plan import PagePlan
from vulcan.parameters import require_number
from vulcan.planning.explain import explain
from vulcan.planning.result import Result
from vulcan.planning.solve import solve
from vulcan.policies.places import find_places
from vulcan.policies.policy import open_own_model
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.garbage import pause_collection
from vulcan.tolerance import EXACT_GAP

__all__ = ["explore"]

SCALES: Final = (0.5, 0.9)
RISKIEST: Final = 12

MOST_OF_OTHERS: Final = 3_000
"""Places of each other plan that a page holds, those that are reached most likely."""


def explore(
    problem: Problem,
    policy: AnyPolicy,
    *,
    what_if: float | None = 5.0,
    scales: Sequence[float] = SCALES,
    others: Sequence[AnyPolicy] = (),
) -> Page:
    """Make a page on which people explore a plan: one HTML file that needs nothing else.

    Parameters
    ----------
    problem
        The model that the policy was made for, and the bound that it is judged by.
    policy
        Any policy, deterministic or randomised.
    what_if
        Seconds for each search of a plan for another bound; None searches for none.
    scales
        The multiples of the allowed risk for which to search.
    others
        Policies for other bounds that are known already; each knows its own bound.

    Returns
    -------
    Page
        `page.save("plan.html")` writes it; a notebook shows it.

    Raises
    ------
    ModelError
        If an answer of the model breaks a rule.
    MismatchError
        If the model is not the one that a policy was made for, or no longer answers the same.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    >>> page = vulcan.explore(problem, vulcan.solve(problem).policy)
    >>> page.answers[0].words
    'play 1'
    """
    require_problem(problem, call="explore(Problem(model, {bound}), policy)")
    if what_if is not None:
        require_number("what_if, a number of seconds,", what_if, above=0.0)
    reader = open_own_model(policy.about, problem.model)
    explanation = explain(problem, policy, places=RISKIEST)
    with pause_collection():
        places = collect_arrays(find_places(policy, reader), reader)
    plan = PagePlan("this plan", policy, places, problem.risk_bound, certify(problem, policy))
    siblings = [_add_given(plan, reader, other) for other in others]
    if what_if is not None:
        siblings += _solve_others(plan, problem, reader, scales, what_if)
    siblings.sort(key=lambda other: other.allowed)
    area = problem.model.page_map() if isinstance(problem.model, Mapped) else None
    return make_page([plan, *siblings], explanation, area)


def _solve_others(
    plan: PagePlan, problem: Problem, reader: ModelReader, scales: Sequence[float], seconds: float
) -> list[PagePlan]:
    """Return plans for multiples of the bound, as far as there are safe ones."""
    found = []
    for scale in scales:
        bound = problem.risk_bound.scale(scale)
        result = solve(Problem(problem.model, bound), time_limit=seconds)
        if result.safe and result.policy is not None:
            name = f"{scale:g} times the allowed risk"
            other = _add(plan, reader, result.policy, bound, name)
            found.append(replace(other, remark=_describe_quality(result, seconds)))
    return found


def _describe_quality(result: Result, seconds: float) -> str:
    gap = result.gap
    if gap is not None and gap <= EXACT_GAP:
        return "the best plan within this bound, proved"
    known = "" if gap is None else f"at most {100 * gap:.2g} % below the best"
    if result.stopped_by is None:
        return known
    return f"found in {seconds:g} s; a longer search may find a better one; {known}".rstrip("; ")


def _add_given(plan: PagePlan, reader: ModelReader, policy: AnyPolicy) -> PagePlan:
    if policy.about.fingerprint != plan.policy.about.fingerprint:
        open_own_model(policy.about, reader.model)  # says which model it is for
    text = policy.about.risk_bound
    if text is None:
        raise OptionError("another plan must know its bound; it was made for a function")
    return _add(plan, reader, policy, parse(text), f"Δ(x) = {text}")


def _add(
    plan: PagePlan, reader: ModelReader, policy: AnyPolicy, bound: RiskBound, name: str
) -> PagePlan:
    """Return another plan of the same model, and where it parts from the first."""
    with pause_collection():
        places = collect_arrays(find_places(policy, reader), reader, MOST_OF_OTHERS)
    ours, theirs = plan.policy.members, policy.members
    alone = len(ours) == len(theirs) == 1
    difference = find_difference(ours[0], theirs[0]) if alone else None
    certificate = certify(Problem(reader.model, bound), policy)
    return PagePlan(name, policy, places, bound, certificate, difference)
