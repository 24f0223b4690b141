"""Episodes of a policy: compiled from its own arrays, or in another model or environment.

**Compiled.** A policy records the outcomes of every action that it takes, so that episodes need no
model. They are played in chunks of a fixed size. Each chunk has its own stream of random numbers
(SplitMix64, at an offset that follows from the seed and the chunk's number) and its own share of a
randomised policy's members. Chunks are joined in their order, so that the numbers are the same bit
for bit on any number of cores.

**In another world**, a model that it was not made for or an environment, episodes are played step
by step in Python, and the policy follows the observations. A model draws an outcome of its own,
identified by its label, and decides itself what fails and when a history ends. An environment
(Gymnasium's `reset` and `step`) does not say what fails: the policy is bound to its model, whose
`locate(state, action, measurement)` tells which outcome a step of the environment was. The first
observation is the initial state, or is located as a start.

An episode has *strayed* where the policy has no continuation: the policy does not expect the
observation, the world does not have its action, or the policy has ended and the world has not. It
counts as not failed, with the reward so far; the first one is described.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.model.interface import Outcome, Start, describe_model, stable_text
from vulcan.model.reader import ModelReader, label_outcomes
from vulcan.numerics import END, FAILED
from vulcan.parameters import shorten
from vulcan.policy.policy import AnyPolicy, build_plan
from vulcan.policy.walk import MemberLists, RecordedDecision, find_decision_points, find_values

GoOn = Callable[[int, float], bool]
"""Called with the number of episodes so far and their mean reward; returns whether to go on."""

CHUNK: Final = 1 << 14
"""Number of episodes with one stream of random numbers."""

STRAYED: Final = -4
"""Beside END, FAILED and UNPLANNED: the policy has no continuation."""


@dataclass(frozen=True)
class Expected:
    """The exact values of a policy in the model that it was made for.

    `deviation` is the standard deviation of the reward, `least` and `most` are the smallest and the
    largest reward of any episode, and `failures` the probability of failing at each level.
    """

    reward: float
    risk: float
    frontier: float
    deviation: float
    least: float
    most: float
    failures: tuple[float, ...]


class Episodes(NamedTuple):
    """What happened in episodes."""

    rewards: NDArray[np.float64]
    ends: NDArray[np.int8]  # END, FAILED, UNPLANNED or STRAYED
    decisions: NDArray[np.int32]  # how many were taken
    example: str | None = None  # description of the first that strayed


def expect(policy: AnyPolicy, first: float) -> Expected:
    """Return the exact values of a policy up to its frontier, where episodes end.

    `first` is the discount after its first decision.
    """
    from vulcan.kernels.episodes import VALUE

    weights = _normalise(policy)
    values = np.zeros(len(weights), VALUE)
    for k, member in enumerate(policy.members):
        if len(member):
            values[k] = member.node_values(first, claimed=False)[0]
    mean = float(weights @ values["mean"])
    variance = weights @ (values["variance"] + (values["mean"] - mean) ** 2)
    points = find_decision_points(policy)
    fails = points.rows["reach"] * find_values(points, None)["fails"]
    return Expected(
        reward=mean,
        risk=float(weights @ values["risk"]),
        frontier=float(weights @ values["frontier"]),
        deviation=math.sqrt(variance),
        least=float(values["least"].min()),
        most=float(values["most"].max()),
        failures=tuple(np.bincount(points.rows["level"], fails).tolist()),
    )


def play(
    policy: AnyPolicy,
    first: float,
    episodes: int,
    seed: int,
    workers: int,
    go_on: GoOn = lambda *_: True,
) -> Episodes:
    """Return compiled episodes of a policy, the same for a seed whatever the number of threads.

    `first` is the discount after the first decision.
    """
    from vulcan.kernels.episodes import STREAM
    from vulcan.kernels.episodes import play as play_plan

    weights = _normalise(policy)
    plans = [build_plan(member, first) for member in policy.members]

    def play_chunk(size: int, begin: int, draw: int) -> Episodes:
        stream = np.array([(begin,)], STREAM)
        columns = np.zeros(size), np.zeros(size, np.int8), np.zeros(size, np.int32)
        counts = np.random.default_rng(int(draw)).multinomial(size, weights)
        ends = np.cumsum(counts)
        for plan, count, end in zip(plans, counts, ends, strict=True):
            play_plan(plan, stream, *(column[end - count : end] for column in columns))
        return Episodes(*columns)

    sizes = [min(CHUNK, episodes - done) for done in range(0, episodes, CHUNK)]
    streams = np.random.SeedSequence(seed).generate_state(2 * len(sizes), np.uint64)
    chunks: list[Episodes] = []
    played, collected = 0, 0.0
    with ThreadPoolExecutor(max(1, min(workers, len(sizes)))) as pool:
        for chunk in pool.map(play_chunk, sizes, streams[::2], streams[1::2]):
            chunks.append(chunk)
            played += len(chunk.rewards)
            collected += float(chunk.rewards.sum())
            if not go_on(played, collected / played):
                pool.shutdown(cancel_futures=True)
                break
    return Episodes(
        np.concatenate([chunk.rewards for chunk in chunks]),
        np.concatenate([chunk.ends for chunk in chunks]),
        np.concatenate([chunk.decisions for chunk in chunks]),
    )


def _normalise(policy: AnyPolicy) -> NDArray[np.float64]:
    """Return the weights of the members, summing to 1."""
    return np.array(policy.weights) / math.fsum(policy.weights)


def is_environment(world: Any) -> bool:
    """Whether this is an environment such as Gymnasium's, and no model."""
    return callable(getattr(world, "step", None)) and callable(getattr(world, "reset", None))


