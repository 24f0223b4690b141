"""What may follow the frontier of an incomplete policy, as a part of its chain.

A policy may record, for each unplanned outcome, a bound u on the risk and a bound l on the reward
of what follows (`vulcan.policy.policy.Beyond`). With p the probability of reaching it at step t,
the policy is safe, whatever is done there as far as the claim goes, if

    er + Σ p u  <=  Δ(E g + Σ p γ^t l).

The model is asked for u and l at each state of the frontier, and must say what the policy has
recorded. Then the chain is closed: an unplanned outcome leads to a place that earns l, and from
there to one that fails with probability u and ends otherwise. So reward and risk of the closed
chain are the bounds above, with all that is known of their errors; and the margin holds for u
multiplied by the same factor as every immediate risk, with l unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.walk import Chain
from vulcan.model.reader import ModelReader
from vulcan.numerics import ANY, DEFAULT, END, FAILED, UNPLANNED, Number
from vulcan.parameters import shorten
from vulcan.policy.policy import AnyPolicy, Policy, describe_mismatch


def find_claims(policy: AnyPolicy, reader: ModelReader) -> FrontierClaims | None:
    """Return what a policy and its model claim of its frontier; None if they claim nothing."""
    if not isinstance(policy, Policy) or policy.beyond is None:
        return None
    claims = FrontierClaims(policy, reader)
    if policy.beyond.find_problem(policy.child):
        raise claims.refuse("its bounds beyond the frontier are damaged")
    if policy.beyond.claim == ANY and reader.least_reward is None:
        raise claims.refuse("it has no least_reward, by which the policy is bounded")
    if policy.beyond.claim == DEFAULT and not hasattr(reader.model, "default_bounds"):
        raise claims.refuse("it has no default_bounds, by which the policy is bounded")
    return claims


class FrontierClaims:
    """The claims for the frontier of a policy, in the order in which its histories reach it."""

    def __init__(self, policy: Policy, reader: ModelReader) -> None:
        assert policy.beyond is not None
        self._policy, self._reader, self._beyond = policy, reader, policy.beyond
        self.claim = policy.beyond.claim
        self._number = np.cumsum(policy.child == UNPLANNED) - 1
        self._risks: list[Number] = []
        self._rewards: list[Number] = []

    def enter(self, node: int, position: int, state: Any, level: int) -> None:
        """Ask the model what it claims of a state of the frontier, after an outcome of a node."""
        number = self._number[self._policy.first_outcome[node] + position]
        recorded = float(self._beyond.risk[number]), float(self._beyond.reward[number])
        risk, reward = self._reader.bound_continuation(self._beyond.claim, state, level)
        if (float(risk), float(reward)) != recorded:
            raise self.refuse(
                f"after {level} steps, in state {shorten(state)}, (largest risk, least reward) of "
                f"what follows was {recorded}, is {(float(risk), float(reward))}"
            )
        self._risks.append(risk)
        self._rewards.append(reward)

    def refuse(self, detail: str) -> Exception:
        """Return the error that says how policy and model differ."""
        return describe_mismatch(self._policy.about, self._reader, detail)

    def close(self, chain: Chain) -> Chain:
        """Return the chain with places for what follows the frontier."""
        leaves = chain.leaves
        level = np.repeat(np.arange(len(chain.sizes)), chain.sizes)
        after = level[chain.source[leaves]] + 1  # it does not decrease
        count = len(after)
        earning, risking = (np.bincount(after + k, minlength=len(chain.sizes) + 2) for k in (0, 1))
        own = np.pad(chain.sizes, (0, 2))
        sizes = own + earning + risking
        firsts = np.cumsum(sizes) - sizes
        rank = np.arange(count) - (np.cumsum(earning) - earning)[after]
        earns = firsts[after] + own[after] + rank
        risks = firsts[after + 1] + (own + earning)[after + 1] + rank
        moved = firsts[level] + np.arange(len(chain)) - chain.firsts[level]
        target = np.where(chain.target >= 0, moved[np.maximum(chain.target, 0)], chain.target)
        target[leaves] = earns
        risk, nothing = _to_array(self._risks), np.zeros(count)
        parts = (
            (moved[chain.source], target, *chain.model_numbers),
            (earns, risks, np.ones(count), _to_array(self._rewards)),
            (risks, np.full(count, FAILED), risk, nothing),
            # It earns nothing, so that its probability may be rounded.
            (risks, np.full(count, END), 1 - risk, nothing),
        )
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        left = np.concatenate((leaves, np.zeros(3 * count, np.bool_)))
        order = np.argsort(columns[0], kind="stable")
        order = order[columns[2][order] != 0]
        sizes = np.trim_zeros(sizes, "b")
        # Beyond the places that earn something, discounts don't matter.
        discounts = [*chain.discounts, 1, 1][: len(sizes)]
        return Chain(sizes.tolist(), [c[order] for c in columns], discounts, left[order])


def _to_array(numbers: list[Number]) -> NDArray[Any]:
    """Return numbers as floats, or as they are if some would be rounded."""
    return np.array(numbers, float if all(float(n) == n for n in numbers) else object)
