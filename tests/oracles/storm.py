"""The best randomised policy according to Storm, an independent model checker.

Storm (https://www.stormchecker.org, GPL) answers multi-objective queries: the largest expected
reward of any randomised policy whose expected costs are bounded. It shares no code with Vulcan, so
that its values check those of `Lagrangian` and `LinearProgram`.

A bound Δ(x) = α x + c is linear in what a policy earns and risks, E g and er, and becomes one cost:

    er <= α E g + c    is    Σ reach(n) (risk(e) - α reward(e)) <= c.

Any other concave Δ is replaced by a tangent, which lies nowhere below it. If no acceptable policy
earns more than y, none earns more than y', the best reward under the tangent at y, and so on:
Newton's method from the right, until the tangent meets Δ at y'. A tangent that allows more than y
shows that no policy is acceptable: the least risk that a reward takes, less the tangent, is convex
in the reward and above 0 at y.

What Storm needs here (measured with Storm 2.0): costs of the size of rewards, since its precision
is absolute; and a little room, since its sound mode never ends if a bound can only just be met.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.helpers.unrolled import unroll_layers
from vulcan.bounds.base import RiskBound, Tangent
from vulcan.bounds.forms import Linear
from vulcan.certificate.verify import load_storm
from vulcan.errors import OptionError
from vulcan.graph.levels import Layers
from vulcan.numerics import END, TOLERANCE
from vulcan.problem import Problem

__all__ = ["StormCheck", "build_storm_model", "check_with_storm"]

MOST_TANGENTS: Final = 100
"""A guard only: five are usual."""

MOST_STEPS: Final = 1000
"""Refinements of one query; a guard too, since Storm has none: fifteen are usual."""


@dataclass(frozen=True)
class StormCheck:
    """The best expected reward within the bound, at most the precision too low; -inf for none.

    Beside it are the size of Storm's model, and the seconds that building and queries took.
    """

    value: float
    states: int
    queries: int
    build_seconds: float
    check_seconds: float


def check_with_storm(
    problem: Problem, layers: Layers | None = None, precision: float = 1e-9
) -> StormCheck:
    """Let Storm find the best expected reward of any randomised policy within the risk bound."""
    run = _Run(unroll_layers(problem.model) if layers is None else layers, precision)
    value = _find_value(run, problem.risk_bound, precision)
    return StormCheck(value, run.model.nr_states, run.queries, run.build_seconds, run.check_seconds)


def build_storm_model(layers: Layers) -> Any:
    """Return a layered graph as a sparse Markov decision process of stormpy.

    States are the nodes, in their order, then the sinks "ended" and "failed". The reward models
    "reward" and "risk" belong to choices, which are the edges in their order.
    """
    stormpy = load_storm()
    nodes, edges, _ = layers
    assert nodes["edge_count"].all()
    ended, failed = len(layers.nodes), len(layers.nodes) + 1
    labels = stormpy.models.StateLabeling(len(layers.nodes) + 2)
    for label, state in (("init", 0), ("ended", ended), ("failed", failed)):
        labels.add_label(label)
        labels.add_label_to_state(label, state)
    components = stormpy.models.SparseModelComponents(
        transition_matrix=_build_matrix(layers, ended, failed),
        state_labeling=labels,
        reward_models={name: _build_rewards(edges[name]) for name in ("reward", "risk")},
    )
    return stormpy.models.SparseMdp(components)


class _Run:
    """Storm's model of a layered graph, and the queries made to it."""

    def __init__(self, layers: Layers, precision: float) -> None:
        nodes, self._edges, _ = layers
        self._first_actions = int(nodes["edge_count"][0]) if len(layers.nodes) else 0
        self.queries = 0
        self.check_seconds = 0.0
        began = time.perf_counter()
        self.model = build_storm_model(layers)
        self.build_seconds = time.perf_counter() - began
        stormpy = load_storm()
        self._environment = stormpy.environments.sound()
        settings = self._environment.modelchecker().multi()
        settings.method = stormpy.environments.MultiObjectiveMethod.PCAA
        settings.precision = stormpy.Rational(precision)
        settings.max_steps = MOST_STEPS

    def find_best(self, line: Tangent | None = None) -> float:
        """Return the best reward of any policy, if its risk is on or below a line; else -inf."""
        objectives = ['R{"reward"}max=? [C]']
        if line is not None:
            began = time.perf_counter()
            objectives.append(self._bound_cost(line))
            self.build_seconds += time.perf_counter() - began
        return self._ask(f"multi({', '.join(objectives)})")

    def find_least(self) -> float:
        """Return the least reward of any policy."""
        return self._ask('multi(R{"reward"}min=? [C])')

    def _bound_cost(self, line: Tangent) -> str:
        """Add the cost of a line to the model, and return the objective that bounds it."""
        rewards, risks = self._edges["reward"], self._edges["risk"]
        costs = risks - line.slope * rewards
        scale = (_find_size(rewards) or 1.0) / (_find_size(costs) or 1.0)
        costs *= scale
        # For a policy without any cost Storm 2.0 keeps an error of an earlier step, and may never
        # end: let every first action cost something, and allow for it.
        start = 1 + _find_size(costs) if self._first_actions else 0.0
        costs[: self._first_actions] += start
        name = f"cost{self.queries}"
        self.model.add_reward_model(name, _build_rewards(costs))
        return f'R{{"{name}"}}<={start + scale * (line(0.0) + TOLERANCE)!r} [C]'

    def _ask(self, formula: str) -> float:
        stormpy = load_storm()
        (query,) = stormpy.parse_properties(formula)
        began = time.perf_counter()
        answer = stormpy.model_checking(self.model, query, environment=self._environment)
        self.check_seconds += time.perf_counter() - began
        self.queries += 1
        start = self.model.initial_states[0]
        if isinstance(answer, stormpy.results.ExplicitQuantitativeCheckResult[float]):
            return float(answer.get_value(start))
        if isinstance(answer, stormpy.results.ExplicitQualitativeCheckResult[float]):
            return -math.inf
        raise OptionError(
            f"Storm did not reach the precision in {MOST_STEPS} steps; try one that is less fine"
        )


