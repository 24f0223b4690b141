"""Small models written as tables, and random ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
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


def random_outcomes(random: Random, states: int, rewards: list[float]) -> list[Outcome]:
    """Return the outcomes of one action: up to three safe ones and up to two failures."""
    safe = random.choice([0, 1, 1, 2, 2, 3]) if random.random() < 0.3 else random.choice([1, 2, 2])
    failing = random.choice([0, 1, 1, 2]) if safe else random.choice([1, 2])
    # Failures are rare in the problems that matter, but not always.
    scale = random.choice([1.0, 0.1, 0.01])
    weights = [random.randint(1, 20) for _ in range(safe)]
    weights += [scale * random.randint(1, 8) for _ in range(failing)]
    total = sum(weights)
    outcomes = [
        Outcome(w / total, random.choice(rewards), s := random.randrange(states), label=f"{k}:{s}")
        for k, w in enumerate(weights[:safe])
    ]
    outcomes += [
        Outcome.failure(w / total, random.choice(rewards), label=f"failure {k}")
        for k, w in enumerate(weights[safe:])
    ]
    random.shuffle(outcomes)
    return outcomes


def random_table(random: Random, rewards: list[float], sure_failure: bool) -> Table:
    """Return a model: merging states, terminal states, risks up to 1, discounts, either sign."""
    states = random.choice([1, 2, 3, 4])
    horizon = random.choice([1, 2, 2, 3, 3])
    table: dict[Any, dict[str, list[Outcome]]] = {}
    for state in range(states):
        count = random.choice([1, 2, 2, 3 if horizon < 3 else 2])
        if state and random.random() < 0.2:
            count = 0
        table[state] = {n: random_outcomes(random, states, rewards) for n in "abc"[:count]}
        if not sure_failure:
            table[state] = {
                name: outcomes
                for name, outcomes in table[state].items()
                if not all(o.fails for o in outcomes)
            }
    return Table(table, horizon, random.choice([1.0, 1.0, 0.9, 0.5, 0.0]))


def random_bound(random: Random) -> vulcan.RiskBound:
    """Return a risk bound of any kind, below 0 for small rewards or not."""
    kind = random.choice(["constant", "linear", "linear", "pieces", "function"])
    level = random.choice([0.0, 0.01, 0.05, 0.2, 0.5, 1.0])
    slope = random.choice([0.001, 0.02, 0.1, 0.2, 0.4])
    if kind == "constant":
        return vulcan.Constant(level)
    if kind == "linear":
        return vulcan.Linear(slope, random.choice([-0.1, 0.0, 0.0, 0.01, 0.1]))
    if kind == "pieces":
        return vulcan.PiecewiseLinear([(-1, level - slope), (0, level), (2, level + slope)])
    return vulcan.parse(f"{level} - {slope} * exp(-x)")


# Numbers drawn by Hypothesis itself crowd at its favourites; a seed keeps problems well mixed.
SEEDS = st.integers(0, 1 << 40)


def tables(rewards: list[float] = REWARDS, sure_failure: bool = True) -> st.SearchStrategy[Table]:
    """Return a strategy for random models."""
    return SEEDS.map(lambda seed: random_table(Random(seed), rewards, sure_failure))


def bounds() -> st.SearchStrategy[vulcan.RiskBound]:
    """Return a strategy for random risk bounds."""
    return SEEDS.map(lambda seed: random_bound(Random(seed)))
