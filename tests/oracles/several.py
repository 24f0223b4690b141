"""All deterministic policies of a small problem with several constraints, in fractions.

A policy is worth (reward, charges, risk, largest risk ahead). The oracle of `fuzzing.several` knows
them; nothing is dropped but exact duplicates.
"""

from __future__ import annotations

import random
from fractions import Fraction

from fuzzing.problems import Bound, Limit, PlainProblem, Way
from fuzzing.several import SeveralOracle
from vulcan import Outcome
from vulcan.constraints import Constraint, Cost, Risk, RiskAhead
from vulcan.problem import Problem

Worth = tuple[Fraction, tuple[Fraction, ...], Fraction, Fraction]
LEVEL = Bound("constant", "class", (1.0,))  # bounds are not looked at where policies are listed


class RandomModel:
    """A random model whose states merge, with costs and events."""

    def __init__(self, seed: int, horizon: int = 3, actions: int = 2) -> None:
        stream = random.Random(seed)
        self.horizon, self.discount = horizon, stream.choice((1, Fraction(1, 2)))
        self._rows: dict[tuple[int, str], list[Outcome]] = {}
        self._actions = [f"a{k}" for k in range(actions)]
        for state in range(3):
            for action in self._actions:
                self._rows[state, action] = self._draw(stream)

    @staticmethod
    def _draw(stream: random.Random) -> list[Outcome]:
        weights = [stream.randint(1, 4) for _ in range(stream.randint(1, 3))]
        fails = stream.choice((0, 0, 1))
        total = sum(weights) + fails
        found = []
        for k, weight in enumerate(weights):
            costs = {"fuel": stream.randint(0, 3)} if stream.random() < 0.7 else {}
            if stream.random() < 0.3:
                costs["dose"] = stream.randint(-1, 2)
            event = stream.choice((None, None, "late", "wet"))
            chance = Fraction(weight, total)
            reward = stream.randint(-1, 4)
            found.append(
                Outcome(chance, reward, stream.randint(0, 2), f"o{k}", costs=costs, event=event)
            )
        if fails:
            event = stream.choice((None, "late", "crash"))
            found.append(Outcome.failure(Fraction(fails, total), 1, event=event))
        return found

    @property
    def table(self) -> dict[int, dict[str, list[Way]]]:
        """The same as plain data."""
        return {
            state: {action: list(map(_to_way, self.outcomes(state, action))) for action in actions}
            for state in range(3)
            for actions in (self.actions(state),)
        }

    def initial_state(self) -> int:
        return 0

    def actions(self, state: int) -> list[str]:
        return self._actions if state < 2 else self._actions[:1]

    def outcomes(self, state: int, action: str) -> list[Outcome]:
        return self._rows[state, action]


def _to_way(outcome: Outcome) -> Way:
    target = None if outcome.fails else outcome.state
    costs = tuple(sorted(dict(outcome.costs).items()))
    return Way(outcome.probability, outcome.reward, target, outcome.label, costs, outcome.event)


def draw_problem(seed: int, horizon: int = 3) -> Problem:
    """Return a random problem with one to three constraints beside the risk bound."""
    stream = random.Random(seed)
    model = RandomModel(seed, horizon)
    pool: list[Constraint] = [
        Cost("fuel", stream.choice(("1", "2.5", "0.5 + 0.2*x", "4"))),
        Cost("dose", stream.choice(("0.5", "1", "0.25*x"))),
        Risk(stream.choice((0.05, 0.25, "0.1*x")), event="late"),
        Risk(0.1, event="crash"),
        RiskAhead(stream.choice((0.2, 0.4))),
    ]
    chosen = stream.sample(pool, stream.randint(1, 3))
    return Problem(model, stream.choice(("0.1*x", 0.3, 1.0, "0.5*x")), constraints=chosen)


def list_worths(problem: Problem) -> set[Worth]:
    """Return what each deterministic policy is worth."""
    limits = tuple(_to_limit(constraint) for constraint in problem.constraints)
    model = problem.model
    plain = PlainProblem(model.horizon, model.discount, model.table, 0, LEVEL, limits=limits)
    oracle = SeveralOracle(plain, most_pairs=10**9, drop=False)
    return {(w.reward, w.charges[1:], w.charges[0], w.ahead) for w in oracle.worths}


def _to_limit(constraint: Constraint) -> Limit:
    if isinstance(constraint, RiskAhead):
        return Limit("cap", "", LEVEL)
    if isinstance(constraint, Cost):
        return Limit("cost", constraint.name, LEVEL)
    assert isinstance(constraint, Risk)
    return Limit("event", str(constraint.event), LEVEL)


def _list_summed(problem: Problem) -> list[Constraint]:
    return [c for c in problem.constraints if not isinstance(c, RiskAhead)]


def is_within(problem: Problem, worth: Worth, slack: float = 1e-12) -> bool:
    """Return whether a policy keeps all limits."""
    reward, charges, risk, ahead = worth
    limits = [(problem.risk_bound, risk)]
    limits += zip((c.bound for c in _list_summed(problem)), charges, strict=True)
    limits += [(c.bound, ahead) for c in problem.constraints if isinstance(c, RiskAhead)]
    return all(float(x) <= bound.exact(reward) + slack for bound, x in limits)
