"""Small models written as tables, and random ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

import vulcan
from vulcan import Outcome


@dataclass
class Table:
    """A model from a dictionary: state -> action -> list of outcomes.

    Calls are counted. With `merges` False a state is the whole history, as a tuple.
    """

    table: dict[Any, dict[str, list[Outcome]]] = field(repr=False)
    horizon: int = 1
    discount: float = 1.0
    start: Any = 0
    merges: bool = field(default=True, repr=False)
    calls: dict[tuple[Any, str], int] = field(default_factory=dict, repr=False)

    def initial_state(self) -> Any:
        return self.start if self.merges else (self.start,)

    def actions(self, state: Any) -> list[str]:
        return list(self.table.get(self._last(state), {}))

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        self.calls[state, action] = self.calls.get((state, action), 0) + 1
        return [self._extend(state, action, o) for o in self.table[self._last(state)][action]]

    def _last(self, state: Any) -> Any:
        return state if self.merges else state[-1]

    def _extend(self, state: Any, action: str, outcome: Outcome) -> Outcome:
        if self.merges or outcome.fails:
            return outcome
        label = outcome.label if outcome.label is not None else str(outcome.state)
        return Outcome(
            outcome.probability, outcome.reward, (*state, action, label, outcome.state), label
        )


def one_action(*outcomes: Outcome, horizon: int = 1) -> Table:
    """Return a model with a single action "go" in its single state that matters."""
    return Table({0: {"go": list(outcomes)}}, horizon)


REWARDS = [-2.0, -1.0, -0.3, 0.0, 0.1, 0.5, 1.0, 3.0]


@st.composite
def outcome_lists(draw: Any, states: int, rewards: list[float], riskless: bool) -> list[Outcome]:
    """Draw the outcomes of one action: up to three safe ones and up to two failures."""
    safe = draw(st.integers(0 if not riskless else 1, 3))
    failing = 0 if riskless else draw(st.integers(0 if safe else 1, 2))
    weights = draw(st.lists(st.integers(1, 20), min_size=safe, max_size=safe))
    # Failures are rare in the problems that matter, but not always.
    scale = draw(st.sampled_from([1.0, 0.1, 0.01]))
    weights += [scale * w for w in draw(st.lists(st.integers(1, 8), min_size=failing, max_size=failing))]
    total = sum(weights)
    chosen = draw(st.lists(st.sampled_from(rewards), min_size=len(weights), max_size=len(weights)))
    places = draw(st.lists(st.integers(0, states - 1), min_size=safe, max_size=safe))
    outcomes = [
        Outcome(w / total, r, s, label=f"{k}:{s}")
        for k, (w, r, s) in enumerate(zip(weights, chosen, places, strict=False))
    ]
    outcomes += [
        Outcome.failure(w / total, r, label=f"failure {k}")
        for k, (w, r) in enumerate(zip(weights[safe:], chosen[safe:], strict=True))
    ]
    return draw(st.permutations(outcomes))


@st.composite
def tables(draw: Any, rewards: list[float] = REWARDS, sure_failure: bool = True) -> Table:
    """Draw a model: merging states, terminal states, risks up to 1, discounts, either sign."""
    states = draw(st.integers(1, 4))
    horizon = draw(st.integers(1, 3))
    table: dict[Any, dict[str, list[Outcome]]] = {}
    for state in range(states):
        fewest = 1 if state == 0 else 0
        count = draw(st.integers(fewest, 3 if horizon < 3 else 2))
        table[state] = {
            name: draw(outcome_lists(states, rewards, riskless=draw(st.booleans())))
            for name in "abc"[:count]
        }
        if not sure_failure:
            table[state] = {
                name: outcomes
                for name, outcomes in table[state].items()
                if not all(o.fails for o in outcomes)
            }
    discount = draw(st.sampled_from([1.0, 1.0, 0.9, 0.5, 0.0]))
    return Table(table, horizon, discount)


@st.composite
def bounds(draw: Any) -> vulcan.RiskBound:
    """Draw a risk bound of any kind, below 0 for small rewards or not."""
    kind = draw(st.sampled_from(["constant", "linear", "pieces", "function"]))
    level = draw(st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5, 1.0]))
    slope = draw(st.sampled_from([0.0, 0.001, 0.02, 0.1, 0.4]))
    if kind == "constant":
        return vulcan.Constant(level)
    if kind == "linear":
        return vulcan.Linear(slope, draw(st.sampled_from([-0.1, 0.0, 0.01, 0.1])))
    if kind == "pieces":
        return vulcan.PiecewiseLinear([(-1, level - slope), (0, level), (2, level + slope)])
    return vulcan.parse(f"{level} - {slope} * exp(-x)")
