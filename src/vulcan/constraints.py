"""What a problem limits beside its risk bound: costs, kinds of failure, events, and risk ahead.

A constraint limits a *charge* of outcomes: with c_k(o) the charge of an outcome, costs add up over
a mission without discount,

    E c_k = Σ_t E[survival · c_k(outcome of step t)]  <=  Δ_k(E g),

with Δ_k concave and nondecreasing, as the risk bound is.

| constraint | charge of an outcome |
|---|---|
| `Risk(bound)` | 1 if it fails: this is the risk bound itself |
| `Risk(bound, event="collision")` | 1 if this is its event, and it is the first time |
| `Cost("fuel", bound)` | its cost of that name; 0 without one |

After the first time an event charges nothing more, so that E c_k is the probability that it ever
happens. For a policy this needs no memory: its later decisions do not depend on whether the event
is counted, so the histories in which it happened are simply followed no further. The best
*decisions* do depend on it. Searches therefore plan over states that know which events have
happened (`vulcan.model.reader.Happened`).

`RiskAhead(level)` limits the probability of failing from every history on that the policy reaches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vulcan.bounds.base import RiskBound
from vulcan.bounds.parse import read_bound
from vulcan.errors import BoundError, OptionError
from vulcan.model.interface import Outcome
from vulcan.numerics import Number
from vulcan.parameters import knows_parameters, require_number, shorten, suggest

NAME: Final = re.compile(r"[^\W\d]\w*(?:[ .:-]\w+)*")
"""Names of costs and events that a constraint's text may contain."""


@dataclass(frozen=True, init=False)
class Constraint:
    """A limit Δ_k(E g) on an expected total charge; use `Risk`, `Cost` or `RiskAhead`."""

    bound: RiskBound

    @property
    def quantity(self) -> str:
        """What is limited, as it is written: "fuel", "risk(collision)", "risk"."""
        raise NotImplementedError

    @property
    def text(self) -> str | None:
        """The constraint as `read_constraint` reads it; None if its bound is a function."""
        return None if self.bound.text is None else f"{self.quantity} <= {self.bound.text}"

    def __str__(self) -> str:
        return f"{self.quantity} <= {self.bound}"


@knows_parameters
@dataclass(frozen=True, init=False)
class Risk(Constraint):
    """Limit the probability of failing, or that an event ever happens.

    Parameters
    ----------
    bound
        The acceptable probability as a function of expected reward: a number, a string as
        `vulcan.parse` reads it, or a risk bound.
    event
        The event (`Outcome.event`); by default failing of any kind. The event of a failing outcome
        is a kind of failure. After the event of a safe outcome the mission goes on.

    Examples
    --------
    >>> print(Risk(0.01, event="collision"))
    risk(collision) <= 0.01
    """

    event: str | None = None

    def __init__(self, bound: RiskBound | float | str, event: str | None = None) -> None:
        if event is not None:
            _require_name("an event", event)
        object.__setattr__(self, "bound", _read_limit(bound, "a probability", least=0.0))
        object.__setattr__(self, "event", event)

    @property
    def quantity(self) -> str:
        return "risk" if self.event is None else f"risk({self.event})"


@knows_parameters
@dataclass(frozen=True, init=False)
class Cost(Constraint):
    """Limit the expected total of a cost.

    Parameters
    ----------
    name
        The name of the cost, as in `Outcome.costs`. An outcome that does not name it costs nothing.
    bound
        The acceptable total as a function of expected reward: a number, a string as `vulcan.parse`
        reads it, or a risk bound.

    Examples
    --------
    >>> print(Cost("dose", "0.2 + 0.01*x"))
    dose <= 0.01 * x + 0.2
    """

    name: str = ""

    def __init__(self, name: str, bound: RiskBound | float | str) -> None:
        _require_name("a cost", name)
        if name == "risk":
            raise OptionError('a cost can\'t be called "risk"; Risk(bound) limits failing')
        object.__setattr__(self, "bound", _read_limit(bound, f"the cost {name!r}"))
        object.__setattr__(self, "name", name)

    @property
    def quantity(self) -> str:
        return self.name


