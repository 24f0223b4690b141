"""The paper's exploration mission: one policy, and six of its outcomes.

The record keeps the policy itself, so that figures can be drawn again without a search. The paper
gives no coordinates: the map is ours.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from vulcan.domains import Exploration
from vulcan.expression import parse
from vulcan.plotting import choose_outcomes, follow_policy, plot_outcomes, plot_risk_reward
from vulcan.plotting.journeys import Journeys
from vulcan.policy import Policy
from vulcan.policy_file import decode_policy, encode_policy
from vulcan.problem import Problem
from vulcan.reproduce.paper import EXPLORATION_HISTORIES, EXPLORATION_SECONDS
from vulcan.reproduce.part import Figure, Record, Section, Table, Task
from vulcan.reproduce.runs import describe_run
from vulcan.solve import solve
from vulcan.solvers.vulcan import Vulcan

__all__ = ["ExplorationMission"]

BOUND: Final = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"
HORIZON: Final = 9
EXPLORATION: Final = 0.1
MEMORY: Final = 6_000_000_000
"""Bytes of the search tree: it would have more than many machines before the paper's time is up."""

QUICK_SAMPLES: Final = 2048


class ExplorationMission:
    """The exploration mission."""

    name = "exploration"
    title = "Exploration: six outcomes of one policy"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return the one search."""
        if quick:
            return [{"horizon": HORIZON, "samples": QUICK_SAMPLES}]
        return [{"horizon": HORIZON, "time_limit": EXPLORATION_SECONDS, "memory": MEMORY}]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes; the certificate takes its own."""
        return float(15.0 + task.get("time_limit", 2.0))

    def run(self, task: Task) -> dict[str, Any]:
        """Search, and keep the policy."""
        limits = {name: task[name] for name in ("samples", "time_limit", "memory") if name in task}
        problem = Problem(Exploration(horizon=task["horizon"]), parse(BOUND))
        result = solve(problem, Vulcan(EXPLORATION), **limits)
        assert isinstance(result.policy, Policy)
        assert result.certificate is not None
        content = zlib.compress(encode_policy(result.policy), 9)
        return {
            **describe_run(result),
            "allowed": float(result.certificate.allowed),
            "safe": result.certificate.safe,
            "decisions": len(result.policy),
            "histories": result.statistics.histories,
            "stopped_by": result.stopped_by,
            "policy": base64.b64encode(content).decode("ascii"),
        }

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        paper = (
            f"About {EXPLORATION_HISTORIES:.1e} histories; after {EXPLORATION_SECONDS} s the "
            "figure shows six outcomes of one policy: some go through a narrow gap where samples "
            "are good, some turn back before it, some leave at once. Rewards are not given, and "
            "policies satisfy the bound up to the states that were explored."
        )
        if not records:
            return Section(paper, "", "")
        found, horizon = records[-1].found, records[-1].task["horizon"]
        names = ("reward", "risk", "allowed", "decisions", "complete", "samples", "evaluations")
        numbers = {name: found[name] for name in (*names, "histories", "seconds", "stopped_by")}
        rows = [[name.replace("_", " "), _to_cell(value)] for name, value in numbers.items()]
        return Section(
            paper=paper,
            measured=_describe(found),
            meaning=_judge(found),
            tables=[Table("exploration", "The policy and its search", ["", "value"], rows)],
            figures=[
                Figure(
                    "exploration",
                    "Six outcomes of the policy, chosen by one rule: the probable ones that differ",
                    lambda: _draw_outcomes(found["policy"], horizon),
                ),
                Figure(
                    "exploration-risk",
                    "Risk against reward over all outcomes of the policy",
                    lambda: plot_risk_reward(_follow(found["policy"], horizon), parse(BOUND)),
                ),
            ],
            numbers=numbers,
        )


def _draw_outcomes(policy: str, horizon: int) -> Any:
    journeys = _follow(policy, horizon)
    return plot_outcomes(journeys, choose_outcomes(journeys))


@lru_cache(maxsize=1)
def _follow(policy: str, horizon: int) -> Journeys:
    """Return all journeys of a policy that a record keeps; both figures need them."""
    content = zlib.decompress(base64.b64decode(policy))
    return follow_policy(decode_policy(content), Exploration(horizon=horizon))


def _describe(found: dict[str, Any]) -> str:
    ended = f", ended by the {found['stopped_by']}" if found["stopped_by"] else ""
    return (
        f"{found['seconds']:.3g} s and {found['samples']:,} samples{ended}, give a policy of "
        f"{found['decisions']:,} decisions with expected reward {found['reward']:.4f} and risk "
        f"{found['risk']:.5f}; {found['allowed']:.5f} would be allowed."
    )


def _judge(found: dict[str, Any]) -> str:
    if found["complete"] and found["safe"]:
        whole = (
            "The paper's policy was partial, planned up to what was explored; ours is complete, "
            "with a certificate over every outcome."
        )
    else:
        whole = "Like the paper's, this policy is partial, or its certificate does not pass."
    used = 100 * found["risk"] / found["allowed"]
    return (
        f"{whole} It uses {used:.0f} % of the risk that its reward would allow. The map is ours, "
        "since the paper gives no coordinates, so that routes compare and numbers don't."
    )


def _to_cell(value: Any) -> str | float | None:
    return ("yes" if value else "no") if isinstance(value, bool) else value
