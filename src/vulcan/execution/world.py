"""Episodes of a policy in another world: a model that it was not made for, or an environment.

A world is asked step by step, in Python, and the policy is followed by what is observed. A model
draws an outcome of its own, known by its label, and says itself what fails and when a history ends.
An environment (Gymnasium's `reset` and `step`) says neither: its observation is looked for among
the outcomes that the policy expects (labels are the texts of states unless the model gave others),
in this order,

    1. the outcome that has this label, and this reward; a failing one by its label alone;
    2. a failing outcome that has this reward, if no safe one has it or the episode terminated;
    3. the outcome that has this label, whatever the reward;
    4. a failing outcome, if the episode terminated.

An environment that knows better may say so, as those of `vulcan.formats.to_gymnasium` do: the label
of the outcome in `info["label"]`, whether it failed in `info["failed"]`, and what its actions are
called in `action_labels`.

An episode has *strayed* where the policy does not know on: the observation is none that it expects,
the world does not have its action, or it is at its end and the world is not. It counts as not
failed, with what it collected so far; the first one is described. What a policy's actions are in an
environment is known if the policy is bound to its model, or if their labels are those of a discrete
action space: numbers.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Protocol

import numpy as np

from vulcan.errors import OptionError
from vulcan.execution.played import Episodes, GoOn, start_histogram
from vulcan.model.interface import START, Outcome, Start, describe_model
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.model.text import stable_text
from vulcan.parameters import shorten
from vulcan.policies.policy import Policy
from vulcan.policies.randomised import AnyPolicy
from vulcan.policies.walk import Place, PolicyWalk
from vulcan.sentinels import END, FAILED, UNPLANNED

__all__ = ["describe_world", "is_environment", "play_in_world"]


@dataclass(frozen=True)
class Row:
    """An outcome that the policy expects."""

    label: str
    reward: float
    child: int


@dataclass(frozen=True)
class Node:
    """A decision of the policy: its action's label, and the outcomes that it expects."""

    action: str
    rows: tuple[Row, ...]


class World(Protocol):
    """Where a policy is followed."""

    def reset(self) -> None:
        """Begin an episode."""

    def act(self, node: Node, level: int) -> tuple[float, int | str]:
        """Return the reward, and the next decision, how the episode ended, or how it strayed."""


def is_environment(world: Any) -> bool:
    """Whether this is an environment such as Gymnasium's, and no model."""
    return callable(getattr(world, "step", None)) and callable(getattr(world, "reset", None))


def describe_world(world: Any) -> str:
    """Return what people call a model or an environment."""
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
    """Return episodes of a policy that were played in another world.

    Parameters
    ----------
    policy
        Any policy.
    world
        A model, or an environment with `reset` and `step`.
    episodes
        How many.
    seed
        Of the random numbers; an environment is given it at its first `reset`.
    discounts
        What follows the first decision, and any later one, is multiplied with.
    go_on
        Asked after each episode.
    """
    rng = np.random.default_rng(seed)
    place: World
    if is_environment(world):
        place = _Environment(world, _find_actions(policy, world), _find_start(policy, world), seed)
    else:
        place = _Model(world, rng)
    members = [list(_read(member)) for member in policy.members]
    weights = np.array(policy.weights) / sum(policy.weights)
    rewards: list[float] = []
    collected = 0.0
    ends: list[int] = []
    levels: list[int] = []
    example: str | None = None
    for played, member in enumerate(rng.choice(len(members), episodes, p=weights), 1):
        reward, end, level = _play(place, members[member], discounts)
        if isinstance(end, str):
            example, end = example or end, STRAYED
        rewards.append(reward)
        ends.append(end)
        levels.append(level)
        collected += reward
        if not go_on(played, collected / played):
            break
    return _add_up(np.array(rewards), np.array(ends), np.array(levels), example)


STRAYED: Final = -4
"""Beside END, FAILED and UNPLANNED: the policy does not know on."""


def _play(
    world: World, nodes: Sequence[Node], discounts: Sequence[float]
) -> tuple[float, int | str, int]:
    """Return what an episode collected, how it ended, and after how many decisions."""
    world.reset()
    following: int | str = 0 if nodes else END
    collected, weight, level = 0.0, 1.0, 0
    while isinstance(following, int) and following >= 0:
        reward, following = world.act(nodes[following], level)
        collected += weight * reward
        weight *= discounts[min(level, 1)]
        level += 1
    return collected, following, level


def _add_up(rewards: Any, ends: Any, levels: Any, example: str | None) -> Episodes:
    from vulcan.kernels.episodes import TALLY, count_all

    tally = np.zeros((), TALLY)
    tally["episodes"], tally["mean"] = len(rewards), rewards.mean()
    tally["squares"] = ((rewards - rewards.mean()) ** 2).sum()
    tally["least"], tally["most"] = rewards.min(), rewards.max()
    tally["failed"], tally["unplanned"] = (ends == FAILED).sum(), (ends == UNPLANNED).sum()
    tally["decisions"] = levels.sum()
    bins = start_histogram(float(rewards.min()), float(rewards.max()))
    count_all(bins, rewards)
    failures = np.bincount(levels[ends == FAILED] - 1, minlength=levels.max(initial=0))
    return Episodes(tally, bins, failures, int((ends == STRAYED).sum()), example)


def _read(policy: Policy) -> Iterator[Node]:
    labels = [policy.labels[number] for number in policy.label]
    rows = list(map(Row, labels, policy.reward.tolist(), policy.child.tolist()))
    for node, action in enumerate(policy.action):
        first, end = policy.first_outcome[node : node + 2]
        yield Node(policy.labels[action], tuple(rows[first:end]))


