"""A simulator of a shop that reorders every morning, from what it sold in half a year.

There are no probabilities here, only rows of `demand.csv`, one of which is drawn each day:

    vulcan solve examples/inventory.py:Shop --bound 0.05 --simulate
    python examples/inventory.py

A customer who finds the shelf empty is a failure.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from vulcan.model.interface import FAILURE

PRICE, COST, STORAGE = 3.0, 2.0, 0.05  # of a piece: sold, ordered, and kept overnight


class Shop:
    """The shop: a state is the day and the stock in the morning, an action what is ordered.

    Parameters
    ----------
    days
        Length of the mission.
    room
        Largest stock.
    """

    def __init__(self, days: int = 10, room: int = 24) -> None:
        self.horizon, self.room = days, room
        self.reward_range = (-COST * room * days, (PRICE - COST) * room * days + PRICE * room)
        with open(Path(__file__).parent / "demand.csv", encoding="utf-8") as file:
            self.demand = [int(row["sold"]) for row in csv.DictReader(file)]

    def initial(self, rng: np.random.Generator) -> int:
        """Return the stock of the first morning."""
        return 6

    def actions(self, stock: int) -> list[int]:
        """Return what may be ordered: boxes of four that the room has place for."""
        return list(range(0, self.room - stock + 1, 4))

    def sample(
        self, stock: int, order: int, rng: np.random.Generator
    ) -> tuple[object, float, bool]:
        """Draw a day: what was ordered arrives, and customers come."""
        wanted = self.demand[int(rng.integers(len(self.demand)))]
        stock += order
        if wanted > stock:
            return FAILURE, PRICE * stock - COST * order, True
        left = stock - wanted
        return left, PRICE * wanted - COST * order - STORAGE * left, False


if __name__ == "__main__":
    import vulcan

    shop = Shop(days=5)
    learned = vulcan.learn(shop, 0.05, horizon=shop.horizon, reward_range=shop.reward_range)
    for certificate in learned.certify(episodes=2000):
        print(f"{certificate.verdict}: a risk of {certificate.allowed} is acceptable")
