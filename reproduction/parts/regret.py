"""The regret of UCT: how the error of Vulcan as printed shrinks with its samples.

It says that with UCT the expected error of Q shrinks like log N / N with the samples N, and that
the regret bounds derived for UCT apply to Vulcan. Those are proved for values that are averages of
all samples. The printed backup takes the largest value below instead, weighs outcomes by counts,
and deletes actions. So it is measured: the mean error of Q at the root, as printed, over budgets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any, Final

from reproduction.figures.convergence import Curve, Panel, plot_convergence
from reproduction.part import Claim, Figure, Record, Section, Table, Task, Verdict, leave_open
from reproduction.runs import (
    VARIANTS,
    Runs,
    describe_run,
    find_margin,
    show_mean,
    show_share,
    solve_timed,
)
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.bounds.forms import Linear
from vulcan.domains import Bandit
from vulcan.policy.policy import Policy
from vulcan.problem import Problem
from vulcan.solvers.local_tests import SequenceConstraint

__all__ = ["Regret"]

HORIZON: Final = 4
BOUND: Final = Linear(0.002)
BUDGETS: Final = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
QUICK_BUDGETS: Final = (100, 1_000, 10_000)
RUNS, QUICK_RUNS = 50, 20
JUDGED: Final = ("printed", "tuned")

FIRST: Final = 1_000
"""Samples from which on the rate is judged: before, not all histories can have been seen."""

SLOWER: Final = 3.0
"""If the error over log N / N grows by less than this factor, it shrinks at that rate."""


class Regret:
    """The error at the root over samples, with the constants √2 and 2."""

    name = "regret"
    title = "Bandit: the regret of UCT"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for each budget and constant, and forward search."""
        runs = QUICK_RUNS if quick else RUNS
        return [
            {"variant": "forward"},
            *(
                {"variant": variant, "samples": samples, "runs": runs}
                for variant in JUDGED
                for samples in (QUICK_BUDGETS if quick else BUDGETS)
            ),
        ]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        return float(1.0 + task.get("runs", 0) * task.get("samples", 0) / 1_500_000)

    def run(self, task: Task) -> dict[str, Any]:
        """Run forward search, or all seeds with one budget."""
        problem = Problem(Bandit(HORIZON, merges=False), BOUND)
        best, seconds = solve_timed(problem, ForwardSearch(SequenceConstraint()))
        if task["variant"] == "forward":
            return describe_run(best, seconds)
        runs = []
        for seed in range(task["runs"]):
            variant = VARIANTS[task["variant"]]
            result, _ = solve_timed(problem, variant.solver, samples=task["samples"], seed=seed)
            first = _name_first(result.policy) == _name_first(best.policy)
            runs.append({"estimate": result.estimate, "first": first})
        return {"runs": runs}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = Findings(records)
        caption = (
            "How far the mean of Q at the root is from what VulcanFS finds, and how far single "
            "runs are, over samples; both should fall like log N / N"
        )
        return Section(
            paper=(
                "With UCT the expected error of Q shrinks like log N / N and suboptimal policies "
                "become ever rarer; since counts are kept for what the constraint admits, the "
                "regret bounds derived for UCT apply to Vulcan."
            ),
            measured=found.describe(),
            meaning=found.judge(),
            claims=leave_open(found.list_claims(), quick),
            tables=[found.tabulate()],
            figures=[Figure("regret", caption, found.draw)] if found.budgets else [],
            numbers=found.summarise(),
        )


