"""The paper's planning times: VulcanFS beside linear and integer programs, over horizons.

Construction counts, loading compiled code doesn't. Programs come as published (Dolgov and Durfee,
over all histories or merged states, solved from nothing) and as we solve them (integer ones reduced
by the dual bound, linear ones from a warm start). VulcanFS comes in three forms: as printed,
evaluating the model in every history; leaving an action at its first inadmissible outcome, with a
compiled model evaluated in every history; and evaluating each state and action once, as programs
do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from reproduction.figures.curves import plot_curves
from reproduction.paper import (
    DETERMINISTIC_TREE_SPEEDUP,
    FORWARD_SEARCH_SECONDS,
    SPEEDUP_HORIZON,
    STOCHASTIC_GRAPH_SPEEDUP,
    UNSOLVED_HORIZON,
)
from reproduction.part import Claim, Figure, Record, Section, Table, Task, Verdict, weigh
from reproduction.parts.timing import Found, Ratio
from reproduction.runs import PlainBandit, solve_timed
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.baselines.integer_program import IntegerProgram
from vulcan.baselines.programs import LinearProgram
from vulcan.bounds.forms import Linear
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Pareto
from vulcan.problem import Problem
from vulcan.runtime.formatting import show_seconds
from vulcan.sampling.local_vulcan import LocalVulcan
from vulcan.solvers.base import Solver
from vulcan.solvers.finding import Status
from vulcan.solvers.local_tests import SequenceConstraint

__all__ = ["PlanningTime"]

SLOPE: Final = 0.002
SHORTEST: Final = 2

REPEATS: Final = 5
"""Short runs are repeated and the least times taken: what else the machine does only adds."""

LIMIT, QUICK_LIMIT = 30, 10
"""Seconds of a run."""

ENOUGH_SECONDS: Final = 0.5
"""A run that takes longer is not repeated."""


@dataclass(frozen=True)
class Method:
    """How the bandit is solved.

    Attributes
    ----------
    solver
        By which solver.
    quick, full
        Up to which horizon, in the quick report and the full one; there, the last of some is where
        a limit ends it.
    model
        The model, in plain Python or compiled.
    merges
        Whether histories of the same state are one, so that the model is evaluated once.
    """

    solver: Solver
    quick: int
    full: int
    model: type[Bandit] = PlainBandit
    merges: bool = True


MERGED, UNMERGED, PRINTED = "VulcanFS", "VulcanFS, compiled model", "VulcanFS, as printed"
FORMS: Final = (MERGED, UNMERGED, PRINTED)
TREE_SEARCH: Final = "LocalVulcan, A"
A: Final = ForwardSearch(SequenceConstraint())
METHODS: Final[Mapping[str, Method]] = {
    MERGED: Method(A, 9, 10),
    "VulcanFS, B": Method(ForwardSearch(), 9, 10),
    UNMERGED: Method(A, 9, 10, Bandit, merges=False),
    PRINTED: Method(ForwardSearch(SequenceConstraint(), cut_short=False), 6, 9, merges=False),
    TREE_SEARCH: Method(LocalVulcan(local_test=SequenceConstraint()), 8, 9),
    "LocalVulcan, B": Method(LocalVulcan(), 8, 9),
    "stochastic graph": Method(LinearProgram("graph"), 5, 9),
    "stochastic tree": Method(LinearProgram("tree"), 5, 8),
    "deterministic graph": Method(IntegerProgram("graph", reduced=False), 5, 8),
    "deterministic tree": Method(IntegerProgram("tree", reduced=False), 5, 7),
    "stochastic graph, ours": Method(LinearProgram("graph"), 5, 9),
    "deterministic graph, ours": Method(IntegerProgram("graph"), 5, 9),
    "deterministic tree, ours": Method(IntegerProgram("tree"), 5, 8),
    "fronts": Method(Pareto(), 8, 10),
}
PUBLISHED: Final = (
    "stochastic graph",
    "stochastic tree",
    "deterministic graph",
    "deterministic tree",
)
OURS: Final = (
    "stochastic graph, ours",
    "deterministic graph, ours",
    "deterministic tree, ours",
    "fronts",
)
SLOW: Final = (PRINTED, "stochastic tree", "deterministic tree", "deterministic tree, ours")


SPEEDUPS: Final = {
    "deterministic tree": (DETERMINISTIC_TREE_SPEEDUP, True),
    "stochastic graph": (STOCHASTIC_GRAPH_SPEEDUP, False),
}
"""The paper's claims, and whether it says at which horizon."""

