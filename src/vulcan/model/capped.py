"""Budgets that are never exceeded: a model whose states know what is left.

A constraint on a cost limits its expected total. `Capped` limits the total of every single mission:
an action is available only if each of its outcomes leaves a total within the limit. Where no action
of the model is left, the mission ends safely only if an end was declared; else it has failed.

Amounts are fractions, floats read as the decimals that they are written as, so that equal totals
are equal states whatever the order of the costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from vulcan.errors import ModelError, OptionError
from vulcan.model.interface import Outcome, Start, describe_model
from vulcan.model.rules import Rule, Violation, read_attribute, read_costs, read_number
from vulcan.parameters import shorten

FORWARDED: Final = ("reward_to_go_bound", "value_to_go_bound", "risk_to_go_bound", "locate")
"""Optional methods that hold for the capped model as well; their first argument is a state."""


class Left(NamedTuple):
    """A state, and how much of the budget is left."""

    state: Any
    left: Fraction

    def __str__(self) -> str:
        return f"{self.state}, {float(self.left):g} left"


class Capped:
    """A model in which the total of a cost never exceeds a limit.

    Parameters
    ----------
    model
        The model; its outcomes have the cost (`Outcome.costs`).
    name
        The name of the cost.
    most
        The largest total.
    end
        What ends the mission safely where no action fits, such as "dock". Where the model itself
        has an action of this name, that has to fit like any other. Without an end the mission
        fails there, with the event "out of ..." and no reward.

    Examples
    --------
    >>> from vulcan import Outcome
    >>> class Flight:
    ...     horizon = 5
    ...     def initial_state(self):
    ...         return "air"
    ...     def actions(self, state):
    ...         return ["fly", "land"] if state == "air" else []
    ...     def outcomes(self, state, action):
    ...         if action == "land":
    ...             return [Outcome(1.0, 0.0, "ground")]
    ...         return [Outcome(1.0, 1.0, "air", costs={"fuel": 0.4})]
    >>> capped = Capped(Flight(), "fuel", 1, end="land")
    >>> state = capped.initial_state()
    >>> for _ in range(2):
    ...     state = capped.outcomes(state, "fly")[0].state
    >>> capped.actions(state)
    ['land']
    """

    ENDED: Final = "ended"  # the state after the declared end

    def __init__(self, model: Any, name: str, most: float, end: Any = None) -> None:
        limit = read_number(most)
        if limit is None or not limit >= 0:
            raise OptionError(f"the limit of {name!r} must be a number from 0 on, not {most!r}")
        self.model, self.name, self.most, self.end = model, name, _to_fraction(limit), end
        self.horizon = model.horizon
        self.discount = read_attribute(model, "discount", 1)
        self.merges = read_attribute(model, "merges", True)
        if hasattr(model, "action_label"):
            self.action_label = self._label
        for method in FORWARDED:
            if hasattr(model, method):
                setattr(self, method, partial(self._forward, method))

    def __repr__(self) -> str:
        return f"Capped({describe_model(self.model)}, {self.name!r}, {float(self.most):g})"

    @property
    def fingerprint(self) -> str:
        """A string that identifies the model and the limit."""
        own = read_attribute(self.model, "fingerprint") or type(self.model).__name__
        return f"{own}, {self.name} <= {self.most}, end {self.end!r}"

    def initial_state(self) -> Any:
        """Return the initial state with the whole budget."""
        root = self.model.initial_state()
        if not isinstance(root, Start):
            return Left(root, self.most)
        return Start({action: self._spend(None, root.choices[action]) for action in root.choices})

    def actions(self, state: Any) -> Sequence[Any]:
        """Return the actions that fit; the declared end, or running out, where none does."""
        given = [] if state == self.ENDED else list(self.model.actions(state.state))
        fitting = [action for action in given if self._fits(state, action)]
        if fitting or not given:
            return fitting
        return [self._out if self.end is None or self.end in given else self.end]

    def outcomes(self, state: Left, action: Any) -> list[Outcome]:
        """Return the outcomes of an action, with what is left after each."""
        if action == self._out:
            return [Outcome.failure(1.0, event=self._out)]
        if action == self.end and action not in self.model.actions(state.state):
            return [Outcome(1.0, 0.0, self.ENDED)]
        return self._spend(state, self.model.outcomes(state.state, action))

    @property
    def _out(self) -> str:
        return f"out of {self.name}"

    def _fits(self, state: Left, action: Any) -> bool:
        outcomes = self.model.outcomes(state.state, action)
        return all(self._cost(o) <= state.left for o in outcomes if o.probability)

    def _spend(self, state: Left | None, outcomes: Any) -> list[Outcome]:
        left = self.most if state is None else state.left
        return [
            o if o.fails else replace(o, state=Left(o.state, left - self._cost(o)))
            for o in outcomes
        ]

    def _cost(self, outcome: Outcome) -> Fraction:
        costs = read_costs(outcome.costs)
        if costs is None:
            message = f"costs must be names with numbers, not {shorten(outcome.costs)}"
            raise ModelError(Violation(Rule.COSTS, message, value=outcome.costs))
        return _to_fraction(costs.get(self.name, 0))

    def _label(self, action: Any) -> str:
        own = action in (self._out, self.end)
        return str(action if own else self.model.action_label(action))

    def _forward(self, method: str, state: Left, *arguments: Any) -> Any:
        return getattr(self.model, method)(state.state, *arguments)


def _to_fraction(number: Any) -> Fraction:
    """Return a number as a fraction: a float as the decimal that it is written as."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
