"""Ready-made models: one file each, with its source, its parameters and its sizes."""

from typing import Final

from vulcan.domains.bandit import Bandit

__all__ = ["DOMAINS", "Bandit"]

DOMAINS: Final = {"bandit": "vulcan.domains.bandit:Bandit"}
"""The names by which the command line knows these models, and where each class is.

Places rather than classes: who lists the names need not import the models.
"""
