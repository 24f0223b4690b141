"""Exploring a plan, and plans for other bounds, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from vulcan.certificate.certify import certify
from vulcan.model.reader import ModelReader
from vulcan.numerics import EXACT_GAP
from vulcan.pages.arrays import collect_arrays
from vulcan.pages.page import Page, PagePlan, make_page
from vulcan.parameters import knows_parameters, require_number
from vulcan.planning.explain import explain
from vulcan.planning.solve import solve
from vulcan.policy.policy import AnyPolicy, open_own_model, require_policy
from vulcan.policy.walk import find_decision_points
from vulcan.problem import Problem, require_problem
from vulcan.runtime.formatting import show_gap
from vulcan.runtime.limits import pause_collection

MOST_OF_OTHERS: Final = 3_000  # decision points of each other plan on a page: the likeliest


@knows_parameters
def explore(
    problem: Problem,
    policy: AnyPolicy,
    *,
    what_if: float | None = 5.0,
    scales: Sequence[float] = (0.5, 0.9),
    own_bound: bool = False,
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
    own_bound
        Whether only the policy's file says that bound: the page then calls no plan acceptable.

    Returns
    -------
    Page
        `page.save("plan.html")` writes it; a notebook shows it.

    Raises
    ------
    ModelError
        If an answer of the model breaks a rule.
    MismatchError
        If the model is not the one that a policy was made for, or has changed.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    >>> page = vulcan.explore(problem, vulcan.solve(problem).policy)
    >>> page.answers[0].words
    'play 1'
    """
    require_problem(problem)
    require_policy(policy)
    if what_if is not None:
        require_number("what_if, a number of seconds,", what_if, above=0.0)
    reader = open_own_model(policy.about, problem.model)
    explanation = explain(problem, policy, places=12)
    plan = _make_plan("this plan", policy, reader, problem)
    plans = [replace(plan, own_bound=own_bound)]
    for scale in () if what_if is None else sorted(scales):
        bound = problem.risk_bound.scale(scale)
        other = Problem(problem.model, bound, constraints=problem.constraints)
        result = solve(other, time_limit=what_if)
        if not result.safe or result.policy is None:
            continue
        gap, remark = result.gap, "the best plan within this bound, proved"
        if gap is None or gap > EXACT_GAP:
            shown = show_gap(gap, result.absolute_gap, result.upper_bound)
            remark = "" if gap is None else f"at most {shown} below the best"
            if result.stopped_by is not None:
                found = f"found in {what_if:g} s; a longer search may find a better one"
                remark = f"{found}; {remark}".rstrip("; ")
        name = f"{scale:g} times the allowed risk"
        plans.append(_make_plan(name, result.policy, reader, other, MOST_OF_OTHERS, remark))
    area = problem.model.page_map() if hasattr(problem.model, "page_map") else None
    return make_page(plans, explanation, area)


def _make_plan(
    name: str,
    policy: AnyPolicy,
    reader: ModelReader,
    problem: Problem,
    most: int | None = None,
    remark: str = "",
) -> PagePlan:
    with pause_collection():
        places = collect_arrays(find_decision_points(policy, reader), reader, most)
    certificate = certify(problem, policy)
    return PagePlan(name, policy, places, problem.risk_bound, certificate, remark)
