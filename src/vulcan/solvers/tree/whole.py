"""How the policy of a tree is completed: over histories, or, where states merge, over pairs.

Decisions shared by all histories in one state at one step (`vulcan.solvers.tree.shared`) take all
pairs that any action can lead to. That may be far fewer than the histories of one policy, or far
more. So both are tried with a share of what the search itself has taken, and with four times that
until one of them succeeds: together they take little more than the cheaper one alone. Where both
succeed the better policy wins: decisions over pairs look at the bound itself, those over histories
(`vulcan.kernels.completion`) at the local constraint, which is stricter but can tell histories
apart. Where the constraint admits no policy at all, only the former can succeed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Final

from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.sampling import TreeRun

__all__ = ["plan_whole"]

FEWEST_PLACES: Final = 1 << 14
FEWEST_QUESTIONS: Final = 256
"""Pairs or histories, and states that the model is asked, that a completion may always take."""

SCALES: Final = tuple(4**k for k in range(12))
FEW: Final = 5
"""How many of them are tried where the constraint admits no policy at all."""


def plan_whole(run: TreeRun, rank: Callable[[Draft], Any], until: float) -> Draft | None:
    """Return the policy of a tree, completed; None without room or time for it.

    Parameters
    ----------
    run
        The search. It may learn that there is no admissible policy, or that all is solved.
    rank
        Says which of two policies is better: the one with the larger rank.
    until
        When it must end, by `time.perf_counter`.
    """
    if run.solved or not run.graph.merges:
        return run.plan(True, _watch(run, Allowance(math.inf, math.inf, until)))
    found: list[Draft | None] = []
    for scale in SCALES[:FEW] if run.exhausted else SCALES:
        # Histories leave half of the time to pairs.
        middle = (time.perf_counter() + until) / 2
        histories, pairs = _allow(run, scale, middle), _allow(run, scale, until)
        if not run.exhausted:
            found.append(run.plan(True, _watch(run, histories)))
        if run.solved:
            break
        found.append(run.plan_by_pairs(pairs))
        succeeded = any(draft is not None for draft in found)
        if succeeded or pairs.late or not (histories.exceeded or pairs.exceeded):
            break
    return max((draft for draft in found if draft is not None), key=rank, default=None)


def _watch(run: TreeRun, histories: Allowance) -> Callable[[], bool]:
    """Return what says when a walk over histories must stop."""
    return lambda: histories.forbids(run.walked)


def _allow(run: TreeRun, scale: int, until: float) -> Allowance:
    """Return a share of what the search has taken, times a scale."""
    places = max(FEWEST_PLACES, run.histories // 16)
    questions = max(FEWEST_QUESTIONS, len(run.state_graph.expanded) // 4)
    return Allowance(scale * places, scale * questions, until)
