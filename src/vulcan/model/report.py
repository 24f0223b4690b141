"""What the model checker found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from vulcan.model.interface import Outcome
from vulcan.model.rules import Violation
from vulcan.parameters import shorten

MOST_VIOLATIONS: Final = 1_000
"""This many violations are kept, and this many merged outcomes; all are counted."""

MOST_SHOWN: Final = 20
"""This many violations are shown to people."""


@dataclass(frozen=True)
class Merged:
    """Outcomes of an action that nobody can tell apart, and that are one outcome to everybody.

    Attributes
    ----------
    state, action
        Where the model was asked.
    outcome
        What they are together.
    count
        How many they are.
    """

    state: Any
    action: Any
    outcome: Outcome
    count: int

    def __str__(self) -> str:
        end = "in failure" if self.outcome.fails else f"in {shorten(self.outcome.state)}"
        return (
            f"{self.count} outcomes without labels end {end} with the same reward, and count as "
            f"one (state {shorten(self.state)}, action {shorten(self.action)})"
        )


@dataclass(frozen=True)
class ModelReport:
    """What `check_model` found.

    Attributes
    ----------
    violations
        The broken rules in the order in which they were found, the first 1,000 at the most.
    violation_count
        How many there are in all.
    states
        Distinct states met.
    terminals
        Those among them that were asked and have no actions. A state first met at the horizon is
        not asked.
    evaluations
        (state, action) asked.
    outcomes
        Their outcomes; those of probability 0 do not count, and those that nobody can tell apart
        count as one.
    most_actions, most_outcomes
        The largest number of actions of a state, and of outcomes of an action.
    reward_range
        The smallest and largest reward of an outcome; None if there is none. This and the next are
        taken from the outcome lists that break no rule.
    largest_immediate_risk
        The largest probability with which an action fails at once.
    levels
        Decisions in the longest history: the horizon, and 1 more with an initial action.
    finished
        Whether the walk went through all states; False if it stopped at `most_states` or could not
        even begin.
    merged
        Where outcomes without labels lead to the same state with the same reward, so that they are
        one outcome: the first 1,000 places at the most. That breaks no rule; give labels if they
        can be told apart.
    merged_count
        How many such places there are in all.
    doubles
        How many states were asked that equal others and differ from them in something that is not
        compared: they must answer the same. At most 10,000 are asked, 20 for each state.
    """

    violations: tuple[Violation, ...]
    violation_count: int
    states: int
    terminals: int
    evaluations: int
    outcomes: int
    most_actions: int
    most_outcomes: int
    reward_range: tuple[float, float] | None
    largest_immediate_risk: float
    levels: int
    finished: bool
    merged: tuple[Merged, ...] = ()
    merged_count: int = 0
    doubles: int = 0

    @property
    def ok(self) -> bool:
        """Whether no rule was broken, as far as the walk went; see `finished`."""
        return self.violation_count == 0

    def rows(self) -> list[tuple[str, str]]:
        """Return the report as pairs of a name and a string, for people."""
        verdict = "ok" if self.ok else f"NOT OK: {_count(self.violation_count, 'violation')}"
        if not self.finished:
            verdict += ", but not all states were walked"
        low, high = self.reward_range or (math.nan, math.nan)
        return [
            ("model", verdict),
            ("states", f"{self.states:,}, {self.terminals:,} of them without actions"),
            (
                "evaluations",
                f"{self.evaluations:,}, up to {self.most_actions:,} actions in a state",
            ),
            ("outcomes", f"{self.outcomes:,}, up to {self.most_outcomes:,} of an action"),
            *([("merged", self._describe_merged())] if self.merged else []),
            *([("doubles", self._describe_doubles())] if self.doubles else []),
            ("rewards", f"{low:.6g} to {high:.6g}" if self.reward_range else "none"),
            ("largest risk", f"{self.largest_immediate_risk:.6g} of a single action"),
            ("levels", f"{_count(self.levels, 'decision')} in the longest history"),
        ]

    def _describe_merged(self) -> str:
        more = f"; and in {self.merged_count - 1:,} more places" if self.merged_count > 1 else ""
        return f"{self.merged[0]}{more}"

    def _describe_doubles(self) -> str:
        return f"{_count(self.doubles, 'state')} beside equal ones, with other parts not compared"

    def __str__(self) -> str:
        lines = [f"{name:<13} {text}" for name, text in self.rows()]
        lines += [f"{violation.rule}: {violation}" for violation in self.violations[:MOST_SHOWN]]
        if self.violation_count > MOST_SHOWN:
            lines.append(f"… and {self.violation_count - MOST_SHOWN:,} more")
        return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
