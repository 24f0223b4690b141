"""Certificates from a simulator: independent episodes of a policy that is fixed beforehand.

The mathematics is at the head of `vulcan.certificate.confidence`. Here episodes are played, in

- an environment with Gymnasium's `reset` and `step`, with its own wrappers;
- a `GenerativeModel`, which only draws;
- a model of ours, whose outcomes are drawn.

What failed, the reward and the end are those of this simulator, never those of a model that the
policy was planned in. An episode ends with a failure, by itself, or after `horizon` steps. Where
the policy has no action (a plan that does not expect what it observes, a function that returns
None), the episode counts as failed, with the least reward of the declared range.

**Seeds.** Episode i of policy number k has a stream of its own, (`CERTIFYING`, k, i) below the
seed, and planning has streams below (`PLANNING`,): what was learned says nothing about the episodes
of the certificate. Nothing depends on the number of workers, or on where a run was resumed.
"""

from __future__ import annotations

import copy
import platform
import sys
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.bounds.forms import Constant
from vulcan.bounds.parse import read_bound
from vulcan.certificate.confidence import StatisticalCertificate, Tally, round_up
from vulcan.errors import CheckpointError, OptionError, PolicyError
from vulcan.execution.controller import Controller
from vulcan.execution.simulation import (
    World,
    describe_world,
    find_discounts,
    is_environment,
    normalise,
)
from vulcan.model.answers import label_outcomes
from vulcan.model.interface import FAILURE, Start, describe_model
from vulcan.model.reader import ModelReader
from vulcan.numerics import FAILED, UNPLANNED
from vulcan.parallel.executors import Channel, Executor
from vulcan.parallel.pool import WorkerPool, choose_executor
from vulcan.parameters import knows_parameters, require_number, require_whole, shorten
from vulcan.policy.policy import AnyPolicy
from vulcan.policy.walk import MemberLists
from vulcan.runtime.files import Checkpoint, Seal
from vulcan.runtime.limits import Limits, Monitor, OnProgress, Progress, watch_progress

PLANNING: Final = 0
CERTIFYING: Final = 1
"""Streams of random numbers below a seed."""

SEAL: Final = Seal("file of episodes", b"VULEPIS\n", 1, CheckpointError)

BLOCK_SECONDS: Final = 0.3  # a task has about as many episodes as are played in this time
LARGEST_BLOCK: Final = 512

Failure = Callable[["Step"], Any]

FAILURES: Final = '"terminated", "truncated", "reward <= -1", or a function of a Step'


class Step(NamedTuple):
    """A step of a simulator, as functions that recognise failures see it."""

    state: Any
    action: Any
    next_state: Any
    reward: float
    terminated: bool
    truncated: bool
    info: Any


@runtime_checkable
class GenerativeModel(Protocol):
    """A simulator that draws from any state, without memory of its own.

    `actions(state)`, optional, lists the actions of a state; `vulcan.learn` needs them.
    """

    def initial(self, rng: np.random.Generator) -> Any:
        """Draw an initial state."""

    def sample(self, state: Any, action: Any, rng: np.random.Generator) -> tuple[Any, float, bool]:
        """Draw a step: the next state, the reward, and whether the episode ends.

        The next state `vulcan.model.interface.FAILURE` is a failure, whatever else fails.
        """


