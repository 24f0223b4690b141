"""Episodes of a policy: compiled from its own arrays, or in another model or environment.

**Compiled.** A policy records the outcomes of every action that it takes, so that episodes need no
model. They are played in chunks of a fixed size. Each chunk has its own stream of random numbers
(SplitMix64, at an offset that follows from the seed and the chunk's number) and its own share of a
randomised policy's members. Chunks are joined in their order, so that the numbers are the same bit
for bit on any number of cores.

**In another world**, a model that it was not made for or an environment, episodes are played step
by step in Python, and the policy follows the observations. A model draws an outcome of its own,
identified by its label, and decides itself what fails and when a history ends. An environment
(Gymnasium's `reset` and `step`) does neither: its observation is matched with the outcomes that the
policy expects (labels are the texts of states unless the model gave others), in this order,

    1. the outcome that has this label, and this reward; a failing one by its label alone;
    2. a failing outcome that has this reward, if no safe one has it or the episode terminated;
    3. the outcome that has this label, whatever the reward;
    4. a failing outcome, if the episode terminated.

An environment may provide this itself: the label of the outcome in `info["label"]`, whether it
failed in `info["failed"]`, and the labels of its actions in `action_labels`.

An episode has *strayed* where the policy has no continuation: the policy does not expect the
observation, the world does not have its action, or the policy has ended and the world has not. It
counts as not failed, with the reward so far; the first one is described. The policy's actions are
known in an environment if the policy is bound to its model, or if their labels are the numbers of a
discrete action space.
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
from vulcan.model.interface import START, Outcome, Start, describe_model, stable_text
from vulcan.model.reader import ModelReader, add_reward, label_outcomes
from vulcan.numerics import END, FAILED
from vulcan.parameters import shorten
from vulcan.policy.policy import AnyPolicy, build_plan
from vulcan.policy.walk import MemberLists, RecordedDecision, find_decision_points, find_values

__all__ = [
    "STRAYED",
    "Episodes",
    "Expected",
    "GoOn",
    "describe_world",
    "expect",
    "is_environment",
    "play",
    "play_in_world",
]


GoOn = Callable[[int, float], bool]
"""Called with the number of episodes so far and their mean reward; returns whether to go on."""

CHUNK: Final = 1 << 14
"""Number of episodes with one stream of random numbers."""

STRAYED: Final = -4
"""Beside END, FAILED and UNPLANNED: the policy has no continuation."""


@dataclass(frozen=True)
class Expected:
    """The exact values of a policy in the model that it was made for.

    Attributes
    ----------
    reward, risk, frontier
        Expected reward, probability of failure, and of leaving an incomplete plan.
    deviation
        Standard deviation of the reward.
    least, most
        The smallest and the largest reward of any episode.
    failures
        Probability of failing at each level of decisions.
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
    """Return the exact values of a policy; `first` is the discount after its first decision."""
    from vulcan.kernels.episodes import VALUE

    weights = _normalise(policy)
    values = np.zeros(len(weights), VALUE)
    for k, member in enumerate(policy.members):
        if len(member):
            values[k] = member.node_values(first)[0]
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

    Parameters
    ----------
    policy, world, episodes
        The policy, a model or an environment with `reset` and `step`, and the number of episodes.
    seed
        Seed of the random numbers; an environment gets it at its first `reset`.
    discounts
        The discounts after the first decision, and after any later one.
    go_on
        Called after each episode.
    """
    rng = np.random.default_rng(seed)
    player: _ModelWorld | _EnvironmentWorld
    if is_environment(world):
        actions, start = _find_actions(policy, world), _find_start(policy, world)
        player = _EnvironmentWorld(world, actions, start, seed)
    else:
        player = _ModelWorld(world, rng)
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
    world: _ModelWorld | _EnvironmentWorld, member: MemberLists, discounts: Sequence[float]
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


class _ModelWorld:
    """A model as a world: it draws the outcomes itself.

    `act` returns the reward, and the next decision, how the episode ended, or how it strayed.
    """

    def __init__(self, model: Any, rng: np.random.Generator) -> None:
        self._reader, self._rng = ModelReader(model), rng
        self._answers: dict[Any, tuple[list[Outcome], list[str], list[float]]] = {}

    def reset(self) -> None:
        self._state = self._reader.root

    def act(
        self, planned: RecordedDecision, children: list[int], level: int
    ) -> tuple[float, int | str]:
        state, reader = self._state, self._reader
        answer = self._evaluate(planned.action)
        if answer is None:
            return 0.0, f"{planned.action!r} is no action of the model in state {shorten(state)}"
        outcomes, labels, chances = answer
        position = min(bisect(chances, self._rng.random()), len(outcomes) - 1)
        outcome, label = outcomes[position], labels[position]
        reward = float(outcome.reward)
        if outcome.fails:
            return reward, FAILED
        self._state = outcome.state
        over = level + 1 >= reader.levels or not reader.actions(outcome.state)
        if over:
            return reward, END  # expectations don't matter where nothing is left to decide
        child = dict(zip(planned.labels, children, strict=True)).get(label, FAILED)
        if child == FAILED:
            return reward, _describe_surprise(planned, label)
        if child == END:
            return reward, f"the policy ends after {label!r}, and the model does not"
        return reward, child

    def _evaluate(self, label: str) -> tuple[list[Outcome], list[str], list[float]] | None:
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
            self._answers[key] = (outcomes, label_outcomes(outcomes), chances)
        return self._answers[key]


class _EnvironmentWorld:
    """An environment of Gymnasium's kind as a world, like `_ModelWorld`."""

    def __init__(
        self, environment: Any, actions: dict[str, Any], start: str | None, seed: int
    ) -> None:
        self._environment, self._actions, self._start = environment, actions, start
        self._seed: int | None = seed

    def reset(self) -> None:
        observation, info = self._environment.reset(seed=self._seed)
        self._first = info.get("label") or observation
        self._seed = None  # the environment goes on with its own random numbers

    def act(
        self, planned: RecordedDecision, children: list[int], level: int
    ) -> tuple[float, int | str]:
        if level == 0 and planned.action == START and START not in self._actions:
            return 0.0, _match(planned, children, self._first, 0.0, over=False)
        if level == 0 and self._start not in (None, first := stable_text(self._first)):
            return 0.0, f"it began in {shorten(first)}; the policy begins in {self._start}"
        action = self._actions.get(planned.action)
        if action is None:
            return 0.0, f"{planned.action!r} is no action of the environment"
        observation, reward, terminated, truncated, info = self._environment.step(action)
        if info.get("failed"):
            return float(reward), FAILED
        seen = info.get("label") or observation
        found = _match(planned, children, seen, float(reward), over=bool(terminated))
        if isinstance(found, int) and found >= 0 and (terminated or truncated):
            found = END
        return float(reward), found


