"""What a search in rounds needs of a tree, whichever samples it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from vulcan.graphs.base import Graph
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.reader import ModelReader
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.solvers.tree.checkpoint import Snapshot
from vulcan.solvers.tree.draft import Draft

__all__ = ["SampledTree"]


class SampledTree(Protocol):
    """What rounds need of a tree."""

    reader: ModelReader
    graph: Graph
    full: bool

    @property
    def samples(self) -> int: ...
    @property
    def histories(self) -> int: ...
    @property
    def solved(self) -> bool: ...
    @property
    def exhausted(self) -> bool: ...
    @property
    def memory(self) -> int: ...
    @property
    def evaluations(self) -> int: ...
    @property
    def known_graph(self) -> StateGraph | None: ...
    def credits(self) -> list[float]: ...
    def sample(
        self,
        monitor: Monitor,
        target: int,
        reserve: float,
        describe: Callable[[], Progress],
        keep: Callable[[], None],
    ) -> None: ...
    def take_snapshot(
        self, identity: dict[str, str], target: int, best: Draft | None
    ) -> Snapshot: ...
    def restore(self, snapshot: Snapshot) -> None: ...
