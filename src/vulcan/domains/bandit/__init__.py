"""The simplified multi-armed bandit of Ayton and Williams: three machines that may fail.

`model` is the bandit itself and the place to begin; `compiled` is the same as machine code.
"""

from vulcan.domains.bandit.model import MACHINES, Bandit, Machine

__all__ = ["MACHINES", "Bandit", "Machine"]
