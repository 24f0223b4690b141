"""How long evaluations take with all checks, as ratios to bare calls of the same model.

The model is plain Python with five outcomes. Answers are kept in both cases, since those that are
thrown away at once take half the time. Times are of this process. Run with `make bench`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import vulcan
from benchmarks.histories.missions import MISSIONS, History
from vulcan import Outcome
from vulcan.graph.states import StateGraph
from vulcan.model.reader import ModelReader

REPEATS = 7
SAMPLES = 20_000
LARGE = 40_000
PACES = {"slow": 1, "usual": 2, "fast": 3}


class Circle:
    """Steps and leaps on a circle, so that the states of a level are many."""

    horizon = 1_000

    def __init__(self, size: int = 4_000) -> None:
        self.size = size

    def initial_state(self) -> int:
        return 0

    def actions(self, state: int) -> tuple[str, ...]:
        return ("slow", "usual", "fast")

    def outcomes(self, state: int, action: str) -> list[Outcome]:
        pace, size = PACES[action], self.size
        return [
            Outcome(0.4, 1.0, (2 * state + pace) % size),
            Outcome(0.3, 0.5, (2 * state + 2 * pace) % size),
            Outcome(0.2, 0.25, (2 * state + 3 * pace) % size),
            Outcome(0.099, 0.5 * pace, (2 * state + 7 * pace) % size),
            Outcome.failure(0.001),
        ]


class CircleAtOnce(Circle):
    """The same with `outcomes_batch`."""

    def outcomes_batch(self, states: list[int], actions: list[str]) -> Any:
        pace = np.array([PACES[action] for action in actions])
        probability = np.broadcast_to([0.4, 0.3, 0.2, 0.099, 0.001], (len(states), 5))
        reward = np.tile([1.0, 0.5, 0.25, 0.0, 0.0], (len(states), 1))
        reward[:, 3] = 0.5 * pace
        after = np.full(reward.shape, -1)
        after[:, :4] = (2 * np.array(states)[:, None] + pace[:, None] * [1, 2, 3, 7]) % self.size
        return probability, reward, after


def call(model: Any) -> int:
    """Call a model for all its states."""
    kept = [
        model.outcomes(state, action)
        for state in range(model.size)
        for action in model.actions(state)
    ]
    return len(kept)


def unroll(model: Any) -> int:
    """Evaluate all states of a model into a graph."""
    graph, begin = StateGraph(ModelReader(model)), 0
    while begin < (count := graph.states.count):
        graph.expand_all(range(begin, count))
        begin = count
    return graph.evaluations


def measure(*runs: Callable[[], int]) -> list[float]:
    """Return the least seconds per evaluation of each, in turn."""
    best = [float("inf")] * len(runs)
    for _ in range(REPEATS):
        for k, run in enumerate(runs):
            began = time.process_time()
            count = run()
            best[k] = min(best[k], (time.process_time() - began) / count)
    return best


def test_evaluations_beside_bare_calls(report: Callable[[str, str], None]) -> None:
    plain, batch, large = Circle(), CircleAtOnce(), CircleAtOnce(LARGE)
    bare, graph, batched, many = measure(
        lambda: call(plain), lambda: unroll(plain), lambda: unroll(batch), lambda: unroll(large)
    )
    report("time of a checked evaluation in a state graph / a bare call", f"{graph / bare:.2f}")
    report("the same with outcomes_batch", f"{batched / bare:.2f}")
    report("evaluations per CPU second", f"{1 / graph:,.0f}, in batches {1 / batched:,.0f}")
    report(f"in batches of a model with {LARGE:,} states", f"{1 / many:,.0f}")


class Recorder(History):
    """A mission over histories that records how it is called."""

    def __init__(self, mission: Any) -> None:
        super().__init__(mission)
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def actions(self, state: Any) -> Any:
        self.calls.append(("actions", (state,)))
        return super().actions(state)

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        self.calls.append(("outcomes", (state, action)))
        return super().outcomes(state, action)


def test_growing_plans_beside_bare_calls(report: Callable[[str, str], None]) -> None:
    for name in ("spacecraft", "clinic"):
        mission = MISSIONS[name]()
        limits = vulcan.Limits(samples=SAMPLES)
        recorder = Recorder(mission)
        vulcan.solve(vulcan.Problem(recorder, mission.bound), limits=limits)
        problem, model = vulcan.Problem(History(mission), mission.bound), History(mission)

        def plan(problem: Any = problem, limits: Any = limits) -> int:
            vulcan.solve(problem, limits=limits)
            return SAMPLES

        def repeat(model: Any = model, calls: Any = recorder.calls) -> int:
            kept = [getattr(model, kind)(*where) for kind, where in calls]
            return SAMPLES if kept else 0

        planned, bare = measure(plan, repeat)
        report(f"time of a certified plan of {name} / its bare calls", f"{planned / bare:.2f}")
