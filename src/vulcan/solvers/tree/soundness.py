"""What must be true of the arrays of a search before kernels go on with them.

A tree is walked from its root, level by level. Everything that one row says of others must lie
within their arrays and belong to that row alone, so that there are no cycles and no history has
more decisions than the horizon allows; and whatever follows from the model must be what it says:
which actions a history has, which states come after them, how probable they are, what they earn.
What samples found, visits and values, can't be known again. It must be of the kind that kernels
count on: no visits below 0, or more than samples could have made, and numbers where numbers belong.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.graphs.base import Graph
from vulcan.runtime.packing import claim, require
from vulcan.sentinels import FAILURE_STATE, NONE

__all__ = ["are_lanes", "check_price_tree", "check_returns", "check_tree", "check_walk"]

MOST_VISITS: Final = 1 << 30
"""Half of what can be counted: room for as many again."""

MOST_VALUE: Final = 1e30
MOST_COLLECTED: Final = 1e200
"""Far enough from where sums leave single and double precision, after which no action is best."""


def check_price_tree(tree: Any, graph: Graph, weights: NDArray[np.float64], visits: int) -> None:
    """Refuse what is no tree with several prices.

    Parameters
    ----------
    tree
        A `PriceTree`, as far as its arrays are filled. The level of its first node is known.
    graph
        What is known of the model.
    weights
        What a reward counts, level by level.
    visits
        How many visits a history may have at the most.
    """
    from vulcan.kernels.price_tree import LOWEST

    nodes, edges = tree.nodes, tree.edges
    require(len(nodes) and nodes["state"][0] == Graph.ROOT, "the tree has no root")
    met, tried = np.zeros(len(nodes), bool), np.zeros(len(edges), bool)
    met[0] = True
    level, here = int(nodes["level"][0]), np.zeros(1, np.intp)
    while len(here):
        opened = here[nodes["first_edge"][here] != NONE]
        require(level < len(weights) or not len(opened), "a history goes on beyond the horizon")
        _, some, rows = _open(nodes, graph, opened, tried)
        counts = graph.states.array["action_count"][nodes["state"][opened]]
        require((nodes["edge_count"][opened] == counts).all(), "a history has other actions")
        here = _follow_prices(tree, graph, weights, level, met, some, rows)
        level += 1
    blank = not nodes[~met].tobytes().strip(b"\0") and not edges[~tried].tobytes().strip(b"\0")
    require(blank, "there are histories that nothing leads to")
    _check_marks(nodes[met], graph, len(weights))
    for rows, values in ((nodes, tree.node_values), (edges, tree.edge_values)):
        require(((rows["visits"] >= 0) & (rows["visits"] <= visits)).all(), "visits can't be right")
        require(((rows["solved"] == 0) | (rows["solved"] == 1)).all(), "solved is yes or no")
        usual = (np.abs(values) <= MOST_VALUE) | (values == LOWEST)
        require(usual.all(), "a value is not a number, or too large")
    require((nodes["visits"][nodes["solved"] != 0] > 0).all(), "a history is solved but not met")
    prices = tree.prices[0]
    sound = (prices >= 0) & (prices <= MOST_VALUE)
    require(sound.all(), "a price is not a number from 0 on, or too large")
    require((np.diff(prices) >= 0).all(), "prices are not in order")


def _open(
    nodes: Any, graph: Graph, opened: NDArray[np.intp], tried: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the edges of histories, whose they are, and the action rows that they stand for."""
    states = graph.states.array[nodes["state"][opened]]
    counts = states["action_count"]
    require((counts > 0).all(), "a history has actions that its state has not")
    edges = claim(tried, nodes["first_edge"][opened], counts, "actions")
    owners = np.repeat(opened, counts)
    firsts = np.repeat(states["first_action"].astype(np.intp), counts)
    steps = edges - np.repeat(nodes["first_edge"][opened].astype(np.intp), counts)
    return owners, edges, firsts + steps


