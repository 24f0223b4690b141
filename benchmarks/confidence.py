"""How often certificates at a confidence are wrong, and how many episodes they take to decide.

    python -m benchmarks.confidence                  # everything, about five minutes on one core
    python -m benchmarks.confidence --repetitions 500

**Coverage.** On each of 20 models the truth is known and at the bound or just beyond it, so that
"safe" is wrong. Each is certified `repetitions` times with until="decided", with a fixed number of
episodes, and by selection among eight policies. The rate of wrong answers may not be above 5 %, at
the 0.1 % level of a binomial test. All repetitions are played at once: the limits are the functions
of `vulcan.certificate.confidence` themselves, on arrays; "decided" looks after every episode.

**Episodes to decide.** Where the truth is half or twice a constant bound: the mean number with
until="decided", over the smallest fixed number for which a binomial test of level 0.05 has a power
of 0.95. At most 1.3 is wanted.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaincinv
from scipy.stats import binom

from vulcan.certificate.confidence import MeanLimit, bet_on_risk

LEVEL = 0.05
PART = 2500  # repetitions at once, for memory
POINTS = 50  # means that are tested: fewer than the library's, for speed
LOOK = 1.02  # bounds that depend on the reward are looked at less and less often, as there


@dataclass(frozen=True)
class Draw:
    """Episodes with a risk, and rewards."""

    risk: float
    rewards: Callable[..., Any] = lambda rng, shape: 0.0

    def __call__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """Return which episodes fail, and their rewards."""
        failed = rng.random(shape) < self.risk
        return failed, np.broadcast_to(self.rewards(rng, shape), shape)


@dataclass(frozen=True)
class Truth:
    """A model with known truth: its bound, its episodes, and the largest number of them.

    `draw` returns which episodes fail, and rewards from 0 to 1. The bound is `offset` + `slope` x.
    """

    name: str
    episodes: int
    draw: Draw
    offset: float
    slope: float = 0.0


def list_models() -> list[Truth]:
    """Return 20 models whose policies are just not acceptable, or exactly at the bound."""
    constant = [
        Truth(f"risk {risk:g}, bound {risk / beyond:.4g}", n, Draw(risk), risk / beyond)
        for risk, n in ((0.5, 300), (0.2, 600), (0.05, 1500), (0.01, 4000), (0.001, 6000))
        for beyond in (1.0, 1.01)
    ]
    kinds: list[tuple[str, Any, float]] = [
        ("sure", lambda rng, shape: 0.5, 0.5),
        ("coin", lambda rng, shape: rng.random(shape) < 0.5, 0.5),
        ("beta", lambda rng, shape: rng.beta(2, 5, shape), 2 / 7),
        ("rare", lambda rng, shape: rng.random(shape) < 0.05, 0.05),
        ("high", lambda rng, shape: 1 - 0.1 * rng.random(shape), 0.95),
    ]
    curved = [
        Truth(f"{name} reward, {risk:g} of {slope:.3g} x", 800, Draw(risk, draw), 0.0, slope)
        for name, draw, mean in kinds
        for risk in (0.05,)
        for slope in (risk / mean, risk / mean / 1.02)
    ]
    return constant + curved


def decide(truth: Truth, repetitions: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return who is found safe with until="decided", and by a fixed number of episodes."""
    if not truth.slope:
        failed, _ = truth.draw(rng, (repetitions, truth.episodes))
        k, n = np.cumsum(failed, 1, np.int32), np.arange(1, truth.episodes + 1)
        safe = refuse(k, n, truth.offset, above=False)
        unsafe = refuse(k, n, truth.offset, above=True)
        never = truth.episodes + 1
        first = [np.where(e.any(1), e.argmax(1), never) for e in (safe, unsafe)]
        limits = betaincinv(k[:, -1] + 1, truth.episodes - k[:, -1], 1 - LEVEL)
        return first[0] < first[1], limits <= truth.offset
    found = np.zeros((2, repetitions), np.bool_)
    level = LEVEL / 2
    mean = [MeanLimit(level, n, (repetitions,), POINTS) for n in (0, truth.episodes)]
    k, look = np.zeros(repetitions), 1.0
    for n in range(1, truth.episodes + 1):
        failed, rewards = truth.draw(rng, (repetitions,))
        k += failed
        for limit in mean:
            limit.add(rewards)
        if n >= look:
            look = n * LOOK + 1
            allowed = truth.offset + truth.slope * mean[0].value
            logs = bet_on_risk(k, np.full(repetitions, n), allowed, above=False)
            found[0] |= (allowed > 0) & (logs >= -math.log(level))
    limits = betaincinv(k + 1, truth.episodes - k, 1 - level)
    found[1] = limits <= truth.offset + truth.slope * mean[1].value
    return found[0], found[1]


