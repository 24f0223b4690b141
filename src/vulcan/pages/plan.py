"""A plan on a page: its places, and what it earns and risks under a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.certificates.certificate import Certificate
from vulcan.errors import BoundError
from vulcan.pages.arrays import PlanArrays
from vulcan.pages.differences import Difference
from vulcan.policies.randomised import AnyPolicy

__all__ = ["PagePlan"]

CURVE_POINTS: Final = 81


@dataclass(frozen=True)
class PagePlan:
    """A plan on a page.

    Attributes
    ----------
    name
        What people call it: "this plan", "0.5 times the allowed risk".
    policy, places
        The plan, and what it does.
    bound
        The risk bound that it was made for.
    certificate
        What it earns and risks under this bound.
    difference
        Where it parts from the plan that the page is about; None for that one itself, and where a
        draw makes them hard to compare.
    remark
        How good it is, if that is known.
    """

    name: str
    policy: AnyPolicy
    places: PlanArrays
    bound: RiskBound
    certificate: Certificate
    difference: Difference | None = None
    remark: str = ""

    @property
    def reward(self) -> float:
        """Expected reward: what lies ahead at the start."""
        return float(self.places.reward[0]) if len(self.places) else 0.0

    @property
    def risk(self) -> float:
        """Probability of failure, likewise."""
        return float(self.places.risk[0]) if len(self.places) else 0.0

    @property
    def allowed(self) -> float:
        """The risk that the bound accepts for this reward; -inf where nothing is."""
        return float(self.certificate.allowed)

    def describe(self) -> dict[str, Any]:
        """Return what the page says of it, beside its places."""
        low, high = _find_span(self.places)
        room = 0.06 * (high - low) or 0.5
        rewards = np.linspace(low - room, high + room, CURVE_POINTS).tolist()
        curve = [(x, _evaluate(self.bound, x)) for x in rewards]
        return {
            "name": self.name,
            "bound": str(self.bound),
            "reward": self.reward,
            "risk": self.risk,
            "allowed": self.allowed if math.isfinite(self.allowed) else None,
            "safe": self.certificate.safe,
            "complete": self.policy.complete,
            "decisions": self.places.total,
            "weights": self.places.weights,
            "curve": [(x, y if math.isfinite(y) else None) for x, y in curve],
            "remark": self.remark,
            "difference": self._describe_difference(),
        }

    def _describe_difference(self) -> dict[str, Any] | None:
        if self.difference is None:
            return None
        partings = [parting._asdict() for parting in self.difference.partings]
        return {"probability": self.difference.probability, "partings": partings}


def _evaluate(bound: RiskBound, reward: float) -> float:
    try:
        return float(bound(reward))
    except BoundError:
        return -math.inf


def _find_span(places: PlanArrays) -> tuple[float, float]:
    """Return the least and the largest reward that can be expected anywhere on the way."""
    count = len(places)
    if not count:
        return 0.0, 0.0
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    least[0] = most[0] = 0.0
    weights = np.array(places.weights)
    owner = np.repeat(np.arange(count), np.diff(places.first))
    earned = weights[places.depth[owner]] * places.pay
    goes_on = places.child >= 0
    for depth in range(int(places.depth[-1]) + 1):
        rows = goes_on & (places.depth[owner] == depth)
        targets = places.child[rows]
        np.minimum.at(least, targets, least[owner[rows]] + earned[rows])
        np.maximum.at(most, targets, most[owner[rows]] + earned[rows])
    ahead = weights[places.depth] * places.reward
    ends = places.child < 0
    low = min((least + ahead).min(), (least[owner] + earned)[ends].min(initial=np.inf))
    high = max((most + ahead).max(), (most[owner] + earned)[ends].max(initial=-np.inf))
    return float(low), float(high)
