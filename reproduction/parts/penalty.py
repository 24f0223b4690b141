"""The paper's example of three actions, on which no penalty of failure finds the best one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import numpy as np

from reproduction.figures.curves import find_envelope, plot_penalties
from reproduction.paper import PENALTY_TIE
from reproduction.part import Claim, Figure, Record, Section, Table, Task, weigh
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.baselines.integer_program import IntegerProgram
from vulcan.baselines.penalty import Penalty
from vulcan.bounds.forms import Linear
from vulcan.domains import ThreeActions
from vulcan.exact.pipeline import Pareto
from vulcan.planning.solve import solve
from vulcan.problem import Problem
from vulcan.sampling.local_vulcan import LocalVulcan
from vulcan.sampling.vulcan import Vulcan
from vulcan.solvers.base import Solver
from vulcan.solvers.local_tests import SequenceConstraint

__all__ = ["PenaltyExample"]

BOUND: Final = Linear(0.004)

PENALTY: Final = "penalty"

SOLVERS: Final[Mapping[str, Solver]] = {
    "Vulcan, as printed": Vulcan.paper(),
    "LocalVulcan": LocalVulcan(),
    "Vulcan()": Vulcan(),
    "VulcanFS, A": ForwardSearch(SequenceConstraint()),
    "VulcanFS, B": ForwardSearch(),
    "Pareto": Pareto(),
    "IntegerProgram": IntegerProgram(),
}

LIMITS: Final[Mapping[str, Mapping[str, Any]]] = {"Vulcan, as printed": {"samples": 1000}}
"""The algorithm as printed never ends by itself."""

SHOWN: Final = 2 * PENALTY_TIE
"""The largest penalty that the figure shows."""


class PenaltyExample:
    """Which of three actions a penalty finds, and which are found with the bound itself."""

    name = "penalty"
    title = "Risk bounds as penalties: three actions"
    version = 2

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for the sweep over penalties, and one for each solver."""
        return [{"method": PENALTY}, *({"method": name} for name in SOLVERS)]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        return 0.5

    def run(self, task: Task) -> dict[str, Any]:
        """Solve the example by penalties, or by one of the solvers."""
        problem = Problem(ThreeActions(), BOUND)
        method = task["method"]
        if method == PENALTY:
            result = solve(problem, Penalty(list_penalties()))
            return {"trials": [[t.multiplier, t.reward, t.risk, t.passes] for t in result.trials]}
        result = solve(problem, SOLVERS[method], **LIMITS.get(method, {}))
        certificate = result.certificate
        assert certificate is not None  # the first action is acceptable
        return {
            "reward": float(certificate.reward),
            "risk": float(certificate.risk),
            "passes": certificate.passes,
        }

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = {record.task["method"]: record.found for record in records}
        ranges = list(_list_ranges(found.get(PENALTY, {}).get("trials", ())))
        solved = {name: found[name] for name in SOLVERS if name in found}
        numbers = _summarise(ranges, solved)
        return Section(
            paper=(
                "With Δ(x) = 0.004 x the action a2 is the best that is acceptable. A penalty M "
                f"below {PENALTY_TIE:g} leads to a3, one above to a1, none to a2; Vulcan finds a2."
            ),
            measured=_describe(ranges, solved),
            meaning=_judge(numbers),
            claims=_list_claims(numbers),
            tables=[_tabulate(ranges, solved)],
            figures=[_draw(found.get(PENALTY, {}).get("trials", ()))],
            numbers=numbers,
        )


def list_penalties() -> list[float]:
    """Return the penalties of the sweep: none, around the tie, and from tiny to prohibitive."""
    around = np.linspace(0.0, SHOWN, 1001)
    wide = np.geomspace(1e-3, 1e9, 1201)
    return sorted({float(penalty) for penalty in (*around, *wide)})


def evaluate_actions() -> dict[str, tuple[float, float]]:
    """Return the expected reward and the risk of each action, by its name."""
    model = ThreeActions()
    state = model.initial_state()
    answers = {name: model.outcomes(state, name) for name in model.actions(state)}
    return {
        name: (
            sum(o.probability * o.reward for o in outcomes),
            sum(o.probability for o in outcomes if o.fails),
        )
        for name, outcomes in answers.items()
    }


def _name_action(reward: float, risk: float) -> str:
    """Return the action that has this reward and risk."""
    actions = evaluate_actions()
    return min(
        actions,
        key=lambda name: abs(actions[name][0] - reward) + abs(actions[name][1] - risk),
    )


Range = tuple[float, float, int, str, float, float, bool]
"""The least and the largest penalty, how many were tried, the action, its numbers, its verdict."""


def _list_ranges(trials: Sequence[Sequence[Any]]) -> Iterator[Range]:
    """Yield the ranges of penalties that lead to the same action."""
    for _, group in groupby(trials, key=lambda trial: _name_action(trial[1], trial[2])):
        same = list(group)
        _, reward, risk, passes = same[0]
        name = _name_action(reward, risk)
        yield same[0][0], same[-1][0], len(same), name, reward, risk, passes