EXPLANATION: Final = (
    f"{MERGED} and all programs evaluate a model in Python, once for each state and action; "
    f"{UNMERGED!r} evaluates a compiled one in every history, {PRINTED!r} the one in Python in "
    "every history."
)
"""What has to be known of the ratios."""

WORDS: Final = {
    Verdict.HOLDS: "holds",
    Verdict.PARTLY: "holds for some form of VulcanFS",
    Verdict.FAILS: "does not hold here",
    Verdict.OPEN: "is left open",
}


class PlanningTime:
    """Seconds and model evaluations of all methods over horizons."""

    name = "planning-time"
    title = "Bandit: planning time over horizons"
    version = 5

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for each method at each horizon."""
        limit = QUICK_LIMIT if quick else LIMIT
        return [
            {"method": name, "horizon": horizon, "time_limit": limit}
            for name, method in METHODS.items()
            for horizon in range(SHORTEST, (method.quick if quick else method.full) + 1)
        ]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        method = METHODS[task["method"]]
        # Times grow with the histories, and the longest horizon takes about all there is.
        slow = task["method"] in SLOW
        longest = task["time_limit"] if slow else min(20, task["time_limit"])
        return float(1.0 + longest * 5.0 ** (task["horizon"] - method.full))

    def run(self, task: Task) -> dict[str, Any]:
        """Solve one problem by one method, short ones again and again."""
        method, limit = METHODS[task["method"]], task["time_limit"]
        _solve(method, SHORTEST, limit)  # loads what is compiled
        run = _solve(method, task["horizon"], limit)
        for _ in range(REPEATS - 1):
            if run["seconds"] < ENOUGH_SECONDS:
                again = _solve(method, task["horizon"], limit)
                run = min(run, again, key=lambda run: float(run["seconds"]))
        return run

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = Found(_gather(records))
        limit = max((float(r.task["time_limit"]) for r in records), default=0.0)
        return Section(
            paper=(
                f"At horizon {SPEEDUP_HORIZON} VulcanFS is {DETERMINISTIC_TREE_SPEEDUP} times as "
                "fast as an integer program over histories (deterministic tree), and, at a horizon "
                f"that is not named, over {STOCHASTIC_GRAPH_SPEEDUP} times as fast as a linear "
                "program over merged states (stochastic graph). It takes about "
                f"{FORWARD_SEARCH_SECONDS[9]:,} s at horizon 9, at which no program is solved in "
                "two hours."
            ),
            measured=_describe(found),
            meaning=_judge(found),
            claims=_list_claims(found),
            tables=[
                _tabulate_ratios(found),
                _tabulate(found, "planning-time", f"Seconds (limit {limit:g} s)", "seconds"),
                _tabulate(found, "planning-evaluations", "Model evaluations", "evaluations"),
            ],
            figures=_draw(found, limit),
            numbers={
                f"{slow} / {fast}": asdict(ratio)
                for slow in METHODS
                for fast in FORMS
                if slow != fast and (ratio := found.compare_best(slow, fast)) is not None
            },
        )


def _gather(records: Sequence[Record]) -> dict[str, list[dict[str, Any]]]:
    """Return what was found by each method, the shortest horizon first."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(records, key=lambda record: int(record.task["horizon"])):
        runs.setdefault(record.task["method"], []).append(record.found)
    return runs


