"""Simulating a policy: estimates from many episodes, compared with the exact values.

A certificate has the exact values. A simulation is a check that needs no theory, shows what single
episodes are like, and is the only test in a world that is not the policy's model.

**Compiled.** A policy records the outcomes of every action that it takes, so that episodes in its
own model need no model; if one is given, a certificate compares it with the record first. With
hidden states and a known model these are drawn and observed, which tests Bayes' rule as well.
Episodes are played in chunks of a fixed size. Each chunk has its own stream of random numbers
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

**Further constraints.** Episodes add up what they are charged, an event once. A policy has no
charges: they are read from its model.

Each estimate has a confidence interval: Student's for a mean, Clopper and Pearson's for a
probability, which covers the truth at least as often as it claims.

Whether episodes *disagree* with the exact values is another question, and must be wrong far less
often: if the exact values were true, how likely would episodes like these be? The number of
failures then has a binomial distribution, and is tested by it. The sum of n rewards,
each with standard deviation σ and within b of its mean, is further than nε from its mean with
probability at most 2 exp(-nε² / (2σ² + 2bε/3)) (Bernstein), whatever else their distribution is;
σ and b are those of the policy, exactly. A mean charge is tested by the range of charges alone
(Hoeffding). All these tests together raise a false alarm with a probability of at most
`ERROR_LEVEL`. An episode that strays is a disagreement by itself: what happened there is impossible
in the policy's own model.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.certify import certify
from vulcan.certificate.walk import Chain, follow_policy
from vulcan.constraints import Constraint, Cost, Risk, charge, read_constraints
from vulcan.errors import MismatchError, OptionError, PolicyError, SimulationWarning
from vulcan.model.answers import label_outcomes
from vulcan.model.belief import BeliefModel
from vulcan.model.interface import Outcome, Start, describe_model, stable_text
from vulcan.model.reader import ModelReader
from vulcan.numerics import AGREEMENT, END, FAILED, UNPLANNED
from vulcan.parameters import knows_parameters, require_number, require_whole, shorten
from vulcan.policy.policy import AnyPolicy, build_plan
from vulcan.policy.walk import MemberLists, find_decision_points, find_values
from vulcan.problem import Problem
from vulcan.runtime.formatting import show_percent, show_probability, show_reward, show_seconds
from vulcan.runtime.limits import Limits, Monitor, OnProgress, Progress, watch_progress

ERROR_LEVEL: Final = 1e-6  # largest probability of a false alarm

GoOn = Callable[[int, float], bool]
"""Called with the number of episodes so far and their mean reward; returns whether to go on."""

CHUNK: Final = 1 << 14  # number of episodes with one stream of random numbers
STRAYED: Final = -4  # beside END, FAILED and UNPLANNED: the policy has no continuation
EPISODE: Final = np.dtype([("reward", "f8"), ("end", "i1"), ("decisions", "i4")])


@dataclass(frozen=True)
class Expected:
    """The exact values of a policy in the model that it was made for."""

    reward: float
    risk: float
    frontier: float
    deviation: float  # the standard deviation of the reward
    least: float  # reward of any episode
    most: float
    failures: tuple[float, ...]  # probability of failing at each level
    # Each further constraint, its value, and by how much two episodes may differ in it at most.
    charges: tuple[tuple[Constraint, float, float], ...] = ()


@dataclass(frozen=True)
class Estimate:
    """An estimate from episodes, and its exact value.

    Attributes
    ----------
    value, low, high
        The estimate, and its confidence interval.
    exact
        The exact value in the model that the policy was made for.
    """

    value: float
    low: float
    high: float
    exact: float


@dataclass(frozen=True)
class LimitedEstimate(Estimate):
    """An estimate of what a constraint limits; nan for the risk ahead, which is known exactly."""

    quantity: str  # such as "fuel", "risk(collision)" or "risk ahead"


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Estimates from episodes of a policy, beside its exact values.

    Attributes
    ----------
    model
        Where they were played, as a text.
    engine
        How: "compiled", from the policy's own arrays, or "Python", in another model or environment.
    episodes, seed
        Number of episodes, and the seed of their random numbers.
    confidence
        Confidence of the intervals.
    reward, risk, frontier
        Mean reward, share of failures, and share that left an incomplete plan.
    deviation, exact_deviation
        Standard deviation of the reward, of the episodes and exactly.
    least, most
        The smallest and the largest reward that occurred.
    decisions
        Mean number of decisions in an episode.
    survival, exact_survival
        Share that has not failed after each decision, and the exact probability of it; before the
        first decision it is 1.
    rewards
        The reward of each episode.
    strayed, example
        Number of episodes for which the policy had no continuation, and the first of them.
    disagreements
        Contradictions to the exact values; a false alarm has a probability of at most
        `vulcan.execution.simulation.ERROR_LEVEL`, 1e-6.
    seconds, workers
        Time and number of threads.
    interrupted
        Whether Ctrl-C ended it before all episodes were played.
    constraints
        For each further constraint, what the episodes say of it.
    """

    model: str
    engine: str
    episodes: int
    seed: int
    confidence: float
    reward: Estimate
    risk: Estimate
    frontier: Estimate
    deviation: float
    exact_deviation: float
    least: float
    most: float
    decisions: float
    survival: tuple[float, ...]
    exact_survival: tuple[float, ...]
    rewards: NDArray[np.float64] = field(repr=False, compare=False)
    strayed: int
    example: str | None
    disagreements: tuple[str, ...]
    seconds: float
    workers: int
    interrupted: bool = False
    constraints: tuple[LimitedEstimate, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether no disagreement with the exact values was found."""
        return not self.disagreements

    def rows(self) -> list[tuple[str, str]]:
        """Return the numbers as pairs of a name and a string, for people."""
        rows = [
            ("reward", self._compare(self.reward, show_reward)),
            ("risk", self._compare(self.risk, show_probability)),
        ]
        rows += [(each.quantity, self._compare(each, show_reward)) for each in self.constraints]
        if self.frontier.exact or self.frontier.value:
            rows.append(("leaves the plan", self._compare(self.frontier, show_probability)))
        if self.strayed:
            rows.append(("strays", f"{show_percent(self.strayed / self.episodes)}  {self.example}"))
        how = self.engine
        if how == "compiled":
            how = f"compiled, {self.workers} {'thread' if self.workers == 1 else 'threads'}"
        return [
            *rows,
            ("spread", f"{self.deviation:.6f}  from {self.least:.6g} to {self.most:.6g}"),
            ("decisions", f"{self.decisions:.4g} in a mean episode"),
            ("time", f"{show_seconds(self.seconds)}  {how}, seed {self.seed}"),
        ]

    def _compare(self, estimate: Estimate, show: Any) -> str:
        interval = f"{100 * self.confidence:g} %: {show(estimate.low)} to {show(estimate.high)}"
        # Outside of the policy's own model exact values need not hold.
        exactly = "exactly" if self.engine == "compiled" else "in its own model"
        if math.isnan(estimate.value):
            return f"{exactly} {show(estimate.exact)}"
        return f"{show(estimate.value)}  ({interval})  {exactly} {show(estimate.exact)}"

    def __repr__(self) -> str:
        return (
            f"<Simulation of {self.episodes:,} episodes: reward {self.reward.value:.6g}, "
            f"risk {self.risk.value:.4g}, {'agrees' if self.agrees else 'DISAGREES'}>"
        )

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        lines = [f"{self.episodes:,} episodes of {self.model}"]
        lines += [f"  {name:<{width}}  {text}" for name, text in rows]
        lines += ["", *(f"  Disagreement: {text}" for text in self.disagreements)]
        return "\n".join(lines).rstrip()


def judge(
    episodes: NDArray[Any], example: str | None, exact: Expected, confidence: float
) -> dict[str, Any]:
    """Return the estimates of episodes beside the exact values, by the names of `Simulation`.

    `example` describes the first that strayed.
    """
    from scipy import stats

    rewards, ends, decisions = (episodes[name].copy() for name in EPISODE.names or ())
    count, mean = len(rewards), float(rewards.mean())
    deviation = float(rewards.std(ddof=1)) if count > 1 else 0.0
    spread = float(stats.t.ppf(0.5 + confidence / 2, max(1, count - 1)))
    half = spread * deviation / math.sqrt(count)

    def share(happened: NDArray[np.bool_]) -> tuple[float, float, float]:
        found = int(happened.sum())
        interval = stats.binomtest(found, count).proportion_ci(confidence, method="exact")
        return found / count, float(interval.low), float(interval.high)

    def estimate(end: int, probability: float) -> Estimate:
        return Estimate(*share(ends == end), probability)

    limited = []
    for column, (constraint, value, _) in enumerate(exact.charges):
        found = episodes["charges"][:, column]
        middle = low = high = math.nan
        if isinstance(constraint, Cost):
            middle = float(found.mean())
            width = spread * float(found.std(ddof=min(1, count - 1))) / math.sqrt(count)
            low, high = middle - width, middle + width
        elif isinstance(constraint, Risk):
            middle, low, high = share(found > 0)
        limited.append(LimitedEstimate(middle, low, high, value, constraint.quantity))

    last = max(len(exact.failures), int(decisions.max()))
    failures = np.bincount(decisions[ends == FAILED] - 1, minlength=last)
    expected = np.pad(np.array(exact.failures), (0, last - len(exact.failures)))
    return {
        "episodes": count,
        "confidence": confidence,
        "reward": Estimate(mean, mean - half, mean + half, exact.reward),
        "risk": estimate(FAILED, exact.risk),
        "frontier": estimate(UNPLANNED, exact.frontier),
        "deviation": deviation,
        "exact_deviation": exact.deviation,
        "least": float(rewards.min()),
        "most": float(rewards.max()),
        "decisions": float(decisions.mean()),
        "survival": (1.0, *(1 - np.cumsum(failures) / count).tolist()),
        "exact_survival": (1.0, *(1 - np.cumsum(expected)).tolist()),
        "rewards": rewards,
        "strayed": int((ends == STRAYED).sum()),
        "example": example,
        "disagreements": find_disagreements(mean, ends, example, exact, limited),
        "constraints": tuple(limited),
    }


def find_disagreements(
    mean: float,
    ends: NDArray[np.int8],
    example: str | None,
    exact: Expected,
    limited: Sequence[LimitedEstimate] = (),
) -> tuple[str, ...]:
    """Return sentences on observations that are too unlikely under the exact values."""
    count, found = len(ends), []
    level = ERROR_LEVEL / (3 + len(exact.charges))
    if (chance := weigh_mean(mean, count, exact)) < level:
        found.append(f"the mean reward is {mean:.6f}, not {exact.reward:.6f} (p <= {chance:.0e})")
    for name, end, probability in (
        ("fails", FAILED, exact.risk),
        ("leaves the plan", UNPLANNED, exact.frontier),
    ):
        number = int((ends == end).sum())
        if (chance := weigh_count(number, count, probability)) < level:
            found.append(
                f"it {name} in {number:,} of {count:,} episodes, not with probability "
                f"{probability:.6g} (p = {chance:.0e})"
            )
    for each, (_, value, width) in zip(limited, exact.charges, strict=True):
        far = abs(each.value - value)  # nan for the risk ahead
        if far > AGREEMENT * max(1.0, width):
            chance = 2 * math.exp(-2 * count * (far / width) ** 2) if width else 0.0
            if chance < level:
                numbers = f"{each.value:.6g}, not {value:.6g}"
                found.append(f"{each.quantity} is {numbers} (p <= {chance:.0e})")
    if strayed := int((ends == STRAYED).sum()):
        found.append(
            f"{strayed:,} of {count:,} episodes had outcomes that are impossible in the policy's "
            f"own model: {example}"
        )
    return tuple(found)


def weigh_mean(mean: float, count: int, exact: Expected) -> float:
    """Return Bernstein's bound on the probability of a mean this far from the exact one."""
    farthest = max(exact.most - exact.reward, exact.reward - exact.least)
    distance = abs(mean - exact.reward)
    if distance <= AGREEMENT * max(1.0, abs(exact.most), abs(exact.least)):
        return 1.0
    spread = 2 * exact.deviation**2 + 2 * farthest * distance / 3
    return min(1.0, 2 * math.exp(-count * distance**2 / spread)) if spread else 0.0


def weigh_count(number: int, count: int, probability: float) -> float:
    """Return the p-value of a count (the binomial test)."""
    from scipy import stats

    # Sums of probabilities may be a rounding beyond 0 and 1.
    return float(stats.binomtest(number, count, min(1.0, max(0.0, probability))).pvalue)


@knows_parameters
def simulate(
    policy: AnyPolicy,
    model: Any = None,
    *,
    constraints: Sequence[Constraint | str] | None = None,
    episodes: int = 100_000,
    seed: int = 0,
    parallel: int | None = None,
    confidence: float = 0.95,
    progress: bool | OnProgress | None = None,
) -> Simulation:
    """Play episodes of a policy, and compare them with its exact values.

    Parameters
    ----------
    policy
        Any policy: deterministic or randomised, complete or not.
    model
        Where to play. Without one, or with the model that the policy was made for (which a
        certificate establishes), episodes are compiled. Any other model is played in Python, and
        the policy follows the observations. So is an environment with Gymnasium's `reset` and
        `step`, if the policy is bound to a model with `locate`.
    constraints
        What is estimated beside reward and risk, such as ["fuel <= 5"]: it needs the policy's own
        model. By default the constraints that the policy was made for, where it knows them.
    episodes
        Number of episodes.
    seed
        Seed of the random numbers. The same seed gives the same numbers, on any number of cores.
    parallel
        Number of threads for compiled episodes; by default one for each core.
    confidence
        Confidence of the intervals around the estimates.
    progress
        As in `solve`.

    Returns
    -------
    Simulation
        Estimates with their intervals beside the exact values, and disagreements. After Ctrl-C, of
        the episodes that were played by then.

    Warns
    -----
    SimulationWarning
        If the episodes disagree with the exact values. If these are right, this happens with a
        probability of at most 1e-6.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> policy = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "0.002*x")).policy
    >>> simulation = vulcan.simulate(policy, episodes=20_000, seed=1)
    >>> simulation.agrees
    True
    >>> simulation.reward.low < simulation.reward.exact < simulation.reward.high
    True
    """
    require_whole("episodes", episodes, 1, 1 << 40)
    if parallel is not None:
        require_whole("parallel", parallel, 1, 1 << 16)
    if not 0 < require_number("confidence", confidence) < 1:
        raise OptionError(f"confidence must be between 0 and 1, not {confidence!r}")
    began = time.perf_counter()
    threads = parallel or _count_cores()
    elsewhere = is_environment(model)
    given = policy.members[0].constraints if constraints is None else constraints
    limited = read_constraints(given)
    own, certified = _recognise(policy, None if elsewhere else model)
    first = find_discounts(policy, own)[0]
    exact = replace(expect(policy, first), **certified)
    chains: list[Chain] = []
    hidden = own is not None and isinstance(own.model, BeliefModel)
    if limited or hidden:
        if own is None:
            raise PolicyError(
                f"{limited[0].quantity} is known to the policy's own model only: bind the policy "
                "to it, or simulate there"
            )
        chains = [follow_policy(member, own, constraints=limited)[0] for member in policy.members]
        if limited:
            exact = replace(exact, **_expect_charges(policy, own, limited, chains))
    with watch_progress(progress) as tell, Monitor(Limits(), tell) as monitor:

        def go_on(played: int, reward: float) -> bool:
            counts = played / episodes, played, 0, reward
            monitor.report(lambda: Progress(monitor.seconds, *counts, phase="playing"))
            return not monitor.wants_stop(played)

        if model is None or certified:
            engine, example = "compiled", None
            found = play(policy, first, episodes, seed, threads, go_on, limited, chains)
        else:
            engine, threads = "Python", 1
            discounts = find_discounts(policy, own if elsewhere else ModelReader(model))
            found, example = play_in_world(policy, model, episodes, seed, discounts, go_on, limited)
    simulation = Simulation(
        model=policy.about.model if model is None else describe_world(model),
        engine=engine,
        seed=seed,
        workers=threads,
        seconds=time.perf_counter() - began,
        interrupted=monitor.requested,
        **judge(found, example, exact, confidence),
    )
    if simulation.disagreements:
        warnings.warn("; ".join(simulation.disagreements), SimulationWarning, stacklevel=2)
    return simulation


def _count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _recognise(policy: AnyPolicy, model: Any) -> tuple[ModelReader | None, dict[str, Any]]:
    """Return the policy's own model, if it is known, and its certified values.

    The latter are empty without a model, and if this model is not the policy's own.
    """
    bound = policy.reader
    if model is None:
        return bound, {}
    try:
        certificate = certify(Problem(model, 1.0), policy)
    except MismatchError:
        return bound, {}
    names = ("reward", "risk", "frontier")
    return ModelReader(model), {name: float(getattr(certificate, name)) for name in names}


def find_discounts(policy: AnyPolicy, reader: ModelReader | None) -> tuple[float, float]:
    """Return the discounts after the first decision, and after any later one."""
    if reader is not None:
        return (float(reader.discount_after(0)), float(reader.discount))
    first, later = policy.about.first_discount, policy.about.discount
    if math.isnan(first):
        raise PolicyError(
            f"this policy has the discount {later!r}, and only its model knows whether "
            "the first decision is discounted: give the model, or bind the policy to it"
        )
    return (first, later)


def expect(policy: AnyPolicy, first: float) -> Expected:
    """Return the exact values of a policy up to its frontier, where episodes end."""
    from vulcan.kernels.episodes import VALUE

    weights = normalise(policy)
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


def _expect_charges(
    policy: AnyPolicy, own: ModelReader, limited: Sequence[Constraint], chains: Sequence[Chain]
) -> dict[str, Any]:
    """Return the exact values of further constraints, and how far apart two episodes may be."""
    certificate, widths = certify(Problem(own.model, 1.0, constraints=limited), policy), []
    for column, constraint in enumerate(limited):
        charges = [np.append(0.0, np.asarray(chain.charges[column], float)) for chain in chains]
        sizes = (np.ptp(c) * len(chain.sizes) for c, chain in zip(charges, chains, strict=True))
        widths.append(float(max(sizes)) if isinstance(constraint, Cost) else 1.0)
    values = [float(each.value) for each in certificate.constraints]
    return {"charges": tuple(zip(limited, values, widths, strict=True))}


def _type_episodes(constraints: Sequence[Constraint]) -> np.dtype[Any]:
    """Return the type of episodes that add up charges."""
    return np.dtype([*EPISODE.descr, ("charges", "f8", (len(constraints),))])


def play(
    policy: AnyPolicy,
    first: float,
    episodes: int,
    seed: int,
    workers: int,
    go_on: GoOn = lambda *_: True,
    constraints: Sequence[Constraint] = (),
    chains: Sequence[Chain] = (),
) -> NDArray[Any]:
    """Return compiled episodes of a policy, the same for a seed whatever the number of threads.

    With constraints or hidden states they are played along the chains of the members, which have
    the charges, and a first place for each hidden state.
    """
    from vulcan.kernels.episodes import STREAM
    from vulcan.kernels.episodes import play as play_plan

    weights = normalise(policy)
    plans = [build_plan(member, first) for member in policy.members]
    charges = [np.zeros((0, 0)) for _ in plans]
    begins = [(member, 0, weight) for member, weight in enumerate(weights)]
    for number, chain in enumerate(chains):
        outcomes = np.zeros(len(chain.target), plans[number][1].dtype)
        outcomes["probability"], outcomes["reward"] = chain.probability, chain.reward
        outcomes["child"] = chain.target
        ends = np.searchsorted(chain.source, np.arange(len(chain) + 1))
        plans[number] = (ends, outcomes, plans[number][2])
        if chain.charges:
            charges[number] = np.column_stack(chain.charges).astype(float)
    if any(chain.starts for chain in chains):
        begins = [
            (member, place, weights[member] * float(share))
            for member, chain in enumerate(chains)
            for place, (_, share) in enumerate(chain.starts or [(0, 1)])
        ]
    shares = np.array([share for *_, share in begins])
    shares /= shares.sum()
    once = np.array([not isinstance(constraint, Cost) for constraint in constraints], np.bool_)

    def play_chunk(size: int, begin: int, draw: int) -> NDArray[Any]:
        stream = np.array([(begin, begin)], STREAM)
        totals = np.zeros((size, len(constraints)))
        columns = np.zeros(size), np.zeros(size, np.int8), np.zeros(size, np.int32), totals
        counts = np.random.default_rng(int(draw)).multinomial(size, shares)
        ends = np.cumsum(counts)
        for (member, place, _), count, end in zip(begins, counts, ends, strict=True):
            mine = (column[end - count : end] for column in columns)
            play_plan(plans[member], place, charges[member], once, stream, *mine)
        episodes = np.zeros(size, _type_episodes(constraints))
        for name, column in zip(episodes.dtype.names or (), columns, strict=True):
            episodes[name] = column
        return episodes

    sizes = [min(CHUNK, episodes - done) for done in range(0, episodes, CHUNK)]
    streams = np.random.SeedSequence(seed).generate_state(2 * len(sizes), np.uint64)
    chunks: list[NDArray[Any]] = []
    played, collected = 0, 0.0
    with ThreadPoolExecutor(max(1, min(workers, len(sizes)))) as pool:
        for chunk in pool.map(play_chunk, sizes, streams[::2], streams[1::2]):
            chunks.append(chunk)
            played += len(chunk)
            collected += float(chunk["reward"].sum())
            if not go_on(played, collected / played):
                pool.shutdown(cancel_futures=True)
                break
    return np.concatenate(chunks)


def normalise(policy: AnyPolicy) -> NDArray[np.float64]:
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
    constraints: Sequence[Constraint] = (),
) -> tuple[NDArray[Any], str | None]:
    """Return episodes of a policy in another model or environment, and the first that strayed."""
    rng = np.random.default_rng(seed)
    if not is_environment(world):
        player = World(ModelReader(world), rng, constraints)
    elif policy.reader is None or not hasattr(policy.reader.model, "locate"):
        raise OptionError(
            "an environment needs a policy that is bound to a model with locate(state, action, "
            "measurement): simulate(policy.bind(model), environment)"
        )
    else:
        player = World(policy.reader, rng, constraints, world, seed)
    members = [MemberLists(member) for member in policy.members]
    weights = normalise(policy)
    found: list[tuple[Any, ...]] = []
    collected, example = 0.0, None
    for played, member in enumerate(rng.choice(len(members), episodes, p=weights), 1):
        reward, end, level = player.play(members[member], discounts)
        if isinstance(end, str):
            example, end = example or end, STRAYED
        found.append((reward, end, level, player.charged))
        collected += reward
        if not go_on(played, collected / played):
            break
    return np.array(found, _type_episodes(constraints)), example


