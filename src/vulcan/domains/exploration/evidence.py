"""The mission given what was measured: true values in place of the nodes of the quadrature.

A mission that is under way has measured values that are no nodes. In whitened coordinates (`field`)
evidence is as simple as a node: the k-th sample is f(x_k) = m(x_k) + Σ_{j<=k} L_kj z_j, so that

    z_k = (f(x_k) - m(x_k) - Σ_{j<k} L_kj z_j) / L_kk

is what the value says that was not known before, and with these z the posterior of all that is left
is the one given the true values. What is still to be sampled are nodes again, of that posterior.

States stay what they are. The numbers of the nodes that samples went to remain in them, and no
longer say anything. Risks and the probabilities of nodes do not depend on the samples, so that any
plan has the very risk in this mission that it had in the other; what it earns is another number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from vulcan.domains.exploration.field import dot
from vulcan.domains.exploration.history import History
from vulcan.domains.exploration.model import Exploration
from vulcan.model.compiled import CompiledModel

__all__ = ["MeasuredExploration", "take_evidence"]

SAME: Final = 1e-9
"""A measurement that is less than this away from its node is that node, rounded."""


@dataclass(frozen=True, repr=False)
class MeasuredExploration(Exploration):
    """A mission that goes on after samples were measured.

    It answers about the history in which they were, and those after it.

    Parameters
    ----------
    evidence
        The samples taken on the way, in whitened coordinates: z_1, z_2, ...
    """

    evidence: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"{super().__repr__()} given {len(self.evidence)} samples"

    @property
    def compiled(self) -> None:
        """None: there is nothing before the evidence, and `compile_from` after it."""
        return

    def compile_from(self, state: History) -> CompiledModel | None:
        """Return what is left of the mission after a history as machine code."""
        from vulcan.domains.exploration.compiled import compile_exploration

        return compile_exploration(self, state, self.evidence)

    def whiten(self, nodes: Sequence[int]) -> list[float]:
        """Return the samples of a history in whitened coordinates, the first one excepted."""
        later = super().whiten(nodes[len(self.evidence) :])
        return [*self.evidence[: len(nodes)], *later]


def take_evidence(
    mission: Exploration, state: History, measurements: Sequence[float | None]
) -> Exploration:
    """Return the mission given what was measured on the way to a state.

    Parameters
    ----------
    mission
        The mission.
    state
        Where it is.
    measurements
        For each move so far the value that was sampled; None if only the node is known.

    Returns
    -------
    Exploration
        The mission as it was planned if all that was measured are nodes.
    """
    if type(mission) not in (Exploration, MeasuredExploration):
        return mission  # a subclass may answer otherwise
    nodes = Exploration.whiten(mission, state.nodes)
    known: list[float] = []
    for moves, measured in enumerate(measurements, 1):
        track = mission.follow(state.path[: moves + 1])
        if not track.new:
            continue
        node, expected = nodes[len(known)], track.base + dot(track.weights, known)
        # A value that was known beforehand says nothing.
        if measured is None or abs(measured - expected - track.deviation * node) <= SAME:
            known.append(node)
        else:
            known.append((measured - expected) / track.deviation if track.deviation else node)
    options = {part.name: getattr(mission, part.name) for part in fields(Exploration)}
    if known == nodes:
        return Exploration(**options)
    return MeasuredExploration(**options, evidence=tuple(known))
