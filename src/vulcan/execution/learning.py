"""Policies where there is only a simulator: learned from episodes, certified on others.

`learn` has three methods, and none of them promises anything by itself: what it returns is
certified on fresh episodes (`vulcan.certify_by_simulation`), which use other random numbers.

**"counts", for discrete states.** The shares of what followed an action in a state are its
probabilities in an `EmpiricalModel`, the mean reward its reward, and any solver plans in it. A
`GenerativeModel` can begin in any state, so that an action is drawn when the plan first needs it.
An environment plays whole episodes, in `ROUNDS` rounds: first each state tries its actions equally
often, then the current plan is followed, but for a share `EXPLORING` of the steps. An action that
was tried fewer than `LEAST_TRIED` times does not exist in the model unless there is none better
known, and a state where nothing was tried fails. On the way, an observation that the plan does not
expect is met as the plan meets it elsewhere, at the nearest step; if it never does, by the action
there that failed least often.

**"tree", for states that can be copied.** Before each action a tree is sampled from a copy of the
simulator: upper confidence bounds choose actions, an action has at most n^`WIDENING` outcomes after
n visits (progressive widening [1]), and below the tree actions are drawn at random. A failure costs
`price`. Such a policy sees a copy of the whole state of the simulator, more than the observation,
but not the random numbers that follow.

**"search", for other environments.** The action is the largest of W (x, 1), x the observation in
units of its spread. Random W are compared in pilot episodes, and the best are varied [2] until the
number of steps is reached.

Several policies are planned, from safe to daring: for the shares `SCALES` of the allowed risk. An
estimate that turned out too good then costs a test, not the answer.

[1] Couëtoux, Hoock, Sokolovska, Teytaud, Bonnard: Continuous upper confidence trees, LION (2011).
[2] Mania, Guy, Recht: Simple random search of static linear policies is competitive for
reinforcement learning, NeurIPS (2018).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.bounds.parse import read_bound
from vulcan.certificate.confidence import StatisticalCertificate
from vulcan.errors import BoundError, OptionError
from vulcan.execution.simulation import describe_world, is_environment
from vulcan.execution.statistical import (
    PLANNING,
    Failure,
    Simulator,
    certify_by_simulation,
    seed_planning,
)
from vulcan.model.interface import FAILURE, Outcome, Start, stable_text
from vulcan.numerics import END
from vulcan.parameters import knows_parameters, require_number, require_whole, shorten
from vulcan.planning.result import Result
from vulcan.planning.solve import solve
from vulcan.policy.policy import Policy
from vulcan.policy.walk import MemberLists
from vulcan.problem import Problem

ROUNDS: Final = 4
EXPLORING: Final = 0.2
LEAST_TRIED: Final = 5
DRAWS: Final = 500  # of an action that a plan needs, in a generative model
WIDENING: Final = 0.5
CONFIDENT: Final = 1.0  # factor on the width of upper confidence bounds
SCALES: Final = (0.5, 0.8, 0.95)
CANDIDATES: Final = (192, 12)  # of a search: random ones, and those that are varied
PILOTS: Final = (3, 10, 50)  # episodes of random ones, of varied ones, and of the last ones
VARIED: Final = (0.5, 0.2, 0.05)  # deviations of variations
ENDED: Final = "ended"  # the state after a safe end
METHODS: Final = ("counts", "tree", "search")

Key = Callable[[Any], Hashable]


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Policies that were learned from a simulator; nothing is promised before they are certified.

    Attributes
    ----------
    policies
        Functions from observations to actions, from safe to daring; each is a policy for
        `vulcan.certify_by_simulation`.
    method
        How they were learned.
    steps
        Number of steps that were simulated for it.
    results
        What `solve` found in the empirical model, for each policy; empty without counts.
    bound, simulator, reward_range, seed
        What they were planned for, and with which seed.
    """

    policies: tuple[Any, ...]
    method: str
    steps: int
    bound: RiskBound
    simulator: Simulator
    reward_range: tuple[float, float] | None
    seed: int
    results: tuple[Result, ...] = ()

    def certify(self, **options: Any) -> list[StatisticalCertificate]:
        """Return the certificates of the policies, tested from safe to daring on fresh episodes.

        The options are those of `vulcan.certify_by_simulation`.
        """
        if not self.policies:
            raise OptionError("there is no policy to certify: none was found within the bound")
        given = {"reward_range": self.reward_range, "seed": self.seed} | options
        found: list[StatisticalCertificate] = certify_by_simulation(
            list(self.policies), self.simulator, self.bound, **given
        )
        return found


