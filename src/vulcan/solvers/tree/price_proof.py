"""The least bound over prices, with a little work now and then.

For each price the bound of `vulcan.solvers.tree.proof` falls to what that price proves at best, and
that is quasiconvex in the price. So the work goes to one price until it proves no more, and then to
prices around the best so far, closer and closer.
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

WIDEST: Final = 2.0
"""The ratio of the first prices beside one."""

CLOSEST: Final = 1.02
"""Prices closer than this ratio prove about the same."""


FAR: Final = 1.3
"""Prices farther apart than this ratio are not the same any more."""


def is_far(one: float, other: float) -> bool:
    """Whether two prices differ by much."""
    low, high = min(one, other), max(one, other)
    return high > FAR * low


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
        self._ratio = WIDEST
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
            The price to begin with.
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
                self._price = self._choose_price()
            elif self._proof.opened == before:
                return

    def _choose_price(self) -> float | None:
        """Return a price beside the best so far that was not tried; None if all are close."""
        while self._ratio > CLOSEST:
            best = min(self._proved, key=lambda price: (self._proved[price], price))
            if best == 0.0:
                return None  # risk does not count, and less than no price there is not
            for price in (best * self._ratio, best / self._ratio):
                if not any(abs(price - other) <= 1e-9 * price for other in self._proved):
                    return price
            self._ratio = math.sqrt(self._ratio)
        return None
