"""How large a problem may be to be unrolled when nobody asked for it by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vulcan.graphs.state_graph import StateGraph
from vulcan.runtime.monitor import Monitor

__all__ = ["Size"]

MOST_NODES: Final = 1_000_000

MOST_EVALUATIONS: Final = 250_000
"""(state, action) that the model is asked: some seconds for a quick one."""

SHARE_OF_UNMERGED: Final = 0.2
"""Where every history is a state, a graph that is not small soon is large."""

SHARE_OF_TIME: Final = 0.25


@dataclass(frozen=True)
class Size:
    """Whether a layered graph in the making is still small enough; see `LayeredRun.unroll`.

    Without a time limit the answer depends on counts alone, so that the same problem is always
    treated in the same way.
    """

    graph: StateGraph
    monitor: Monitor

    def __call__(self, nodes: int) -> bool:
        """Return whether to go on."""
        limit = self.monitor.limits.time_limit
        if limit is not None and self.monitor.seconds > SHARE_OF_TIME * limit:
            return False
        share = 1.0 if self.graph.reader.merges else SHARE_OF_UNMERGED
        return nodes <= MOST_NODES and self.graph.evaluations <= share * MOST_EVALUATIONS