@knows_parameters
def learn(
    simulator: Any,
    risk_bound: Any,
    *,
    horizon: int | None = None,
    failure: Failure | str | None = None,
    reward_range: tuple[float, float] | None = None,
    discount: float | None = None,
    method: str | None = None,
    steps: int = 200_000,
    seed: int = 1,
    actions: Sequence[Any] | None = None,
    key: Key | None = None,
    solver: Any = None,
    time_limit: float = 20.0,
    samples: int = 60,
    depth: int = 20,
    hold: int = 1,
    price: float | None = None,
) -> Learned:
    """Learn policies from a simulator, to be certified on fresh episodes.

    Parameters
    ----------
    simulator, risk_bound, horizon, failure, reward_range, discount
        As in `vulcan.certify_by_simulation`.
    method
        "counts" for discrete states, "tree" for a simulator that can be copied, "search" for whole
        episodes of any environment; by default "counts" where observations can be counted or a key
        is given, else "tree" where copies can be made, else "search". The head of
        `vulcan.execution.learning` describes them.
    steps
        Number of simulated steps for counts, and the number after which a search ends.
    seed
        Seed of the planning; certificates with the same seed use other random numbers.
    actions
        The actions; by default those of a discrete action space, or `simulator.actions(state)`.
    key
        A function from observations to what is counted, such as a tuple of rounded numbers.
    solver, time_limit
        How to plan in the empirical model, as in `solve`, and seconds for each policy.
    samples, depth, hold, price
        Of a tree: samples before each decision, decisions that it looks ahead, steps that an action
        is held, and what a failure costs in units of reward; by default ten times the declared
        range, or 1000.

    Returns
    -------
    Learned
        Its `certify()` plays the episodes of the certificates.

    Examples
    --------
    >>> import gymnasium, vulcan
    >>> learned = vulcan.learn(
    ...     gymnasium.make("Blackjack-v1"), 0.15, horizon=20, reward_range=(-1, 1), steps=20_000,
    ...     failure=lambda step: step.next_state[0] > 21,
    ... )
    >>> certificates = learned.certify(episodes=2000)
    >>> certificates[0].safe
    True
    """
    if method not in (None, *METHODS):
        raise OptionError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    for name, number in (("samples", samples), ("depth", depth), ("hold", hold), ("steps", steps)):
        require_whole(name, number, 1, 1 << 40)
    bound = read_bound(risk_bound)
    world = Simulator(simulator, horizon, failure, discount)
    if world.reader is not None:
        raise OptionError("this model has probabilities: vulcan.solve plans in it")
    space: Any = getattr(simulator, "action_space", None)
    if actions is None and hasattr(space, "n"):
        actions = [int(space.start) + k for k in range(int(space.n))]
    if actions is None and not hasattr(simulator, "actions"):
        raise OptionError("give the actions, such as actions=[0, 1]")
    chosen = method or _choose(world, key, actions)
    begun = world.reset(seed=seed_planning(seed)[0])[0]
    policies: Sequence[Any]
    results: tuple[Result, ...] = ()
    if chosen == "counts":
        model = EmpiricalModel(world, actions, key, steps, seed)
        policies, results = _plan_counts(model, bound, solver, time_limit)
        used = model.steps
    elif chosen == "tree":
        if price is None:
            price = 1000.0 if reward_range is None else 10.0 * (reward_range[1] - reward_range[0])
        require_number("price", price, least=0.0)
        policies, used = [TreePolicy(actions, samples, depth, hold, price, seed)], 0
    else:
        search = _Search(world, list(actions or ()), np.size(begun), steps, seed)
        policies, used = search.run(bound), search.steps
    return Learned(
        policies=tuple(policies),
        method=chosen,
        steps=used,
        bound=bound,
        simulator=world,
        reward_range=reward_range,
        seed=seed,
        results=results,
    )


