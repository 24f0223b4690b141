"""Which solvers the campaign runs, how often, and with which options.

A planner is plain data, so that a reproducer can name it. Weights are such that cheap solvers are
run often and costly ones still some ten thousand times in a million problems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from random import Random
from typing import Any

import vulcan
from vulcan.solvers.base import Coverage, load_solvers

__all__ = [
    "Planner",
    "draw_cheap",
    "draw_compiled",
    "draw_planner",
    "draw_sampling",
    "draw_several",
    "draw_thrifty",
]

CONSTRAINTS: dict[str, Callable[[], Any]] = {
    "A": vulcan.solvers.SequenceConstraint,
    "A received": lambda: vulcan.solvers.SequenceConstraint("received"),
    "B": vulcan.solvers.SurvivalConstraint,
}


@dataclass(frozen=True)
class Planner:
    """A solver with its parameters, and what else `solve` is told.

    Attributes
    ----------
    name
        The solver's name on the command line.
    parameters
        Its parameters; a constraint by its letter.
    options
        Options of `solve`.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def make_solver(self) -> vulcan.solvers.Solver:
        """Return the solver."""
        parameters = dict(self.parameters)
        if "local_test" in parameters:
            parameters["local_test"] = CONSTRAINTS[parameters["local_test"]]()
        return load_solvers()[self.name](**parameters)

    @property
    def covers(self) -> Coverage:
        """Which policies its upper bound and its proofs speak of."""
        return self.make_solver().covers

    @property
    def local(self) -> bool:
        """Whether its proofs speak of the policies of a local test only."""
        return self.covers is Coverage.NOTHING

    @property
    def markov(self) -> bool:
        """Whether its proofs speak of policies of state and step only."""
        return self.name == "integer-program" and self.parameters.get("on") == "graph"

    @property
    def gap(self) -> float:
        """The share of the best reward that its answer may be below it and be called solved."""
        default = getattr(load_solvers()[self.name], "default_gap", 0.0)
        gap = self.options.get("gap")
        return float(default if gap is None else gap)


def _draw_samples(random: Random) -> dict[str, Any]:
    return {"samples": random.choice((1, 8, 50, 200)), "seed": random.randrange(1 << 32)}


def _automatic(random: Random) -> Planner:
    options: dict[str, Any] = random.choice(({}, {"gap": 0.0}, {"gap": 0.0}, {"gap": 0.1}))
    randomised = random.random() < 0.15
    if not randomised and random.random() < 0.1:
        options = _draw_samples(random)
    return Planner("automatic", {"randomised": True} if randomised else {}, options)


def _forward_search(random: Random) -> Planner:
    parameters: dict[str, Any] = {"local_test": random.choice(("B", "B", "A", "A received"))}
    if random.random() < 0.3:
        parameters["cut_short"] = False
    return Planner("forward-search", parameters)


def _vulcan(random: Random) -> Planner:
    options = _draw_samples(random)
    if random.random() < 0.2:
        options["gap"] = random.choice((0.0, 0.01))
    return Planner("vulcan", {}, options)


def _growth(random: Random) -> Planner:
    return Planner("growth", {}, {"samples": random.choice((8, 50, 200, 2000))})


def _local_vulcan(random: Random) -> Planner:
    parameters: dict[str, Any] = {"local_test": random.choice(("B", "A", "A received"))}
    if random.random() < 0.3:
        parameters["complete"] = False
    if random.random() < 0.2:
        parameters |= {"default_policy": "random", "exploration": 1.4}
        parameters["as_printed"] = random.random() < 0.5
    return Planner("local-vulcan", parameters, _draw_samples(random))


def _uct(random: Random) -> Planner:
    return Planner("uct", {}, _draw_samples(random))


def _pareto(random: Random) -> Planner:
    return Planner("pareto", {}, random.choice(({}, {}, {"gap": 0.0}, {"gap": 0.05})))


def _lagrangian(random: Random) -> Planner:
    return Planner("lagrangian", {"randomised": True} if random.random() < 0.4 else {})


def _linear_program(random: Random) -> Planner:
    return Planner("linear-program", {"on": random.choice(("graph", "tree"))})


def _integer_program(random: Random) -> Planner:
    on = random.choice(("tree", "tree", "graph"))
    parameters: dict[str, Any] = {"on": on}
    if random.random() < 0.1:
        parameters["reduced"] = False
    return Planner("integer-program", parameters)


def _rao_star(random: Random) -> Planner:
    return Planner("rao-star", {"update": "exact"})


def _subgoals(random: Random) -> Planner:
    return Planner("subgoals")


def _penalty(random: Random) -> Planner:
    return Planner("penalty", {"penalties": (0.0, 1.0, random.random() * 100, 1e6)})


RECIPES: dict[Callable[[Random], Planner], float] = {
    _automatic: 16,
    _pareto: 16,
    _lagrangian: 15,
    _forward_search: 18,
    _vulcan: 4,
    _growth: 4,
    _local_vulcan: 14,
    _uct: 3,
    _linear_program: 4,
    _integer_program: 3,
    _rao_star: 4,
    _penalty: 3,
    _subgoals: 2,
}
_MAKERS = list(RECIPES)
_WEIGHTS = list(accumulate(RECIPES.values()))


def draw_planner(random: Random) -> Planner:
    """Return a planner, cheap ones more often."""
    return random.choices(_MAKERS, cum_weights=_WEIGHTS)[0](random)


def draw_cheap(random: Random) -> Planner:
    """Return a planner that answers soon: for checks that are not about planners."""
    return random.choice((_automatic, _pareto, _lagrangian, _forward_search))(random)


def draw_sampling(random: Random) -> Planner:
    """Return a planner that writes checkpoints."""
    planner = random.choice((_vulcan, _local_vulcan, _uct))(random)
    options = {**planner.options, "samples": random.choice((50, 200, 1000))}
    return Planner(planner.name, planner.parameters, options)


def draw_compiled(random: Random) -> Planner:
    """Return a planner that searches compiled models as it does plain ones."""
    return random.choice((_forward_search, _local_vulcan, _uct, _vulcan))(random)


def draw_several(random: Random) -> Planner:
    """Return a planner that takes several limits."""
    while not load_solvers()[(planner := draw_planner(random)).name].several:
        pass
    if planner.name == "growth":
        return planner
    options = {name: value for name, value in planner.options.items() if name != "samples"}
    return replace(planner, options=options)  # exact solvers take no samples


def draw_thrifty(random: Random) -> Planner:
    """Return a planner that has a limit of memory."""
    while "memory" not in load_solvers()[(planner := draw_planner(random)).name].limits:
        pass
    return planner
