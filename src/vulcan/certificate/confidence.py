"""Certificates at a confidence: what independent episodes of a fixed policy say of risk and reward.

An exact certificate needs the model. Where there is only a simulator, n independent episodes bound
the risk p = er from above by U and the mean reward μ = E g from below by L, and the policy is
acceptable with confidence 1 - δ if U <= Δ(L), because Δ is nondecreasing. U and L have δ/2 each;
for a constant Δ the reward does not matter, and U has all of δ. That the policy is *not* acceptable
is said in the same way with the limits of the other side, which have another δ: each of the two
answers is wrong with a probability of at most δ.

**Risk, a fixed number of episodes.** Clopper and Pearson [1]: U is the p for which k failures or
fewer have probability δ; it solves P(Beta(k + 1, n - k) <= U) = 1 - δ.

**Risk, looking all the time.** For a share s < 1 of the odds, each episode multiplies a capital by
s / (1 + (s - 1) q) if it fails, and by 1 / (1 + (s - 1) q) if not. Its expectation is 1 if p = q,
and less if p > q: a bet against "the risk is at least q" that is fair or worse. After n episodes
with k failures a mixture of such bets with weights w has

    K(q) = Σ w s^k / (1 + (s - 1) q)^n,

which ever reaches 1/δ with a probability of at most δ if p >= q (Ville [2]). K increases with q, so
that U, the least q with K(q) >= 1/δ, is below p at any time with a probability of at most δ, at
whatever time one stops. With 1/s for s, K decreases with q and bounds p from below. It is the
likelihood ratio test with a mixture as alternative [3]; the shares are close enough to each other
that little is lost against the test that knows p (`benchmarks/confidence.py`).

**Reward.** The declared range is mapped to [0, 1]. Against "the mean is at most m" one bets on each
x that it is larger [4]:

    K(m) <- K(m) (1 + λ (x - m)),   0 <= λ <= `BOLDNESS`/m,

where λ depends on earlier episodes only: sqrt(2 ln(1/δ) / (v n)) for n episodes that are planned,
and sqrt(2 ln(1/δ) / (v t ln(1 + t))) in the t-th episode without a plan, v an estimate of the
variance. As before, m is refuted once K(m) >= 1/δ, at all times. K is computed for `POINTS` values
of m, and L is the largest that is refuted: rounded down by less than the range / `POINTS`.
The limit from above is the same for 1 - x.

**Several policies** are tested in a given order, from safe to daring, each with all of δ, and the
first that is not found safe ends it: calling any unacceptable policy safe needs that the first
unacceptable one of the order is called safe [5]. So choosing the last safe one costs nothing.

[1] Clopper, Pearson: The use of confidence or fiducial limits, Biometrika 26 (1934).
[2] Ville: Étude critique de la notion de collectif (1939).
[3] Robbins: Statistical methods related to the law of the iterated logarithm, Annals of
Mathematical Statistics 41 (1970).
[4] Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting, JRSS B 86 (2024).
[5] Angelopoulos, Bates, Candès, Jordan, Lei: Learn then test, Annals of Applied Statistics (2025).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.bounds.forms import Constant
from vulcan.errors import BoundError
from vulcan.runtime.files import write_atomically
from vulcan.runtime.formatting import (
    BAD,
    GOOD,
    build_card,
    build_table,
    show_percent,
    show_probability,
    show_reward,
    show_seconds,
)

SHARES: Final = np.array([1e-9, 0.125, 0.25, 0.5, 0.7, 0.82, 0.9, 0.95, 0.975, 0.99])
WEIGHTS: Final = np.array([0.2, 0.05, 0.1, 0.3, 0.15, 0.08, 0.05, 0.04, 0.02, 0.01])
"""The bets on a risk: shares of the odds, and the part of the capital that each begins with."""

POINTS: Final = 1000  # means that are tested
BOLDNESS: Final = 0.75  # largest part of the capital that a bet can lose
ROUNDING: Final = 1e-12  # by which limits are moved outwards, relative
MOST_MORE: Final = 10**9  # episodes that are estimated to decide at most
CONDITION: Final = "for independent episodes of a policy fixed beforehand"


def limit_risk(failures: float, episodes: float, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's limits of a risk, each wrong with probability `level`.

    >>> tuple(round(limit, 6) for limit in limit_risk(80, 10_000, 0.05))
    (0.006592, 0.009627)
    """
    from scipy.special import betaincinv

    low, high = 0.0, 1.0
    if failures > 0:
        low = float(betaincinv(failures, episodes - failures + 1, level)) * (1 - ROUNDING)
    if failures < episodes:
        high = float(betaincinv(failures + 1, episodes - failures, 1 - level)) * (1 + ROUNDING)
    return low, min(1.0, high)