def _choose(world: Simulator, key: Key | None, actions: Sequence[Any] | None) -> str:
    """Return the method for a simulator."""
    observation = world.reset(seed=0)[0]
    if key is not None or (isinstance(observation, Hashable) and observation is not None):
        return "counts"
    action = actions[0] if actions else next(iter(world.source.actions(observation)))
    try:
        # Copies of what is not in Python may share it: then the second goes on where the first is.
        ways = [_walk(world.copy(0), action) for _ in range(2)]
        return "tree" if np.array_equal(*ways) else "search"
    except Exception:  # whatever a simulator's own objects raise when they are copied
        return "search"


def _walk(world: Simulator, action: Any) -> Any:
    for _ in range(3):
        if not world.over:
            world.step(action)
    return world.state


# Counts.


class EmpiricalModel:
    """A model whose probabilities are the shares of what was seen.

    Attributes
    ----------
    horizon, discount
        As of every model.
    steps, find_state
        Number of steps simulated so far, and the function from observations to states.
    """

    def __init__(
        self,
        world: Simulator,
        actions: Sequence[Any] | None,
        key: Key | None,
        most_steps: int,
        seed: int,
    ) -> None:
        self.horizon, self.discount = world.horizon, float(world.discount)
        self.steps = 0
        self._world, self._given, self._most, self._seed = world, actions, most_steps, seed
        self.find_state: Key = key or _plain
        self._starts: dict[Hashable, int] = {}
        # By state and action: for each next state how often it came, and the sum of rewards.
        self._seen: dict[Hashable, dict[Any, dict[Any, list[float]]]] = {}
        self._rng = np.random.default_rng(seed_planning(seed)[1])
        self.generative = not is_environment(world.source)
        if self.generative and key is not None:
            raise OptionError("a key is for observations of environments, not for states")

    def __repr__(self) -> str:
        return f"EmpiricalModel({describe_world(self._world.source)}, steps={self._most})"

    def initial_state(self) -> Any:
        """Return the start states with the shares of episodes that began there."""
        if not self._starts:  # of a generative model
            for _ in range(DRAWS):
                self._count_start(self._world.source.initial(self._rng))
        total = sum(self._starts.values())
        draws = [
            Outcome(count / total, 0.0, state, stable_text(state))
            for state, count in self._starts.items()
        ]
        return Start.draw(draws)

    def list_actions(self, state: Any) -> Sequence[Any]:
        """Return all actions of a state."""
        return list(self._world.source.actions(state) if self._given is None else self._given)

    def actions(self, state: Any) -> Sequence[Any]:
        """Return the actions that were tried often enough, or else any."""
        if state == ENDED:
            return ()
        every = self.list_actions(state)
        if self.generative:
            return every
        counts = {action: self._count(state, action) for action in every}
        return [a for a in every if counts[a] >= LEAST_TRIED] or [
            max(every, key=counts.__getitem__)
        ]

    def outcomes(self, state: Any, action: Any) -> list[Outcome]:
        """Return the shares of what followed an action; it fails where it was never tried."""
        if self.generative and not self._count(state, action):
            self._draw(state, action)
        followed = self._seen.get(state, {}).get(action)
        if not followed:
            return [Outcome.failure(1.0)]
        total = sum(count for count, _ in followed.values())
        return [
            Outcome.failure(count / total, paid / count)
            if after is FAILURE
            else Outcome(count / total, paid / count, after, stable_text(after))
            for after, (count, paid) in followed.items()
        ]

    def explore(self, steps: int, plan: CountedPolicy | None) -> None:
        """Play whole episodes, along a plan if there is one."""
        world, ends = self._world, self.steps + steps
        while self.steps < ends:
            world.reset(seed=int(self._rng.integers(1 << 32)))
            state = self.find_state(world.state)
            self._count_start(state)
            act = None if plan is None else plan.restart()
            while not world.over:
                action = None if act is None else act(world.state)
                if action is None or self._rng.random() < EXPLORING:
                    action = self._choose(state)
                reward = world.reward
                world.step(action)
                paid = (world.reward - reward) / self.discount ** (world.steps - 1)
                after: Any = FAILURE if world.failed else self.find_state(world.state)
                if world.over and not world.failed and world.steps < world.horizon:
                    after = ENDED
                self._add(state, action, after, paid)
                state = after

    def find_safest(self, state: Any) -> Any:
        """Return the action that failed least often in a state."""
        tried = self._seen.get(state, {})

        def fails(action: Any) -> float:
            followed = tried.get(action, {})
            total = sum(count for count, _ in followed.values())
            return followed.get(FAILURE, [0.0])[0] / total if total else 1.0

        return min(self.list_actions(state), key=fails)

    def _draw(self, state: Any, action: Any) -> None:
        """Draw an action of a generative model, while steps are left."""
        if self.steps >= self._most:
            return
        text = f"{stable_text(state)}\n{stable_text(action)}".encode()
        rng = np.random.default_rng([self._seed, PLANNING, *text])
        for _ in range(DRAWS):
            after, paid, ends = self._world.source.sample(state, action, rng)
            self._add(state, action, after if after is FAILURE or not ends else ENDED, paid)

    def _choose(self, state: Any) -> Any:
        """Return an action that was tried least often in a state."""
        every = self.list_actions(state)
        counts = [self._count(state, action) for action in every]
        least = [a for a, count in zip(every, counts, strict=True) if count == min(counts)]
        return least[int(self._rng.integers(len(least)))]

    def _count(self, state: Any, action: Any) -> int:
        followed = self._seen.get(state, {}).get(action, {})
        return int(sum(count for count, _ in followed.values()))

    def _count_start(self, state: Hashable) -> None:
        self._starts[state] = self._starts.get(state, 0) + 1

    def _add(self, state: Any, action: Any, after: Any, paid: float) -> None:
        self.steps += 1
        followed = self._seen.setdefault(state, {}).setdefault(action, {})
        count = followed.setdefault(after, [0.0, 0.0])
        count[0] += 1
        count[1] += paid


