"""The paper's figure of the policy space, with real policies: all of a small bandit.

Horizon 3 has 7,204 deterministic policies. Each is a point of expected reward and risk; the local
constraints admit some of those below the line Δ, and what is lost is the best of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from reproduction.figures.policy_space import plot_policy_space
from reproduction.part import Claim, Figure, Record, Section, Table, Task, weigh
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.bounds.base import RiskBound
from vulcan.bounds.forms import Linear
from vulcan.domains import Bandit
from vulcan.domains.bandit import MACHINES
from vulcan.exact.pipeline import Pareto
from vulcan.numerics import TOLERANCE
from vulcan.planning.solve import solve
from vulcan.problem import Problem
from vulcan.solvers.base import Solver
from vulcan.solvers.local_tests import SequenceConstraint, SurvivalConstraint

__all__ = ["PolicyPoint", "PolicySpace", "enumerate_policies"]

SLOPE: Final = 0.002

DARING: Final = 20
"""How many times the risks, and the slope of the bound, are larger in the second figure."""

SPACES: Final[Sequence[Task]] = (
    {"horizon": 2, "slope": SLOPE, "factor": 1},
    *(
        {"horizon": 3, "slope": slope, "factor": 1}
        for slope in (0.001, 0.0015, SLOPE, 0.0025, 0.003)
    ),
    {"horizon": 3, "slope": SLOPE, "factor": DARING},
)

SOLVERS: Final[Mapping[str, Solver]] = {
    "all": Pareto(),
    "A": ForwardSearch(SequenceConstraint()),
    "B": ForwardSearch(SurvivalConstraint()),
}

Row = Sequence[Any]
"""Policies in one place: reward, risk, whether the bound accepts them and A and B admit them; how
many they are."""


class PolicySpace:
    """All policies of a small bandit, what the bound accepts, and what the constraints admit."""

    name = "policy-space"
    title = "The space of policies"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for each horizon and bound."""
        return SPACES

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        return 0.3

    def run(self, task: Task) -> dict[str, Any]:
        """List all policies of one bandit, and solve it."""
        problem = _make_problem(task)
        points = enumerate_policies(problem.model, problem.risk_bound)
        solved = {}
        for name, solver in SOLVERS.items():
            certificate = solve(problem, solver).certificate
            assert certificate is not None  # stopping at once is always acceptable
            solved[name] = [float(certificate.reward), float(certificate.risk)]
        counts = Counter(
            (
                round(point.reward, 12),
                round(point.risk, 15),
                point.risk <= problem.risk_bound(point.reward) + TOLERANCE,
                point.by_a,
                point.by_b,
            )
            for point in points
        )
        return {"points": [[*place, count] for place, count in counts.items()], "solved": solved}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        spaces = [_count(record) for record in records]
        shown = {record.task["factor"]: record for record in records if _is_shown(record.task)}
        return Section(
            paper=(
                "All policies that the local constraint admits lie below Δ, and some below Δ are "
                "not admitted, perhaps the optimum π* among them; Vulcan converges to the best "
                "admitted one, π*f. The figure is a sketch."
            ),
            measured=" ".join(_describe(space) for space in spaces if _is_shown(space)),
            meaning=_judge(spaces),
            claims=_list_claims(spaces),
            tables=[_tabulate(spaces)],
            figures=[_draw(record) for _, record in sorted(shown.items())],
            numbers={_name(space): space for space in spaces},
        )


@dataclass(frozen=True)
class PolicyPoint:
    """A policy, from some history on.

    Attributes
    ----------
    reward, risk
        Expected reward and probability of failure from there on.
    by_a, by_b
        Whether constraint A, and B, admits all its histories.
    """

    reward: float
    risk: float
    by_a: bool
    by_b: bool


def enumerate_policies(
    model: Any,
    bound: RiskBound,
    state: Any = None,
    step: int = 0,
    survival: float = 1.0,
    credits_so_far: tuple[float, float] = (0.0, 0.0),
) -> list[PolicyPoint]:
    """Return every deterministic policy of a small model, straight from the definitions.

    Parameters
    ----------
    model
        A model without discount, negative rewards, or actions that are sure to fail. There are
        more policies than anything can hold unless it is very small.
    bound
        The risk bound, at least 0 at 0.
    state, step, survival, credits_so_far
        The history to go on from: its last state, its length, and what the constraints know of it,
        the credits of A and B.
    """
    state = model.initial_state() if step == 0 else state
    actions = model.actions(state) if step < model.horizon else ()
    if not actions:
        risk, (credit_a, credit_b) = 1 - survival, credits_so_far
        by_a = risk / survival <= bound(credit_a) + TOLERANCE
        return [PolicyPoint(0.0, 0.0, by_a, risk <= bound(credit_b) + TOLERANCE)]
    found = []
    for action in actions:
        outcomes = model.outcomes(state, action)
        mean = sum(o.probability * o.reward for o in outcomes)
        risk = sum(o.probability for o in outcomes if o.fails)
        after = (credits_so_far[0] + mean, credits_so_far[1] + survival * mean)
        safe = [o for o in outcomes if not o.fails]
        branches = [
            enumerate_policies(model, bound, o.state, step + 1, survival * (1 - risk), after)
            for o in safe
        ]
        for rest in product(*branches):
            pairs = list(zip(safe, rest, strict=True))
            found.append(
                PolicyPoint(
                    mean + sum(o.probability * point.reward for o, point in pairs),
                    risk + sum(o.probability * point.risk for o, point in pairs),
                    all(point.by_a for point in rest),
                    all(point.by_b for point in rest),
                )
            )
    return found