def _solve(method: Method, horizon: int, limit: float) -> dict[str, Any]:
    problem = Problem(method.model(horizon, merges=method.merges), Linear(SLOPE))
    result, seconds = solve_timed(problem, method.solver, time_limit=limit)
    return {
        "horizon": horizon,
        "ended": result.status is not Status.STOPPED,
        "proved": result.status is Status.SOLVED,
        "seconds": seconds,
        "evaluations": result.statistics.evaluations,
        "reward": None if result.certificate is None else float(result.certificate.reward),
    }


def _tabulate(found: Found, name: str, caption: str, what: str) -> Table:
    """Return a table of one number, over horizons and methods."""
    horizons = sorted({run["horizon"] for runs in found.runs.values() for run in runs})
    rows: list[list[str | float | None]] = []
    for method in METHODS:
        cells = dict(found.trace(method, what))
        if method in found.runs:
            rows.append([method, *(cells.get(horizon) for horizon in horizons)])
    caption += f" on the bandit, Δ(x) = {SLOPE} x; empty where it was stopped, or not run"
    if what == "seconds":
        caption += f". Below {ENOUGH_SECONDS:g} s the least of {REPEATS} runs, else one run"
    return Table(name, caption, ["method", *(f"horizon {h}" for h in horizons)], rows)


def _describe(found: Found) -> str:
    return EXPLANATION if found.runs else ""


def _tabulate_ratios(found: Found) -> Table:
    """Return how many times as long methods take as each form of VulcanFS."""
    rows: list[list[str | float | None]] = []
    for name in (*PUBLISHED, *OURS, TREE_SEARCH):
        ratios = [found.compare_best(name, fast) for fast in FORMS]
        if any(ratio is not None for ratio in ratios):
            rows.append([name, *(None if ratio is None else ratio.brief for ratio in ratios)])
    caption = (
        "How many times as long methods take as each form of VulcanFS, at horizon "
        f"{SPEEDUP_HORIZON} where no other is named"
    )
    header = ["method", *(f"times {fast}" for fast in FORMS)]
    return Table("planning-ratios", caption, header, rows, brief=True)


def _judge(found: Found) -> str:
    """Return what the ratios say about the paper's claims, and about ours."""
    verdicts = []
    for slow, (claim, _) in SPEEDUPS.items():
        if weighed := _weigh(found, slow):
            words, there = WORDS[weighed[0]], weighed[1]
            verdicts.append(f"the {claim}-fold speedup over the {slow} {words} ({there})")
    compared = {name: found.compare_last(name, MERGED) for name in OURS}
    known = {name: ratio for name, ratio in compared.items() if ratio and not ratio.at_least}
    if known:
        name = min(known, key=lambda name: known[name].times)
        verdicts.append(
            "our own methods lose no reward, and the fastest takes not much longer, or less, than "
            f"VulcanFS ({name}: {known[name]})"
            if known[name].times < 2
            else f"our own methods lose no reward, and take longer ({name}: {known[name]})"
        )
    verdicts.append(_judge_tree_search(found))
    text = "; ".join(verdict for verdict in verdicts if verdict)
    return text[:1].upper() + text[1:] + ("." if text else "")


def _weigh(found: Found, slow: str) -> tuple[Verdict, str] | None:
    """Return whether a speedup of the paper holds, for all forms of VulcanFS, and what it is.

    Where the paper names no horizon, the one that speaks most for the claim counts.
    """
    claim, named = SPEEDUPS[slow]
    compare = found.compare_best if named else found.compare_most
    compared = {fast: compare(slow, fast) for fast in FORMS}
    ratios = {fast: ratio for fast, ratio in compared.items() if ratio is not None}
    if not ratios:
        return None
    best = max(ratios.values(), key=lambda ratio: ratio.times)
    there = ", ".join(
        f"{ratio.number} times ({fast}"
        + f", horizon {ratio.horizon}" * (ratio.horizon != SPEEDUP_HORIZON)
        + ")"
        for fast, ratio in ratios.items()
    )
    if (named and best.horizon != SPEEDUP_HORIZON) or (best.times < claim and best.at_least):
        return Verdict.OPEN, there
    if best.times < claim:
        return Verdict.FAILS, there
    return weigh(all(ratio.times >= claim for ratio in ratios.values()), Verdict.PARTLY), there