def _plain(observation: Any) -> Hashable:
    """Return an observation itself, as something that can be counted."""
    if isinstance(observation, np.generic):
        return observation.item()  # type: ignore[no-any-return]
    if isinstance(observation, tuple):
        return tuple(map(_plain, observation))
    if not isinstance(observation, Hashable):
        raise OptionError(f"give a key: {shorten(observation)} can't be counted")
    return observation


class CountedPolicy:
    """A plan in an empirical model, as a function from observations to actions."""

    def __init__(self, policy: Policy, model: EmpiricalModel) -> None:
        self._lists, self._model = MemberLists(policy), model
        self._places = self._find_places()
        self._node, self._step = 0, 0

    def __repr__(self) -> str:
        return f"CountedPolicy({self._model!r}, decisions={len(self._lists.action)})"

    def restart(self) -> CountedPolicy:
        """Return the policy at the beginning of an episode."""
        other = copy.copy(self)
        other._node, other._step = 0, 0
        return other

    def __call__(self, observation: Any) -> Any:
        """Return the action for an observation; see the head of the module for unexpected ones."""
        state = self._model.find_state(observation)
        label = stable_text(state)
        rows = self._lists.find(self._node) if self._node >= 0 else slice(0, 0)
        children = dict(zip(self._lists.label[rows], self._lists.child[rows], strict=True))
        self._node = children.get(label, END)
        if self._node < 0:
            places = self._places.get(label)
            if places:
                self._node = min(places, key=lambda place: abs(place[0] - self._step))[1]
        self._step += 1
        if self._node < 0:
            return self._model.find_safest(state)
        chosen = self._lists.action[self._node]
        return next(a for a in self._model.list_actions(state) if stable_text(a) == chosen)

    def _find_places(self) -> dict[str, list[tuple[int, int]]]:
        """Return steps and nodes by the labels of the observations that lead there."""
        found: dict[str, list[tuple[int, int]]] = {}
        levels = {0: -1}
        for node in range(len(self._lists.action)):  # parents come first
            rows = self._lists.find(node)
            for label, child in zip(self._lists.label[rows], self._lists.child[rows], strict=True):
                if child >= 0 and child not in levels:
                    levels[child] = levels[node] + 1
                    found.setdefault(label, []).append((levels[child], child))
        return found


