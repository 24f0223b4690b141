"""One of several threads that ask a compiled model at once.

Rows are added to the one graph, but each asker adds to a stretch of its own, and has its own copy
of the model's parameters (in which the model may keep notes) and its own place for answers. Kernels
see rows up to the end of that stretch: where it is full they ask for more room, as always.
"""

from __future__ import annotations

from typing import Any, Final

from vulcan.graphs.compiled_graph import CompiledGraph
from vulcan.runtime.reservation import set_apart

__all__ = ["Asker"]

KINDS: Final = ("states", "actions", "outcome_rows")
COUNTED: Final = ("evaluations",)


class Asker:
    """Asks a compiled model.

    Parameters
    ----------
    graph
        The graph that rows are added to.
    """

    def __init__(self, graph: CompiledGraph) -> None:
        self._graph = graph
        compiled = graph.compiled
        self.source = set_apart(1, graph.source.dtype)
        self.source[:] = graph.source
        self.answers = set_apart(len(graph.answers), graph.answers.dtype)
        self._parameters = compiled.parameters.copy()
        self._following = set_apart(compiled.most_outcomes, compiled.initial.dtype)
        self.source["evaluations"] = 0
        self._ends = dict.fromkeys(KINDS, 0)
        for kind in KINDS:
            self.source[kind] = 0

    def is_short(self, least: int) -> bool:
        """Whether fewer rows of some kind are left than this many."""
        return any(int(self.source[kind][0]) + least > self._ends[kind] for kind in KINDS)

    def take_stretch(self, length: int, most: float) -> bool:
        """Take the next rows of the graph; False if they would take too many bytes."""
        graph = self._graph
        while any(
            int(graph.source[kind][0]) + length > len(rows.array)
            for kind, rows in zip(KINDS, graph.kinds(), strict=True)
        ):
            if not graph.make_room(most, length):
                return False
        for kind in KINDS:
            begin = int(graph.source[kind][0])
            self.source[kind], self._ends[kind] = begin, begin + length
            graph.source[kind] = begin + length
        return True

    def rows(self) -> tuple[Any, ...]:
        """Return the rows of states, actions and outcomes up to the end of the stretch."""
        graph = self._graph
        self.source["parameters"] = self._parameters.ctypes.data
        self.source["records"] = graph.source["records"]
        self.source["answers"] = self.answers.ctypes.data
        self.source["following"] = self._following.ctypes.data
        return tuple(
            rows.array[: self._ends[kind]] for kind, rows in zip(KINDS, graph.kinds(), strict=True)
        )

    def lend(self, problem: Any) -> Any:
        """Return the arrays of a problem with which this one asks, and adds no rows."""
        self.rows()
        return problem._replace(source=self.source, answers=self.answers)

    def report(self) -> None:
        """Tell the graph how often the model was asked, and where an answer was broken."""
        self._graph.source["evaluations"] += self.source["evaluations"]
        self.source["evaluations"] = 0
        for name in ("state", "action"):
            self._graph.source[name] = self.source[name]
