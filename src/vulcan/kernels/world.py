"""What a search kernel is given of the problem, in one tuple."""

from __future__ import annotations

from typing import Any, NamedTuple

from vulcan.kernels.compile import borrow, part

__all__ = ["World", "borrow_world"]


class World(NamedTuple):
    """The arrays that describe a problem.

    Attributes
    ----------
    states, actions, outcomes
        The rows of the state graph; see `vulcan.graph`.
    pieces
        The risk bound; see `vulcan.bound_table`.
    discounts, weights
        Per level; see `vulcan.reader`.
    source, answers
        The compiled model, if there is one, and where it writes outcomes; see
        `vulcan.kernels.ask`. Only with one are rows added by a kernel.
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
def borrow_world(world):
    """Return the same world without counted references."""
    return World(
        borrow(world.states),
        borrow(world.actions),
        borrow(world.outcomes),
        borrow(world.pieces),
        borrow(world.discounts),
        borrow(world.weights),
        borrow(world.source),
        borrow(world.answers),
    )
