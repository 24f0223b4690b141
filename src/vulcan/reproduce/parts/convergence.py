"""Convergence of Vulcan to the policy of forward search: horizon 9, Δ(x) = 0.002 x.

The paper's budgets are seconds on its machine. Ours are samples, so that a run can be repeated to
the last bit; seconds and model evaluations are recorded with each. Where histories merge, the model
is asked no more than once for each of few states; runs in which they don't show what samples cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from vulcan.constraint import LocalConstraint, SequenceConstraint, SurvivalConstraint
from vulcan.domains import Bandit
from vulcan.plotting.convergence import Curve, Panel, plot_convergence
from vulcan.problem import Problem
from vulcan.reproduce.paper import (
    CONVERGENCE_ERROR,
    CONVERGENCE_SAME,
    CONVERGENCE_SECONDS,
    FORWARD_SEARCH_SECONDS,
)
from vulcan.reproduce.part import Figure, Record, Section, Table, Task
from vulcan.reproduce.runs import acts_alike, describe_run, gather_runs, load_kernels
from vulcan.risk import Linear
from vulcan.solve import solve
from vulcan.solvers.forward_search import ForwardSearch
from vulcan.solvers.vulcan import Vulcan

__all__ = ["Convergence"]

HORIZON: Final = 9
BOUND: Final = Linear(0.002)

CONSTRAINTS: Final[dict[str, LocalConstraint]] = {
    "A": SequenceConstraint(),
    "B": SurvivalConstraint(),
}


@dataclass(frozen=True)
class Variant:
    """A way to run Vulcan: its name in figures, itself, its constraint, whether it completes."""

    name: str
    solver: Vulcan
    letter: str
    complete: bool


VARIANTS: Final = {
    "printed": Variant("as printed, c = 1", Vulcan.paper(), "A", False),
    # The paper tunes the constant of UCT and does not say to what.
    "tuned": Variant("as printed, c = 0.5", Vulcan.paper(0.5), "A", False),
    "A": Variant("Vulcan, constraint A", Vulcan(constraint=CONSTRAINTS["A"]), "A", True),
    "B": Variant("Vulcan, constraint B", Vulcan(), "B", True),
}

THOUSANDS: Final = (1, 2, 5, 10, 20, 50, 100, 150, 200, 300, 500, 1000)
QUICK_THOUSANDS: Final = (3, 30, 300)
HISTORY_THOUSANDS: Final = (1, 3, 10, 30, 100)
QUICK_HISTORY_THOUSANDS: Final = (3, 10)

ROUNDING: Final = 1e-7
"""Percent: a smaller error is none."""

VISIBLE_ERROR: Final = 0.01
"""Percent: errors below this are drawn on a linear scale, down to 0."""


class Convergence:
    """Mean error from VulcanFS over budgets."""

    name = "convergence"
    title = "Bandit: convergence of Vulcan to forward search"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for every ten runs of a variant with a budget, and for forward search."""
        return list(_list_tasks(quick))

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        if task["variant"] == "forward":
            return 2.0 if task["merges"] else 150.0
        thousands, counted = task["samples"] / 1000, task["variant"] in ("printed", "tuned")
        if not task["merges"]:
            return float(task["runs"] * (0.3 + 0.25 * thousands))
        return float(1.0 + task["runs"] * (0.3 + (0.005 if counted else 0.003) * thousands))

    def run(self, task: Task) -> dict[str, Any]:
        """Run forward search, or some seeds of a variant with one budget."""
        load_kernels(BOUND)
        merged = Problem(Bandit(HORIZON), BOUND)
        problem = Problem(Bandit(HORIZON, merges=task["merges"]), BOUND)
        if task["variant"] == "forward":
            return describe_run(solve(problem, ForwardSearch(CONSTRAINTS[task["constraint"]])))
        variant = VARIANTS[task["variant"]]
        target = solve(merged, ForwardSearch(CONSTRAINTS[variant.letter])).policy
        runs = []
        for seed in range(task["first"], task["first"] + task["runs"]):
            result = solve(
                problem,
                variant.solver,
                samples=task["samples"],
                seed=seed,
                complete=variant.complete,
            )
            same = acts_alike(result.policy, target)
            runs.append({"seed": seed, **describe_run(result), "same": same})
        return {"runs": runs}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        table = Findings(records)
        figures = []
        if table.budgets:
            caption = (
                "Mean error from forward search with the same constraint, by time and by model "
                "evaluations; bands hold eight runs of ten. The partial policies of "
                "the algorithm as printed count as what they earn up to their frontier."
            )
            figures.append(Figure("convergence", caption, table.draw))
        return Section(
            paper=(
                f"After {CONVERGENCE_SECONDS} s, less than 6 % of the "
                f"{FORWARD_SEARCH_SECONDS[HORIZON]:,} s of VulcanFS, the mean error of 60 runs is "
                f"{CONVERGENCE_ERROR} %, and {CONVERGENCE_SAME} % of them return the very policy "
                "of VulcanFS."
            ),
            measured=table.describe(),
            meaning=table.judge(),
            tables=[table.tabulate()],
            figures=figures,
            numbers=table.summarise(),
        )