class _Model:
    """A model as a world: it draws the outcomes itself."""

    def __init__(self, model: Any, rng: np.random.Generator) -> None:
        self._reader, self._rng = ModelReader(model), rng
        self._answers: dict[Any, tuple[list[Outcome], list[str], list[float]]] = {}

    def reset(self) -> None:
        self._state = self._reader.root

    def act(self, node: Node, level: int) -> tuple[float, int | str]:
        state, reader = self._state, self._reader
        answer = self._ask(node.action)
        if answer is None:
            return 0.0, f"{node.action!r} is no action of the model in state {shorten(state)}"
        outcomes, labels, chances = answer
        position = min(bisect(chances, self._rng.random()), len(outcomes) - 1)
        outcome, label = outcomes[position], labels[position]
        reward = float(outcome.reward)
        if outcome.fails:
            return reward, FAILED
        self._state = outcome.state
        over = level + 1 >= reader.levels or not reader.actions(outcome.state)
        row = next((row for row in node.rows if row.label == label), None)
        if over or row is None or row.child == FAILED:
            # What the policy expected does not matter where there is nothing left to decide.
            return reward, END if over else _describe_surprise(node, label)
        if row.child == END:
            return reward, f"the policy ends after {label!r}, and the model does not"
        return reward, row.child

    def _ask(self, label: str) -> tuple[list[Outcome], list[str], list[float]] | None:
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


class _Environment:
    """An environment of Gymnasium's kind as a world."""

    def __init__(
        self, environment: Any, actions: dict[str, Any], start: str | None, seed: int
    ) -> None:
        self._environment, self._actions, self._start = environment, actions, start
        self._seed: int | None = seed
        self._known: dict[Any, int | str] = {}

    def reset(self) -> None:
        observation, info = self._environment.reset(seed=self._seed)
        self._first = info.get("label") or observation
        self._seed = None  # the environment goes on with its own random numbers

    def act(self, node: Node, level: int) -> tuple[float, int | str]:
        if level == 0 and node.action == START and START not in self._actions:
            return 0.0, self._match(node, self._first, 0.0, over=False)
        if level == 0 and self._start not in (None, first := stable_text(self._first)):
            return 0.0, f"it began in {shorten(first)}; the policy begins in {self._start}"
        action = self._actions.get(node.action)
        if action is None:
            return 0.0, f"{node.action!r} is no action of the environment"
        observation, reward, terminated, truncated, info = self._environment.step(action)
        if info.get("failed"):
            return float(reward), FAILED
        seen = info.get("label") or observation
        found = self._match(node, seen, float(reward), over=bool(terminated))
        if isinstance(found, int) and found >= 0 and (terminated or truncated):
            found = END
        return float(reward), found

    def _match(self, node: Node, observation: Any, reward: float, *, over: bool) -> int | str:
        """Return what the policy does after an observation; the head of this module says how."""
        text = stable_text(observation)
        key = (id(node), text, reward, over)  # nodes live as long as the episodes
        if key not in self._known:
            self._known[key] = _find(node, text, reward, over=over)
        return self._known[key]


def _find(node: Node, text: str, reward: float, *, over: bool) -> int | str:
    paid = f"{text}, reward {repr(reward).removesuffix('.0')}"  # as `label_outcomes` has it
    named = [row for row in node.rows if row.label in (text, paid) and row.child != FAILED]
    failing = [row for row in node.rows if row.child == FAILED]
    exact = [row for row in named if row.reward == reward]
    telling = over or all(row.reward != reward for row in node.rows if row.child != FAILED)
    paying = [row for row in failing if telling and row.reward == reward]
    called = [row for row in failing if row.label in (text, paid)]
    for rows in (exact, called, paying, named, failing if over else []):
        if rows:
            return rows[0].child
    return END if over else _describe_surprise(node, text)


def _describe_surprise(node: Node, label: str) -> str:
    expected = ", ".join(repr(row.label) for row in node.rows)
    return f"after {node.action!r} came {shorten(label)}; the policy expects {shorten(expected)}"


def _find_actions(policy: AnyPolicy, environment: Any) -> dict[str, Any]:
    """Return what the labels of a policy's actions mean in an environment."""
    if hasattr(environment, "action_labels"):
        return {label: number for number, label in enumerate(environment.action_labels)}
    reader = policy.members[0].reader
    if reader is not None:
        return _collect_actions(policy, reader)
    space = getattr(environment, "action_space", None)
    count, begin = getattr(space, "n", None), getattr(space, "start", 0)
    if count is None:
        raise OptionError(
            "what the policy's actions are in this environment is not known: it has no discrete "
            "actions; bind the policy to its model first, simulate(policy.bind(model), environment)"
        )
    return {str(action): action for action in range(int(begin), int(begin + count))}


def _find_start(policy: AnyPolicy, environment: Any) -> str | None:
    """Return the text of the state that a policy begins in; None where nobody can compare it."""
    reader = policy.members[0].reader
    if reader is None or isinstance(reader.root, Start) or hasattr(environment, "action_labels"):
        return None
    return stable_text(reader.root)


def _collect_actions(policy: AnyPolicy, reader: ModelReader) -> dict[str, Any]:
    """Return the model's actions by the labels that a policy takes, and look no further."""
    taken = {member.labels[number] for member in policy.members for number in set(member.action)}
    walk, found = PolicyWalk(policy, reader), dict[str, Any]()
    places = walk.begin()
    for level in range(reader.levels):
        for place in places:
            if not isinstance(place.state, Start):
                found |= reader.actions(place.state)
        if not taken - {START} - set(found):
            break
        ways = [(place, way) for place in places for way in walk.follow(place, level)]
        after = {Place(p.member, child, o.state): None for p, (o, child) in ways if child >= 0}
        places = list(after)
    return found
