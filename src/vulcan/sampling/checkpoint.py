"""Checkpoints: a tree search on disk, and the validation of what is read.

Everything that a search needs to resume is in arrays, except for the state objects of the model,
which can't be serialised in general. So a checkpoint stores the order in which states were
evaluated, and resuming evaluates the model again in that order: the same answers give the same
rows, which a digest confirms. A compiled model has no such objects: its rows are stored, and
compared with its answers now. Then the search continues in the middle of the sample in which it
was, and ends bit for bit where an uninterrupted one would have ended.

A checkpoint is a sealed file (`vulcan.runtime.files`), replaced atomically. The seal detects
damage; it does not authenticate the writer. Kernels follow indices without bounds checks, so all
indices are validated before they see them: a crafted file is refused, or gives a search that ends.
Visits and values are not verified: they can only mislead a search, since certificates use the model
alone.

**Validation.** The rows of the model's graph are compared with the model before. A history must
have as many edges as its state has actions, and an action as many histories as it has outcomes; all
of these must be within their arrays. In a tree with several prices a history has the level that
follows that of its parent, and the state of its outcome, so no path is longer than the horizon.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from vulcan.errors import CheckpointError
from vulcan.graph.states import Graph
from vulcan.numerics import FAILURE_STATE, NONE
from vulcan.runtime.arrays import ranges, require
from vulcan.runtime.files import Seal

SEAL: Final = Seal("checkpoint", b"VULCKPT\n", 11, CheckpointError, oldest=11)

MODEL: Final = "model"  # the name of the model's fingerprint in an identity


class Snapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a checkpoint."""

    identity: dict[str, str]  # the problem and the settings; other searches do not resume it
    graph: dict[str, bytes]  # the rows of the model's graph; see `StateGraph.pack`
    credits: list[tuple[float, float]]  # credits, and the values of the risk bound there
    capacities: dict[str, int]  # lengths of the arrays that grow
    arrays: dict[str, bytes]  # the filled rows of the arrays of the search
    target: int  # the sample count of the next round
    best: dict[str, bytes] | None  # the best policy so far; see `Candidate.pack`
    # Work that a resumed search repeats, since that is easier than storing its results.
    proof: list[tuple[float, int]] = []  # prices, and histories to open; see `Proof.improve`
    proved_for: int = 0  # the number of samples when this was done
    local: int = 0  # samples of the local test's search if it found the best policy, or 0

    def check_work(self, samples: int) -> None:
        """Refuse more work to repeat than a search does for a number of samples."""
        opened = [histories for _, histories in self.proof]
        least = min([self.proved_for, self.local, *opened])
        most = max(self.proved_for, self.local, sum(opened))
        within = least >= 0 and most <= max(1, samples)
        require(within, "the work to repeat is more than the samples allow")
        prices = [price for price, _ in self.proof]
        require(all(0 <= price < math.inf for price in prices), "a price is not a number from 0 on")

    def write(self, path: str | os.PathLike[str]) -> None:
        """Replace a checkpoint file."""
        SEAL.write(path, msgspec.msgpack.encode(self))


def read_snapshot(path: str | os.PathLike[str], identity: Mapping[str, str]) -> Snapshot | None:
    """Return the snapshot in a file; None if there is no file yet.

    It raises a `CheckpointError` if the file is damaged, or belongs to another search.
    """
    if not Path(path).exists():
        return None
    try:
        snapshot = msgspec.msgpack.decode(SEAL.read(path), type=Snapshot)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: the content is not a checkpoint: {error}") from error
    differences = ""
    for name in {**snapshot.identity, **identity}:
        there, here = (some.get(name, "not known") for some in (snapshot.identity, identity))
        # A fingerprint is of no use to people.
        text = f"{there} there, {here} here" if name != MODEL else "it answers otherwise here"
        differences += f"\n  {name}: {text}" if there != here else ""
    if differences:
        raise CheckpointError(f"{path} belongs to another search; what differs:{differences}")
    return snapshot


MOST_VISITS: Final = 1 << 30  # half of the largest count: room for as many again
MOST_VALUE: Final = 1e30  # far enough from the largest number of single precision for sums


def check_price_tree(tree: Any, graph: Graph, levels: int) -> None:
    """Refuse the filled rows of a `PriceTree` if indices lead out of its arrays.

    A history has at most `levels` levels.
    """
    from vulcan.kernels.price_tree import LOWEST

    nodes, edges = tree.nodes, tree.edges
    require(len(nodes) and nodes["state"][0] == Graph.ROOT, "the tree has no root")
    require(nodes["level"][0] == 0, "the tree begins on another level")
    inside = (nodes["level"] >= 0) & (nodes["level"] <= levels)
    require(inside.all(), "a history is beyond the horizon")
    # Threads may leave rows blank. No history leads to these, since their level is 0.
    filled = nodes.view(np.uint8).reshape(len(nodes), -1).any(axis=1)
    filled[0] = True
    opened = np.flatnonzero(filled & (nodes["first_edge"] != NONE))
    owners, some, actions = _list_edges(nodes, edges, graph, opened)
    counts = graph.states.array["action_count"][nodes["state"][opened]]
    require((nodes["edge_count"][opened] == counts).all(), "a history has other actions")
    followed = edges["first_child"][some] != NONE
    some, owners, actions = some[followed], owners[followed], actions[followed]
    counts = actions["safe_count"].astype(np.intp)
    same = (edges["children"][some] == counts) & (counts > 0)
    require(same.all(), "an action has other outcomes")
    children = _list_rows(edges["first_child"][some], counts, len(nodes), "histories")
    outcomes = graph.outcomes.array["state"][_list_outcomes(graph, actions, counts)]
    require((nodes["state"][children] == outcomes).all(), "an action leads to another state")
    later = np.repeat(nodes["level"][owners], counts) + 1
    require((nodes["level"][children] == later).all(), "a history is on another level")
    # Marks of a plan: a history of which one step is left has no edges, but actions all the same.
    counts = graph.states.array["action_count"][nodes["state"]]
    known = (nodes["first_edge"] != NONE) | (nodes["level"] + 1 == levels)
    inside = (nodes["plan"] >= 0) & (nodes["plan"] < counts) & known
    require((inside | (nodes["plan"] == NONE)).all(), "a plan takes an action that is not there")
    follows = are_price_indices(nodes["price_index"], NONE)
    require(follows, "a plan follows a price that is not there")
    for rows, values in ((nodes, tree.node_values), (edges, tree.edge_values)):
        require(((rows["visits"] >= 0) & (rows["visits"] <= MOST_VISITS)).all(), "visits are wrong")
        usual = (np.abs(values) <= MOST_VALUE) | (values == LOWEST)
        require(usual.all(), "a value is not a number, or too large")
    prices = tree.prices[0]
    sound = (prices >= 0) & (prices <= MOST_VALUE)
    require(sound.all(), "a price is not a number from 0 on, or too large")
    require((np.diff(prices) >= 0).all(), "prices are not in order")