def _summarise(ranges: Sequence[Range], solved: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    actions = evaluate_actions()
    within = [name for name, (reward, risk) in actions.items() if risk <= BOUND(reward)]
    best = max(within, key=lambda name: actions[name][0])
    return {
        "best action": best,
        "penalties": sum(one[2] for one in ranges),
        "actions found by penalties": sorted({one[3] for one in ranges}),
        "penalties that find the best action": sum(one[2] for one in ranges if one[3] == best),
        "ties": [begin for _, begin, _ in find_envelope(actions, SHOWN)[1:]],
        **{
            f"action of {name}": _name_action(one["reward"], one["risk"])
            for name, one in solved.items()
        },
    }


def _describe(ranges: Sequence[Range], solved: Mapping[str, Mapping[str, Any]]) -> str:
    parts = [
        f"{action} for the {count:,} penalties from {least:.6g} to {most:.6g}"
        for least, most, count, action, *_ in ranges
    ]
    texts = []
    if parts:
        texts.append("A search with a penalty finds " + ", ".join(parts) + ".")
    by_action: dict[str, list[str]] = {}
    for name, one in solved.items():
        by_action.setdefault(_name_action(one["reward"], one["risk"]), []).append(name)
    texts += [f"{action} is found by {'; '.join(names)}." for action, names in by_action.items()]
    return " ".join(texts)


def _judge(numbers: Mapping[str, Any]) -> str:
    best = numbers["best action"]
    verdicts = []
    if numbers["penalties"]:
        missed = best not in numbers["actions found by penalties"]
        verdicts.append(
            f"none of {numbers['penalties']:,} penalties finds {best}, as the paper says: it is "
            "never on the upper envelope, whose corners are all that a penalty can reach"
            if missed
            else f"some penalty finds {best}, against what the paper says"
        )
    others = {
        name.removeprefix("action of "): action
        for name, action in numbers.items()
        if name.startswith("action of ")
    }
    wrong = [name for name, action in others.items() if action != best]
    if others:
        verdicts.append(
            f"all {len(others)} solvers that know the bound find {best}"
            if not wrong
            else f"of those that know the bound, {', '.join(wrong)} miss {best}"
        )
    text = "; ".join(verdicts)
    return text[:1].upper() + text[1:] + ("." if text else "")


def _list_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    if not numbers["penalties"]:
        return []
    best, reached = numbers["best action"], numbers["actions found by penalties"]
    found = f"{numbers['penalties']:,} penalties find {' and '.join(reached)}"
    hits = numbers["penalties that find the best action"]
    text = (
        f"Penalties on failure, of {numbers['penalties']:,}, that find a2 in the example of three "
        "actions"
    )
    claims = [Claim(text, found, weigh(best not in reached), "0", f"{hits:,}")]
    if (action := numbers.get("action of Vulcan, as printed")) is not None:
        text = "What Vulcan finds in this example"
        samples = LIMITS["Vulcan, as printed"]["samples"]
        there = f"as printed, c = √2, {samples:,} samples, 1 run: it finds {action}"
        claims.append(Claim(text, there, weigh(action == best), "a2", action))
    return claims


def _tabulate(ranges: Sequence[Range], solved: Mapping[str, Mapping[str, Any]]) -> Table:
    rows: list[list[str | float | None]] = []
    for least, most, count, action, reward, risk, passes in ranges:
        method = f"penalties {least:.6g} to {most:.6g} ({count:,} tried)"
        rows.append([method, action, reward, risk, BOUND(reward), "yes" if passes else "no"])
    for name, one in solved.items():
        reward, risk = one["reward"], one["risk"]
        verdict = "yes" if one["passes"] else "no"
        rows.append([name, _name_action(reward, risk), reward, risk, BOUND(reward), verdict])
    header = ["method", "action found", "reward", "risk", "allowed risk", "acceptable"]
    return Table("penalty", "Three actions with Δ(x) = 0.004 x: which one is found", header, rows)


def _draw(trials: Sequence[Sequence[Any]]) -> Figure:
    found: dict[str, list[float]] = {}
    for penalty, reward, risk, _ in trials:
        if penalty <= SHOWN:
            found.setdefault(_name_action(reward, risk), []).append(penalty)
    best = {name for name, _, _ in find_envelope(evaluate_actions(), SHOWN)}
    never = [name for name in evaluate_actions() if name not in best]
    return Figure(
        "penalty",
        f"What actions are worth with a penalty of failure; never the best: {', '.join(never)}",
        lambda: plot_penalties(
            evaluate_actions(), SHOWN, found=found, title=f"Three actions, Δ(x) = {BOUND}"
        ),
    )
