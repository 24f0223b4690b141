"""The paper's exploration mission: one policy of each planner on both maps, and six outcomes.

The paper gives no coordinates: the maps are ours, "narrow" and "wide". Whether 180 s are enough is
judged by the algorithm as printed, and by quality: what its policy earns and how much of the
mission it leaves without a plan, beside an upper bound on the optimum. A record keeps the
policy itself, so that figures can be drawn again without a search.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from examples.exploration.drawing import (
    choose_outcomes,
    follow_policy,
    plot_outcomes,
    plot_risk_reward,
)
from examples.exploration.drawing.journeys import Journeys
from reproduction.paper import EXPLORATION_HISTORIES, EXPLORATION_SECONDS
from reproduction.part import (
    Claim,
    Figure,
    Record,
    Section,
    Table,
    Task,
    Verdict,
    leave_open,
    weigh,
)
from reproduction.runs import CONSTRAINTS, describe_run, solve_timed
from vulcan.bounds.parse import parse
from vulcan.domains import Exploration
from vulcan.planning.solve import solve
from vulcan.policy.file import decode_policy, encode_policy
from vulcan.policy.policy import Policy
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits
from vulcan.sampling.local_vulcan import LocalVulcan
from vulcan.sampling.vulcan import Vulcan
from vulcan.solvers.base import Solver

__all__ = ["ExplorationMission"]

BOUND: Final = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"
HORIZON: Final = 9
MAPS: Final = ("narrow", "wide", "wider")

PRINTED: Final = "as printed, c = 2"
SHOWN, PRICES = "LocalVulcan, A", "Vulcan()"
PLANNERS: Final[Mapping[str, Solver]] = {
    PRINTED: Vulcan.paper(2.0),
    SHOWN: LocalVulcan(constraint=CONSTRAINTS["A"]),
    PRICES: Vulcan(),
}
"""The last is the planner that this library takes by default; it also bounds all others."""

MEMORY: Final = 4_000_000_000
"""Bytes of the search tree: it would have more than many machines before the paper's time is up."""

QUICK_SAMPLES: Final = 2048

ENOUGH: Final = 0.99
"""A policy that earns this share of what the same constraint can be seen to admit is good."""

DARING: Final = 0.05
"""A policy that takes less than this share of the allowed risk does not use the gaps."""

NUMBERS: Final = (
    "reward",
    "upper_bound",
    "risk",
    "allowed",
    "frontier",
    "complete",
    "decisions",
    "samples",
    "seconds",
    "stopped_by",
)
"""What the table says of each policy."""

Found = Mapping[tuple[str, str], Mapping[str, Any]]
"""What was found, by map and planner."""


