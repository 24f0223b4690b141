"""Whether it pays to go on unrolling a problem, when nobody asked for it by name.

It is judged by what the graph shows as it grows. Where outcomes lead to states that are known
already, the number of pairs of state and step grows with the states, and dynamic programs on all of
them are better than any samples: then only time and memory end it. Where nearly every outcome leads
to a state of its own, they multiply from step to step, and soon there is no end in sight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vulcan.graphs.state_graph import StateGraph
from vulcan.runtime.monitor import Monitor

__all__ = ["Growth"]

FEW_QUESTIONS: Final = 50_000
"""(state, action) that are asked in any case: a second for a quick model."""

MOST_QUESTIONS: Final = 3_000_000
"""(state, action) that are asked without a time limit: half a minute for a quick model."""

MERGED: Final = 0.5
"""New states per outcome up to which a graph counts as merging."""

SHARE_OF_TIME: Final = 0.85
"""The rest is for what is done with the graph."""


@dataclass(frozen=True)
class Growth:
    """Whether levels in the making are worth going on with; see `LayeredRun.unroll`.

    Without a time limit the answer depends on counts alone, so that the same problem is always
    treated in the same way.
    """

    graph: StateGraph
    monitor: Monitor

    def __call__(self, reserve: float) -> bool:
        """Return whether to go on, if this many seconds are needed for the answer."""
        limit, asked = self.monitor.limits.time_limit, self.graph.evaluations
        if limit is not None and self.monitor.seconds + reserve > SHARE_OF_TIME * limit:
            return False
        if asked <= FEW_QUESTIONS:
            return True
        new = self.graph.states.count / max(1, self.graph.outcomes.count)
        merges = self.graph.merges and new <= MERGED
        return merges and (limit is not None or asked <= MOST_QUESTIONS)
