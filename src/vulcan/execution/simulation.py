"""Simulating a policy: estimates from many episodes, compared with the exact values.

A certificate has the exact values. A simulation is a check that needs no theory, shows what single
episodes are like, and is the only test in a world that is not the policy's model.

Episodes in the policy's own model are played from its arrays, compiled; if a model is given, a
certificate compares it with the record first. Where they differ, and in environments, episodes are
played step by step in Python (`vulcan.execution.episodes`).

Each estimate has a confidence interval: Student's for the mean reward, Clopper and Pearson's for a
probability, which covers the truth at least as often as it claims.

Whether episodes *disagree* with the exact values is another question, and must be wrong far less
often: if the exact values were true, how likely would episodes like these be? The number of
failures then has a binomial distribution, and is tested by it. The sum of n rewards,
each with standard deviation σ and within b of its mean, is further than nε from its mean with
probability at most 2 exp(-nε² / (2σ² + 2bε/3)) (Bernstein), whatever else their distribution is;
σ and b are those of the policy, exactly. All these tests together raise a false alarm with a
probability of at most `ERROR_LEVEL`. An episode that strays is a disagreement by itself: what
happened there is impossible in the policy's own model.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.certify import certify
from vulcan.errors import MismatchError, OptionError, PolicyError, SimulationWarning
from vulcan.execution.episodes import (
    STRAYED,
    Episodes,
    Expected,
    describe_world,
    expect,
    is_environment,
    play,
    play_in_world,
)
from vulcan.model.reader import ModelReader
from vulcan.numerics import AGREEMENT, FAILED, UNPLANNED
from vulcan.parameters import knows_parameters, require_number, require_whole
from vulcan.policy.policy import AnyPolicy
from vulcan.problem import Problem
from vulcan.runtime.formatting import (
    show_percent,
    show_probability,
    show_reward,
    show_seconds,
)
from vulcan.runtime.limits import Limits, Monitor, OnProgress, Progress, watch_progress

ERROR_LEVEL: Final = 1e-6
"""Largest probability of a false alarm."""


@dataclass(frozen=True)
class Estimate:
    """An estimate from episodes, and its exact value.

    Attributes
    ----------
    value
        The estimate.
    low, high
        Its confidence interval.
    exact
        The exact value in the model that the policy was made for.
    """

    value: float
    low: float
    high: float
    exact: float


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
        if self.frontier.exact or self.frontier.value:
            rows.append(("leaves the plan", self._compare(self.frontier, show_probability)))
        if self.strayed:
            rows.append(("strays", f"{show_percent(self.strayed / self.episodes)}  {self.example}"))
        unit = "thread" if self.workers == 1 else "threads"
        how = f"{self.engine}, {self.workers} {unit}" if self.engine == "compiled" else self.engine
        return [
            *rows,
            ("spread", f"{self.deviation:.6f}  from {self.least:.6g} to {self.most:.6g}"),
            ("decisions", f"{self.decisions:.4g} in a mean episode"),
            ("time", f"{show_seconds(self.seconds)}  {how}, seed {self.seed}"),
        ]

    @property
    def _exactly(self) -> str:
        """The name of exact values: outside of the policy's own model they need not hold."""
        return "exactly" if self.engine == "compiled" else "in its own model"

    def _compare(self, estimate: Estimate, show: Any) -> str:
        interval = f"{100 * self.confidence:g} %: {show(estimate.low)} to {show(estimate.high)}"
        return f"{show(estimate.value)}  ({interval})  {self._exactly} {show(estimate.exact)}"

    def __repr__(self) -> str:
        return (
            f"<Simulation of {self.episodes:,} episodes: reward {self.reward.value:.6g}, "
            f"risk {self.risk.value:.4g}, {'agrees' if self.agrees else 'DISAGREES'}>"
        )

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{self.episodes:,} episodes of {self.model}"]
        lines += [f"  {name:<{width}}  {text}" for name, text in self.rows()]
        lines += ["", *(f"  Disagreement: {text}" for text in self.disagreements)]
        return "\n".join(lines).rstrip()


