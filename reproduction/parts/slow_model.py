"""Beyond the paper: Vulcan and forward search when every model evaluation takes a millisecond.

Histories of the bandit don't merge here, as in a problem where the order matters, so that every
history has to be evaluated. There is no waiting: the cost is charged, seconds of the search plus a
millisecond for each evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from reproduction.figures.convergence import Curve, Panel, plot_convergence
from reproduction.part import Claim, Figure, Record, Section, Table, Task, leave_open, weigh
from reproduction.runs import (
    CONSTRAINTS,
    Runs,
    describe_run,
    find_lasting,
    load_kernels,
    solve_timed,
)
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.bounds.forms import Linear
from vulcan.domains import Bandit
from vulcan.problem import Problem
from vulcan.sampling.local_vulcan import LocalVulcan

__all__ = ["SlowModel"]

BOUND: Final = Linear(0.002)
COST: Final = 0.001
"""Seconds that an evaluation of the model is charged."""

NEAR: Final = 1.0
"""Percent: so near to forward search, Vulcan has caught up with it."""


@dataclass(frozen=True)
class Variant:
    """A way to run it: name, solver, constraint, how many runs with how many samples."""

    name: str
    solver: LocalVulcan
    letter: str
    runs: int
    most_samples: int


VARIANTS: Final = {
    "A": Variant("LocalVulcan, A", LocalVulcan(local_test=CONSTRAINTS["A"]), "A", 5, 30_000),
    "B": Variant("LocalVulcan, B", LocalVulcan(), "B", 5, 30_000),
}
SHORTEST, LONGEST, QUICK_LONGEST = 4, 9, 6
SAMPLES: Final = (30, 100, 300, 1_000, 3_000, 10_000, 30_000)
QUICK_SAMPLES: Final = (30, 300, 3_000)
QUICK_RUNS: Final = 3


class SlowModel:
    """Error against charged time."""

    name = "slow-model"
    title = "Beyond the paper: a model that takes a millisecond to answer"
    version = 3

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for all seeds of a budget, and for forward search at each horizon."""
        horizons = range(SHORTEST, (QUICK_LONGEST if quick else LONGEST) + 1)
        tasks: list[Task] = [
            {"variant": "forward", "constraint": letter, "horizon": horizon}
            for horizon in horizons
            for letter in CONSTRAINTS
        ]
        for horizon in horizons:
            for name, variant in VARIANTS.items():
                # There are 6 ** horizon histories: more samples would find nothing to do.
                most = min(variant.most_samples, 6**horizon)
                runs = QUICK_RUNS if quick else variant.runs
                tasks += [
                    {"variant": name, "horizon": horizon, "samples": samples, "runs": runs}
                    for samples in (QUICK_SAMPLES if quick else SAMPLES)
                    if samples <= most
                ]
        return tasks

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        if task["variant"] == "forward":
            return 1.0
        return float(1.0 + 0.000004 * task["runs"] * task["samples"])

    def run(self, task: Task) -> dict[str, Any]:
        """Run forward search, or some seeds with one budget."""
        load_kernels(BOUND)
        problem = Problem(Bandit(task["horizon"], merges=False), BOUND)
        if task["variant"] == "forward":
            return describe_run(
                *solve_timed(problem, ForwardSearch(CONSTRAINTS[task["constraint"]]))
            )
        runs = []
        for seed in range(task["runs"]):
            solver = VARIANTS[task["variant"]].solver
            run = solve_timed(problem, solver, samples=task["samples"], seed=seed)
            runs.append({"seed": seed, **describe_run(*run)})
        return {"runs": runs}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = Findings(records)
        caption = (
            f"Mean error from forward search when every evaluation is charged {1000 * COST:g} ms; "
            "bands hold eight runs of ten"
        )
        return Section(
            paper=(
                "Vulcan is meant for models that are expensive to evaluate; the paper measures "
                "none in the bandit."
            ),
            measured=found.describe(),
            meaning=found.judge(),
            claims=leave_open(found.list_claims(), quick),
            tables=[found.tabulate()] if found.horizons else [],
            figures=[Figure("slow-model", caption, found.draw)] if found.horizons else [],
            numbers=found.summarise(),
        )