def _find_value(run: _Run, bound: RiskBound, precision: float) -> float:
    """Return the best reward of any policy within a bound; see the head of this module."""
    if isinstance(bound, Linear):
        return run.find_best(bound.tangent(0.0))
    most = run.find_best() + precision  # no policy earns more: Storm's values are never too high
    bound.verify([run.find_least(), most])
    for _ in range(MOST_TANGENTS):
        if bound(most) == -math.inf:
            return -math.inf
        line = bound.tangent(most)
        value = run.find_best(line)
        if value == -math.inf or value > most:
            return -math.inf
        previous, most = most, value + precision
        if most >= previous - precision or line(most) <= bound(most) + TOLERANCE:
            return value
    raise OptionError(f"{MOST_TANGENTS} tangents of the risk bound were not enough for Storm")


def _build_matrix(layers: Layers, ended: int, failed: int) -> Any:
    """Return the transition matrix: a group of rows for each state, a row for each choice."""
    nodes, edges, targets = layers
    risky = np.flatnonzero(edges["risk"])
    sinks = np.array([len(edges), len(edges) + 1])
    rows = np.concatenate([np.repeat(np.arange(len(edges)), edges["target_count"]), risky, sinks])
    columns = np.concatenate(
        [
            np.where(targets["node"] == END, ended, targets["node"]),
            np.full(len(risky), failed),
            [ended, failed],
        ]
    )
    values = np.concatenate([targets["probability"], edges["risk"][risky], [1.0, 1.0]])
    groups = np.append(nodes["first_edge"], sinks)
    # Storm requires strictly increasing columns.
    size = len(layers.nodes) + 2
    places, which = np.unique(rows * size + columns, return_inverse=True)
    rows, columns = np.divmod(places, size)
    builder = load_storm().datastructures.SparseMatrixBuilder(
        rows=len(edges) + 2,
        columns=size,
        entries=len(places),
        has_custom_row_grouping=True,
        row_groups=size,
    )
    numbers = np.bincount(which, values)
    builder.add_next_values(rows.tolist(), columns.tolist(), numbers.tolist(), groups.tolist())
    return builder.build()


def _build_rewards(amounts: NDArray[np.float64]) -> Any:
    """Return a reward model: one number for each edge, and 0 for the sinks."""
    return load_storm().models.SparseRewardModel(
        optional_state_action_reward_vector=[*amounts.tolist(), 0.0, 0.0]
    )


def _find_size(amounts: NDArray[np.float64]) -> float:
    return float(np.abs(amounts).max(initial=0.0))