def _plan_counts(
    model: EmpiricalModel, bound: RiskBound, solver: Any, time_limit: float
) -> tuple[list[CountedPolicy], tuple[Result, ...]]:
    """Return plans in an empirical model for shares of the allowed risk."""
    plan: CountedPolicy | None = None
    for _ in range(0 if model.generative else ROUNDS):
        model.explore(model._most // ROUNDS, plan)
        policy = solve(Problem(model, bound), solver, time_limit=time_limit / ROUNDS).policy
        if isinstance(policy, Policy) and len(policy):
            plan = CountedPolicy(policy, model)
    policies, results = [], []
    for scale in SCALES:
        result = solve(Problem(model, bound.scale(scale)), solver, time_limit=time_limit)
        if result.safe and isinstance(result.policy, Policy) and len(result.policy):
            policies.append(CountedPolicy(result.policy, model))
            results.append(result)
    return policies, tuple(results)


# Sampled trees.


class _Node:
    """A place of a tree: a simulator there, and for each action its visits, values and outcomes."""

    def __init__(self, simulator: Simulator, actions: int) -> None:
        self.simulator = simulator
        self.visits, self.total = np.zeros(actions, np.int64), np.zeros(actions)
        self.outcomes: list[list[_Node]] = [[] for _ in range(actions)]


@dataclass
class TreePolicy:
    """Plans before each decision, over a tree that is sampled from a copy of the simulator."""

    actions: Sequence[Any] | None
    samples: int
    depth: int
    hold: int
    price: float
    seed: int

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(seed_planning(self.seed, 1)[1])
        self._held, self._action = 0, None
        self._nodes: list[_Node] = []
        self._low, self._high = math.inf, -math.inf

    def restart(self) -> TreePolicy:
        """Return the policy at the beginning of an episode."""
        return replace(self)

    def act(self, simulator: Simulator) -> Any:
        """Return the action to take in a simulator, of which it plans in copies."""
        if self._held:
            self._held -= 1
            return self._action
        actions = self._list(simulator)
        here = next(
            (node for node in self._nodes if np.array_equal(node.simulator.state, simulator.state)),
            None,
        )
        if here is None or here.simulator.over:
            here = _Node(simulator.copy(self._draw_seed()), len(actions))
        for _ in range(self.samples):
            self._sample(here, self.depth)
        tried = np.where(here.visits > 0, here.total / np.maximum(here.visits, 1), -math.inf)
        best = int(np.argmax(tried))
        self._nodes = here.outcomes[best]
        self._held, self._action = self.hold - 1, actions[best]
        return self._action

    def _list(self, simulator: Simulator) -> Sequence[Any]:
        given: Iterable[Any] | None = self.actions
        if given is None:
            given = simulator.source.actions(simulator.state)
        return list(given)

    def _draw_seed(self) -> int:
        return int(self._rng.integers(1 << 62))

    def _sample(self, node: _Node, depth: int) -> float:
        """Sample a way below a node, and return its value."""
        if node.simulator.over or depth == 0:
            return self._value(node.simulator)
        actions = self._list(node.simulator)
        row = self._choose(node)
        outcomes = node.outcomes[row]
        new = len(outcomes) < max(1.0, node.visits[row] ** WIDENING)
        if new:
            simulator = self._hold(node.simulator.copy(self._draw_seed()), actions[row])
            count = 0 if simulator.over else len(self._list(simulator))
            child = _Node(simulator, count)
            same = [o for o in outcomes if np.array_equal(o.simulator.state, simulator.state)]
            outcomes.append(same[0] if same else child)
            value = self._roll_out(simulator, depth - 1)
        else:
            child = outcomes[int(self._rng.integers(len(outcomes)))]
            value = self._sample(child, depth - 1)
        node.visits[row] += 1
        node.total[row] += value
        self._low, self._high = min(self._low, value), max(self._high, value)
        return value

    def _choose(self, node: _Node) -> int:
        """Return the row of the action with the largest upper confidence bound."""
        if (untried := np.flatnonzero(node.visits == 0)).size:
            return int(self._rng.choice(untried))
        width = (self._high - self._low) or 1.0
        means = (node.total / node.visits - self._low) / width
        wide = np.sqrt(math.log(node.visits.sum()) / node.visits)
        return int(np.argmax(means + CONFIDENT * wide))

    def _roll_out(self, simulator: Simulator, depth: int) -> float:
        if simulator.over or depth == 0:
            return self._value(simulator)
        simulator = simulator.copy(self._draw_seed())
        for _ in range(depth):
            actions = self._list(simulator)
            self._hold(simulator, actions[int(self._rng.integers(len(actions)))])
            if simulator.over:
                break
        return self._value(simulator)

    def _hold(self, simulator: Simulator, action: Any) -> Simulator:
        for _ in range(self.hold):
            simulator.step(action)
            if simulator.over:
                break
        return simulator

    def _value(self, simulator: Simulator) -> float:
        return simulator.reward - self.price * simulator.failed


# Linear policies.


class LinearPolicy:
    """The action with the largest of W (x, 1), x the observation in units of its spread."""

    def __init__(self, weights: Any, spread: Any, actions: Sequence[Any]) -> None:
        self.weights, self.spread, self._actions = weights, spread, actions

    def __repr__(self) -> str:
        return f"LinearPolicy({shorten(np.round(self.weights, 3).tolist())})"

    def __call__(self, observation: Any) -> Any:
        """Return the action for an observation."""
        x = np.append(np.asarray(observation, float).ravel() / self.spread, 1.0)
        return self._actions[int(np.argmax(self.weights @ x))]


class _Search:
    """A search for linear policies in whole episodes."""

    def __init__(
        self, world: Simulator, actions: Sequence[Any], size: int, most_steps: int, seed: int
    ) -> None:
        self._world, self._actions, self._size, self._most = world, actions, size, most_steps
        self.steps = 0
        self._rng = np.random.default_rng(seed_planning(seed, 2)[1])
        self._spread = np.ones(size)

    def run(self, bound: RiskBound) -> list[LinearPolicy]:
        """Return policies from safe to daring."""
        self._spread = self._measure_spread()
        shape = (len(self._actions), self._size + 1)
        count, varied = CANDIDATES
        first = [self._rng.normal(size=shape) for _ in range(count)]
        kept = self._compare(first, PILOTS[0])[:varied]
        while True:
            changes = self._rng.normal(size=(3, len(kept), *shape)) * np.reshape(
                VARIED, (3, 1, 1, 1)
            )
            added = [
                w + change for row in changes for (_, _, w), change in zip(kept, row, strict=True)
            ]
            kept = self._compare([*(w for _, _, w in kept), *added], PILOTS[1])[:varied]
            if self.steps >= self._most:
                break
        finalists = self._compare([w for _, _, w in kept], PILOTS[2])
        chosen: list[Any] = []
        for scale in SCALES:
            fine = [one for one in finalists if one[0] <= scale * _allow(bound, one[1])]
            best = max(fine, key=lambda one: one[1]) if fine else finalists[0]
            if all(best[2] is not other for other in chosen):
                chosen.append(best[2])
        return [LinearPolicy(w, self._spread, self._actions) for w in chosen]

    def _compare(self, candidates: Sequence[Any], episodes: int) -> list[tuple[float, float, Any]]:
        """Return risk and mean reward of candidates in pilot episodes, the least risk first."""
        seeds = [int(seed) for seed in self._rng.integers(1 << 32, size=episodes)]
        found: list[tuple[float, float, Any]] = []
        for weights in candidates:
            policy, failures, collected = LinearPolicy(weights, self._spread, self._actions), 0, 0.0
            for seed in seeds:
                failed, reward = self._play(policy, seed)
                failures, collected = failures + failed, collected + reward
            found.append((failures / episodes, collected / episodes, weights))
        return sorted(found, key=lambda one: (one[0], -one[1]))

    def _play(self, policy: Callable[[Any], Any], seed: int) -> tuple[bool, float]:
        world = self._world
        world.reset(seed=seed)
        while not world.over:
            world.step(policy(world.state))
        self.steps += world.steps
        return world.failed, world.reward

    def _measure_spread(self) -> Any:
        seen: list[Any] = []

        def wander(observation: Any) -> Any:
            seen.append(np.asarray(observation, float).ravel())
            return self._actions[int(self._rng.integers(len(self._actions)))]

        for _ in range(5):
            self._play(wander, int(self._rng.integers(1 << 32)))
        return np.maximum(np.std(seen, axis=0), 1e-6)


def _allow(bound: RiskBound, reward: float) -> float:
    try:
        return float(bound(reward))
    except BoundError:
        return -math.inf
