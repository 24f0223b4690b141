"""What is done where there is no plan: the least risky action, looking a few steps ahead."""

from __future__ import annotations

import math
from typing import Any, Final

from vulcan.model.interface import Outcome
from vulcan.model.reader import ModelReader

__all__ = ["find_safest"]

STEPS_AHEAD: Final = 2
"""How far it looks."""


def find_safest(reader: ModelReader, state: Any, level: int) -> str:
    """Return the label of the least risky action, and of those the one that pays best at once.

    Parameters
    ----------
    reader
        The model, asked with care.
    state
        A state that has actions.
    level
        How many decisions came before.
    """
    risks = _find_risks(reader, state, min(STEPS_AHEAD, reader.levels - level))
    return min(risks, key=risks.__getitem__)


def _find_risks(reader: ModelReader, state: Any, ahead: int) -> dict[str, tuple[float, float]]:
    """Return the least risk of each action for some steps, and what it costs at once."""
    found = {}
    for label, _, outcomes in reader.answers(state):
        risk = math.fsum(
            float(o.probability) * (1.0 if o.fails else _find_least(reader, o, ahead - 1))
            for o in outcomes
        )
        found[label] = risk, -math.fsum(float(o.probability) * float(o.reward) for o in outcomes)
    return found


def _find_least(reader: ModelReader, outcome: Outcome, ahead: int) -> float:
    """Return the least risk for some steps after a safe outcome."""
    risks = _find_risks(reader, outcome.state, ahead) if ahead else {}
    return min(risks.values())[0] if risks else 0.0