def _make_problem(task: Task) -> Problem:
    factor = task["factor"]
    machines = tuple(replace(machine, risk=factor * machine.risk) for machine in MACHINES)
    return Problem(Bandit(task["horizon"], machines=machines), Linear(factor * task["slope"]))


def _is_shown(task: Task) -> bool:
    return bool(task["horizon"] == 3 and task["slope"] == SLOPE)


def _count(record: Record) -> dict[str, Any]:
    """Return how many policies there are in each set, and the reward of the best."""
    rows, solved = record.found["points"], record.found["solved"]
    space: dict[str, Any] = dict(record.task)
    space["policies"] = _add_up(rows)
    space["admitted beyond the bound"] = _add_up(
        [row for row in rows if not row[2] and (row[3] or row[4])]
    )
    for column, name in enumerate(SOLVERS, 2):
        members = [row for row in rows if row[column]]
        best = max(row[0] for row in members)
        space[f"number {name}"] = _add_up(members)
        space[f"best {name}"] = best
        space[f"solver agrees {name}"] = abs(best - solved[name][0]) < 1e-9
    return space


def _add_up(rows: Sequence[Row]) -> int:
    return sum(row[5] for row in rows)


def _name(space: Mapping[str, Any]) -> str:
    daring = f", risks times {space['factor']}" if space["factor"] != 1 else ""
    return f"horizon {space['horizon']}, slope {space['factor'] * space['slope']:g}{daring}"


def _describe(space: Mapping[str, Any]) -> str:
    return (
        f"{_name(space)}: of {space['policies']:,} deterministic policies "
        f"{space['number all']:,} are within the bound; A admits {space['number A']:,} and B "
        f"{space['number B']:,}. The best of these sets earn {space['best all']:.4f}, "
        f"{space['best A']:.4f} and {space['best B']:.4f}."
    ).replace("horizon", "Horizon", 1)


def _judge(spaces: Sequence[Mapping[str, Any]]) -> str:
    agree = all(space[f"solver agrees {name}"] for space in spaces for name in SOLVERS)
    beyond = sum(space["admitted beyond the bound"] for space in spaces)
    lost = sum(space["best A"] < space["best all"] - 1e-9 for space in spaces)
    more = [_name(space) for space in spaces if space["number B"] > space["number A"]]
    texts = [
        "the sketch is true of real policies: everything that is admitted is within the bound"
        if not beyond
        else f"{beyond:,} policies are admitted beyond the bound, which is a defect",
        f"in {lost} of {len(spaces)} cases the optimum is among what A does not admit",
        f"B admits more than A at {'; '.join(more)}"
        if more
        else "B and A admit the same number of policies everywhere here",
        "the solvers find exactly the best of these sets, listed one by one"
        if agree
        else "the solvers do not find the best of these sets, which is a defect",
    ]
    text = "; ".join(texts) + "."
    return text[0].upper() + text[1:]


def _list_claims(spaces: Sequence[Mapping[str, Any]]) -> list[Claim]:
    if not spaces:
        return []
    beyond = sum(space["admitted beyond the bound"] for space in spaces)
    listed = sum(space["policies"] for space in spaces)
    found = f"{beyond:,} beyond it, of {listed:,} policies listed one by one"
    text = "Policies that the constraint admits and that break the bound"
    return [Claim(text, found, weigh(not beyond), "0", f"{beyond:,}")]


def _tabulate(spaces: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        [
            space["horizon"],
            space["factor"] * space["slope"],
            space["factor"],
            space["policies"],
            *(space[f"number {name}"] for name in SOLVERS),
            *(space[f"best {name}"] for name in SOLVERS),
        ]
        for space in spaces
    ]
    header = [
        "horizon",
        "slope of Δ",
        "risks times",
        "policies",
        "within Δ",
        "A admits",
        "B admits",
    ]
    header += ["reward of π*", "of π*f, A", "of π*f, B"]
    return Table("policy-space", "All deterministic policies of small bandits", header, rows)


def _draw(record: Record) -> Figure:
    rows, solved, factor = record.found["points"], record.found["solved"], record.task["factor"]
    groups: dict[str, list[tuple[float, float]]] = {
        "beyond the bound": [],
        "within the bound, not admitted": [],
        "admitted by B, not by A": [],
        "admitted by A and B": [],
        "admitted by A, not by B": [],
    }
    names = list(groups)
    for reward, risk, within, by_a, by_b, _ in rows:
        admitted = (2 if not by_a else 3 if by_b else 4) if by_a or by_b else int(within)
        groups[names[admitted]].append((reward, risk))
    marked = {f"π*, reward {solved['all'][0]:.4f}": tuple(solved["all"])}
    for letter in ("A", "B"):
        name = "A and B" if solved["A"] == solved["B"] else letter
        marked[f"π*f of {name}, reward {solved[letter][0]:.4f}"] = tuple(solved[letter])
    problem = _make_problem(record.task)
    daring = f", risks times {factor}" if factor != 1 else ""
    return Figure(
        f"policy-space-{factor}" if factor != 1 else "policy-space",
        f"All {_add_up(rows):,} policies of the bandit with horizon 3{daring}",
        lambda: plot_policy_space(
            groups, problem.risk_bound, marked, title=f"{problem.model}{daring}"
        ),
    )
