"""A tree search in progress: sampling, the answers to its kernels, and its policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from vulcan.errors import ModelError, OptionError
from vulcan.kernels import codes
from vulcan.model.rules import Rule, Violation
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import Progress
from vulcan.sentinels import NONE
from vulcan.solvers.tree.allowance import Allowance
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.memory import TreeArrays
from vulcan.solvers.tree.shared import compile_kernels, complete_by_pairs

__all__ = ["DefaultPolicy", "TreeRun"]

FIRST_LENGTH: Final = 1 << 12
"""Decisions of a policy for which there is room at first."""

CHUNK: Final = 1 << 14
"""Samples, or histories of a policy, between two looks at the clock."""

STEPS: Final = 1 << 20
"""Steps of samples between two looks at the clock, however few samples they make."""

SHARE_OF_SAMPLING: Final = 0.75

DefaultPolicy = Callable[[list[tuple[str, str]], Any], str]
"""From a history, as pairs (action label, outcome label), and its last state to an action label."""

NO_LIMIT: Final = 1 << 62

WORTH: Final = ("reward", "risk", "frontier")


class TreeRun(TreeArrays):
    """One tree search; see `TreeArrays` for its parameters."""

    def prepare(
        self,
        *,
        seed: int,
        exploration: float,
        default_policy: Literal["random", "greedy"] | DefaultPolicy,
        as_printed: bool,
        bounded: bool,
    ) -> None:
        """Set how to sample, and compile the kernels."""
        self.control["random"] = np.uint64(seed)
        self.control["exploration"], self.control["literal"] = exploration, as_printed
        self.control["choice"] = NONE
        kinds = {"random": self._search.RANDOM, "greedy": self._search.GREEDY}
        self._default_policy = default_policy if callable(default_policy) else None
        self.control["default_policy"] = (
            self._search.ASKED if callable(default_policy) else kinds[default_policy]
        )
        self._sizes["counted"] = as_printed
        self._sizes["bounded"] = bounded
        self.test["foresight"] = not as_printed and self.constraint.constrains
        # Nothing is sampled or settled yet; what counts is that kernels are compiled now.
        self.control["budget"], self.control["most_histories"] = 0, NO_LIMIT
        self._call_sample()
        self._walk["complete"], self._walk["budget"] = 1, 0
        self._call_settle()
        self._choice[0] = NONE
        self._write_outline()
        if self.graph.merges:
            compile_kernels(self)

    def sample(
        self,
        monitor: Monitor,
        target: int,
        reserve: float,
        describe: Callable[[], Progress],
        keep: Callable[[], None],
    ) -> None:
        """Sample until there are this many samples, or there is a reason to stop before.

        Parameters
        ----------
        monitor
            Who says when to stop.
        target
            How many samples.
        reserve
            Seconds to leave for what comes after.
        describe
            Tells the progress when it is asked for.
        keep
            Called often, wherever the search could be interrupted: to write checkpoints.
        """
        most = monitor.limits.histories
        self.control["most_histories"] = NO_LIMIT if most is None else most
        while (
            self.samples < target
            and not self.solved
            and not self.exhausted
            and not self.full
            and not monitor.wants_stop(self.histories, self.samples, reserve)
        ):
            self.control["budget"] = min(target, self.samples + CHUNK)
            self.control["pause"] = self.control["work"] + STEPS
            wants = self._call_sample()
            if self._bytes_in_use() > SHARE_OF_SAMPLING * self._memory:
                self.full = True
            elif wants == codes.NEEDS_STATE:
                node = self._path["node"][self.control["depth"][0]]
                self._expand(int(self._nodes["state"][node]))
            elif wants == codes.NEEDS_ROWS:
                self.full = not self._lengthen_rows(SHARE_OF_SAMPLING * self._memory)
            elif wants == codes.BROKEN:
                self.raise_fault()
            elif wants == codes.NEEDS_BOUND:
                self.refine_bound()
            elif wants == codes.NEEDS_LIMITS:
                self._limit_actions()
            elif wants == codes.NEEDS_CHOICE:
                self._ask_default_policy()
            elif wants == codes.NEEDS_ROOM:
                self.full = not self._grow(SHARE_OF_SAMPLING * self._memory)
            monitor.report(describe)
            keep()

    def bound_reward(self) -> float:
        """Return an upper bound on the reward of any policy that the constraint admits."""
        from vulcan.kernels.tree_bound import bound_root

        return float(bound_root(self.arrays(), self.tree(), np.zeros(self.histories)))

    def plan(self, complete: bool, give_up: Callable[[], bool]) -> Draft | None:
        """Return the policy of the tree; None without room or time for it, or without any.

        Cleanup deletes actions of histories that it tested only up to the frontier. That is no
        proof, so the search gets its actions back afterwards.

        Parameters
        ----------
        complete
            Plan what was not sampled, too.
        give_up
            Says when it takes too long.
        """
        before = self._sizes[0].copy()
        nodes, edges = int(before["nodes"]), int(before["edges"])
        kept = None if complete else (self._nodes[:nodes].copy(), self._edges[:edges].copy())
        settled = self._settle_tree(complete, give_up) and not self._walk["exhausted"][0]
        draft = self._write_outline() if settled else None
        self.settled_value = self._find_settled_value() if settled else None
        if kept is not None:
            self._nodes[:nodes], self._edges[:edges] = kept
        if kept is not None or not settled:
            self._roll_back(before)
        return draft

    def plan_by_pairs(self, allowance: Allowance) -> Draft | None:
        """Return the policy of the tree, completed on merged states; None if that fails.

        Parameters
        ----------
        allowance
            What it may take.
        """
        return complete_by_pairs(self, allowance)

    @property
    def walked(self) -> int:
        """Histories of the policy that is being settled."""
        return int(self._walk["visited"][0])

    def _find_settled_value(self) -> float:
        """Return the value of the action that was settled at the root."""
        taken = int(self._choice[0])
        if taken == NONE:
            return 0.0  # there is nothing to decide
        edge, root = self._edges[taken], self._nodes[0]
        if edge["value"] > -math.inf:
            return float(edge["value"])
        first = int(self.graph.states.array["first_action"][root["state"]])
        row = first + taken - int(root["first_edge"])
        return float(self.graph.actions.array["expected_reward"][row])

    def _settle_tree(self, complete: bool, give_up: Callable[[], bool]) -> bool:
        """Settle every history of the policy; False if there was no room, or it took too long."""
        self._walk[["depth", "phase", "visited", "budget", "exhausted"]] = 0
        self._walk["complete"] = complete
        self._places["node"][0] = 0
        while True:
            wants = self._call_settle()
            if wants == codes.DONE:
                return True
            if wants == codes.NEEDS_STATE:
                node = self._places["node"][self._walk["depth"][0]]
                if give_up() or not self.ask(int(self._nodes["state"][node])):
                    return False
            elif wants == codes.NEEDS_ROWS and not self._lengthen_rows(self._memory):
                return False
            elif wants == codes.BROKEN:
                self.raise_fault()
            elif wants == codes.NEEDS_BOUND:
                self.refine_bound()
            elif wants == codes.NEEDS_ROOM and not self._grow(self._memory):
                return False
            elif wants == codes.PAUSED:
                if self._walk["visited"][0] and give_up():
                    return False
                self._walk["budget"] += CHUNK

    def _write_outline(self) -> Draft:
        """Return the policy that was settled."""
        from vulcan.kernels import extraction

        levels = np.zeros(self.reader.levels, extraction.LEVEL)
        summary = np.zeros(1, extraction.SUMMARY)
        length = FIRST_LENGTH
        while True:
            rows, firsts = np.zeros(length, np.int32), np.zeros(length + 1, np.int32)
            below = np.zeros(2 * length, np.int32)
            arrays = (self._choice, levels, rows, firsts, below, summary)
            if extraction.write_outline(self.arrays(), self.tree(), *arrays):
                break
            length *= 2
        decisions, entries = int(summary["decisions"][0]), int(summary["entries"][0])
        reward, risk, frontier = (float(summary[name][0]) for name in WORTH)
        return Draft(
            rows[:decisions].copy(),
            firsts[: decisions + 1].copy(),
            below[:entries].copy(),
            reward,
            risk,
            float(self.problem.risk_bound(reward)),
            frontier,
        )

    def _call_sample(self) -> int:
        state = (self._returns, self._path, self.test, self.control)
        return int(self._search.sample(self.arrays(), self.tree(), *state))

    def _call_settle(self) -> int:
        state = (self._choice, self._places, self.test, self._walk)
        return int(self._completion.settle(self.arrays(), self.tree(), *state))

    def _limit_actions(self) -> None:
        """Bound the value of each action of the history that was just opened."""
        depth = int(self.control["depth"][0])
        node = self._nodes[self._path["node"][depth]]
        first, count = self.graph.states.array[node["state"]]
        for k in range(int(count)):
            action = self.graph.actions.array[int(first) + k]
            limit = float(action["expected_reward"])
            start = int(action["first_outcome"])
            if depth + 1 < self.reader.levels:
                for outcome in self.graph.outcomes.array[start : start + action["safe_count"]]:
                    bound = self._bound_state(int(outcome["state"]), depth + 1)
                    limit += self.reader.discounts[depth] * outcome["probability"] * bound
            self._edges["limit"][node["first_edge"] + k] = limit

    def _bound_state(self, state: int, level: int) -> float:
        if (state, level) not in self._known_bounds:
            step = level - (self.reader.levels - self.reader.horizon)
            bound = self.reader.bound_reward(self.state_graph.state_object(state), step)
            self._known_bounds[state, level] = bound
        return self._known_bounds[state, level]

    def _ask_default_policy(self) -> None:
        """Let the user's function choose an action for a history that was never sampled."""
        assert self._default_policy is not None
        depth = int(self.control["depth"][0])
        history = [self._describe_step(step) for step in self._path[:depth]]
        state = int(self._nodes["state"][self._path["node"][depth]])
        place = self.state_graph.state_object(state)
        try:
            chosen = str(self._default_policy(history, place))
        except Exception as error:
            violation = Violation(Rule.ANSWERS, f"default_policy raised {error!r}", place)
            raise ModelError(violation) from error
        labels = self.state_graph.action_labels(state)
        if chosen not in labels:
            raise OptionError(
                f"default_policy chose {chosen!r} in state {place!r}; there are {', '.join(labels)}"
            )
        self.control["choice"] = labels.index(chosen)

    def _describe_step(self, step: Any) -> tuple[str, str]:
        node = self._nodes[step["node"]]
        first = int(self.graph.states.array["first_action"][node["state"]])
        row = first + int(step["edge"]) - int(node["first_edge"])
        return self.state_graph.describe_outcome(row, int(step["outcome"]))