class Findings:
    """What the records say, at horizons where forward search is known."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.forward = {
            (r.task["constraint"], r.task["horizon"]): r.found
            for r in records
            if r.task["variant"] == "forward"
        }
        others = [r for r in records if r.task["variant"] != "forward"]
        # An error needs what forward search found, and a policy in every run.
        known = [
            r
            for r in others
            if self._target(r.task["variant"], r.task["horizon"])
            and all(run["reward"] is not None for run in r.found["runs"])
        ]
        self.runs = Runs(known, ("variant", "horizon", "samples"))
        self.horizons = sorted({horizon for _, horizon, _ in self.runs})

    def errors(self, key: tuple[Any, ...]) -> list[float]:
        """Return how far each run is from forward search, in percent."""
        target = self._target(*key[:2])["reward"]
        return [round(100 * abs(run["reward"] / target - 1), 9) for run in self.runs[key]]

    def charge(self, key: tuple[Any, ...]) -> float:
        """Return the mean time that runs are charged."""
        return fmean(charge(run) for run in self.runs[key])

    def first_near(self, variant: str, horizon: int) -> tuple[Any, ...] | None:
        """Return the smallest budget from which on the mean error is at most `NEAR`."""
        keys = [key for key in self.runs if key[:2] == (variant, horizon)]
        return find_lasting(keys, lambda key: fmean(self.errors(key)) <= NEAR)

    def share(self, variant: str, horizon: int) -> float | None:
        """Return Vulcan's time until it is near, as a share of forward search's."""
        key = self.first_near(variant, horizon)
        return None if key is None else self.charge(key) / charge(self._target(variant, horizon))

    def crossover(self, variant: str) -> int | None:
        """Return the horizon from which on Vulcan is near before forward search is done."""
        found = None
        for horizon in reversed(self.horizons):
            share = self.share(variant, horizon)
            if share is None or share >= 1:
                break
            found = horizon
        return found

    def describe(self) -> str:
        """Return what was measured."""
        sentences = []
        for horizon in self.horizons[-1:]:
            for letter in CONSTRAINTS:
                if found := self.forward.get((letter, horizon)):
                    sentences.append(
                        f"At horizon {horizon} forward search with constraint {letter} is charged "
                        f"{charge(found):,.0f} s."
                    )
            for name, variant in VARIANTS.items():
                key, share = self.first_near(name, horizon), self.share(name, horizon)
                if key is not None and share is not None:
                    sentences.append(
                        f"{variant.name} is within {NEAR:g} % of it, on average, after {key[2]:,} "
                        f"samples and {self.charge(key):,.0f} s, {100 * share:.2g} % of that."
                    )
        return " ".join(sentences)

    def judge(self) -> str:
        """Return what it means."""
        return " ".join(
            self._judge_variant(name)
            for name in VARIANTS
            if any(key[0] == name for key in self.runs)
        )

    def list_claims(self) -> list[Claim]:
        """Return whether sampling pays where the model is slow, the reason for Vulcan."""
        if not self.horizons or not any(key[:2] == ("A", self.horizons[-1]) for key in self.runs):
            return []
        crossover, share = self.crossover("A"), self.share("A", self.horizons[-1])
        found = (
            f"within {NEAR:g} % from horizon {crossover} on, in {100 * share:.2g} % of the time of "
            f"forward search at horizon {self.horizons[-1]}"
            if crossover is not None and share is not None
            else f"not within {NEAR:g} % before forward search is done"
        )
        text = (
            "Sampling pays where a model is slow to answer (1 ms here): share of VulcanFS's time "
            f"at horizon {self.horizons[-1]}"
        )
        ours = "" if share is None else f"{100 * share:.2g} %"
        return [Claim(text, found, weigh(crossover is not None), "less", ours)]

    def _judge_variant(self, name: str) -> str:
        horizons = [h for h in self.horizons if any(key[:2] == (name, h) for key in self.runs)]
        crossover = self.crossover(name)
        if crossover is None:
            return (
                f"{VARIANTS[name].name} is not within {NEAR:g} % with these budgets before forward "
                f"search is done at horizon {horizons[-1]}."
            )
        shares = [self.share(name, h) for h in horizons if h >= crossover]
        known = [share for share in shares if share is not None]
        falling = len(known) > 1 and known == sorted(known, reverse=True)
        return (
            f"{VARIANTS[name].name}: from horizon {crossover} on it is within {NEAR:g} % before "
            f"forward search is done, in {100 * known[0]:.2g} % of the time there and in "
            f"{100 * known[-1]:.2g} % at horizon {horizons[-1]}"
            + ("; the gain grows with the horizon." if falling else ".")
        )

    def tabulate(self) -> Table:
        """Return what it takes to be near, at each horizon."""
        rows: list[list[str | float | None]] = []
        for horizon in self.horizons:
            row: list[str | float | None] = [horizon]
            for letter in CONSTRAINTS:
                forward = self.forward.get((letter, horizon))
                row.append(None if forward is None else charge(forward))
            for name in VARIANTS:
                key, share = self.first_near(name, horizon), self.share(name, horizon)
                row.append(None if key is None else self.charge(key))
                row.append(None if share is None else 100 * share)
            rows.append(row)
        header = ["horizon", *(f"forward search, {c}: charged s" for c in CONSTRAINTS)]
        for variant in VARIANTS.values():
            header += [f"{variant.name}, within {NEAR:g} %: charged s", "% of forward search"]
        caption = f"What it takes with {1000 * COST:g} ms for each model evaluation"
        return Table("slow-model", caption, header, rows)

    def draw(self) -> Any:
        """Draw the error against charged time, a panel for each horizon."""
        panels = []
        for horizon in self.horizons:
            curves = []
            for name, variant in VARIANTS.items():
                keys = [key for key in self.runs if key[:2] == (name, horizon)]
                if keys:
                    places = [self.charge(key) for key in keys]
                    curves.append(Curve(variant.name, places, [self.errors(key) for key in keys]))
            done = [charge(found) for (_, at), found in self.forward.items() if at == horizon]
            panels.append(
                Panel(
                    curves,
                    "charged time (s)",
                    "mean error (%)",
                    {"forward search is done": min(done)},
                    {f"{NEAR:g} %": NEAR},
                    title=f"horizon {horizon}",
                    up_scale=0.1,
                )
            )
        title = f"Bandit, histories not merged, Δ(x) = {BOUND}, {1000 * COST:g} ms an evaluation"
        return plot_convergence(panels, columns=3, title=title)

    def summarise(self) -> dict[str, Any]:
        """Return the numbers."""
        numbers: dict[str, Any] = {f"crossover, {v}": self.crossover(v) for v in VARIANTS}
        for (letter, horizon), found in self.forward.items():
            numbers[f"forward search {letter} {horizon}, charged"] = charge(found)
        for horizon in self.horizons:
            for name in VARIANTS:
                numbers[f"{name} {horizon}, share of time"] = self.share(name, horizon)
        return numbers

    def _target(self, variant: str, horizon: int) -> dict[str, Any]:
        """Return what forward search with the same constraint found; nothing if it was not run."""
        return self.forward.get((VARIANTS[variant].letter, horizon), {})


def charge(run: dict[str, Any]) -> float:
    """Return what a run takes if the model is slow."""
    return float(run["seconds"] + COST * run["evaluations"])
