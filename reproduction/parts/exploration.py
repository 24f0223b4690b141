"""The paper's exploration mission: one policy for each constraint, and six of its outcomes.

A record keeps the policy itself, so that figures can be drawn again without a search. The paper
gives no coordinates: the map is ours.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from reproduction.paper import EXPLORATION_HISTORIES, EXPLORATION_SECONDS
from reproduction.part import Claim, Figure, Record, Section, Table, Task, weigh
from reproduction.runs import CONSTRAINTS, describe_run
from vulcan.bounds.parsing import parse
from vulcan.certificates.problem import Problem
from vulcan.domains import Exploration
from vulcan.domains.exploration.drawing import (
    choose_outcomes,
    follow_policy,
    plot_outcomes,
    plot_risk_reward,
)
from vulcan.domains.exploration.drawing.journeys import Journeys
from vulcan.planning.solve import solve
from vulcan.policies.file import decode_policy, encode_policy
from vulcan.policies.policy import Policy
from vulcan.solvers.tree.local import LocalVulcan

__all__ = ["ExplorationMission"]

BOUND: Final = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"
HORIZON: Final = 9
EXPLORATION: Final = 0.1
MEMORY: Final = 4_000_000_000
"""Bytes of the search tree: it would have more than many machines before the paper's time is up."""

QUICK_SAMPLES: Final = 2048

NUMBERS: Final = (
    "reward",
    "risk",
    "allowed",
    "decisions",
    "complete",
    "safe",
    "samples",
    "evaluations",
    "histories",
    "seconds",
    "stopped_by",
)
"""What the table says of each policy."""


class ExplorationMission:
    """The exploration mission."""

    name = "exploration"
    title = "Exploration: six outcomes of one policy"
    version = 2

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a search for each constraint."""
        full = {"time_limit": EXPLORATION_SECONDS, "memory": MEMORY}
        limits = {"samples": QUICK_SAMPLES} if quick else full
        return [{"constraint": c, "horizon": HORIZON, **limits} for c in CONSTRAINTS]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes; the certificate takes its own."""
        return float(15.0 + task.get("time_limit", 2.0))

    def run(self, task: Task) -> dict[str, Any]:
        """Search, and keep the policy."""
        limits = {name: task[name] for name in ("samples", "time_limit", "memory") if name in task}
        problem = Problem(Exploration(horizon=task["horizon"]), parse(BOUND))
        solver = LocalVulcan(EXPLORATION, CONSTRAINTS[task["constraint"]])
        result = solve(problem, solver, **limits)
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
            "are good, some turn back before it, some leave at once. Its reward, its risk and "
            "whether it is complete are not given."
        )
        found = {r.task["constraint"]: (r.found, r.task["horizon"]) for r in records}
        numbers = {
            letter: {name: run[name] for name in NUMBERS}
            for letter, (run, _) in sorted(found.items())
        }
        rows = [
            [name.replace("_", " "), *(_to_cell(run[name]) for run in numbers.values())]
            for name in NUMBERS
        ]
        header = ["", *(f"constraint {letter}" for letter in numbers)]
        return Section(
            paper=paper,
            measured=" ".join(_describe(letter, found[letter][0]) for letter in numbers),
            meaning=_judge([run for run, _ in found.values()]) if found else "",
            claims=_list_claims(numbers),
            tables=[Table("exploration", "The policies and their searches", header, rows)],
            figures=[
                figure for letter in numbers for figure in _list_figures(letter, *found[letter])
            ],
            numbers=numbers,
        )


def _list_figures(letter: str, run: dict[str, Any], horizon: int) -> list[Figure]:
    policy = run["policy"]
    return [
        Figure(
            f"exploration-{letter}",
            f"Six outcomes of the policy under constraint {letter}, chosen by one rule: the "
            "probable ones that differ",
            lambda: _draw_outcomes(policy, horizon),
        ),
        Figure(
            f"exploration-{letter}-risk",
            f"Risk against reward over all outcomes of the policy under constraint {letter}",
            lambda: plot_risk_reward(_follow(policy, horizon), parse(BOUND)),
        ),
    ]


def _draw_outcomes(policy: str, horizon: int) -> Any:
    journeys = _follow(policy, horizon)
    return plot_outcomes(journeys, choose_outcomes(journeys))


@lru_cache(maxsize=2)
def _follow(policy: str, horizon: int) -> Journeys:
    """Return all journeys of a policy that a record keeps; both figures need them."""
    content = zlib.decompress(base64.b64decode(policy))
    return follow_policy(decode_policy(content), Exploration(horizon=horizon))


def _describe(letter: str, run: dict[str, Any]) -> str:
    ended = f", ended by the {run['stopped_by']}" if run["stopped_by"] else ""
    return (
        f"Under constraint {letter}, {run['seconds']:.3g} s and {run['samples']:,} samples{ended}, "
        f"give a policy of {run['decisions']:,} decisions with expected reward "
        f"{run['reward']:.4f} and risk {run['risk']:.5f}; {run['allowed']:.5f} would be allowed."
    )


def _judge(runs: Sequence[dict[str, Any]]) -> str:
    if all(run["complete"] and run["safe"] for run in runs):
        whole = (
            "Policies of the paper satisfy the bound only up to the states explored; ours are "
            "complete, with a certificate over every outcome."
        )
    else:
        whole = "Some policy is partial, or its certificate does not pass."
    shares = " and ".join(f"{100 * run['risk'] / run['allowed']:.0f} %" for run in runs)
    return (
        f"{whole} They use {shares} of the risk that their rewards would allow. The map is ours, "
        "since the paper gives no coordinates, so that routes compare and numbers don't."
    )


def _list_claims(numbers: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    if not numbers:
        return []
    whole = all(run["complete"] and run["safe"] for run in numbers.values())
    text = f"{EXPLORATION_SECONDS} s are enough for a mission of over 10¹³ histories"
    found = ", ".join(
        f"{letter}: {run['decisions']:,} decisions in {run['seconds']:.0f} s"
        for letter, run in numbers.items()
    )
    state = "complete and certified" if whole else "not all complete and certified"
    return [Claim(text, f"{state} ({found})", weigh(whole))]


def _to_cell(value: Any) -> str | float | None:
    return ("yes" if value else "no") if isinstance(value, bool) else value