class Findings:
    """What the records say: the error and cost of runs, by variant, merging and budget."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.forward = {
            (r.task["constraint"], r.task["merges"]): r.found
            for r in records
            if r.task["variant"] == "forward"
        }
        others = [r for r in records if r.task["variant"] != "forward"]
        self.runs = gather_runs(others, ("variant", "merges", "samples"))
        # An error needs what forward search found, and a budget without any policy has none.
        self.budgets = [
            key
            for key, runs in sorted(self.runs.items(), key=_order)
            if self._target(key[0]) is not None and any(r["reward"] is not None for r in runs)
        ]

    def errors(self, key: tuple[Any, ...], of: str = "reward") -> list[float]:
        """Return how far each run is from forward search, in percent."""
        target = self._target(key[0])
        assert target is not None
        values = [run[of] for run in self.runs[key]]
        errors = [100 * abs(value / target - 1) for value in values if value is not None]
        return [error if error > ROUNDING else 0.0 for error in errors]

    def mean(self, key: tuple[Any, ...], of: str) -> float:
        """Return the mean over runs."""
        return fmean(float(run[of]) for run in self.runs[key])

    def last(self, variant: str, merges: bool = True) -> tuple[Any, ...] | None:
        """Return the largest budget of a variant."""
        found = [key for key in self.budgets if key[:2] == (variant, merges)]
        return found[-1] if found else None

    def draw(self) -> Any:
        """Draw the error against time, and against evaluations of a model of histories."""
        panels = []
        histories = any(not merges for _, merges, _ in self.budgets)
        for of, merges, label in (
            ("seconds", True, "search time (s), histories merged"),
            ("evaluations", not histories, "model evaluations"),
        ):
            name = "histories merged" if merges else "histories not merged"
            across = label if of == "seconds" else f"{label}, {name}"
            curves = [self._trace(variant, merges, of) for variant in VARIANTS]
            marks = {}
            if ("A", merges) in self.forward:
                marks["forward search ends"] = float(self.forward["A", merges][of])
            shown = [curve for curve in curves if curve.places]
            up = "mean error (%)"
            panels.append(Panel(shown, across, up, marks, up_scale=VISIBLE_ERROR))
        return plot_convergence(panels, title=f"Bandit(horizon={HORIZON}), Δ(x) = {BOUND}")

    def tabulate(self) -> Table:
        """Return all budgets, with and without merging."""
        rows: list[list[str | float | None]] = []
        for key in self.budgets:
            variant, merges, samples = key
            rows.append(
                [
                    VARIANTS[variant].name,
                    "states" if merges else "histories",
                    samples,
                    len(self.runs[key]),
                    self.mean(key, "seconds"),
                    round(self.mean(key, "evaluations")),
                    fmean(self.errors(key)),
                    fmean(self.errors(key, "estimate")),
                    100 * self.mean(key, "same"),
                    100 * self.mean(key, "complete"),
                ]
            )
        for (letter, merges), found in sorted(self.forward.items()):
            kind = "states" if merges else "histories"
            cost = [found["seconds"], found["evaluations"]]
            rows.append(
                [f"forward search, {letter}", kind, None, 1, *cost, 0.0, None, 100.0, 100.0]
            )
        header = ["", "model of", "samples", "runs", "seconds", "evaluations", "error %"]
        header += ["error % of the estimate", "same policy %", "complete %"]
        return Table("convergence", "Mean error from forward search by samples", header, rows)

    def describe(self) -> str:
        """Return what was measured."""
        sentences = [
            f"Forward search with constraint {letter} takes {found['seconds']:.2g} s and "
            f"{found['evaluations']:,} model evaluations where histories "
            f"{'merge' if merges else 'do not merge'}."
            for (letter, merges), found in sorted(self.forward.items(), reverse=True)
            if letter == "A"
        ]
        for key in filter(None, map(self.last, VARIANTS)):
            name = VARIANTS[key[0]].name
            sentences.append(
                f"{name[0].upper()}{name[1:]}: after {key[2]:,} samples "
                f"({self.mean(key, 'seconds'):.2g} s) mean error {fmean(self.errors(key)):.2g} % "
                f"({fmean(self.errors(key, 'estimate')):.2g} % by the search's own estimate), the "
                f"very policy of forward search in {100 * self.mean(key, 'same'):.0f} % of "
                f"{len(self.runs[key])} runs."
            )
        return " ".join(sentences)

    def judge(self) -> str:
        """Return what the difference means."""
        sentences = []
        for variants, name in (
            (("A",), "Vulcan"),
            (("printed", "tuned"), "The algorithm as printed"),
        ):
            if not any(self.last(variant) for variant in variants):
                continue
            reaching = [self.first_reaching(variant) for variant in variants]
            key = next(filter(None, reaching), None)
            sentences.append(
                f"{name} does not reach the paper's error within these budgets."
                if key is None
                else f"{name} reaches the paper's error by {key[2]:,} samples, with the policy of "
                f"forward search in {100 * self.mean(key, 'same'):.0f} % of runs."
            )
        forward, key = self.forward.get(("A", True)), self.first_reaching("A")
        if forward is not None and key is not None:
            seconds, needed = forward["seconds"], self.mean(key, "seconds")
            sentences.append(
                f"On this cheap model that takes {needed:.2g} s, and compiled forward search "
                f"{seconds:.2g} s: the paper's saving of time "
                f"{'holds' if needed < seconds else 'does not hold'} here."
            )
        return " ".join((*sentences, *self._compare_evaluations()))

    def first_reaching(self, variant: str) -> tuple[Any, ...] | None:
        """Return the smallest budget from which on the mean error is no larger than the paper's."""
        found = None
        for key in reversed([k for k in self.budgets if k[:2] == (variant, True)]):
            if fmean(self.errors(key)) > CONVERGENCE_ERROR:
                break
            found = key
        return found

    def summarise(self) -> dict[str, Any]:
        """Return the numbers of the largest budgets."""
        numbers: dict[str, Any] = {}
        for key in filter(None, map(self.last, VARIANTS)):
            numbers[f"{key[0]} samples"] = key[2]
            numbers[f"{key[0]} error percent"] = fmean(self.errors(key))
            numbers[f"{key[0]} same policy"] = self.mean(key, "same")
        for (letter, merges), found in self.forward.items():
            kind = "states" if merges else "histories"
            for of in ("reward", "seconds", "evaluations"):
                numbers[f"forward search {letter}, {kind}, {of}"] = found[of]
        return numbers

    def _compare_evaluations(self) -> Iterator[str]:
        forward, key = self.forward.get(("A", False)), self.last("A", merges=False)
        if forward is not None and key is not None:
            share = 100 * self.mean(key, "evaluations") / forward["evaluations"]
            yield (
                f"Where histories don't merge, {key[2]:,} samples ask the model {share:.2g} % as "
                f"often as forward search does, at a mean error of {fmean(self.errors(key)):.2g} %."
            )

    def _target(self, variant: str) -> float | None:
        letter = VARIANTS[variant].letter
        found = self.forward.get((letter, True))
        return None if found is None else float(found["reward"])

    def _trace(self, variant: str, merges: bool, of: str) -> Curve:
        keys = [key for key in self.budgets if key[:2] == (variant, merges)]
        places = [self.mean(key, of) for key in keys]
        return Curve(VARIANTS[variant].name, places, [self.errors(key) for key in keys])


