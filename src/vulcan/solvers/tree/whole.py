"""How the policy of a tree is completed: over histories, or, where states merge, over pairs.

Over histories (`vulcan.kernels.completion`) every history is tested by the local constraint, as the
search does. There may be millions of them where there are a few hundred pairs of a state and a
step; there, decisions are shared by all histories in the same state (`vulcan.solvers.tree.shared`).
But pairs are all that any action can lead to, and may also be far more than the histories of one
policy. So both are tried with a share of what the search itself has taken, and with four times that
until one succeeds: that takes little more than the cheaper one would alone. Where histories
succeed, the model is asked little more for pairs.

Decisions over pairs look at the bound itself, and may be better than any that the constraint
admits; where it admits no policy at all, they may still find one that is within the bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Final

from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.sampling import TreeRun

__all__ = ["plan_whole"]

FEWEST_PLACES: Final = 1 << 14
FEWEST_QUESTIONS: Final = 256
"""Pairs or histories, and states that the model is asked, that a completion may always take."""

SAMPLES_PER_QUESTION: Final = 64
"""Where there is a complete policy already, a state may be asked for this many samples."""

SCALES: Final = tuple(4**k for k in range(12))
FEW: Final = 5
"""How many of them are tried where the constraint admits no policy at all."""


def plan_whole(run: TreeRun, until: float) -> Iterator[Draft]:
    """Yield policies of a tree, completed; none without room or time for it.

    Parameters
    ----------
    run
        The search. It may learn that there is no admissible policy, or that all is solved.
    until
        When it must end, by `time.perf_counter`.
    """
    if not run.graph.merges or run.solved:
        draft = run.plan(True, _watch(run, Allowance(math.inf, math.inf, until)))
        if draft is not None:
            yield draft
        return
    for scale in SCALES[:FEW] if run.exhausted else SCALES:
        # Histories leave half of the time to pairs.
        histories = _allow(run, scale, (time.perf_counter() + until) / 2)
        pairs = _allow(run, scale, until)
        draft = None if run.exhausted else run.plan(True, _watch(run, histories))
        if draft is not None:
            yield draft
            pairs.questions = run.samples // SAMPLES_PER_QUESTION
        shared = None if run.solved else run.plan_by_pairs(pairs)
        if shared is not None:
            yield shared
        exceeded = histories.exceeded or pairs.exceeded
        if draft is not None or shared is not None or pairs.late or not exceeded:
            return


def _watch(run: TreeRun, histories: Allowance) -> Callable[[], bool]:
    """Return what says when a walk over histories must stop."""
    return lambda: histories.forbids(run.walked)


def _allow(run: TreeRun, scale: int, until: float) -> Allowance:
    """Return a share of what the search has taken, times a scale."""
    places = max(FEWEST_PLACES, run.histories // 16)
    questions = max(FEWEST_QUESTIONS, len(run.state_graph.expanded) // 4)
    return Allowance(scale * places, scale * questions, until)