class ExplorationMission:
    """The exploration mission."""

    name = "exploration"
    title = "Exploration: six outcomes of one policy"
    version = 3

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a search for each planner on each map."""
        full = {"time_limit": EXPLORATION_SECONDS, "memory": MEMORY}
        limits = {"samples": QUICK_SAMPLES} if quick else full
        return [
            {"planner": planner, "map": where, "horizon": HORIZON, **limits}
            for where in MAPS
            for planner in PLANNERS
        ]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes; the certificate takes its own."""
        return float(15.0 + task.get("time_limit", 2.0))

    def run(self, task: Task) -> dict[str, Any]:
        """Search, and keep the policy."""
        names = ("samples", "time_limit", "memory")
        limits = Limits(**{name: task[name] for name in names if name in task})
        bound, planner = parse(BOUND), task["planner"]
        tiny = Problem(Exploration(map=task["map"], horizon=2), bound)
        solve(tiny, PLANNERS[planner], samples=10)  # loads what is compiled
        problem = Problem(Exploration(map=task["map"], horizon=task["horizon"]), bound)
        result, seconds = solve_timed(problem, PLANNERS[planner], limits=limits)
        assert isinstance(result.policy, Policy)
        assert result.certificate is not None
        content = zlib.compress(encode_policy(result.policy), 9)
        upper = result.upper_bound
        return {
            **describe_run(result, seconds),
            "upper_bound": None if upper is None else float(upper),
            "allowed": float(result.certificate.allowed),
            "frontier": float(result.certificate.frontier),
            "passes": result.certificate.passes,
            "decisions": len(result.policy),
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
        found = {(r.task["map"], r.task["planner"]): r.found for r in records}
        horizons = {r.task["map"]: r.task["horizon"] for r in records}
        numbers = {
            f"{planner}, {where}": {name: found[where, planner][name] for name in NUMBERS}
            for where in MAPS
            for planner in PLANNERS
            if (where, planner) in found
        }
        return Section(
            paper=paper,
            measured=_describe(found),
            meaning=_judge(found),
            claims=leave_open(_list_claims(found), quick),
            tables=[_tabulate(numbers)],
            figures=[
                figure
                for where in MAPS
                if (where, SHOWN) in found
                for figure in _list_figures(where, found[where, SHOWN], horizons[where])
            ],
            numbers=numbers,
        )


def _tabulate(numbers: Mapping[str, Mapping[str, Any]]) -> Table:
    header = ["planner, map", *(name.replace("_", " ") for name in NUMBERS)]
    rows = [[name, *(_to_cell(run[of]) for of in NUMBERS)] for name, run in numbers.items()]
    caption = (
        "The policies and their searches; up to the frontier of a partial policy, which is reached "
        "with the probability given. No policy earns more than the upper bound. The limit is in "
        "seconds of the clock; the seconds here are the processor's, which had other work to do"
    )
    return Table("exploration", caption, header, rows, brief=True)


def _list_figures(where: str, run: Mapping[str, Any], horizon: int) -> list[Figure]:
    policy = run["policy"]
    return [
        Figure(
            f"exploration-{where}",
            f"Six outcomes of the policy of {SHOWN} on the {where} map, chosen by one rule: the "
            "probable ones that differ",
            lambda: _draw_outcomes(policy, where, horizon),
        ),
        Figure(
            f"exploration-{where}-risk",
            f"Risk against reward over all outcomes of the policy of {SHOWN} on the {where} map",
            lambda: plot_risk_reward(_follow(policy, where, horizon), parse(BOUND)),
        ),
    ]


def _draw_outcomes(policy: str, where: str, horizon: int) -> Any:
    journeys = _follow(policy, where, horizon)
    return plot_outcomes(journeys, choose_outcomes(journeys))


@lru_cache(maxsize=2)
def _follow(policy: str, where: str, horizon: int) -> Journeys:
    """Return all journeys of a policy that a record keeps; both figures need them."""
    content = zlib.decompress(base64.b64decode(policy))
    return follow_policy(decode_policy(content), Exploration(map=where, horizon=horizon))


def _describe(found: Found) -> str:
    """Return what the algorithm as printed and ours found, on each map."""
    texts = []
    for where in MAPS:
        for planner in PLANNERS:
            if run := found.get((where, planner)):
                partial = "" if run["complete"] else f", {100 * run['frontier']:.1f} % unplanned"
                texts.append(f"{planner} on {where}: {run['reward']:.3f}{partial}")
    return f"Expected rewards: {'; '.join(texts)}." if texts else ""


def _judge(found: Found) -> str:
    """Return what the difference means."""
    texts = []
    for where in MAPS:
        printed, other = found.get((where, PRINTED)), found.get((where, SHOWN))
        if printed and other:
            risks = [100 * run["risk"] / run["allowed"] for run in (printed, other)]
            texts.append(
                f"On the {where} map the policy as printed takes {risks[0]:.2g} % of the risk that "
                f"its reward would allow, that of {SHOWN} {risks[1]:.2g} %."
            )
    whole = [run for (_, planner), run in found.items() if planner != PRINTED]
    if whole and all(run["complete"] and run["passes"] for run in whole):
        texts.append(
            "Policies of the paper satisfy the bound only up to the states explored; those of "
            "this library are complete, with a certificate over every outcome."
        )
    elif whole:
        texts.append("Some policy is partial, or its certificate does not pass.")
    if texts:
        texts.append(
            "The maps are ours, since the paper gives no coordinates, so that routes compare and "
            "numbers don't."
        )
    return " ".join(texts)


def _list_claims(found: Found) -> list[Claim]:
    pairs = {
        where: (found[where, PRINTED], found[where, SHOWN])
        for where in MAPS
        if (where, PRINTED) in found and (where, SHOWN) in found
    }
    if len(pairs) < len(MAPS):
        return []
    quality = "; ".join(
        f"{where}: {printed['reward']:.2f} as printed, without a plan in "
        f"{100 * printed['frontier']:.2g} % of outcomes; {other['reward']:.2f} by {SHOWN}"
        f"{_add_best(found, where)}"
        for where, (printed, other) in pairs.items()
    )
    safe = all(run["passes"] for pair in pairs.values() for run in pair)
    good = [p["complete"] and p["reward"] >= ENOUGH * o["reward"] for p, o in pairs.values()]
    risks = "; ".join(
        f"{where}: {p['risk']:.2g} of {p['allowed']:.2g} as printed, {o['risk']:.2g} of "
        f"{o['allowed']:.2g} by {SHOWN}"
        for where, (p, o) in pairs.items()
    )
    daring = [[run["risk"] >= DARING * run["allowed"] for run in pair] for pair in pairs.values()]
    return [
        Claim(
            f"{EXPLORATION_SECONDS} s are enough for a mission of over 10¹³ histories",
            quality,
            weigh(safe and all(good), Verdict.PARTLY if safe else Verdict.FAILS),
        ),
        Claim(
            "The policy takes the risk of a gap where samples are good",
            f"risk taken and allowed: {risks}",
            weigh(
                all(printed for printed, _ in daring),
                Verdict.PARTLY if any(map(any, daring)) else Verdict.FAILS,
            ),
        ),
    ]


def _add_best(found: Found, where: str) -> str:
    best = found.get((where, PRICES))
    return "" if best is None else f", {best['reward']:.2f} by {PRICES}"


def _to_cell(value: Any) -> str | float | None:
    return ("yes" if value else "no") if isinstance(value, bool) else value
