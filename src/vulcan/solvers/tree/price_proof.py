"""The least bound over prices, with a little work now and then.

For each price the bound of `vulcan.solvers.tree.proof` falls to what that price proves at best, and
that is quasiconvex in the price. So the work goes to one price until it proves no more, then to the
price that decides by now, and then to prices around the best so far, closer and closer.
"""

from __future__ import annotations

import math
from typing import Final

from vulcan.certificates.problem import Problem
from vulcan.errors import BoundError
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.solvers.tree.proof import Proof

__all__ = ["PriceProof"]

WIDEST: Final = 1.2
"""The ratio of the first price on either side of the best."""

CLOSEST: Final = 1.02
"""Prices closer than this ratio prove about the same."""

FAR: Final = 1.3
"""Prices farther apart than this ratio are not the same any more."""


def is_far(one: float, other: float, ratio: float = FAR) -> bool:
    """Whether two prices differ by more than a ratio."""
    low, high = min(one, other), max(one, other)
    return high > ratio * low


class PriceProof:
    """An upper bound on what any policy earns within the risk bound.

    Parameters
    ----------
    problem, reader
        What is to be bounded.
    memory
        Bytes that it may take.
    known
        What is known of the model already.

    Attributes
    ----------
    upper
        The bound; inf as long as nothing is proved.
    work
        What was done so far: the arguments of `advance`. The same work gives the same bound.
    """

    def __init__(
        self, problem: Problem, reader: ModelReader, memory: int, known: StateGraph | None
    ) -> None:
        self._proof = Proof(problem, reader, memory, known)
        self._proved: dict[float, float] = {}  # by prices that prove no more
        self._price: float | None = None
        self.upper = math.inf
        self.work: list[tuple[float, int]] = []

    @property
    def rewards(self) -> list[float]:
        """Where the risk bound was evaluated."""
        return self._proof.rewards

    @property
    def memory(self) -> int:
        """Bytes that it takes."""
        return self._proof.memory

    @property
    def evaluations(self) -> int:
        """How often the model was asked."""
        return self._proof.graph.evaluations

    def advance(self, price: float, histories: int) -> None:
        """Open histories.

        Parameters
        ----------
        price
            The price that decides by now.
        histories
            How many.
        """
        self.work.append((price, histories))
        end = self._proof.opened + histories
        if not self._proved and (self._price is None or is_far(price, self._price)):
            self._price = price
        while self._proof.opened < end and not self._proof.full and self._price is not None:
            before = self._proof.opened
            self._proof.advance(self._price, end - before)
            try:
                self.upper = min(self.upper, self._proof.bound_reward())
            except BoundError:  # it has no value where no policy comes
                return
            if self._proof.is_settled(self._price):
                self._proved[self._price] = self._proof.bound_reward_at(self._price)
                self._price = self._choose_price(price)
            elif self._proof.opened == before:
                return

    def _choose_price(self, wanted: float) -> float | None:
        """Return the price that is wanted, or one beside the best so far; None if all are close."""
        proved = self._proved
        if all(is_far(wanted, other, CLOSEST) for other in proved):
            return wanted
        best = min(proved, key=lambda price: (proved[price], price))
        if best == 0.0:
            return None  # risk does not count, and less than no price there is not
        below = max((price for price in proved if price < best), default=None)
        above = min((price for price in proved if price > best), default=None)
        if above is None:
            return best * WIDEST
        if below is None:
            return best / WIDEST
        # The least lies between the neighbours, and rather on the side of the lower one.
        for other in sorted((below, above), key=lambda price: proved[price]):
            if is_far(best, other, CLOSEST):
                return math.sqrt(best * other) if other > 0 else best / WIDEST
        return None
