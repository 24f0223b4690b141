"""The paper's exploration mission: one policy of each planner on both maps, and six outcomes.

The paper gives no coordinates: the maps are ours, "narrow" and "wide". Whether 180 s are enough is
judged by the algorithm as printed, and by quality: what its policy earns and how much of the
mission it leaves without a plan, beside an upper bound on the optimum. A record keeps a policy
that is drawn (5 MB), so that its figures can be drawn again without a search; those in the
repository are without.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
from reproduction.runs import CONSTRAINTS, MEMORY, describe_run, show_power, solve_timed
from vulcan.bounds.parse import parse
from vulcan.domains import Exploration
from vulcan.domains.exploration.model import MOVES
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

ROOT, TWO = "as printed, c = √2", "as printed, c = 2"
PRINTED: Final = {"narrow": (ROOT, TWO), "wide": (ROOT,), "wider": (TWO,)}
"""The constants with which the printed planner runs on each map."""

SHOWN, PRICES = "LocalVulcan, A", "Vulcan()"
PLANNERS: Final[Mapping[str, Solver]] = {
    ROOT: Vulcan.paper(),
    TWO: Vulcan.paper(2.0),
    SHOWN: LocalVulcan(local_test=CONSTRAINTS["A"]),
    PRICES: Vulcan(),
}
"""The last is the planner that this library takes by default; it also bounds all others."""

OUTCOMES: Final = 4
"""Values that a sample may have."""

RADIX: Final = 64
"""Cells are numbers in this radix: maps have fewer rows, with a margin."""

AT_ONCE: Final = 1 << 16
"""Paths that are followed together."""

DRAWN: Final = {("wider", TWO): "printed", ("wider", PRICES): "ours"}
"""Policies whose outcomes are drawn, and how their figures are called."""

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
    version = 4

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a search for each planner on each map."""
        full = {"time_limit": EXPLORATION_SECONDS, "memory": MEMORY}
        limits = {"samples": QUICK_SAMPLES} if quick else full
        searches = [
            {"planner": planner, "map": where, "horizon": HORIZON, **limits}
            for where in MAPS
            for planner in (*PRINTED[where], SHOWN, PRICES)
        ]
        return [
            *searches,
            {"count": "histories", "map": MAPS[0], "horizon": 6 if quick else HORIZON},
        ]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes; the certificate takes its own."""
        return float(15.0 + task.get("time_limit", 2.0))

    def run(self, task: Task) -> dict[str, Any]:
        """Search, and keep the policy."""
        if "count" in task:
            model = Exploration(map=task["map"], horizon=task["horizon"])
            return {"histories": count_histories(model)}
        names = ("samples", "time_limit", "memory")
        limits = Limits(**{name: task[name] for name in names if name in task})
        bound, planner = parse(BOUND), task["planner"]
        tiny = Problem(Exploration(map=task["map"], horizon=2), bound)
        solve(tiny, PLANNERS[planner], samples=10)  # loads what is compiled
        problem = Problem(Exploration(map=task["map"], horizon=task["horizon"]), bound)
        result, seconds = solve_timed(problem, PLANNERS[planner], limits=limits)
        assert isinstance(result.policy, Policy)
        assert result.certificate is not None
        content = encode_policy(result.policy) if (task["map"], planner) in DRAWN else None
        upper = result.upper_bound
        return {
            **describe_run(result, seconds),
            "upper_bound": None if upper is None else float(upper),
            "allowed": float(result.certificate.allowed),
            "frontier": float(result.certificate.frontier),
            "passes": result.certificate.passes,
            "decisions": len(result.policy),
            "stopped_by": result.stopped_by,
            **({} if content is None else {"policy": _pack(content)}),
        }

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        paper = (
            f"About {EXPLORATION_HISTORIES:.1e} histories; after {EXPLORATION_SECONDS} s the "
            "figure shows six outcomes of one policy: some go through a narrow gap where samples "
            "are good, some turn back before it, some leave at once. Its reward, its risk and "
            "whether it is complete are not given."
        )
        counted = [r for r in records if "count" in r.task]
        records = [r for r in records if "count" not in r.task]
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
            claims=leave_open([*_list_claims(found), *map(_weigh_histories, counted)], quick),
            tables=[_tabulate(numbers)],
            figures=[
                figure
                for (where, planner), name in DRAWN.items()
                if (where, planner) in found
                for figure in _list_figures(where, planner, name, found, horizons[where])
            ],
            numbers=numbers,
        )


def _pack(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode("ascii")


def _tabulate(numbers: Mapping[str, Mapping[str, Any]]) -> Table:
    header = ["planner, map", *(name.replace("_", " ") for name in NUMBERS)]
    rows = [[name, *(_to_cell(run[of]) for of in NUMBERS)] for name, run in numbers.items()]
    caption = (
        f"The policies and their searches, {EXPLORATION_SECONDS} s or {MEMORY / 1e9:g} GB each; up "
        "to the frontier of a partial policy, which is reached with the probability given. No "
        "policy earns more than the upper bound"
    )
    rewards = ("reward", "upper bound")
    return Table("exploration", caption, header, rows, brief=True, rewards=rewards)


def _list_figures(where: str, planner: str, name: str, found: Found, horizon: int) -> list[Figure]:
    policy = found[where, planner].get("policy")
    return [
        Figure(
            f"exploration-{name}",
            f"Six outcomes of the policy {planner} on the {where} map, chosen by one rule: the "
            "probable ones that differ",
            lambda: policy and _draw_outcomes(policy, where, horizon),
        ),
        Figure(
            f"exploration-{name}-risk",
            f"Risk against reward over all outcomes of the policy {planner} on the {where} map",
            lambda: policy and plot_risk_reward(_follow(policy, where, horizon), parse(BOUND)),
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
        printed, other = _find_printed(found, where), found.get((where, SHOWN))
        if printed and other:
            risks = [100 * run["risk"] / run["allowed"] for run in (printed, other)]
            texts.append(
                f"On the {where} map the policy as printed takes {risks[0]:.2g} % of the risk that "
                f"its reward would allow, that of {SHOWN} {risks[1]:.2g} %."
            )
    whole = [run for (_, planner), run in found.items() if planner in (SHOWN, PRICES)]
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
        where: (printed, found[where, SHOWN])
        for where in MAPS
        if (printed := _find_printed(found, where)) and (where, SHOWN) in found
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
    least = min(p["reward"] / o["reward"] for p, o in pairs.values())
    shares = {where: p["risk"] / p["allowed"] for where, (p, _) in pairs.items()}
    boldest = max(shares, key=lambda where: shares[where])
    return [
        Claim(
            f"{EXPLORATION_SECONDS} s are enough for it: reward as printed over that of {SHOWN}, "
            "least of three maps",
            quality,
            weigh(safe and all(good), Verdict.PARTLY if safe else Verdict.FAILS),
            "—",
            f"{100 * least:.0f} %",
        ),
        Claim(
            "The policy takes the risk of a gap where samples are good: share of the allowed risk, "
            f"map {boldest}",
            f"risk taken and allowed: {risks}",
            weigh(
                all(printed for printed, _ in daring),
                Verdict.PARTLY if any(map(any, daring)) else Verdict.FAILS,
            ),
            "“high risk”",
            f"{100 * shares[boldest]:.2g} %",
        ),
    ]


def _weigh_histories(record: Record) -> Claim:
    histories = record.found["histories"]
    return Claim(
        f"Histories of the mission, collisions apart (map {record.task['map']})",
        f"{histories:.2g}: a cell that was sampled before has one value only; the paper's number "
        "is 32⁹, all sequences of 8 actions and 4 values",
        weigh(histories >= 0.9 * EXPLORATION_HISTORIES, Verdict.PARTLY),
        show_power(EXPLORATION_HISTORIES),
        show_power(histories),
    )


def count_histories(model: Exploration) -> float:
    """Return how many histories of whole missions there are, collisions apart.

    A sample has four values, a cell that was sampled before only one. Paths are followed together,
    those that begin alike in one array.
    """
    area = model.area
    steps = np.array([RADIX * east + north for east, north in MOVES.values()])
    inside = np.zeros((RADIX, RADIX), bool)  # the margin is outside
    inside[1 : area.columns + 1, 1 : area.rows + 1] = True
    start = RADIX * (area.start[0] + 1) + area.start[1] + 1

    def count(paths: NDArray[np.int64], weights: NDArray[np.float64], left: int) -> float:
        if left == 0:
            return float(weights.sum())
        if len(paths) > AT_ONCE:
            halves = zip(np.array_split(paths, 2), np.array_split(weights, 2), strict=True)
            return sum(count(*half, left) for half in halves)
        total, grown = 0.0, []
        for step in steps:
            cells = paths[:, -1] + step
            kept = inside.flat[cells]
            cells, before = cells[kept], paths[kept]
            new = ~(before == cells[:, None]).any(axis=1)
            after = weights[kept] * np.where(new, float(OUTCOMES), 1.0)
            if left == 1:
                total += float(after.sum())
            else:
                grown.append((np.column_stack((before, cells)), after))
        if left == 1:
            return total
        every, weight = (np.concatenate(some) for some in zip(*grown, strict=True))
        return count(every, weight, left - 1)

    return count(np.array([[start]]), np.ones(1), model.horizon)


def _find_printed(found: Found, where: str) -> Mapping[str, Any] | None:
    """Return the better policy of the algorithm as printed."""
    runs = [found[where, planner] for planner in PRINTED[where] if (where, planner) in found]
    return max(runs, key=lambda run: float(run["reward"]), default=None)


def _add_best(found: Found, where: str) -> str:
    best = found.get((where, PRICES))
    return "" if best is None else f", {best['reward']:.2f} by {PRICES}"


def _to_cell(value: Any) -> str | float | None:
    return ("yes" if value else "no") if isinstance(value, bool) else value