def _follow_prices(
    tree: Any,
    graph: Graph,
    weights: NDArray[np.float64],
    level: int,
    met: NDArray[np.bool_],
    some: NDArray[np.intp],
    rows: NDArray[np.intp],
) -> NDArray[np.intp]:
    """Return the nodes after some edges, which are on a level."""
    nodes, edges, actions = tree.nodes, tree.edges[some], graph.actions.array[rows]
    weight, later = (weights[k] if k < len(weights) else 0.0 for k in (level, level + 1))
    followed = edges["first_child"] != NONE
    with np.errstate(over="ignore", invalid="ignore"):
        _compare(edges["reward"], weight * actions["expected_reward"], "the reward of an action")
        _compare(edges["risk"], actions["immediate_risk"], "the risk of an action")
        counts = np.where(followed, actions["safe_count"], 0)
        require((edges["children"] == counts).all(), "an action has other outcomes")
        children = claim(met, edges["first_child"][followed], counts[followed], "histories")
        outcomes = _take_outcomes(graph, actions[followed], counts[followed])
        after = nodes[children]
        require((after["state"] == outcomes["state"]).all(), "an action leads to another state")
        require((after["level"] == level + 1).all(), "a history is on another level")
        _compare(after["chance"], outcomes["probability"], "the chance of an outcome")
        _compare(after["reward"], weight * outcomes["reward"], "the reward of an outcome")
        _compare(after["outlook"], later * outcomes["outlook"], "the outlook of a history")
    return children


def _compare(kept: NDArray[np.float32], said: NDArray[np.float64], what: str) -> None:
    require(np.array_equal(kept, said.astype(np.float32), equal_nan=True), f"{what} is another")


def _take_outcomes(graph: Graph, actions: Any, counts: NDArray[Any]) -> Any:
    """Return the first outcome rows of some actions, so many of each, which must be known."""
    require((actions["first_outcome"] >= 0).all(), "an action is followed that was never asked")
    firsts = actions["first_outcome"].astype(np.intp)
    steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    outcomes = graph.outcomes.array[np.repeat(firsts, counts) + steps]
    known = (outcomes["state"] >= FAILURE_STATE) & (outcomes["state"] < graph.states.count)
    require(known.all(), "an action leads to a state that was never made")
    return outcomes


def _check_marks(nodes: Any, graph: Graph, levels: int) -> None:
    """Check what the current plan does: the position of an action, or a price."""
    counts = graph.states.array["action_count"][nodes["state"]]
    # A history of which one step is left has no edges, but actions all the same.
    known = (nodes["first_edge"] != NONE) | (nodes["level"] + 1 == levels)
    inside = (nodes["plan"] >= 0) & (nodes["plan"] < counts) & known
    require((inside | (nodes["plan"] == NONE)).all(), "a plan takes an action that is not there")
    require(are_lanes(nodes["lane"], NONE), "a plan follows a price that is not there")


def are_lanes(lanes: NDArray[Any], least: int = 0) -> bool:
    """Whether all of these are numbers of prices, or the least that may stand for none."""
    from vulcan.kernels.price_tree import PRICES

    return bool(((lanes >= least) & (lanes < PRICES)).all())


def check_tree(
    tree: Any, graph: Graph, weights: NDArray[np.float64], test: Any, counted: bool
) -> None:
    """Refuse what is no tree of a search with a local constraint.

    Parameters
    ----------
    tree
        A `Tree`, as far as its arrays are filled.
    graph, weights
        As in `check_price_tree`.
    test
        The record of the constraint.
    counted
        Whether outcomes that fail have histories as well.
    """
    nodes, edges, children = tree.nodes, tree.edges, tree.children
    root = nodes[:1]
    begun = len(root) and root["state"] == Graph.ROOT and root["survival"] == 1
    require(begun and root["credit"] == 0, "the tree has no root")
    taken = [np.zeros(len(rows), bool) for rows in (nodes, edges, children)]
    taken[0][0] = True
    level, here = 0, np.zeros(1, np.intp)
    while len(here):
        opened = here[nodes["first_edge"][here] != NONE]
        require(level < len(weights) or not len(opened), "a history goes on beyond the horizon")
        require((nodes["state"][opened] >= 0).all(), "a history goes on after failure")
        owners, some, rows = _open(nodes, graph, opened, taken[1])
        tried = edges["first_child"][some] != NONE
        owners, some, actions = owners[tried], some[tried], graph.actions.array[rows[tried]]
        counts = actions["outcome_count" if counted else "safe_count"].astype(np.intp)
        places = claim(taken[2], edges["first_child"][some], counts, "outcomes")
        outcomes = _take_outcomes(graph, actions, counts)
        added = children[places] != NONE
        owners = np.repeat(owners, counts)[added]
        here = claim(taken[0], children[places][added], np.ones(added.sum(), int), "histories")
        # Some work through histories from the last to the first.
        require((here > owners).all(), "a history is older than the one before it")
        after, before, actions = nodes[here], nodes[owners], np.repeat(actions, counts)[added]
        _compare_histories(
            after, before, actions, outcomes[added], weights[level : level + 1], test
        )
        level += 1
    require(all(map(np.all, taken)), "there are histories that nothing leads to")
    _check_findings(nodes, edges)