def _list_tasks(quick: bool) -> Iterator[Task]:
    yield from ({"variant": "forward", "constraint": c, "merges": True} for c in CONSTRAINTS)
    if not quick:
        yield {"variant": "forward", "constraint": "A", "merges": False}
    bundles = [(0, 5)] if quick else [(first, 10) for first in range(0, 60, 10)]
    for variant in VARIANTS:
        for thousands in QUICK_THOUSANDS if quick else THOUSANDS:
            for first, runs in bundles:
                yield _make_task(variant, True, 1000 * thousands, first, runs)
    for variant in ("printed", "A", "B"):
        for thousands in QUICK_HISTORY_THOUSANDS if quick else HISTORY_THOUSANDS:
            # Bundles of a few: a run without merging takes as long as ten with it.
            for first in range(0, 2 if quick else 10, 2):
                yield _make_task(variant, False, 1000 * thousands, first, 2)


def _make_task(variant: str, merges: bool, samples: int, first: int, runs: int) -> Task:
    budget = {"samples": samples, "first": first, "runs": runs}
    return {"variant": variant, "merges": merges, **budget}


def _order(item: tuple[tuple[Any, ...], Any]) -> tuple[int, bool, int]:
    (variant, merges, samples), _ = item
    return list(VARIANTS).index(variant), not merges, samples
