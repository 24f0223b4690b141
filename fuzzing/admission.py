"""What a local test admits, in fractions: the best policy all of whose histories pass.

Only the standard library is imported. A finished history passes, with S its probability of no
failure along its actions and f what it may claim as reward (docs/theory/proofs.md):

    A  (1 - S) / S <= Δ(f)   f = Σ γ^t R̄, or the rewards received; every failing history has
                             0 <= Δ(f) as well, and no action surely fails
    B  1 - S <= Δ(f)         f = Σ γ^t S_t R̄; an action that surely fails ends its history there

As Δ is known within two values only, so is what is admitted: surely, or perhaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from fuzzing.oracle import TooLargeError, add_up

if TYPE_CHECKING:
    from fuzzing.problems import Key, PlainProblem, Way

__all__ = ["find_best_admitted"]

MOST_HISTORIES = 400
"""Problems with more histories are too large."""

Allow = Callable[[Fraction], Any]
"""What a bound allows for a credit."""


@dataclass(frozen=True)
class _History:
    left: int
    survival: Fraction
    credit: Fraction
    weight: Fraction


class _Search:
    def __init__(self, problem: PlainProblem, constraint: str, allow: Allow) -> None:
        self._problem, self._allow = problem, allow
        self._received = constraint == "A received"
        self._sequence = constraint.startswith("A")
        self._count = 0

    def find(self, state: int | None, history: _History) -> Fraction | None:
        """Return the most that admitted policies earn from a history on; None if there are none."""
        self._count += 1
        if self._count > MOST_HISTORIES:
            raise TooLargeError
        actions: Mapping[str, Sequence[Way]] = (
            self._problem.start if state is None else self._problem.states.get(state, {})  # type: ignore[assignment]
        )
        if not history.left or not actions:
            return Fraction(0) if self._passes(history) else None
        values = [self._try(ways, history, initial=state is None) for ways in actions.values()]
        return max((value for value in values if value is not None), default=None)

    def _try(self, ways: Sequence[Way], now: _History, *, initial: bool) -> Fraction | None:
        """Return what an action is worth; None if something that follows is not admitted."""
        groups = _observe(ways)
        risk = sum((p for p, way in groups if way.target is None), Fraction(0))
        mean = sum((p * Fraction(way.reward) for p, way in groups), Fraction(0))
        sure = all(way.target is None for _, way in groups)
        discount = Fraction(1) if initial else Fraction(self._problem.discount)
        claimed = now.weight * mean * (1 if self._sequence else now.survival)
        survival = Fraction(0) if sure else now.survival * (1 - risk)
        value = mean
        for probability, way in groups:
            credit = now.credit + claimed
            if self._received:
                credit = now.credit + now.weight * Fraction(way.reward)
            if way.target is None:
                if self._sequence and (sure or not self._allow(credit) >= 0):
                    return None
                continue
            after = _History(now.left - 1, survival, credit, now.weight * discount)
            later = self.find(way.target, after)
            if later is None:
                return None
            value += discount * probability * later
        if sure and not self._passes(_History(0, survival, now.credit + claimed, now.weight)):
            return None
        return value

    def _passes(self, history: _History) -> bool:
        survival = history.survival
        if self._sequence and survival <= 0:  # risks may sum to 1 beside a safe outcome
            return False
        risk = (1 - survival) / survival if self._sequence else 1 - survival
        return bool(risk <= self._allow(history.credit))


def _observe(ways: Sequence[Way]) -> list[tuple[Fraction, Way]]:
    together: dict[Key, list[Way]] = {}
    for way in ways:
        if way.probability:
            together.setdefault(way.key, []).append(way)
    return [(Fraction(add_up(alike)), alike[0]) for alike in together.values()]


def find_best_admitted(problem: PlainProblem, constraint: str, allow: Allow) -> Fraction | None:
    """Return the most that a policy earns that a constraint admits; None if it admits none.

    Parameters
    ----------
    problem
        The problem.
    constraint
        "A", "A received" or "B".
    allow
        What the bound allows for a credit.

    Raises
    ------
    TooLargeError
        If there are too many histories.
    """
    given = isinstance(problem.start, int)
    begin = _History(problem.horizon + (not given), Fraction(1), Fraction(0), Fraction(1))
    state = problem.start if isinstance(problem.start, int) else None
    return _Search(problem, constraint, allow).find(state, begin)