def _find_most(found: Found, slow: str) -> Ratio | None:
    """Return what speaks most for the claim, over all forms of VulcanFS."""
    ratios = [ratio for fast in FORMS if (ratio := found.compare_most(slow, fast)) is not None]
    return max(ratios, key=lambda ratio: ratio.times, default=None)


def _list_claims(found: Found) -> list[Claim]:
    claims = []
    for slow, (claim, named) in SPEEDUPS.items():
        if weighed := _weigh(found, slow):
            horizon = f" at horizon {SPEEDUP_HORIZON}" * named
            more = "" if named else "over "
            form = "evaluating each state once" if named else "its fastest form"
            text = f"VulcanFS, {form}, against the {slow}{horizon}: times as fast"
            ours = found.compare_best(slow, MERGED) if named else _find_most(found, slow)
            number = "" if ours is None else ours.number
            claims.append(Claim(text, weighed[1], weighed[0], f"{more}{claim}", number))
    solved = {
        name: run["seconds"]
        for name in PUBLISHED
        if (run := found.find(name, UNSOLVED_HORIZON)) and run["ended"]
    }
    if any(found.find(name, UNSOLVED_HORIZON) for name in PUBLISHED):
        texts = [f"the {name} takes {show_seconds(seconds)}" for name, seconds in solved.items()]
        text = f"No program is solved at horizon {UNSOLVED_HORIZON}: time of the fastest"
        fastest = show_seconds(min(solved.values())) if solved else "over the limit"
        claims.append(
            Claim(
                text,
                ", ".join(texts) or "none within the limit",
                weigh(
                    not solved, Verdict.PARTLY if len(solved) < len(PUBLISHED) else Verdict.FAILS
                ),
                "over 2 h",
                fastest,
            )
        )
    return claims


def _judge_tree_search(found: Found) -> str:
    """Return who proves the best policy of constraint A first, forward search or tree search."""
    compared = (found.compare(TREE_SEARCH, MERGED, horizon) for horizon in range(2, 10))
    ratios = [ratio for ratio in compared if ratio is not None]
    faster = sum(ratio.times > 1 for ratio in ratios)
    if not ratios or faster < len(ratios):
        counted = f"{faster} of {len(ratios)} horizons"
        claim = f"compiled forward search is faster than tree search at {counted}"
        return f"{claim} ({ratios[-1]})" if ratios else ""
    return (
        f"compiled forward search beats tree search outright, at all {len(ratios)} horizons "
        f"({ratios[-1]}): with a cheap model and a short horizon there is no need to sample"
    )


def _draw(found: Found, limit: float) -> list[Figure]:
    def draw(names: Sequence[str], what: str, y_label: str) -> Any:
        stops = {name: found.find_stop(name) for name in names if what == "seconds"}
        return plot_curves(
            {name: found.trace(name, what) for name in names},
            x_label="horizon (actions)",
            y_label=y_label,
            title=f"Bandit, Δ(x) = {SLOPE} x",
            logarithmic=True,
            stopped={name: place for name, place in stops.items() if place is not None},
        )

    seconds, evaluations = (
        ("seconds", "planning time (s)"),
        ("evaluations", "model evaluations"),
    )
    return [
        Figure(
            "planning-time",
            f"VulcanFS and programs as published; an arrow where the limit of {limit:g} s stopped "
            "it",
            lambda: draw((*FORMS, *PUBLISHED), *seconds),
        ),
        Figure(
            "planning-time-ours",
            f"VulcanFS and our own methods; an arrow where the limit of {limit:g} s stopped it",
            lambda: draw((MERGED, TREE_SEARCH, *OURS), *seconds),
        ),
        Figure(
            "planning-evaluations",
            "Evaluations of the model; all programs evaluate every state and action once",
            lambda: draw((*FORMS, TREE_SEARCH, "stochastic graph"), *evaluations),
        ),
    ]
