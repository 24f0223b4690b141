"""Ready-made models: one file each, with its source, its parameters and its sizes."""

from vulcan.domains.bandit import Bandit

__all__ = ["Bandit"]
