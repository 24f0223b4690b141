"""The tree of the paper's planner, with a local test: sampling, policies, and checkpoints.

Samples delete what the constraint refuses (`vulcan.kernels.paper_tree`). A policy of the tree is
finalised: completed beyond what was sampled, or cleaned up as in the paper.

Memory is counted and capped. The arrays of the tree grow by doubling, never past the cap; a search
without room ends with the policy that it has. A quarter of the cap is kept for completion, and of
that a twentieth of the cap for cleanup, in case completion finds no room.
"""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.forms import Constant
from vulcan.graph.states import StateGraph
from vulcan.kernels import codes
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, NONE, UNPLANNED
from vulcan.problem import Problem
from vulcan.runtime.arrays import ranges, require, starts, unpack_array
from vulcan.sampling.candidate import Candidate
from vulcan.sampling.checkpoint import Snapshot, check_tree, check_walk
from vulcan.sampling.kernel_run import KernelRun
from vulcan.sampling.plan import WorkLimit, load_kernels, plan_merged
from vulcan.solvers.local_tests import LocalConstraint

if TYPE_CHECKING:
    from vulcan.sampling.local_vulcan import LocalVulcan

FIXED: Final = ("_returns", "_path", "control", "test")  # arrays that don't grow
SAMPLED: Final = ("depth", "phase", "samples", "exhausted", "random")  # changing in `control`
TESTED: Final = ("least", "largest")  # changing in `test`
SHARE_OF_CLEANUP: Final = 0.05  # of memory
CHUNK: Final = 1 << 14  # samples, or histories of a policy, between two looks at the clock
STEPS: Final = 1 << 20  # of samples between two looks at the clock, however few samples they make
SHARE_OF_SAMPLING: Final = 0.75  # of memory
NO_LIMIT: Final = 1 << 62

# What a completion may always take.
FEWEST_PLACES: Final = 1 << 14  # pairs or histories
FEWEST_EVALUATIONS: Final = 256  # of states
SAMPLES_PER_EVALUATION: Final = 64  # where there is a complete policy already
SCALES: Final = tuple(4**k for k in range(12))
FEW: Final = 5  # scales to try where the constraint admits no policy at all