class Findings:
    """What the records say."""

    def __init__(self, records: Sequence[Record]) -> None:
        forward = [r.found["reward"] for r in records if r.task["variant"] == "forward"]
        self.best = forward[0] if forward else None
        others = [r for r in records if r.task["variant"] != "forward"]
        self.runs = Runs(others, ("variant", "samples"))
        self.budgets = list(self.runs) if self.best is not None else []

    def errors(self, key: tuple[Any, ...]) -> list[float]:
        """Return by how much Q at the root is above what VulcanFS finds, in each run."""
        assert self.best is not None
        return [run["estimate"] - self.best for run in self.runs[key]]

    def find_growth(self, variant: str) -> float | None:
        """Return by what factor the error falls behind log N / N; what may be chance is no error.

        The rate with the most samples, without the margin of its mean, over that with `FIRST`.
        """
        keys = [key for key in self.budgets if key[0] == variant and key[1] >= FIRST]
        if len(keys) < 2:
            return None
        (first, *_, last), sizes = keys, []
        for key in (first, last):
            errors = self.errors(key)
            sure = abs(fmean(errors)) - (find_margin(errors) if key == last else 0.0)
            sizes.append(max(0.0, sure) * key[1] / math.log(key[1]))
        return sizes[1] / sizes[0] if sizes[0] > 0 else None

    def describe(self) -> str:
        """Return what was measured."""
        texts = []
        for variant in JUDGED:
            if keys := [key for key in self.budgets if key[0] == variant]:
                last = keys[-1]
                errors = self.errors(last)
                texts.append(
                    f"{VARIANTS[variant].name}: after {last[1]:,} samples the mean error is "
                    f"{fmean(errors):+.2g} ± {find_margin(errors):.1g}, with the right first "
                    f"action in {show_share([run['first'] for run in self.runs[last]])} of "
                    f"{len(errors)} runs."
                )
        return " ".join(texts)

    def judge(self) -> str:
        """Return what it means."""
        growths = {v: g for v in JUDGED if (g := self.find_growth(v)) is not None}
        if not growths:
            return ""
        slow = [VARIANTS[v].name for v, growth in growths.items() if growth >= SLOWER]
        rate = f"slower than log N / N ({', '.join(slow)})" if slow else "no slower than log N / N"
        return (
            f"From {FIRST:,} samples on the mean error shrinks {rate}, as far as it can be told "
            f"from chance. {self._judge_single()}The proofs for "
            "UCT are about averages of all samples; the printed backup takes the largest value "
            "below, and no proof is given for it."
        )

    def _judge_single(self) -> str:
        """Return how single runs fare, which are off by chance, too."""
        keys = [key for key in self.budgets if key[0] == JUDGED[0] and key[1] >= FIRST]
        sizes = [fmean(map(abs, self.errors(key))) for key in keys]
        if len(keys) < 2 or min(sizes) <= 0:
            return ""
        power = math.log(sizes[-1] / sizes[0]) / math.log(keys[-1][1] / keys[0][1])
        return f"Single runs are off by chance, too, which falls like N^{power:.2f}. "

    def list_claims(self) -> list[Claim]:
        """Return whether the rate is that of UCT."""
        growths = [g for v in JUDGED if (g := self.find_growth(v)) is not None]
        if len(growths) < len(JUDGED):
            return []
        kept = [growth < SLOWER for growth in growths]
        ends = [
            [key for key in self.budgets if key[0] == v and key[1] >= FIRST][:: len(BUDGETS)]
            + [key for key in self.budgets if key[0] == v][-1:]
            for v in JUDGED
        ]
        errors = "; ".join(
            f"{VARIANTS[keys[0][0]].name}: "
            + ", ".join(f"{show_mean(self.errors(key))} after {key[1]:,} samples" for key in keys)
            for keys in ends
        )
        verdict = Verdict.HOLDS if all(kept) else Verdict.PARTLY if any(kept) else Verdict.FAILS
        text = "The expected error of UCT shrinks like log N / N: growth of error · N / log N"
        rate = "no slower than" if all(kept) else "slower than"
        found = f"mean error at the root, horizon {HORIZON}: {errors}; {rate} log N / N"
        return [Claim(text, found, verdict, "bounded", f"{max(growths):.2g} times")]

    def tabulate(self) -> Table:
        """Return all budgets."""
        rows: list[list[str | float | None]] = []
        for key in self.budgets:
            errors = self.errors(key)
            first = show_share([run["first"] for run in self.runs[key]])
            rate = abs(fmean(errors)) * key[1] / math.log(key[1])
            mean = [fmean(errors), find_margin(errors), fmean(map(abs, errors))]
            rows.append([VARIANTS[key[0]].name, key[1], len(errors), *mean, rate, first])
        header = ["", "samples N", "runs", "mean error", "± 95 %", "mean absolute error"]
        header += ["mean error · N / log N", "right first action"]
        caption = f"The error of Q at the root, horizon {HORIZON}, Δ(x) = {BOUND}"
        return Table("regret", caption, header, rows)

    def draw(self) -> Any:
        """Draw the errors over samples."""
        panels = []
        for variant in JUDGED:
            keys = [key for key in self.budgets if key[0] == variant]
            if not keys:
                continue
            places = [float(key[1]) for key in keys]
            mean = [[max(abs(fmean(self.errors(key))), 1e-9)] for key in keys]
            single = [[abs(error) for error in self.errors(key)] for key in keys]
            scale = mean[0][0] * places[0] / math.log(places[0])
            rate = [[scale * math.log(place) / place] for place in places]
            curves = [
                Curve("error of the mean", places, mean),
                Curve("error of single runs", places, single),
                Curve("log N / N", places, rate),
            ]
            title = VARIANTS[variant].name
            panels.append(Panel(curves, "samples N", "error of Q", title=title, up_scale="log"))
        return plot_convergence(panels, title=f"Bandit(horizon={HORIZON}), Δ(x) = {BOUND}")

    def summarise(self) -> dict[str, Any]:
        """Return the numbers."""
        return {
            f"{variant} {samples}, mean error": fmean(self.errors((variant, samples)))
            for variant, samples in self.budgets
        }


def _name_first(policy: object) -> str | None:
    """Return what a policy does first."""
    return policy.labels[policy.action[0]] if isinstance(policy, Policy) else None
