"""What a search kernel is given of the problem, in one tuple."""

from __future__ import annotations

from typing import Any, NamedTuple

from vulcan.kernels.compilation import borrow, part

__all__ = ["ProblemArrays", "borrow_problem"]


class ProblemArrays(NamedTuple):
    """The arrays that describe a problem.

    Attributes
    ----------
    states, actions, outcomes
        The rows of the state graph; see `vulcan.graphs.base`.
    pieces
        The risk bound; see `vulcan.bounds.table`.
    discounts, weights
        Per level; see `vulcan.model.reader`.
    source, answers
        The compiled model, if there is one, and where it writes outcomes; see
        `vulcan.kernels.expansion`. Only with one are rows added by a kernel.
    """

    states: Any
    actions: Any
    outcomes: Any
    pieces: Any
    discounts: Any
    weights: Any
    source: Any
    answers: Any


@part
def borrow_problem(problem):
    """Return the same problem without counted references."""
    return ProblemArrays(
        borrow(problem.states),
        borrow(problem.actions),
        borrow(problem.outcomes),
        borrow(problem.pieces),
        borrow(problem.discounts),
        borrow(problem.weights),
        borrow(problem.source),
        borrow(problem.answers),
    )