class World:
    """A model that draws the outcomes itself, or an environment whose steps the model explains."""

    def __init__(
        self,
        reader: ModelReader,
        rng: np.random.Generator,
        constraints: Sequence[Constraint] = (),
        environment: Any = None,
        seed: int | None = None,
    ) -> None:
        self._reader, self._environment = reader, environment
        self.rng, self.seed = rng, seed  # of the next episode
        self._constraints = constraints
        self.charged: tuple[float, ...] = ()  # in the last episode, for each constraint
        self._answers: dict[Any, tuple[Any, list[Outcome], list[str], list[float]]] = {}

    def play(self, member: MemberLists, discounts: Sequence[float]) -> tuple[float, int | str, int]:
        """Return the reward of an episode, how it ended, and its number of decisions."""
        self._state, act = self._reader.root, self._draw
        self.charged = (0.0,) * len(self._constraints)
        if self._environment is not None:
            self._measured, act = self._environment.reset(seed=self.seed), self._step
            self.seed = None  # the environment goes on with its own random numbers
        following: int | str = 0 if member.action else END
        collected, weight, level = 0.0, 1.0, 0
        while isinstance(following, int) and following >= 0:
            (action, labels, _), children = member.read(following)
            reward, following = act(action, dict(zip(labels, children, strict=True)), level)
            collected += weight * reward
            weight *= discounts[min(level, 1)]
            level += 1
        return collected, following, level

    # These return the reward, and the next decision, how the episode ended, or how it strayed.

    def _draw(
        self, action: str, children: Mapping[str, int], level: int
    ) -> tuple[float, int | str]:
        answer = self._evaluate(action)
        if answer is None:
            return 0.0, f"{action!r} is no action of the model in state {shorten(self._state)}"
        _, outcomes, labels, chances = answer
        position = min(bisect(chances, self.rng.random()), len(outcomes) - 1)
        outcome, label = outcomes[position], labels[position]
        reward = float(outcome.reward)
        self._charge(outcome)
        if outcome.fails:
            return reward, FAILED
        self._state = outcome.state
        over = level + 1 >= self._reader.levels or not self._reader.actions(outcome.state)
        if over:
            return reward, END  # expectations don't matter where nothing is left to decide
        child = children.get(label, FAILED)
        if child == FAILED:
            came, expected = shorten(label), shorten(", ".join(map(repr, children)))
            return reward, f"after {action!r} came {came}; the policy expects {expected}"
        if child == END:
            return reward, f"the policy ends after {label!r}, but the model goes on"
        return reward, child

    def _step(
        self, action: str, children: Mapping[str, int], level: int
    ) -> tuple[float, int | str]:
        state, reward, over = self._state, 0.0, False
        began = stable_text(self._measured[0])
        if level == 0 and not isinstance(state, Start) and began != stable_text(state):
            return 0.0, f"it began in {shorten(began)}; the policy begins in {shorten(state)}"
        answer = self._evaluate(action)
        assert answer is not None  # of the policy's own model
        own, outcomes, labels, _ = answer
        if not isinstance(state, Start):
            self._measured = self._environment.step(own)
            reward, over = float(self._measured[1]), any(self._measured[2:4])
        found = self._reader.locate(state, own, self._measured)
        for outcome, label in zip(outcomes, labels, strict=True):
            if found in (label, outcome.state) and label in children:
                self._state = outcome.state
                self._charge(outcome)
                return reward, END if over and children[label] >= 0 else children[label]
        return reward, f"the model has no outcome {shorten(self._measured)} of {action!r}"

    def _charge(self, outcome: Outcome) -> None:
        """Add what an outcome is charged."""
        self.charged = tuple(
            total
            if total and not isinstance(constraint, Cost)
            else total + charge(constraint, outcome)
            for constraint, total in zip(self._constraints, self.charged, strict=True)
        )

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