def bet_on_risk(failures: Any, episodes: Any, risk: Any, *, above: bool) -> Any:
    """Return the log of the capital that bets against a risk of at least this one have made.

    With `above` they are against a risk of at most this one. The arguments may be arrays.
    """
    shares = 1 / SHARES if above else SHARES
    k, n, q = (np.asarray(given, float)[..., None] for given in (failures, episodes, risk))
    logs = np.log(WEIGHTS) + k * np.log(shares) - n * np.log1p((shares - 1) * q)
    most = logs.max(-1)
    return most + np.log(np.exp(logs - most[..., None]).sum(-1))


def limit_risk_always(failures: float, episodes: float, level: float) -> tuple[float, float]:
    """Return limits of a risk that hold at all times, each wrong with probability `level`."""
    wanted = -math.log(level)

    def search(above: bool) -> float:
        refuted, open_ = (0.0, 1.0) if above else (1.0, 0.0)
        if bet_on_risk(failures, episodes, refuted, above=above) < wanted:
            return refuted
        for _ in range(60):
            middle = (refuted + open_) / 2
            if bet_on_risk(failures, episodes, middle, above=above) >= wanted:
                refuted = middle
            else:
                open_ = middle
        return refuted

    return search(above=True), search(above=False)


class MeanLimit:
    """A lower limit of the mean of numbers from 0 to 1, which holds at all times.

    Parameters
    ----------
    level
        The probability that it is ever wrong.
    planned
        The number of observations for which it is meant to be tight; 0 for any.
    shape
        Of each observation: that of many sequences at once.
    points
        Number of means that are tested.
    """

    def __init__(
        self, level: float, planned: int = 0, shape: tuple[int, ...] = (), points: int = POINTS
    ) -> None:
        self._wanted, self._planned, self._count = -math.log(level), planned, 0
        self._means = np.arange(1, points) / points
        self._capital = np.zeros((*shape, points - 1))  # its logarithm
        self._refuted = np.zeros((*shape, points - 1), np.bool_)
        self._sum, self._squares = np.full(shape, 0.5), np.full(shape, 0.25)

    def add(self, x: Any) -> None:
        """Add an observation."""
        self._count += 1
        count = self._count
        length = self._planned or count * math.log1p(count)
        bet = np.sqrt(2 * self._wanted * count / (self._squares * length))
        bets = np.minimum(np.asarray(bet)[..., None], BOLDNESS / self._means)
        self._capital += np.log1p(bets * (np.asarray(x, float)[..., None] - self._means))
        self._refuted |= self._capital >= self._wanted
        self._sum = self._sum + x
        self._squares = self._squares + (x - self._sum / (count + 1)) ** 2

    @property
    def value(self) -> NDArray[np.float64]:
        """The limit."""
        return np.asarray((self._refuted * self._means).max(-1))


class Verdict(NamedTuple):
    """Limits of risk and reward, the risk allowed for the least reward, and what follows.

    Limits of the reward are nan where it does not matter; `safe` is None if it is open.
    """

    risk_low: float
    risk_high: float
    reward_low: float
    reward_high: float
    allowed: float
    safe: bool | None