class Simulator:
    """A simulator, episode by episode, with Gymnasium's `reset` and `step`.

    `reader` is that of a model of ours, else None; `state` is the current observation or state, and
    `steps`, `reward` (discounted), `failed` and `over` are those of the episode so far.
    """

    def __init__(
        self,
        source: Any,
        horizon: int | None = None,
        failure: Failure | str | None = None,
        discount: float | None = None,
    ) -> None:
        self.source, self.reader, self._fails = source, None, read_failure(failure)
        if is_environment(source):
            if failure is None:
                raise OptionError(f"an environment does not say what fails: failure={FAILURES}")
        elif not isinstance(source, GenerativeModel):
            self.reader = ModelReader(source)
            if horizon not in (None, self.reader.horizon) or discount not in (
                None,
                self.reader.discount,
            ):
                raise OptionError("a model has its own horizon and discount: give none, or those")
            horizon, discount = self.reader.horizon, self.reader.discount
        if horizon is None:
            raise OptionError("give a horizon, such as horizon=100: the largest number of steps")
        self.horizon = require_whole("horizon", horizon, 1, 1 << 30)
        self.discount = require_number("discount", 1.0 if discount is None else discount, above=0.0)
        self.rng = np.random.default_rng(0)
        self.steps, self.reward, self.failed, self.over, self._weight = 0, 0.0, False, False, 1.0

    def reset(self, *, seed: int | None = None) -> tuple[Any, Any]:
        """Begin an episode."""
        self.steps, self.reward, self.failed, self.over, self._weight = 0, 0.0, False, False, 1.0
        info: Any = {}
        if is_environment(self.source):
            self.state, info = self.source.reset(seed=seed)
            return self.state, info
        self.rng = np.random.default_rng(seed)
        if self.reader is None:
            self.state = self.source.initial(self.rng)
            return self.state, info
        self.state = self.reader.root
        if isinstance(self.state, Start) and len(self.state.choices) == 1:
            self.step(next(iter(self.state.choices)))  # nothing to decide
        self.over = self.over or not self.reader.actions(self.state)
        return self.state, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        """Take a step; a failure terminates the episode, and the horizon truncates it."""
        before, starts = self.state, isinstance(self.state, Start)
        state, reward, ends, cut, info = self._draw(action)
        self.steps += not starts
        reward = float(reward)
        cut = bool(cut or (self.steps >= self.horizon and not ends))
        self.failed = state is FAILURE or bool(
            self._fails(Step(before, action, state, reward, bool(ends), cut, info))
        )
        self.reward += self._weight * reward
        self._weight *= 1.0 if starts else self.discount
        self.state, ends = state, bool(ends or self.failed)
        self.over = ends or cut
        return state, reward, ends, cut, info

    def _draw(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        if is_environment(self.source):
            measured: tuple[Any, float, bool, bool, Any] = self.source.step(action)
            return measured
        if self.reader is None:
            state, reward, ends = self.source.sample(self.state, action, self.rng)
            return state, reward, ends, False, {}
        outcomes = self.reader.outcomes(self.state, action)
        chances = list(accumulate(float(outcome.probability) for outcome in outcomes))
        place = min(bisect(chances, self.rng.random()), len(outcomes) - 1)
        outcome, label = outcomes[place], label_outcomes(outcomes)[place]
        ends = outcome.fails or not self.reader.actions(outcome.state)
        return outcome.state, float(outcome.reward), ends, False, {"label": label}

    def copy(self, seed: int) -> Simulator:
        """Return a simulator in the same state, which goes on with other random numbers."""
        other = copy.copy(self)
        other.rng = np.random.default_rng(seed)
        if is_environment(self.source):
            other.source = copy.deepcopy(self.source)
            other.source.unwrapped.np_random = other.rng
        return other


def read_failure(failure: Failure | str | None) -> Failure:
    """Return a function that tells whether a step fails."""
    if failure is None:
        return _never
    if callable(failure):
        return failure
    words = failure.split() if isinstance(failure, str) else []
    if words in (["terminated"], ["truncated"]):
        return attrgetter(words[0])
    try:
        name, sign, number = words
        if name == "reward" and sign in {"<=", "<"}:
            return partial(_pays_little, limit=float(number), strictly=sign == "<")
    except ValueError:
        pass
    raise OptionError(f"failure must be {FAILURES}, not {shorten(failure)}")


def _never(_: Step) -> bool:
    return False


def _pays_little(step: Step, limit: float, strictly: bool) -> bool:
    return step.reward < limit or (step.reward == limit and not strictly)


class Block(NamedTuple):
    """Episodes that were played: rewards, which failed, which strayed, and the first of these."""

    rewards: list[float]
    failed: list[bool]
    strayed: list[bool]
    example: str | None
    seconds: float


class Player:
    """Plays episodes of a policy; the object that a worker holds."""

    def __init__(
        self, channel: Channel, policy: Any, simulator: Simulator, seed: int, number: int
    ) -> None:
        self._channel, self._policy, self._simulator = channel, policy, simulator
        self._seed, self._number = seed, number
        self._members: list[MemberLists] = []
        if isinstance(policy, AnyPolicy):
            self._world, self._discounts = self._enter(policy, simulator)
            self._weights = normalise(policy)
            self._members = [MemberLists(member) for member in policy.members]

    def _enter(self, policy: AnyPolicy, simulator: Simulator) -> tuple[World, Any]:
        rng = np.random.default_rng(0)
        if simulator.reader is not None:
            reader = simulator.reader
            return World(reader, rng), find_discounts(policy, reader)
        if policy.reader is None or not hasattr(policy.reader.model, "locate"):
            raise OptionError(
                "a simulator needs a policy that is bound to a model with locate(state, action, "
                "measurement), or a function from observations to actions"
            )
        return World(policy.reader, rng, (), simulator, 0), (1.0, 1.0)

    def play(self, begin: int, end: int) -> Block:
        """Play some episodes; fewer if they are stopped."""
        rewards, failed, strayed = [], [], []
        began, example = time.perf_counter(), None
        for episode in range(begin, end):
            if self._channel.stopped:
                break
            key = (CERTIFYING, self._number, episode)
            states = np.random.SeedSequence(self._seed, spawn_key=key).generate_state(2)
            reward, fails, where = self.play_one(*map(int, states))
            rewards.append(reward)
            failed.append(fails)
            strayed.append(where is not None)
            example = example or where
        return Block(rewards, failed, strayed, example, time.perf_counter() - began)

    def play_one(self, seed: int, own: int) -> tuple[float, bool, str | None]:
        """Return reward and failure of an episode, and how it left the plan, if it did."""
        simulator = self._simulator
        if self._members:
            return self._follow(seed, own)
        simulator.reset(seed=seed)
        act = self._control if isinstance(self._policy, Controller) else self._call
        where = act(simulator)
        return simulator.reward, simulator.failed, where

    def _follow(self, seed: int, own: int) -> tuple[float, bool, str | None]:
        world, simulator = self._world, self._simulator
        world.rng, world.seed = np.random.default_rng(seed), seed
        draw = np.random.default_rng(own).random()
        chosen = min(bisect(list(accumulate(self._weights)), draw), len(self._members) - 1)
        reward, end, _ = world.play(self._members[chosen], self._discounts)
        where = end if isinstance(end, str) else None
        if end == UNPLANNED:
            where = "the plan is not complete"
        if simulator.reader is not None:
            return reward, end == FAILED, where
        if simulator.over:  # how it ended is known, whatever the policy's own model says of it
            where = None
        elif where is None:
            where = f"the policy ends after {simulator.steps} steps, but the simulator goes on"
        return simulator.reward, simulator.failed, where

    def _call(self, simulator: Simulator) -> str | None:
        act = self._policy.restart() if hasattr(self._policy, "restart") else self._policy
        plans = hasattr(act, "act")  # with copies of the simulator
        while not simulator.over:
            action = act.act(simulator) if plans else act(simulator.state)
            if action is None:
                return f"no action for {shorten(simulator.state)}"
            simulator.step(action)
        return None

    def _control(self, simulator: Simulator) -> str | None:
        controller = self._policy.restart()
        while not simulator.over:
            if controller.finished:
                return "the controller has finished, but the simulator goes on"
            run, action = controller.run, controller.action
            # A start that is drawn was drawn when the episode began.
            drawn = isinstance(run.state, Start) and not isinstance(simulator.state, Start)
            measured: Any = (simulator.state, {}) if drawn else simulator.step(action)
            if simulator.over:
                break
            found = simulator.state if drawn else measured[-1].get("label")
            if simulator.reader is None:
                found = run.reader.locate(run.state, action, measured)
            if found is None:
                return f"the model has no outcome {shorten(measured)} of {shorten(action)}"
            try:
                controller.observe(**{"observed" if isinstance(found, str) else "state": found})
            except PolicyError as error:
                return str(error)
        return None


class _Record(msgspec.Struct):
    """Episodes of one policy in a file, and whether a certificate of fewer of them was seen."""

    identity: dict[str, str]
    rewards: list[float]
    failed: list[bool]
    strayed: list[bool]
    example: str | None
    seen: bool


@knows_parameters
def certify_by_simulation(
    policy: Any,
    simulator: Any,
    risk_bound: Any,
    *,
    horizon: int | None = None,
    failure: Failure | str | None = None,
    reward_range: tuple[float, float] | None = None,
    discount: float | None = None,
    episodes: int = 10_000,
    confidence: float = 0.95,
    seed: int = 1,
    until: str | None = None,
    parallel: int | str | Executor | None = None,
    checkpoint: Any = None,
    progress: bool | OnProgress | None = None,
) -> Any:
    """Certify a policy at a confidence, by episodes in a simulator.

    Parameters
    ----------
    policy
        A policy that is fixed before: a function from observations to actions (None where it has
        none; an object with `restart()` gives a fresh one for each episode, and one with
        `act(simulator)` may plan in copies of the `Simulator`), a `Policy`, bound to a
        model with `locate` if the simulator is no model of ours, or a `Controller` that is limited
        by samples. Or a list of them, from safe to daring: they are tested in this order up to the
        first that is not found safe, each at the full confidence.
    simulator
        A Gymnasium environment, a `GenerativeModel`, or a model of ours.
    risk_bound
        The acceptable probability of failure, as in `Problem`.
    horizon
        Largest number of steps of an episode; that of a model of ours is its own.
    failure
        What fails, in an environment: "terminated", "truncated" (the horizon was reached first),
        "reward <= -1", or a function of a `Step`.
    reward_range
        The least and the largest discounted reward of any episode. It is needed unless the bound is
        constant, and an episode outside voids the certificate.
    discount
        Factor on each later reward; by default 1, or that of a model of ours.
    episodes
        Number of episodes, or the largest number with until="decided".
    confidence
        Probability with which each verdict is right, at least.
    seed
        Seed of the episodes. Planning with the same seed uses other random numbers.
    until
        "decided" stops as soon as the answer is known, by limits that hold at all times.
    parallel
        Workers, as in `solve`: processes or a Ray cluster. The answer does not depend on them.
    checkpoint
        A file for the episodes, or a `Checkpoint`, which can also resume. A fixed number of them
        can't be changed afterwards, and if Ctrl-C gave a certificate of fewer, limits that hold at
        all times are used for the rest, too.
    progress
        As in `solve`.

    Returns
    -------
    StatisticalCertificate
        For a list of policies a list of certificates, one for each that was tested; the last one
        that is safe is that of the policy to choose.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> model = Bandit(horizon=3)
    >>> policy = vulcan.solve(vulcan.Problem(model, 0.01)).policy
    >>> certificate = vulcan.certify_by_simulation(policy, model, 0.05, episodes=500)
    >>> certificate.safe, certificate.verdict
    (True, '✓ safe at 95 % confidence')
    """
    require_whole("episodes", episodes, 1, 1 << 40)
    require_whole("seed", seed, 0, 1 << 62)
    if not 0 < require_number("confidence", confidence) < 1:
        raise OptionError(f"confidence must be between 0 and 1, not {confidence!r}")
    if until not in (None, "decided"):
        raise OptionError(f'until must be "decided" or None, not {until!r}')
    bound = read_bound(risk_bound)
    if reward_range is None and not isinstance(bound, Constant):
        raise OptionError(f"the bound {bound} depends on the reward: give its reward_range")
    if reward_range is not None:
        low, high = (require_number("reward_range", end) for end in reward_range)
        if not low < high:
            raise OptionError(f"reward_range must be (least, largest), not {reward_range!r}")
        reward_range = low, high
    several = isinstance(policy, list | tuple)
    policies = list(policy) if several else [policy]
    for each in policies:
        _require_fixed(each)
    given = horizon, failure, discount
    world = simulator if isinstance(simulator, Simulator) else Simulator(simulator, *given)
    kept, executor = Checkpoint.read(checkpoint), choose_executor(parallel)
    trial = _Trial(world, bound, reward_range, episodes, confidence, seed, until, executor, kept)
    trial.read()
    found: list[StatisticalCertificate] = []
    with watch_progress(progress) as tell, Monitor(Limits(), tell) as monitor:
        for number, each in enumerate(policies):
            found.append(trial.run(each, number, monitor))
            if found[-1].safe is not True:
                break
    return found if several else found[0]


def _require_fixed(policy: Any) -> None:
    if isinstance(policy, Controller) and not policy.fixed:
        raise OptionError(
            "a controller limited by seconds is no fixed policy: limit it by samples_per_step"
        )
    known = isinstance(policy, AnyPolicy | Controller) or hasattr(policy, "act")
    if not (known or callable(policy)):
        raise OptionError(
            "policy must be a policy, a controller limited by samples, or a function from "
            f"observations to actions, not {shorten(policy)}"
        )


@dataclass
class _Trial:
    """The test of one policy after another, and the file of their episodes."""

    simulator: Simulator
    bound: RiskBound
    reward_range: tuple[float, float] | None
    episodes: int
    confidence: float
    seed: int
    until: str | None
    executor: Executor
    checkpoint: Checkpoint | None
    records: list[_Record] = field(default_factory=list)

    def read(self) -> None:
        """Read the episodes of the file that is resumed."""
        if self.checkpoint is None:
            return
        self.checkpoint.require_free()
        if self.checkpoint.resumes:
            path = self.checkpoint.path
            try:
                content = SEAL.read(path)
                self.records = msgspec.msgpack.decode(content, type=list[_Record])
            except (ValueError, RecursionError) as error:
                raise CheckpointError(f"{path}: no episodes: {error}") from error

    def run(self, policy: Any, number: int, monitor: Monitor) -> StatisticalCertificate:
        """Play the episodes of a policy, and judge them."""
        began = time.perf_counter()
        record = self._find_record(policy, number)
        planned = 0 if self.until else self.episodes
        tally = Tally(self.bound, self.reward_range, self.confidence, planned)
        safe, example, saved, told = None, record.example, began, 0.0
        for reward, failed, strayed, where in self._play(policy, number, record, monitor):
            tally.add(reward, failed, strayed)
            example = example or where
            now = time.perf_counter()
            if now - told > 1.0:
                told = now
                monitor.report(lambda: self._describe(tally, monitor))
            if self.checkpoint is not None and now - saved >= self.checkpoint.every:
                saved = now
                self._save()
            if self.until and tally.due and (safe := tally.decide()) is not None:
                break
            if tally.void:
                break
        if not tally.episodes:
            raise KeyboardInterrupt
        interrupted = monitor.requested and tally.episodes < self.episodes and safe is None
        record.seen = record.seen or interrupted
        verdict = tally.judge(always=record.seen)
        if safe is None:
            safe = verdict.safe
        self._save()
        return StatisticalCertificate(
            safe=None if tally.void else safe,
            confidence=self.confidence,
            episodes=tally.episodes,
            failures=tally.failures,
            strayed=tally.strayed,
            risk=tally.failures / tally.episodes,
            reward=tally.collected / tally.episodes,
            **{name: getattr(verdict, name) for name in verdict._fields if name != "safe"},
            bound=str(self.bound),
            reward_range=self.reward_range,
            horizon=self.simulator.horizon,
            discount=float(self.simulator.discount),
            policy=describe_policy(policy),
            environment=describe_world(self.simulator.source),
            versions=_find_versions(self.simulator.source),
            seed=self.seed,
            stream=(CERTIFYING, number),
            until=self.until,
            void=tally.void,
            example=example,
            more=tally.estimate_more() if safe is None else None,
            seconds=time.perf_counter() - began,
            interrupted=interrupted,
        )

    def _find_record(self, policy: Any, number: int) -> _Record:
        """Return the record of a policy, with the episodes of the file that is resumed."""
        simulator = self.simulator
        identity = {
            "policy": describe_policy(policy),
            "environment": describe_world(simulator.source),
            "seed": str(self.seed),
            "horizon": str(simulator.horizon),
            "discount": str(simulator.discount),
            "versions": str(_find_versions(simulator.source)),
            # More of them, because the first did not suffice, would be looking all the time.
            "episodes": "until decided" if self.until else str(self.episodes),
        }
        if number < len(self.records):
            record, path = self.records[number], self.checkpoint and self.checkpoint.path
            for name, here in identity.items():
                if (there := record.identity.get(name)) != here:
                    raise CheckpointError(f"{path} has other episodes: {name}: {there}, not {here}")
            if not len(record.rewards) == len(record.failed) == len(record.strayed):
                raise CheckpointError(f"{path}: episodes are incomplete")
            return record
        self.records.append(_Record(identity, [], [], [], None, False))
        return self.records[-1]

    def _play(
        self, policy: Any, number: int, record: _Record, monitor: Monitor
    ) -> Iterator[tuple[float, bool, bool, str | None]]:
        """Yield episodes in their order: those of the record, then new ones."""
        rows = zip(record.rewards, record.failed, record.strayed, strict=True)
        for reward, failed, strayed in list(rows)[: self.episodes]:
            yield reward, failed, strayed, None
        begin, size = len(record.rewards), 1
        if begin >= self.episodes:
            return
        waiting: dict[int, Any] = {}
        # In this process the simulator is shared; elsewhere each worker gets a copy.
        made = Player, policy, self.simulator, self.seed, number
        with WorkerPool(self.executor, *made) as pool:
            following = begin
            while not monitor.requested:
                while len(waiting) < 2 * self.executor.workers and following < self.episodes:
                    end = min(self.episodes, following + size)
                    waiting[following] = pool.submit("play", following, end)
                    following = end
                if not waiting:
                    return
                pool.wait()
                while (task := waiting.get(begin)) is not None and task.ended:
                    del waiting[begin]
                    block: Block = task.result()
                    record.example = record.example or block.example
                    record.rewards += block.rewards
                    record.failed += block.failed
                    record.strayed += block.strayed
                    begin += len(block.rewards)
                    speed = len(block.rewards) / max(block.seconds, 1e-6)
                    size = max(1, min(2 * size, LARGEST_BLOCK, int(BLOCK_SECONDS * speed)))
                    rows = zip(block.rewards, block.failed, block.strayed, strict=True)
                    yield from ((*row, block.example if row[2] else None) for row in rows)

    def _describe(self, tally: Tally, monitor: Monitor) -> Progress:
        more, played = tally.estimate_more(), tally.episodes
        note = "" if more is None else f"about {round_up(more):,} more episodes would decide"
        share, mean = None if self.until else played / self.episodes, tally.collected / played
        return Progress(monitor.seconds, share, played, 0, mean, phase="playing", note=note)

    def _save(self) -> None:
        if self.checkpoint is not None:
            SEAL.write(Path(self.checkpoint.path), msgspec.msgpack.encode(self.records))


def describe_policy(policy: Any) -> str:
    """Return a text for a policy."""
    name = getattr(policy, "__qualname__", None)
    if name is not None:
        return f"function {policy.__module__}.{name}"
    return repr(policy) if isinstance(policy, AnyPolicy) else describe_model(policy)


def _find_versions(simulator: Any) -> dict[str, str]:
    """Return the versions of what decides about the episodes."""
    import vulcan

    found = {"vulcan": vulcan.__version__, "python": platform.python_version()}
    found["numpy"] = np.__version__
    if is_environment(simulator) and (package := sys.modules.get("gymnasium")):
        found["gymnasium"] = package.__version__
    return found


def seed_planning(seed: int, *key: int) -> Sequence[int]:
    """Return seeds for planning: a simulator's, and one's own."""
    states = np.random.SeedSequence(seed, spawn_key=(PLANNING, *key)).generate_state(2)
    return [int(state) for state in states]
