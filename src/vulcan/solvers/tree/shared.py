"""Completion where states merge: what the tree left unexplored is planned once for each pair.

The tree decides at the top, and a dynamic program over pairs (state, level) below it
(`vulcan.kernels.shared_decisions`). Which one, a price of risk says: the decisions that earn most
less the price times the risk. Without a price they earn most, and with the largest they risk least.
Between these, prices are tried until no policy lies between the last that the bound accepts and the
first that it does not, as in docs/theory/proofs.md ("Bounds from above"), but with exact reward
and risk of the whole policy, top included. Then the risk that is left is spent: points of the
frontier go over to the riskier decisions, the most probable ones first, as long as the bound
accepts it.

A few tops are tried, by how often the actions of a history must have been tried for the tree to
decide there. If no price makes any of them pass, the same is tried without the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.sentinels import NONE
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.pairs import Pairs, Top, approach, passes, unroll
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.solvers.tree.sampling import TreeRun

__all__ = ["compile_kernels", "complete_by_pairs"]

FIRST_LENGTH: Final = 1 << 12
TRIALS: Final = (1, 16, 256)
"""The tree decides where each action was tried this often; the best of these policies counts."""
MOST_SWITCHES: Final = 1 << 12


@dataclass(frozen=True, eq=False)
class Completed:
    """Decisions for all pairs: what the frontier's points earn and risk, and the whole policy."""

    choice: NDArray[np.int32]
    rewards: NDArray[np.float64]
    risks: NDArray[np.float64]
    reward: float
    risk: float


def complete_by_pairs(run: TreeRun, allowance: Allowance) -> Draft | None:
    """Return the policy of the tree, completed; None if it takes too much, or nothing passes.

    Parameters
    ----------
    run
        The search.
    allowance
        What it may take.
    """
    found: list[Draft] = []
    length = NONE
    for least in TRIALS:
        top = _write_top(run, least)
        if len(top.decisions) != length:
            length = len(top.decisions)
            draft = _complete(run, top, allowance)
            found += [] if draft is None else [draft]
    if not found and length:
        draft = _complete(run, Top.leave_out(), allowance)
        found += [] if draft is None else [draft]
    return max(found, key=lambda draft: draft.reward, default=None)


def compile_kernels(run: TreeRun) -> None:
    """Have the kernels compiled, by work on nothing at all."""
    from vulcan.kernels.shared_decisions import reach_level

    nothing = np.zeros(0, np.int32)
    reach_level(run.arrays(), nothing, nothing, nothing, nothing)
    _write_top(run, 1)
    nowhere = Pairs(np.zeros(run.reader.levels + 1, np.int32), nothing, nothing)
    swept, end = nowhere.sweep(run, 1.0, 0.0), np.full(1, NONE, np.int32)
    nowhere.lay_out(run, Top.leave_out(), [swept.choice], end, np.zeros(1, np.int32))


def _complete(run: TreeRun, top: Top, allowance: Allowance) -> Draft | None:
    pairs = unroll(run, top.frontier, allowance)
    return None if pairs is None else Completion(run, top, pairs).find(allowance)


def _write_top(run: TreeRun, least: int) -> Top:
    """Return what the tree decides where every action was tried at least so often."""
    from vulcan.kernels import shared_decisions as kernels

    length, found = FIRST_LENGTH, np.zeros(1, kernels.TOP)
    while True:
        decisions = np.zeros(length, kernels.DECISION)
        below, frontier = np.zeros(2 * length, np.int32), np.zeros(2 * length, kernels.FRONTIER)
        if kernels.write_top(run.arrays(), run.tree(), least, decisions, below, frontier, found):
            break
        length *= 2
    size = found[0]
    return Top(
        decisions[: size["decisions"]].copy(),
        below[: size["entries"]].copy(),
        frontier[: size["frontier"]].copy(),
        float(size["reward"]),
        float(size["risk"]),
    )


class Completion:
    """The decisions below a top, at different prices."""

    def __init__(self, run: TreeRun, top: Top, pairs: Pairs) -> None:
        self._run, self._top, self._pairs = run, top, pairs
        self._points = pairs.locate(top.frontier["state"], top.frontier["level"])
        self._reach = np.where(self._points != NONE, top.frontier["reach"], 0.0)

    def find(self, allowance: Allowance) -> Draft | None:
        """Return the best policy that the bound accepts; None if it accepts none."""
        if not self._run.constraint.constrains:
            return self._write([self.sweep(1.0, 0.0)], np.zeros(len(self._points), np.int32))
        low, high = approach(self._run, self.sweep, allowance)
        if not passes(self._run, high):
            return None
        return self._write([high, low], self._spend(low, high))

    def sweep(self, weight: float, price: float) -> Completed:
        """Return the decisions that earn most at a price of risk."""
        swept = self._pairs.sweep(self._run, weight, price)
        # Points at which the mission is over have a reach of 0: any pair does.
        rewards, risks = (
            self._reach * (values[self._points] if len(values) else 0.0)
            for values in (swept.rewards, swept.risks)
        )
        reward, risk = self._top.reward + float(rewards.sum()), self._top.risk + float(risks.sum())
        return Completed(swept.choice, rewards, risks, reward, risk)

    def _spend(self, low: Completed, high: Completed) -> NDArray[np.int32]:
        """Return which points of the frontier take the riskier decisions: 1, others 0."""
        gain, cost = low.rewards - high.rewards, low.risks - high.risks
        taken = np.zeros(len(gain), np.int32)
        reward, risk = high.reward, high.risk
        wanted = np.flatnonzero(gain > 0)
        for k in wanted[np.argsort(-cost[wanted], kind="stable")][:MOST_SWITCHES].tolist():
            allowed = self._run.allow(reward + gain[k]) + TOLERANCE / 2
            if risk + cost[k] <= allowed:
                taken[k] = 1
                reward, risk = reward + gain[k], risk + cost[k]
        return taken

    def _write(self, plans: list[Completed], which: NDArray[np.int32]) -> Draft:
        """Return the policy whose points of the frontier follow one of some plans each."""
        top = self._top
        reward, risk = (
            own + float(np.choose(which, [getattr(plan, name) for plan in plans]).sum())
            for own, name in ((top.reward, "rewards"), (top.risk, "risks"))
        )
        choices = [plan.choice for plan in plans]
        decisions = self._pairs.lay_out(self._run, top, choices, self._points, which)
        return Draft(*decisions, reward, risk, self._run.allow(reward), 0.0)