class Tally:
    """Episodes so far, and the limits that they give.

    Parameters
    ----------
    bound
        The acceptable risk, a function of the mean reward.
    reward_range
        Of any episode; None where the bound is constant and nothing is declared.
    confidence
        Of each answer.
    planned
        The number of episodes, if one looks only at the end; 0 for limits that hold at all times.
    """

    def __init__(
        self,
        bound: RiskBound,
        reward_range: tuple[float, float] | None,
        confidence: float,
        planned: int = 0,
    ) -> None:
        self._bound, self._range, self._planned = bound, reward_range, planned
        self._constant = isinstance(bound, Constant)
        self.level = (1 - confidence) / (1 if self._constant else 2)
        self.episodes, self.failures, self.strayed, self.collected = 0, 0, 0, 0.0
        self.void = ""
        self._next = 0  # number of episodes at which limits are looked at again
        self._mean = [MeanLimit(self.level, planned) for _ in range(0 if self._constant else 2)]

    def add(self, reward: float, failed: bool, strayed: bool = False) -> None:
        """Add an episode; one that strayed failed, with the least reward."""
        self.episodes += 1
        if strayed and self._range is not None:
            reward = self._range[0]
        self.failures += failed or strayed
        self.strayed += strayed
        self.collected += reward
        if self._range is None:
            return
        low, high = self._range
        slack = ROUNDING * max(abs(low), abs(high))
        if not low - slack <= reward <= high + slack:
            where = f"episode {self.episodes:,} had reward {reward!r}"
            self.void = self.void or f"{where}, outside the declared range {low:g} to {high:g}"
            return
        x = min(1.0, max(0.0, (reward - low) / (high - low)))
        for limit, value in zip(self._mean, (x, 1 - x), strict=False):
            limit.add(value)

    @property
    def due(self) -> bool:
        """Whether to look at the limits after this episode; a constant bound costs nothing."""
        if self._constant or self.episodes >= self._next:
            self._next = self.episodes + 1 + self.episodes // 50
            return True
        return False

    def judge(self, *, always: bool = False) -> Verdict:
        """Return the limits; those that hold at all times if there is no plan, or with `always`."""
        finished = self._planned and not always
        low, high = (limit_risk if finished else limit_risk_always)(
            self.failures, self.episodes, self.level
        )
        return self._compare(low, high, *self._limit_reward())

    def decide(self) -> bool | None:
        """Return whether the policy is acceptable, by limits that hold at all times."""
        if self.void:
            return None
        if not self._constant:
            return self.judge(always=True).safe
        counts, allowed = (self.failures, self.episodes), self._allow(0.0)[0]
        if not 0 <= allowed < 1:
            return bool(allowed >= 1)
        for above in (False, True):
            if bet_on_risk(*counts, allowed, above=above) >= -math.log(self.level):
                return not above
        return None

    def estimate_more(self) -> int | None:
        """Return how many more episodes like those so far would decide; None if none would."""
        if not self.episodes or self.void:
            return None
        mean = self.collected / self.episodes
        reward_low, reward_high = self._limit_reward()

        def decides(factor: float) -> bool:
            counts = factor * self.failures, factor * self.episodes, self.level
            low, high = (limit_risk if self._planned else limit_risk_always)(*counts)
            near, far = ((limit - mean) / math.sqrt(factor) for limit in (reward_low, reward_high))
            return self._compare(low, high, mean + near, mean + far).safe is not None

        low, high = 1.0, 2.0
        while not decides(high):
            low, high = high, 2 * high
            if self.episodes * high > MOST_MORE:
                return None
        for _ in range(8):
            middle = (low + high) / 2
            low, high = (low, middle) if decides(middle) else (middle, high)
        return math.ceil(self.episodes * (high - 1))

    def _limit_reward(self) -> tuple[float, float]:
        if self._constant or self._range is None:
            return math.nan, math.nan
        low, high = self._range
        below, above = (float(limit.value) * (high - low) for limit in self._mean)
        return low + below, high - above

    def _allow(self, reward: float) -> tuple[float, float]:
        try:
            low, high = self._bound.enclose(reward, reward)
        except BoundError:
            return -math.inf, math.inf
        return float(low), float(high)

    def _compare(
        self, risk_low: float, risk_high: float, reward_low: float, reward_high: float
    ) -> Verdict:
        allowed, most = (
            self._allow(0.0)
            if self._constant
            else (self._allow(reward_low)[0], self._allow(reward_high)[1])
        )
        safe = None
        if not self.void:
            safe = True if risk_high <= allowed else False if risk_low > most else None
        return Verdict(risk_low, risk_high, reward_low, reward_high, allowed, safe)