def _match(
    planned: RecordedDecision, children: list[int], observation: Any, reward: float, *, over: bool
) -> int | str:
    """Return the policy's continuation after an observation; see the head of this module."""
    text = stable_text(observation)
    names = (text, add_reward(text, reward))
    pays = [outcome_reward == reward for _, outcome_reward, _ in planned.outcomes]
    rows = list(zip(planned.labels, pays, children, strict=True))
    safe = [row for row in rows if row[2] != FAILED]
    failing = [row for row in rows if row[2] == FAILED]
    named = [row for row in safe if row[0] in names]
    telling = over or not any(paid for _, paid, _ in safe)
    for fitting in (
        [row for row in named if row[1]],
        [row for row in failing if row[0] in names],
        [row for row in failing if telling and row[1]],
        named,
        failing if over else [],
    ):
        if fitting:
            return fitting[0][2]
    return END if over else _describe_surprise(planned, text)


def _describe_surprise(planned: RecordedDecision, label: str) -> str:
    expected = ", ".join(map(repr, planned.labels))
    return f"after {planned.action!r} came {shorten(label)}; the policy expects {shorten(expected)}"


def _find_actions(policy: AnyPolicy, environment: Any) -> dict[str, Any]:
    """Return the environment's actions by the labels of a policy's actions."""
    if hasattr(environment, "action_labels"):
        return {label: number for number, label in enumerate(environment.action_labels)}
    if policy.reader is not None:
        states = find_decision_points(policy, policy.reader).states
        actions = [policy.reader.actions(s) for s in states if not isinstance(s, Start)]
        return {label: action for known in actions for label, action in known.items()}
    space = getattr(environment, "action_space", None)
    count, begin = getattr(space, "n", None), getattr(space, "start", 0)
    if count is None:
        raise OptionError(
            "the policy's actions are not known in this environment, which has no discrete "
            "actions; bind the policy to its model first, simulate(policy.bind(model), environment)"
        )
    return {str(action): action for action in range(int(begin), int(begin + count))}


def _find_start(policy: AnyPolicy, environment: Any) -> str | None:
    """Return the text of the state that a policy begins in; None where it can't be compared."""
    reader = policy.reader
    if reader is None or isinstance(reader.root, Start) or hasattr(environment, "action_labels"):
        return None
    return stable_text(reader.root)
