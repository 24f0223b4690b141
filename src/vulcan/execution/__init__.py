"""Execution: what happens after planning.

`replan` finds better plans for a run that is under way, within the guarantee given at its start.
Runs themselves live with policies. `simulation` plays episodes of a policy, compiled or in another
model or environment, and compares them with its exact values. `statistical` certifies policies by
episodes in a simulator, and `learning` plans there. May import: everything but domains,
plotting, formats, testing and cli.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