@dataclass(frozen=True, kw_only=True)
class StatisticalCertificate:
    """What episodes in a simulator say of a policy, at a confidence: never an exact certificate.

    Attributes
    ----------
    safe
        Whether the policy is acceptable, at the confidence; None if the episodes leave it open.
        True and False are each wrong with a probability of at most 1 - confidence.
    confidence
        It holds for independent episodes of a policy that was fixed before they were played.
    episodes, failures, strayed
        Numbers of episodes, of those that failed, and of those among them that left the plan.
    risk, risk_low, risk_high, reward, reward_low, reward_high
        Share of failures and mean discounted reward, and their limits; nan for those of the reward
        under a constant bound, where all of the confidence goes to the risk.
    bound, allowed
        The bound as a text, and the risk that it accepts for `reward_low`.
    policy, environment, versions, reward_range, horizon, discount
        What was played, with the versions of what was run, and what was declared.
    seed, stream
        The seed, and the number of the stream of random numbers below it: planning uses another.
    until, interrupted, seconds
        "decided" or None for a fixed number of episodes, whether Ctrl-C ended it early, and time.
    void, example
        Why the certificate is void (an episode was outside the declared range), else ""; and the
        first episode that left the plan, else None.
    more
        About this many further episodes would decide; None if that is unknown, or decided.
    """

    safe: bool | None
    confidence: float
    episodes: int
    failures: int
    strayed: int
    risk: float
    risk_low: float
    risk_high: float
    reward: float
    reward_low: float
    reward_high: float
    allowed: float
    bound: str
    reward_range: tuple[float, float] | None
    horizon: int
    discount: float
    policy: str
    environment: str
    versions: dict[str, str]
    seed: int
    stream: tuple[int, ...]
    until: str | None
    void: str
    example: str | None
    more: int | None
    seconds: float
    interrupted: bool = False

    @property
    def verdict(self) -> str:
        """The verdict in a few words, which always say the confidence."""
        at = f"at {100 * self.confidence:.10g} % confidence"
        if self.void:
            return "✗ void"
        return {True: f"✓ safe {at}", False: f"✗ not safe {at}", None: f"? open {at}"}[self.safe]

    @property
    def sentence(self) -> str:
        """What the verdict holds for, and what is missing."""
        if self.void:
            return self.void
        if self.safe is None and self.more is not None:
            return f"{CONDITION}; about {round_up(self.more):,} more episodes would decide"
        return CONDITION

    def rows(self) -> list[tuple[str, str]]:
        """Return the numbers as pairs of a name and a string, for people."""
        share = f"{self.failures:,} of {self.episodes:,} episodes failed"
        risk = f"at most {show_probability(self.risk_high)}, at least "
        reward = f"mean {show_reward(self.reward)}"
        if not math.isnan(self.reward_low):
            limits = show_reward(self.reward_low), show_reward(self.reward_high)
            reward = f"at least {limits[0]}, at most {limits[1]}  {reward}"
        rows = [
            ("risk", f"{risk}{show_probability(self.risk_low)}  {share}"),
            ("allowed", f"{show_probability(self.allowed)}  by {self.bound}"),
            ("reward", reward),
        ]
        if self.strayed:
            left = f"{show_percent(self.strayed / self.episodes)} of the episodes"
            rows.append(("left the plan", f"{left}, counted as failed: {self.example}"))
        looked = "until decided" if self.until else "a fixed number"
        if self.interrupted:
            looked += ", ended by Ctrl-C; the limits hold at all times"
        played = f"{self.episodes:,} of at most {self.horizon:,} steps, {looked}"
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return [
            *rows,
            ("confidence", f"{100 * self.confidence:.10g} %, {CONDITION}"),
            ("policy", self.policy),
            ("environment", self.environment),
            ("episodes", played),
            ("seed", f"{self.seed}, stream {'.'.join(map(str, self.stream))}"),
            ("versions", versions),
            ("time", show_seconds(self.seconds)),
        ]

    def save(self, path: Any) -> None:
        """Write the certificate as a page in HTML."""
        title = escape(self.verdict.lstrip("✓✗? "))
        head = f'<!doctype html><meta charset="utf-8"><title>{title}</title>'
        style = "<style>:root { color-scheme: light dark } body { margin: 2em }</style>"
        write_atomically(path, f"{head}{style}{self._repr_html_()}\n".encode())

    def __repr__(self) -> str:
        numbers = f"risk at most {self.risk_high:.4g}, mean reward {self.reward:.6g}"
        words = self.verdict.lstrip("✓✗? ")
        return f"<StatisticalCertificate: {words}, {numbers}, {self.episodes:,} episodes>"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        lines = [f"{self.verdict}, {self.sentence}", ""]
        return "\n".join([*lines, *(f"  {name:<{width}}  {text}" for name, text in rows)])

    def _repr_html_(self) -> str:
        colour = {True: GOOD, False: BAD, None: BAD if self.void else ""}[self.safe]
        table = build_table((), self.rows())
        return build_card(self.verdict, table, remark=self.sentence, colour=colour)


def round_up(count: int) -> int:
    """Return a number rounded up to its first digit: it is an estimate."""
    unit: int = 10 ** max(0, len(str(count)) - 1)
    return -(-count // unit) * unit
