"""What a completion may take, so that it never takes more than the search itself did for long."""

from __future__ import annotations

import time
from dataclasses import dataclass

__all__ = ["Allowance"]


@dataclass
class Allowance:
    """What a completion may take.

    Attributes
    ----------
    places
        How many pairs (state, level), or histories, it may look at.
    questions
        How many states the model may be asked.
    until
        When it must end, by `time.perf_counter`.
    exceeded
        Whether it would have taken more places or questions.
    """

    places: float
    questions: float
    until: float
    exceeded: bool = False

    def forbids(self, places: int, questions: int = 0) -> bool:
        """Whether a completion that takes this much must stop."""
        self.exceeded = places > self.places or questions > self.questions
        return self.exceeded or self.late

    @property
    def late(self) -> bool:
        """Whether its time is over."""
        return time.perf_counter() > self.until
