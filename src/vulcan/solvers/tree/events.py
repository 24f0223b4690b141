"""What was done with the parts of a forest, so that it can be done again.

Parts depend on nothing but that: what they began with, the orders of samples, the prices, the plans
that guided samples, and the divisions of larger parts. An order takes four bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vulcan.solvers.tree.grove import Event
from vulcan.solvers.tree.part_tree import Seedling

__all__ = ["Events", "join_orders"]


def join_orders(orders: Mapping[int, NDArray[Any]]) -> tuple[list[int], list[int], NDArray[Any]]:
    """Return parts, how many orders each has, and all of these, as `Grove.sample` gets them."""
    counts = [len(some) for some in orders.values()]
    return list(orders), counts, np.concatenate(list(orders.values())) if orders else np.zeros(0)


class Events:
    """All that was done, in order."""

    def __init__(self) -> None:
        self._events: list[tuple[str, Any]] = []
        self._parents: dict[int, int] = {}

    def plant(self, prices: Any, seedlings: Mapping[int, Seedling]) -> None:
        """Note that parts began."""
        self._events.append(("plant", (prices, dict(seedlings))))

    def add(self, name: str, content: Mapping[int, Any]) -> None:
        """Note samples, a plan, or what parts began with, by parts."""
        self._events.append((name, dict(content)))

    def move(self, numbers: Iterable[int], given: tuple[Any, ...]) -> None:
        """Note that prices moved in parts."""
        self._events.append(("move", (list(numbers), given)))

    def divide(self, number: int, first: int, grown: Iterable[int]) -> None:
        """Note that a part was divided, and which parts below it had been sampled."""
        self._events.append(("divide", (number, first)))
        self._parents |= dict.fromkeys(grown, number)

    def repeat(self, numbers: Iterable[int]) -> list[Event]:
        """Return what must be done to have some parts again."""
        needed = set()
        for number in numbers:
            while number is not None and number not in needed:
                needed.add(number)
                number = self._parents.get(number)  # type: ignore[assignment]  # noqa: PLW2901
        found: list[Event] = []
        for name, content in self._events:
            if name == "plant":
                prices, seedlings = content
                planted = [seedling for number, seedling in seedlings.items() if number in needed]
                found.append((name, (prices, planted)))
            elif name == "divide":
                number, first = content
                if number in needed:
                    found.append((name, ({number: first},)))
            elif name == "move":
                moved, given = content
                found.append((name, ([number for number in moved if number in needed], *given)))
            else:
                some = {number: content[number] for number in content if number in needed}
                found.append((name, join_orders(some) if name == "sample" else (some,)))
        return found