def _list_edges(
    nodes: Any, edges: Any, graph: Graph, opened: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp], Any]:
    """Return the edges of opened histories: their owners, their numbers, and their actions."""
    inside = (nodes["state"] >= FAILURE_STATE) & (nodes["state"] < graph.states.count)
    require(inside.all(), "a history is in a state that was never made")
    require((nodes["state"][opened] >= 0).all(), "a history goes on after failure")
    states = graph.states.array[nodes["state"][opened]]
    counts = states["action_count"].astype(np.intp)
    require((counts > 0).all(), "a history has actions that its state has not")
    some = _list_rows(nodes["first_edge"][opened], counts, len(edges), "actions")
    actions = graph.actions.array[ranges(states["first_action"].astype(np.intp), counts)]
    return np.repeat(opened, counts), some, actions


def _list_rows(
    firsts: NDArray[Any], counts: NDArray[np.intp], length: int, what: str
) -> NDArray[np.intp]:
    """Return the rows of some ranges, which must lie within an array of this length."""
    firsts = firsts.astype(np.int64)
    inside = (firsts >= 0) & (firsts + counts <= length)
    require(inside.all(), f"{what} lie outside of their array")
    return ranges(firsts, counts)


def _list_outcomes(graph: Graph, actions: Any, counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the outcome rows of actions, the given number of each."""
    require((actions["first_outcome"] >= 0).all(), "an action is followed that was never evaluated")
    return ranges(actions["first_outcome"].astype(np.intp), counts)


def are_price_indices(price_indices: NDArray[Any], least: int = 0) -> bool:
    """Whether all of these are indices of prices; `least` is NONE if that is allowed, too."""
    from vulcan.kernels.price_tree import PRICES

    return bool(((price_indices >= least) & (price_indices < PRICES)).all())


def check_tree(tree: Any, graph: Graph, counted: bool) -> None:
    """Refuse the filled rows of a `Tree` if indices lead out of its arrays.

    Where outcomes are counted, those that fail have histories as well.
    """
    nodes, edges, children = tree.nodes, tree.edges, tree.children
    root = nodes[:1]
    begun = len(root) and root["state"] == Graph.ROOT and root["survival"] == 1
    require(begun and root["credit"] == 0, "the tree has no root")
    opened = np.flatnonzero(nodes["first_edge"] != NONE)
    _, some, actions = _list_edges(nodes, edges, graph, opened)
    tried = edges["first_child"][some] != NONE
    actions = actions[tried]
    counts = actions["outcome_count" if counted else "safe_count"].astype(np.intp)
    _list_outcomes(graph, actions, counts)
    _list_rows(edges["first_child"][some[tried]], counts, len(children), "outcomes")
    inside = (children >= NONE) & (children < len(nodes))
    require(inside.all(), "histories lie outside of their array")
    numbers = (nodes["value"], nodes["credit"], nodes["survival"], edges["value"])
    require(not any(np.isnan(some).any() for some in numbers), "a value is not a number")


def check_walk(tree: Any, graph: Graph, path: Any, control: Any) -> None:
    """Refuse a current sample whose indices lead out of a checked tree."""
    from vulcan.kernels.paper_tree import OPEN, TRY

    depth, phase = int(control["depth"]), int(control["phase"])
    require(0 <= depth < len(path), "a sample is deeper than the horizon")
    require(OPEN <= phase <= TRY, "a sample is in no phase")
    numbers = path["node"][: depth + 1]
    known = (numbers >= 0) & (numbers < len(tree.nodes))
    require(known.all(), "a sample leads to a missing history")
    nodes = tree.nodes[numbers]
    counts = np.where(nodes["state"] < 0, 0, graph.states.array["action_count"][nodes["state"]])
    opened = nodes["first_edge"] != NONE
    require(opened[:depth].all() and (opened[depth] or phase == OPEN), "a history is not opened")
    taken = path["edge"][: depth + 1] - nodes["first_edge"]
    known = (taken >= 0) & (taken < counts)
    chosen = known[:depth].all() and (known[depth] or phase != TRY)
    require(chosen, "a sample takes an action that is not there")
    met = path["outcome"][:depth]
    happens = ((met >= 0) & (met < graph.outcomes.count)).all()
    require(happens, "a sample contains an impossible outcome")