def _compare_histories(
    after: Any, before: Any, actions: Any, outcomes: Any, weight: NDArray[np.float64], test: Any
) -> None:
    """Check histories beside those before them; see `vulcan.kernels.tree.add_child`."""
    from vulcan.kernels.constraints import SURVIVAL

    require((after["state"] == outcomes["state"]).all(), "an action leads to another state")
    survival = before["survival"] * (1.0 - actions["immediate_risk"])
    if test["by_outcome"]:
        credit = before["credit"] + weight * outcomes["reward"]
    elif test["form"] == SURVIVAL:
        credit = before["credit"] + weight * before["survival"] * actions["credit"]
    else:
        credit = before["credit"] + weight * actions["credit"]
    require(np.array_equal(after["survival"], survival), "the survival of a history is another")
    require(np.array_equal(after["credit"], credit), "the credit of a history is another")


def _check_findings(nodes: Any, edges: Any) -> None:
    """Check what samples found."""
    from vulcan.kernels.tree import CLOSED, LIVE

    for rows in (nodes, edges):
        sampled = (rows["visits"] >= 0) & (rows["visits"] <= MOST_VISITS)
        require(sampled.all(), "visits can't be right")
        require(not np.isnan(rows["value"]).any(), "a value is not a number")
    require(not np.isnan(edges["limit"]).any(), "a limit is not a number")
    require(((edges["mark"] >= LIVE) & (edges["mark"] <= CLOSED)).all(), "an action has no mark")
    # An action all of whose outcomes are solved is so itself, unless one was never met.
    solved = (nodes["solved"] == 0) | ((nodes["solved"] == 1) & (nodes["visits"] > 0))
    require(solved.all(), "a history is solved but not met")


def check_walk(tree: Any, graph: Graph, path: Any, control: Any, counted: bool) -> None:
    """Refuse a sample that is not on its way through a tree.

    Parameters
    ----------
    tree, graph, counted
        As in `check_tree`, and checked.
    path, control
        Of the sample; see `vulcan.kernels.tree_search`.
    """
    from vulcan.kernels.tree_search import OPEN, TRY

    depth, phase, choice = (int(control[name]) for name in ("depth", "phase", "choice"))
    require(0 <= depth < len(path), "a sample is deeper than the horizon")
    require(OPEN <= phase <= TRY, "a sample is in no phase")
    node = 0
    for k in range(depth + 1):
        require(path["node"][k] == node, "a sample jumps")
        first, state = int(tree.nodes["first_edge"][node]), int(tree.nodes["state"][node])
        count = int(graph.states.array["action_count"][state]) if state >= 0 else 0
        if k == depth and phase != TRY:
            break
        taken = int(path["edge"][k]) - first
        require(first != NONE and 0 <= taken < count, "a sample takes an action that is not there")
        if k == depth:
            break
        action = graph.actions.array[graph.states.array["first_action"][state] + taken]
        place = int(path["outcome"][k]) - int(action["first_outcome"])
        begin = int(tree.edges["first_child"][first + taken])
        outcomes = int(action["outcome_count" if counted else "safe_count"])
        require(begin != NONE and 0 <= place < outcomes, "a sample meets what can't happen")
        node = int(tree.children[begin + place])
        require(node != NONE, "a sample goes on where nothing is")
    require(phase == OPEN or first != NONE, "a sample chooses where there are no actions")
    require(NONE <= choice < max(1, count), "an action was chosen that is not there")


def check_returns(returns: Any) -> None:
    """Refuse what samples can't have collected."""
    numbers = np.stack([returns[name] for name in ("least", "most", "total")])
    blank = np.isinf(returns["least"]) & np.isinf(returns["most"]) & (returns["total"] == 0)
    known = (np.abs(numbers) <= MOST_COLLECTED).all(axis=0) & (returns["least"] <= returns["most"])
    require((known | blank).all(), "what samples collected is not a number, or too large")
    require((returns["samples"] >= 0).all(), "there were fewer than no samples")
