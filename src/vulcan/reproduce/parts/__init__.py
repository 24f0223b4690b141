"""The parts of the report, in its order: one module each."""

from collections.abc import Sequence
from typing import Final

from vulcan.reproduce.part import Part
from vulcan.reproduce.parts.bandit_table import BanditTable

__all__ = ["PARTS"]

PARTS: Final[Sequence[Part]] = (BanditTable(),)