class TreeRun(KernelRun):
    """One search of a tree with a local test.

    `full` says whether memory has run out; `final_value` is the value of the root by the policy
    that was finalised last.
    """

    GROWING: ClassVar = {
        "nodes": ("nodes", "choice"),
        "edges": ("edges",),
        "children": ("children",),
    }

    def __init__(
        self,
        problem: Problem,
        reader: ModelReader,
        constraint: LocalConstraint,
        memory: int | None,
        known: StateGraph | None = None,
    ) -> None:
        from vulcan.kernels import paper_tree as kernels

        super().__init__(problem, reader, constraint, known, memory)
        self._kernels = kernels
        levels = reader.levels
        self.nodes = np.zeros(64, kernels.NODE)
        self.edges: NDArray[Any] = np.zeros(256, kernels.EDGE)
        self.children: NDArray[Any] = np.zeros(256, np.int32)
        self.choice: NDArray[Any] = np.zeros(64, np.int32)
        self.sizes = np.zeros(1, kernels.SIZE)
        self._returns = np.zeros(levels, kernels.RETURNS)
        self._returns["least"], self._returns["most"] = math.inf, -math.inf
        self._path = np.zeros(levels + 1, kernels.STEP)
        self._places = np.zeros(levels + 1, kernels.PLACE)
        self.control = np.zeros(1, kernels.CONTROL)
        self._walk = np.zeros(1, kernels.WALK)
        self.sizes["nodes"] = 1
        root = self.nodes[0]
        root["state"], root["first_edge"] = StateGraph.ROOT, NONE
        root["survival"], root["value"] = 1.0, -math.inf
        self.full = False
        self.final_value: float | None = None

    @property
    def samples(self) -> int:
        """Samples taken so far."""
        return int(self.control["samples"][0])

    @property
    def exhausted(self) -> bool:
        """Whether every action of the root was deleted: no admissible policy exists."""
        proved = self._walk["exhausted"][0] and self._walk["complete"][0]
        return bool(self.control["exhausted"][0] or proved)

    @property
    def estimate(self) -> float | None:
        """The value of the root; None before it was sampled."""
        value = float(self.nodes["value"][0])
        return value if math.isfinite(value) else None

    def prepare(self, solver: LocalVulcan, seed: int, most_histories: int | None = None) -> None:
        """Set how to sample, and compile the kernels."""
        self.control["random"], self.control["exploration"] = np.uint64(seed), solver.exploration
        kinds = {"random": self._kernels.RANDOM, "greedy": self._kernels.GREEDY}
        self.control["default_policy"] = kinds[solver.default_policy]
        self.control["literal"] = self.sizes["counted"] = solver.as_printed
        self.test["foresight"] = not solver.as_printed and self.constraint.constrains
        # Nothing is sampled or finalised yet: these calls compile the kernels.
        self.control["budget"] = 0
        self.control["most_histories"] = NO_LIMIT if most_histories is None else most_histories
        self._call_sample()
        self._walk["complete"], self._walk["budget"] = 1, 0
        self._call_finalise()
        if self.graph.merges:
            load_kernels()

    def can_sample(self, target: int) -> bool:
        """Whether there is something left to sample, up to this many samples."""
        ended = self.solved or self.exhausted or self.full
        return self.samples < target and not ended

    def advance(self, target: int) -> None:
        """Take some samples, up to this many in all, and provide what the kernel needs."""
        self.control["budget"] = min(target, self.samples + CHUNK)
        self.control["pause"] = self.control["work"] + STEPS
        wants = self._call_sample()
        most = SHARE_OF_SAMPLING * self.limit
        state = int(self.nodes["state"][self._path["node"][self.control["depth"][0]]])
        self.full = self.memory > most or not self.satisfy(wants, state, most)

    def plan(self, complete: bool, give_up: Callable[[], bool]) -> Candidate | None:
        """Return the policy of the tree; None without a policy, or without room or time for it.

        Completion plans what was not sampled, too. Cleanup deletes actions of histories that it
        tested only up to the frontier. That is no proof, so the search gets its actions back
        afterwards.
        """
        before = self.sizes[0].copy()
        nodes, edges = int(before["nodes"]), int(before["edges"])
        kept = None if complete else (self.nodes[:nodes].copy(), self.edges[:edges].copy())
        final = self._finalise_tree(complete, give_up) and not self._walk["exhausted"][0]
        candidate = self._write_outline() if final else None
        self.final_value = self._find_final_value() if final else None
        if kept is not None:
            self.nodes[:nodes], self.edges[:edges] = kept
        if kept is not None or not final:
            self._roll_back(before)
        return candidate

    def complete(self, until: float) -> Iterator[Candidate]:
        """Yield policies of the tree, completed; none without room or time for it.

        Over histories, each is tested by the local test. Where states merge, there may be far
        more histories than state–step pairs, or the other way round. So both are tried with a share
        of the work of the search itself, and with four times that until one succeeds. A plan over
        pairs uses the bound itself, and may be better than any that the constraint admits.
        """
        if not self.graph.merges or self.solved:
            candidate = self._plan_within(WorkLimit(math.inf, math.inf, until))
            if candidate is not None:
                yield candidate
            return
        problem = self.problem
        if not self.constraint.constrains:
            problem = Problem(problem.model, Constant(1.0))  # every policy is acceptable
        for scale in SCALES[:FEW] if self.exhausted else SCALES:
            # Histories leave half of the time to pairs.
            histories = self._scale_limit(scale, (time.perf_counter() + until) / 2)
            pairs = self._scale_limit(scale, until)
            candidate = None if self.exhausted else self._plan_within(histories)
            if candidate is not None:
                yield candidate
                pairs.evaluations = self.samples // SAMPLES_PER_EVALUATION
            merged = None if self.solved else plan_merged(self, problem, None, pairs)
            if merged is not None and merged[0] is not None:
                yield merged[0]
            exceeded = histories.exceeded or pairs.exceeded
            if candidate is not None or merged is not None or pairs.late or not exceeded:
                return

    def _plan_within(self, histories: WorkLimit) -> Candidate | None:
        return self.plan(True, lambda: histories.forbids(int(self._walk["visited"][0])))

    def _scale_limit(self, scale: int, until: float) -> WorkLimit:
        """Return a share of the work of the search so far, times a scale."""
        places = max(FEWEST_PLACES, self.histories // 16)
        evaluations = max(FEWEST_EVALUATIONS, len(self.state_graph.expanded) // 4)
        return WorkLimit(scale * places, scale * evaluations, until)

    def _find_final_value(self) -> float:
        """Return the value of the action that was finalised at the root."""
        taken = int(self.choice[0])
        if taken == NONE:
            return 0.0  # there is nothing to decide
        edge, root = self.edges[taken], self.nodes[0]
        if edge["value"] > -math.inf:
            return float(edge["value"])
        first = int(self.graph.states.array["first_action"][root["state"]])
        row = first + taken - int(root["first_edge"])
        return float(self.graph.actions.array["expected_reward"][row])

    def _finalise_tree(self, complete: bool, give_up: Callable[[], bool]) -> bool:
        """Finalise every history of the policy; False if there was no room, or it took too long."""
        self._walk[["depth", "phase", "visited", "budget", "exhausted"]] = 0
        self._walk["complete"] = complete
        self._places["node"][0] = 0
        most = (1.0 - SHARE_OF_CLEANUP * complete) * self.limit
        while (wants := self._call_finalise()) != codes.DONE:
            looks = wants == codes.NEEDS_STATE or (
                wants == codes.PAUSED and self._walk["visited"][0]
            )
            if looks and give_up():
                return False
            self._walk["budget"] += CHUNK * (wants == codes.PAUSED)
            state = int(self.nodes["state"][self._places["node"][self._walk["depth"][0]]])
            if not self.satisfy(wants, state, most):
                return False
        return True

    def _write_outline(self) -> Candidate:
        """Return the policy that was finalised."""
        rows, reach, levels, below, frontier = self._list_decisions()
        actions = self.graph.actions.array[rows]
        reward = _sum(self.reader.weights[levels] * reach * actions["expected_reward"])
        firsts = np.concatenate([[0], np.cumsum(actions["safe_count"])])
        return Candidate(
            rows.astype(np.int32),
            firsts.astype(np.int32),
            below.astype(np.int32),
            reward,
            _sum(reach * actions["immediate_risk"]),
            float(self.problem.risk_bound(reward)),
            _sum(frontier),
        )

    def _list_decisions(self) -> tuple[NDArray[Any], ...]:
        """Return the decisions in preorder: rows, reach, levels, and the next decisions of each.

        The last array is the probability of each history at the frontier. Histories are gathered
        level by level, those at the frontier with the row NONE. Then their numbers follow from the
        sizes of subtrees.
        """
        states, actions, outcomes = (
            rows.array for rows in (self.graph.states, self.graph.actions, self.graph.outcomes)
        )
        nodes, reach, above = np.zeros(1, np.intp), np.ones(1), np.zeros(1, np.intp)
        layers: list[tuple[NDArray[Any], ...]] = []  # row, reach, history above, outcomes, level
        goes_on: list[NDArray[np.bool_]] = []  # for each outcome of a level
        for level in range(self.reader.levels if self.choice[0] >= 0 else 0):
            edges = self.choice[nodes]
            first = states["first_action"][self.nodes["state"][nodes]]
            rows = np.where(edges < 0, NONE, first + edges - self.nodes["first_edge"][nodes])
            counts = np.where(rows < 0, 0, actions["safe_count"][rows]).astype(np.intp)
            layers.append((rows, reach, above, counts, np.full(len(rows), level)))
            if level + 1 == self.reader.levels:
                goes_on.append(np.zeros(counts.sum(), bool))
                break
            met = ranges(actions["first_outcome"][rows], counts)
            goes_on.append(states["action_count"][outcomes["state"][met]] != 0)
            places = ranges(self.edges["first_child"][edges], counts)
            above = np.repeat(np.arange(len(rows)), counts)[goes_on[-1]]
            reach = reach[above] * outcomes["probability"][met[goes_on[-1]]]
            nodes = self.children[places[goes_on[-1]]]
        if not layers:
            return (np.zeros(0, np.intp),) * 5
        places_by_level = _number_in_preorder([above for _, _, above, _, _ in layers])
        rows, reach, _, counts, levels = map(np.concatenate, zip(*layers, strict=True))
        order = np.argsort(np.concatenate(places_by_level))
        planned = rows[order] != NONE
        decisions = order[planned]
        numbers = np.where(planned, np.cumsum(planned) - 1, UNPLANNED)
        below = np.full(len(np.concatenate(goes_on)), END)
        below[np.concatenate(goes_on)] = numbers[np.concatenate(places_by_level)[1:]]
        below = below[ranges(starts(counts)[decisions], counts[decisions])]
        return rows[decisions], reach[decisions], levels[decisions], below, reach[order[~planned]]

    def _call_sample(self) -> int:
        state = (self._returns, self._path, self.test, self.control)
        return int(self._kernels.sample(self.arrays(), self.tree(), *state))

    def _call_finalise(self) -> int:
        state = (self.choice, self._places, self.test, self._walk)
        return int(self._kernels.finalise(self.arrays(), self.tree(), *state))

    # Memory and checkpoints.

    def release(self) -> None:
        """Free the memory of a tree that is not sampled any more, but for its root."""
        self.nodes = self.nodes[:1].copy()
        self.edges, self.children = self.edges[:0].copy(), self.children[:0].copy()
        self.choice = self.choice[:1].copy()

    def pack(self) -> dict[str, Any]:
        """Return everything that is needed to resume from here; see `Snapshot`."""
        places = self.table.evaluated(-math.inf, math.inf)[1:-1]
        return self._pack(places, {name: getattr(self, name) for name in FIXED})

    def restore(self, snapshot: Snapshot) -> None:
        """Resume from a snapshot: evaluate the model again, and take over the checked arrays."""
        packed = snapshot.arrays
        self._unpack(snapshot, FIXED)
        places = [credit for credit, _ in snapshot.credits]
        require(all(map(operator.lt, places, places[1:])), "credits are not in order")
        exact = self.table.function is None
        require(not (exact and places), "this risk bound is its own table")
        for credit in places:
            self.table.cover(credit)
        self._read_table()
        for name in ("_returns", "_path"):
            array = getattr(self, name)
            array[:] = unpack_array(packed, name, array, len(array))
        for name, kept in (("control", SAMPLED), ("test", TESTED)):
            array = getattr(self, name)
            found = unpack_array(packed, name, array, 1)
            for field in kept:
                array[field] = found[field]
        filled, counted = self._filled(), bool(self.sizes["counted"][0])
        arrays = filled["nodes"], filled["edges"], filled["children"]
        tree = self._kernels.Tree(*arrays, self.sizes)
        check_tree(tree, self.graph, counted)
        check_walk(tree, self.graph, self._path, self.control[0])
        require(self.samples >= 0, "the number of samples is negative")

    def _roll_back(self, before: Any) -> None:
        """Forget what was added to the tree since it had these sizes."""
        nodes, edges, children = (int(before[name]) for name in ("nodes", "edges", "children"))
        added = self.children[:children] >= nodes
        self.children[:children][added] = NONE
        opened = self.nodes["first_edge"][:nodes] >= edges
        self.nodes["first_edge"][:nodes][opened] = NONE
        tried = self.edges["first_child"][:edges] >= children
        self.edges["first_child"][:edges][tried] = NONE
        for name in ("nodes", "edges", "children"):
            self.sizes[name] = before[name]

    def tree(self) -> Any:
        """Return the current arrays of the tree."""
        return self._kernels.Tree(self.nodes, self.edges, self.children, self.sizes)


def _number_in_preorder(above: list[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """Return the numbers of histories in preorder, level by level, given those above them."""
    sizes = [np.ones(len(some), np.intp) for some in above]
    for size, larger, parents in zip(sizes[:0:-1], sizes[-2::-1], above[:0:-1], strict=True):
        np.add.at(larger, parents, size)
    numbers = [np.zeros(1, np.intp)]
    for size, parents in zip(sizes[1:], above[1:], strict=True):
        before = starts(size)
        eldest = np.searchsorted(parents, parents)
        numbers.append(numbers[-1][parents] + 1 + before - before[eldest])
    return numbers


def _sum(values: NDArray[np.float64]) -> float:
    """Return the sum in this order, so that rounding does not depend on the number of values."""
    return 0.0 + float(np.cumsum(values)[-1]) if len(values) else 0.0