def describe_world(world: Any) -> str:
    """Return the name of a model or an environment."""
    if not is_environment(world):
        return describe_model(world)
    spec = getattr(world, "spec", None)
    return f"the environment {type(world).__name__ if spec is None else spec.id}"


def play_in_world(
    policy: AnyPolicy,
    world: Any,
    episodes: int,
    seed: int,
    discounts: Sequence[float],
    go_on: GoOn,
) -> Episodes:
    """Return episodes of a policy in another model or environment.

    `discounts` are those after the first decision, and after any later one.
    """
    rng = np.random.default_rng(seed)
    if is_environment(world):
        if policy.reader is None or not hasattr(policy.reader.model, "locate"):
            raise OptionError(
                "an environment needs a policy that is bound to a model with locate(state, action, "
                "measurement): simulate(policy.bind(model), environment)"
            )
        player: _World = _Environment(policy.reader, world, seed)
    else:
        player = _World(ModelReader(world), rng)
    members = [MemberLists(member) for member in policy.members]
    weights = _normalise(policy)
    found: list[tuple[float, int, int]] = []
    collected, example = 0.0, None
    for played, member in enumerate(rng.choice(len(members), episodes, p=weights), 1):
        reward, end, level = _play(player, members[member], discounts)
        if isinstance(end, str):
            example, end = example or end, STRAYED
        found.append((reward, end, level))
        collected += reward
        if not go_on(played, collected / played):
            break
    rewards, ends, levels = zip(*found, strict=True)
    columns = np.array(rewards), np.array(ends, np.int8), np.array(levels, np.int32)
    return Episodes(*columns, example)


def _play(
    world: _World, member: MemberLists, discounts: Sequence[float]
) -> tuple[float, int | str, int]:
    """Return the reward of an episode, how it ended, and its number of decisions."""
    world.reset()
    following: int | str = 0 if member.action else END
    collected, weight, level = 0.0, 1.0, 0
    while isinstance(following, int) and following >= 0:
        reward, following = world.act(*member.read(following), level)
        collected += weight * reward
        weight *= discounts[min(level, 1)]
        level += 1
    return collected, following, level