def judge(episodes: Episodes, exact: Expected, confidence: float) -> dict[str, Any]:
    """Return the estimates of episodes beside the exact values, by the names of `Simulation`."""
    from scipy import stats

    rewards, ends = episodes.rewards, episodes.ends
    count, mean = len(rewards), float(rewards.mean())
    deviation = float(rewards.std(ddof=1)) if count > 1 else 0.0
    half = (
        float(stats.t.ppf(0.5 + confidence / 2, max(1, count - 1))) * deviation / math.sqrt(count)
    )

    def estimate(end: int, probability: float) -> Estimate:
        found = int((ends == end).sum())
        interval = stats.binomtest(found, count).proportion_ci(confidence, method="exact")
        return Estimate(found / count, float(interval.low), float(interval.high), probability)

    last = max(len(exact.failures), int(episodes.decisions.max()))
    failures = np.bincount(episodes.decisions[ends == FAILED] - 1, minlength=last)
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
        "decisions": float(episodes.decisions.mean()),
        "survival": (1.0, *(1 - np.cumsum(failures) / count).tolist()),
        "exact_survival": (1.0, *(1 - np.cumsum(expected)).tolist()),
        "rewards": rewards,
        "strayed": int((ends == STRAYED).sum()),
        "example": episodes.example,
        "disagreements": find_disagreements(episodes, exact),
    }


def find_disagreements(episodes: Episodes, exact: Expected) -> tuple[str, ...]:
    """Return sentences on observations that are too unlikely under the exact values."""
    count, mean = len(episodes.rewards), float(episodes.rewards.mean())
    found = []
    level = ERROR_LEVEL / 3
    if (chance := weigh_mean(mean, count, exact)) < level:
        found.append(
            f"the mean reward is {mean:.6f}, not {exact.reward:.6f}: by chance that has a "
            f"probability of at most {chance:.0e}"
        )
    for name, end, probability in (
        ("fails", FAILED, exact.risk),
        ("leaves the plan", UNPLANNED, exact.frontier),
    ):
        number = int((episodes.ends == end).sum())
        if (chance := weigh_count(number, count, probability)) < level:
            found.append(
                f"it {name} in {number:,} of {count:,} episodes, not with probability "
                f"{probability:.6g}: by chance that has a probability of {chance:.0e}"
            )
    if strayed := int((episodes.ends == STRAYED).sum()):
        found.append(
            f"{strayed:,} of {count:,} episodes did what can't happen under the policy's "
            f"own model: {episodes.example}"
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
        Estimates with their intervals beside the exact values, survival over the steps, a histogram
        of rewards, and disagreements. After Ctrl-C, of the episodes that were played by then.

    Raises
    ------
    OptionError
        If there are no episodes to play, or no model tells what steps of an environment mean.
    PolicyError
        If a discounted policy is given without its model, and its file is too old to record whether
        the first decision is discounted.

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
    elsewhere = model is not None and is_environment(model)
    own, certified = _recognise(policy, None if elsewhere else model)
    first = _find_discounts(policy, own)[0]
    exact = replace(expect(policy, first), **certified)
    with watch_progress(progress) as tell, Monitor(Limits(), tell) as monitor:
        go_on = partial(_go_on, monitor, episodes)
        if model is None or certified:
            engine, found = "compiled", play(policy, first, episodes, seed, threads, go_on)
        else:
            engine, threads = "Python", 1
            discounts = _find_discounts(policy, own if elsewhere else ModelReader(model))
            found = play_in_world(policy, model, episodes, seed, discounts, go_on)
    simulation = Simulation(
        model=policy.about.model if model is None else describe_world(model),
        engine=engine,
        seed=seed,
        workers=threads,
        seconds=time.perf_counter() - began,
        interrupted=monitor.requested,
        **judge(found, exact, confidence),
    )
    if simulation.disagreements:
        warnings.warn("; ".join(simulation.disagreements), SimulationWarning, stacklevel=2)
    return simulation


def _go_on(monitor: Monitor, episodes: int, played: int, reward: float) -> bool:
    """Report the progress, and return whether to go on."""
    monitor.report(
        lambda: Progress(monitor.seconds, played / episodes, played, 0, reward, phase="playing")
    )
    return not monitor.wants_stop(played)


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


def _find_discounts(policy: AnyPolicy, reader: ModelReader | None) -> Sequence[float]:
    """Return the discounts after the first decision, and after any later one."""
    if reader is not None:
        return (float(reader.discount_after(0)), float(reader.discount))
    about = policy.about
    if math.isnan(about.first_discount):
        raise PolicyError(
            f"this policy has the discount {about.discount!r}, and only its model knows whether "
            "the first decision is discounted: give the model, or bind the policy to it"
        )
    return (about.first_discount, about.discount)
