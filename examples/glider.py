"""An underwater glider that dives for data, as a plain model and as a compiled one.

With each move the glider goes one column ahead: it climbs, keeps its depth or dives. The best water
is close to the sea floor, which it may hit. Water of a depth that was sampled before is worth less.
How rich the water is changes slowly along the way, so that every sample says something of the next.
`docs/howto/compiled.md` explains this file. Run it with

    python examples/glider.py
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np

import vulcan
from vulcan import Outcome
from vulcan.model.compiled import CompiledModel, bound_signature, outcomes_signature

DEPTHS, MOST_COLUMNS = 8, 20
MOVES = {"climb": -1, "level": 0, "dive": 1}
FOUND = {"poor": 0.25, "usual": 0.5, "rich": 0.25}  # with their probabilities; worth 0, 1 and 2
KEPT = 0.6  # how much of the richness remains from one column to the next

STATE = np.dtype(
    [("column", "i4"), ("depth", "i4"), ("sampled", "i4", (DEPTHS,)), ("richness", "f8")],
    align=True,
)
PARAMETERS = np.dtype(
    [
        ("columns", "i8"),
        ("chances", "f8", (len(FOUND),)),
        ("hits", "f8", (MOST_COLUMNS, DEPTHS)),  # probability of hitting the sea floor
        ("worth", "f8", (MOST_COLUMNS, DEPTHS)),  # of the first sample, in usual water
    ],
    align=True,
)


class Place(NamedTuple):
    """Where the glider is, how often it has sampled each depth, and how rich the water is."""

    column: int = 0
    depth: int = 0
    sampled: tuple[int, ...] = (0,) * DEPTHS
    richness: float = 1.0


class Glider:
    """The plain model, which is easy to read and to trust."""

    def __init__(self, columns: int = 8) -> None:
        self.horizon = columns - 1
        column, depth = np.mgrid[:MOST_COLUMNS, :DEPTHS]
        clearance = 5.5 + np.sin(column) - depth
        hits = np.where(clearance > 4, 0.0, np.minimum(1.0, np.exp(-2 * clearance)))
        self.hits: list[list[float]] = hits.tolist()
        self.worth: list[list[float]] = (1 + depth * (1 + 0.3 * np.cos(2 * column))).tolist()

    def initial_state(self) -> Place:
        """Return the place where the glider is launched."""
        return Place()

    def actions(self, place: Place) -> list[str]:
        """Return the moves that stay in the water."""
        return [move for move, down in MOVES.items() if 0 <= place.depth + down < DEPTHS]

    def outcomes(self, place: Place, action: str) -> list[Outcome]:
        """Return what the glider may find in the next column."""
        column, depth = place.column + 1, place.depth + MOVES[action]
        risk, times = self.hits[column][depth], place.sampled[depth] + 1
        sampled = (*place.sampled[:depth], times, *place.sampled[depth + 1 :])
        outcomes = []
        for worth, (label, chance) in enumerate(FOUND.items()):
            richness = KEPT * place.richness + (1 - KEPT) * worth
            reward = self.worth[column][depth] * richness / times
            after = Place(column, depth, sampled, richness)
            outcomes.append(Outcome((1 - risk) * chance, reward, after, label))
        return [*outcomes, Outcome.failure(risk, label="hits the sea floor")]

    def reward_to_go_bound(self, place: Place, step: int) -> float:
        """Return what the best depth of each column ahead would pay on average."""
        total, excess = 0.0, place.richness - 1
        for worths in self.worth[place.column + 1 : self.horizon + 1]:
            excess *= KEPT
            best = max(w / (n + 1) for w, n in zip(worths, place.sampled, strict=True))
            total += best * (1 + excess)
        return total

    @cached_property
    def compiled(self) -> CompiledModel:
        """The same model as machine code."""
        initial, tables = np.zeros(1, STATE), np.zeros(1, PARAMETERS)
        initial["richness"] = 1.0
        tables["columns"], tables["chances"] = self.horizon + 1, list(FOUND.values())
        tables["hits"], tables["worth"] = self.hits, self.worth
        return CompiledModel(initial, tables, tuple(MOVES), len(FOUND) + 1, outcomes, bound)


@numba.cfunc(outcomes_signature(STATE, PARAMETERS), cache=True)
def outcomes(parameters, state, action, answers, following):  # noqa: D103 - see Glider.outcomes
    tables, place = numba.carray(parameters, 1)[0], numba.carray(state, 1)[0]
    answer, after = numba.carray(answers, 4), numba.carray(following, 4)
    column, depth = place.column + 1, place.depth + action - 1
    if depth < 0 or depth >= DEPTHS:
        return 0  # there is no such action; a state without any is a safe terminal
    risk, times, count = tables.hits[column, depth], place.sampled[depth] + 1, 0
    if risk < 1.0:  # outcomes of probability 0 are left out
        for k in range(3):
            richness = KEPT * place.richness + (1 - KEPT) * k
            answer[k].probability, answer[k].fails = (1 - risk) * tables.chances[k], 0
            answer[k].reward = tables.worth[column, depth] * richness / times
            after[k].column, after[k].depth, after[k].richness = column, depth, richness
            for j in range(DEPTHS):
                after[k].sampled[j] = times if j == depth else place.sampled[j]
        count = 3
    if risk > 0.0:  # failures come last
        answer[count].probability, answer[count].reward, answer[count].fails = risk, 0.0, 1
        count += 1
    return count


@numba.cfunc(bound_signature(STATE, PARAMETERS), cache=True)
def bound(parameters, state, step):  # noqa: D103 - see Glider.reward_to_go_bound
    tables, place = numba.carray(parameters, 1)[0], numba.carray(state, 1)[0]
    total, excess = 0.0, place.richness - 1
    for column in range(place.column + 1, tables.columns):
        excess *= KEPT
        best = 0.0
        for depth in range(DEPTHS):
            best = max(best, tables.worth[column, depth] / (place.sampled[depth] + 1))
        total += best * (1 + excess)
    return total


if __name__ == "__main__":
    plain, compiled = Glider(), Glider()
    plain.compiled = None  # for comparison
    for name, glider, samples in (("plain", plain, 5_000), ("compiled", compiled, 200_000)):
        problem = vulcan.Problem(glider, vulcan.parse("min(0.003*x, 0.05)"))
        result = vulcan.solve(problem, vulcan.Vulcan(), samples=samples)
        spent = result.statistics
        answers, taken = (n / spent.search_seconds for n in (spent.evaluations, spent.samples))
        print(f"{name:8} {answers:11,.0f} evaluations, {taken:9,.0f} samples a second")
    print(result)  # of the compiled form, certified with the plain one