class _World:
    """A model as a world: it draws the outcomes itself."""

    def __init__(self, reader: ModelReader, rng: np.random.Generator) -> None:
        self._reader, self._rng = reader, rng
        self._answers: dict[Any, tuple[Any, list[Outcome], list[str], list[float]]] = {}

    def reset(self) -> None:
        """Begin an episode."""
        self._state = self._reader.root

    def act(
        self, planned: RecordedDecision, children: list[int], level: int
    ) -> tuple[float, int | str]:
        """Return the reward, and the next decision, how the episode ended, or how it strayed."""
        answer = self._evaluate(planned.action)
        if answer is None:
            where = f"in state {shorten(self._state)}"
            return 0.0, f"{planned.action!r} is no action of the model {where}"
        _, outcomes, labels, chances = answer
        position = min(bisect(chances, self._rng.random()), len(outcomes) - 1)
        outcome, label = outcomes[position], labels[position]
        reward = float(outcome.reward)
        if outcome.fails:
            return reward, FAILED
        self._state = outcome.state
        over = level + 1 >= self._reader.levels or not self._reader.actions(outcome.state)
        if over:
            return reward, END  # expectations don't matter where nothing is left to decide
        child = dict(zip(planned.labels, children, strict=True)).get(label, FAILED)
        if child == FAILED:
            return reward, _describe_surprise(planned, label)
        if child == END:
            return reward, f"the policy ends after {label!r}, and the model does not"
        return reward, child

    def _evaluate(self, label: str) -> tuple[Any, list[Outcome], list[str], list[float]] | None:
        """Return an action here, its outcomes, their labels and their cumulated probabilities."""
        key = (self._state, label)
        try:
            known = key in self._answers
        except Exception as error:
            raise self._reader.refuse_comparison(self._state, error) from error
        if not known:
            actions = self._reader.actions(self._state)
            if label not in actions:
                return None
            outcomes = self._reader.outcomes(self._state, actions[label])
            chances = list(accumulate(float(outcome.probability) for outcome in outcomes))
            self._answers[key] = (actions[label], outcomes, label_outcomes(outcomes), chances)
        return self._answers[key]


class _Environment(_World):
    """An environment of Gymnasium's kind; the policy's model tells what its steps mean."""

    def __init__(self, reader: ModelReader, environment: Any, seed: int) -> None:
        super().__init__(reader, np.random.default_rng(seed))
        self._environment = environment
        self._seed: int | None = seed

    def reset(self) -> None:
        super().reset()
        self._measured = self._environment.reset(seed=self._seed)
        self._seed = None  # the environment goes on with its own random numbers

    def act(
        self, planned: RecordedDecision, children: list[int], level: int
    ) -> tuple[float, int | str]:
        state, reward, over = self._state, 0.0, False
        began = stable_text(self._measured[0])
        if level == 0 and not isinstance(state, Start) and began != stable_text(state):
            return 0.0, f"it began in {shorten(began)}; the policy begins in {shorten(state)}"
        answer = self._evaluate(planned.action)
        assert answer is not None  # of the policy's own model
        action, outcomes, labels, _ = answer
        if not isinstance(state, Start):
            self._measured = self._environment.step(action)
            reward, over = float(self._measured[1]), any(self._measured[2:4])
        found = self._reader.locate(state, action, self._measured)
        for outcome, label in zip(outcomes, labels, strict=True):
            if found in (label, outcome.state) and label in planned.labels:
                self._state = outcome.state
                child = children[planned.labels.index(label)]
                return reward, END if over and child >= 0 else child
        return reward, f"the model has no outcome {shorten(self._measured)} of {planned.action!r}"


def _describe_surprise(planned: RecordedDecision, label: str) -> str:
    expected = ", ".join(map(repr, planned.labels))
    return f"after {planned.action!r} came {shorten(label)}; the policy expects {shorten(expected)}"