@knows_parameters
@dataclass(frozen=True, init=False)
class RiskAhead(Constraint):
    """Limit the risk that is still ahead, at every history that the policy can reach.

    Parameters
    ----------
    level
        The largest acceptable probability of failing from any such history on; a number.

    Examples
    --------
    >>> print(RiskAhead(0.05))
    risk ahead <= 0.05
    """

    def __init__(self, level: float) -> None:
        limit = require_number("the level of RiskAhead", level, least=0.0)
        object.__setattr__(self, "bound", read_bound(limit))

    @property
    def level(self) -> float:
        """The largest acceptable probability."""
        return self.bound(0.0)

    @property
    def quantity(self) -> str:
        return "risk ahead"


def _require_name(what: str, name: Any) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise OptionError(
            f"the name of {what} must be words of letters and digits, not {shorten(name)}"
        )


def _read_limit(given: Any, what: str, least: float | None = None) -> RiskBound:
    bound = read_bound(given)
    if least is not None and not isinstance(given, RiskBound | str) and bound(0.0) < least:
        raise BoundError(f"a limit on {what} must be at least {least:g}, not {shorten(given)}")
    return bound


TEXT: Final = re.compile(r"\s*(risk ahead|risk\(([^()]*)\)|[^<>=()]+?)\s*<=\s*(.+)", re.DOTALL)


def read_constraint(given: Any) -> Constraint:
    """Return a constraint given as one, or as text such as "fuel <= 5".

    >>> print(read_constraint("risk(collision) <= 0.002*x"))
    risk(collision) <= 0.002 * x
    """
    if isinstance(given, Constraint) and type(given) is not Constraint:
        return given
    found = TEXT.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise OptionError(
            'a constraint is Risk(...), Cost(...), RiskAhead(...), or a text such as "fuel <= 5", '
            f'"risk(collision) <= 0.002*x", "risk ahead <= 0.05"; not {shorten(given)}'
        )
    quantity, event, limit = found.groups()
    if quantity == "risk ahead":
        try:
            return RiskAhead(float(limit))
        except ValueError:
            raise OptionError(f"the limit on the risk ahead is a number, not {limit!r}") from None
    if event is not None:
        return Risk(limit, event.strip())
    return Risk(limit) if quantity == "risk" else Cost(quantity, limit)


def read_constraints(given: Any) -> tuple[Constraint, ...]:
    """Return constraints on different quantities, in the order given."""
    if isinstance(given, str | Constraint) or not isinstance(given, Iterable):
        raise OptionError(f"constraints must be a list, such as [Cost('fuel', 5)], not {given!r}")
    constraints = tuple(map(read_constraint, given))
    quantities = [constraint.quantity for constraint in constraints]
    for quantity in quantities:
        if quantities.count(quantity) > 1:
            raise OptionError(f"two constraints limit {quantity!r}; give the stricter one")
    return constraints


def charge(constraint: Constraint, outcome: Outcome) -> Number:
    """Return what an outcome is charged, if the event has not happened before."""
    if isinstance(constraint, Cost):
        return next((cost for name, cost in outcome.costs if name == constraint.name), 0.0)
    if isinstance(constraint, Risk) and constraint.event is not None:
        return float(outcome.event == constraint.event)
    return float(outcome.fails)


def list_events(constraints: Sequence[Constraint]) -> frozenset[str]:
    """Return the events that are limited."""
    return frozenset(c.event for c in constraints if isinstance(c, Risk) and c.event is not None)


def describe_unknown(constraint: Constraint, names: Iterable[str], events: Iterable[str]) -> str:
    """Return the remark that no outcome has what a constraint limits; empty if one has it."""
    if isinstance(constraint, Cost):
        known, what = set(names), f"no outcome has the cost {constraint.name!r}"
        missing = constraint.name
    elif isinstance(constraint, Risk) and constraint.event is not None:
        known, what = set(events), f"no outcome has the event {constraint.event!r}"
        missing = constraint.event
    else:
        return ""
    return "" if missing in known else what + suggest(missing, known)
