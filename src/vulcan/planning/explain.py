"""Explaining a policy: where its risk is spent, what was rejected there, and what a bound costs.

At the places that take the most risk the other actions are looked at, each put in the place of the
one that is taken, the rest of the plan kept. With reach(h) the probability of the place, and
(ΔR, Δx) what is gained in reward and in risk from there on, the whole plan would have

    E g' = E g + γ^t reach(h) ΔR,    er' = er + reach(h) Δx,

and is worth less if E g' < E g, or else too risky if er' > Δ(E g'); if it is neither, the plan is
not the best one, unless both are as good.

How the mission would go on after another action is for `vulcan.planning.alternatives` to say. Where
only the step itself can be compared, an action that would seem better is "not known" to be: a plan
may well take the other for what it leads to. `compared` says how it was done.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from vulcan.certificates.explanation import (
    Explanation,
    WhatIf,
    add_up_steps,
    describe_places,
)
from vulcan.certificates.problem import Problem, require_problem
from vulcan.certificates.steps import Step, StepLevel, follow_steps
from vulcan.errors import BoundError
from vulcan.parameters import require_number
from vulcan.planning.alternatives import Judge, World
from vulcan.planning.solve import solve
from vulcan.policies.policy import open_own_model
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.garbage import pause_collection

__all__ = ["describe_look", "explain"]

SCALES: Final = (0.9, 1.1)

EXACTLY: Final = (
    "the other action there, then what is best at the price of risk, found exactly over all "
    "states; elsewhere the plan as it is"
)
SEARCHED: Final = (
    "the other action there, then the best plan that {:g} s of search find; elsewhere the plan as "
    "it is"
)
ASSUMED: Final = (
    "the step alone, as if what follows were worth what follows the action taken: states do not "
    "merge, or are too many to look at all that could follow (vulcan explain --look SECONDS "
    "searches)"
)


def explain(
    problem: Problem,
    policy: AnyPolicy,
    *,
    places: int = 10,
    what_if: float | None = None,
    look: float | None = None,
) -> Explanation:
    """Say where a policy takes its risk, what was rejected there, and whether it fails on purpose.

    Parameters
    ----------
    problem
        The model that the policy was made for, and the bound that it is judged by.
    policy
        Any policy, deterministic or randomised.
    places
        At how many places, those that take the most risk, other actions are looked at. Where states
        merge, the model is asked for up to 50,000 more (state, action) for that.
    what_if
        Solve again for 0.9 and 1.1 times the allowed risk, each with a limit of this many seconds.
        Without it, and where states merge, the price of risk says about as much.
    look
        Where states do not merge, or are too many: how many seconds to search at each place for
        what could follow the other actions. Without it only the step itself is compared.

    Returns
    -------
    Explanation
        What each action does in each state, and the riskiest places with the best alternative at
        each. `deliberate` is how likely a failure on purpose is, and `failures` says where.

    Raises
    ------
    ModelError
        If an answer of the model breaks a rule.
    MismatchError
        If the model is not the one that the policy was made for, or no longer answers the same.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    >>> explanation = vulcan.explain(problem, vulcan.solve(problem).policy)
    >>> [(choice.action, round(choice.risk, 5)) for choice in explanation.actions][:1]
    [('play 1', 0.002)]
    >>> explanation.deliberate
    0.0
    >>> explanation.places[0].alternative.verdict
    'worth less'
    """
    require_problem(problem, call="explain(Problem(model, {bound}), policy)")
    for name, seconds in (("what_if", what_if), ("look", look)):
        if seconds is not None:
            require_number(f"{name}, a number of seconds,", seconds, above=0.0)
    reader = open_own_model(policy.about, problem.model)
    with pause_collection():
        levels = follow_steps(policy, reader)
        found = add_up_steps(levels, reader)
    risky = _find_riskiest(levels, places)
    world = World(problem, reader) if places else None
    if world is not None and world.price is None:
        world = None
    judge = Judge(problem.risk_bound, found, levels, reader, world, look)
    price = None if world is None else world.price
    compared = describe_look(world is not None, look)
    return replace(
        found,
        places=tuple(describe_places(alike, judge.find_best(alike[0])) for alike in risky),
        compared=compared if risky else None,
        price=price,
        what_if=_scale_bound(problem, found, price, what_if) if places or what_if else (),
    )


def describe_look(exact: bool, look: float | None) -> str:
    """Return what other actions are compared by, in a sentence."""
    return EXACTLY if exact else ASSUMED if look is None else SEARCHED.format(look)


def _find_riskiest(levels: Sequence[StepLevel], most: int) -> list[list[Step]]:
    """Return the steps that take risk by action and state: the riskiest first, also in each."""
    alike: dict[tuple[str, Any], list[Step]] = {}
    for level in levels:
        for step in level.steps:
            if step.risk > 0:
                alike.setdefault((step.action, step.place.state), []).append(step)
    found = heapq.nlargest(most, alike.values(), key=lambda steps: sum(s.risk for s in steps))
    return [sorted(steps, key=lambda step: -step.risk) for steps in found]


def _scale_bound(
    problem: Problem, plan: Explanation, price: float | None, seconds: float | None
) -> tuple[WhatIf, ...]:
    """Return what more or less allowed risk would change."""
    if seconds is not None:
        found = []
        for scale in SCALES:
            scaled = Problem(problem.model, problem.risk_bound.scale(scale))
            result = solve(scaled, time_limit=seconds)
            certificate = result.certificate if result.safe else None
            found.append(
                WhatIf(
                    scale,
                    None if certificate is None else float(certificate.reward),
                    None if certificate is None else float(certificate.risk),
                    result.upper_bound,
                    "solved",
                )
            )
        return tuple(found)
    try:
        allowed = problem.risk_bound(plan.reward)
    except BoundError:
        return ()
    kept = [scale for scale in SCALES if scale < 1 and plan.risk <= scale * allowed]
    if price == 0 and plan.risk <= allowed:
        kept += [scale for scale in SCALES if scale > 1]  # the bound does not hold it back
    # The price is that of randomised plans: it says nothing of one that can't spend what it may,
    # nor, where the bound does not bind, of a bound that would.
    told = SCALES if price and plan.risk > min(SCALES) * allowed else ()
    return tuple(
        WhatIf(scale, plan.reward, plan.risk, None, "kept")
        if scale in kept
        else WhatIf(
            scale, plan.reward + (price or 0.0) * (scale - 1) * allowed, None, None, "price"
        )
        for scale in SCALES
        if scale in kept or scale in told
    )