def refuse(k: Any, n: Any, risk: float, *, above: bool) -> Any:
    """Return where bets refuse a risk: for each n the counts that do are found once."""
    most = int(k.max()) + 1
    grid = np.arange(most + 1)
    refuted = np.zeros((len(n), most + 1), np.bool_)
    for row, count in enumerate(n):
        logs = bet_on_risk(grid, np.full(most + 1, count), np.full(most + 1, risk), above=above)
        refuted[row] = logs >= -math.log(LEVEL)
    return refuted[np.arange(len(n))[None, :], k]


def select(truth: Truth, repetitions: int, rng: np.random.Generator) -> Any:
    """Return where one of eight policies, from safe to daring, is wrongly found safe.

    The first three fail rarely enough to be found so; the others are at the bound or beyond it.
    """
    alive = np.arange(repetitions)
    wrong = np.zeros(repetitions, np.bool_)
    for factor in (0.0, 0.0, 0.02, 1.0, 1.0, 1.01, 1.05, 1.5):
        policy = replace(truth, draw=replace(truth.draw, risk=factor * truth.draw.risk))
        alive = alive[decide(policy, len(alive), rng)[0]]
        if factor >= 1:
            wrong[alive] = True
        if not len(alive):
            break
    return wrong


def find_fixed(bound: float, risk: float) -> int:
    """Return the smallest number of episodes for which a binomial test has a power of 0.95."""
    n = 1
    power = 0.0
    while power < 0.95:  # the power goes up and down: to the first n, as a rival would choose
        n += 1
        if risk < bound:
            most = binom.ppf(LEVEL, n, bound)
            most -= binom.cdf(most, n, bound) > LEVEL
            power = binom.cdf(most, n, risk) if most >= 0 else 0.0
        else:
            power = binom.sf(binom.isf(LEVEL, n, bound), n, risk)
    return n


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    count, rng = given.repetitions, np.random.default_rng(given.seed)
    most = int(binom.isf(0.001, count, LEVEL))
    print(f"wrong answers in {count:,} repetitions; at most {most} are 5 % at the 0.1 % level")
    worst = 0
    for truth in list_models():
        began = time.process_time()
        parts = [decide(truth, min(PART, count - k), rng) for k in range(0, count, PART)]
        decided, fixed = (int(np.concatenate(each).sum()) for each in zip(*parts, strict=True))
        columns = [f"decided {decided:5}", f"fixed {fixed:5}"]
        parts = [select(truth, min(PART, count - k), rng) for k in range(0, count, PART)]
        chosen = int(np.concatenate(parts).sum())
        columns.append(f"one of eight {chosen:5}")
        worst = max(worst, decided, fixed, chosen)
        print(f"  {truth.name:32}", *columns, f"{time.process_time() - began:.0f} s", flush=True)
    print(f"most: {worst}", "as promised" if worst <= most else "TOO MANY")
    print("episodes to decide, over the smallest fixed number of power 0.95 (at most 1.3)")
    for bound in (0.2, 0.05, 0.01):
        for factor in (0.5, 2.0):
            fixed_number = find_fixed(bound, factor * bound)
            failed = rng.random((2000, 8 * fixed_number)) < factor * bound
            k, n = np.cumsum(failed, 1, np.int32), np.arange(1, 8 * fixed_number + 1)
            ends = refuse(k, n, bound, above=factor > 1)
            taken = np.where(ends.any(1), ends.argmax(1) + 1, len(n)).mean()
            print(
                f"  bound {bound:<5} truth {factor * bound:<6g}"
                f" {taken:8.0f} of {fixed_number:6} = {taken / fixed_number:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
