"""Beyond the paper: Vulcan and forward search when every model evaluation takes a millisecond.

Histories of the bandit don't merge here, as in a problem where the order matters, so that every
history has to be asked for. Nobody waits: the cost is charged, seconds of the search plus a
millisecond for each evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, Final

from vulcan.domains import Bandit
from vulcan.plotting.convergence import Curve, Panel, plot_convergence
from vulcan.problem import Problem
from vulcan.reproduce.part import Figure, Record, Section, Table, Task
from vulcan.reproduce.runs import describe_run, gather_runs, load_kernels
from vulcan.risk import Linear
from vulcan.solve import solve
from vulcan.solvers.forward_search import ForwardSearch
from vulcan.solvers.vulcan import Vulcan

__all__ = ["SlowModel"]

BOUND: Final = Linear(0.002)
COST: Final = 0.001
"""Seconds that an evaluation of the model is charged."""

NEAR: Final = 1.0
"""Percent: so near to forward search, Vulcan has caught up with it."""

VARIANTS: Final = {
    "plain": ("Vulcan", Vulcan()),
    "bounded": ("Vulcan, bounded", Vulcan(bounded=True)),
}
SHORTEST, LONGEST, QUICK_LONGEST = 4, 8, 6
SAMPLES: Final = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
QUICK_SAMPLES: Final = (30, 300, 3_000)
RUNS, QUICK_RUNS = 10, 3


class SlowModel:
    """Error against charged time."""

    name = "slow-model"
    title = "Beyond the paper: a model that takes a millisecond to answer"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for all seeds of a budget, and for forward search at each horizon."""
        horizons = range(SHORTEST, (QUICK_LONGEST if quick else LONGEST) + 1)
        tasks: list[Task] = [{"variant": "forward", "horizon": horizon} for horizon in horizons]
        for horizon in horizons:
            for samples in QUICK_SAMPLES if quick else SAMPLES:
                # There are 6 ** horizon histories: more samples would find nothing to do.
                if samples <= 6**horizon:
                    budget = {"samples": samples, "runs": QUICK_RUNS if quick else RUNS}
                    tasks += [{"variant": v, "horizon": horizon, **budget} for v in VARIANTS]
        return tasks

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        if task["variant"] == "forward":
            return float(1.0 + 25.0 * 6.0 ** (task["horizon"] - 8))
        return float(1.0 + 0.00025 * task["runs"] * task["samples"])

    def run(self, task: Task) -> dict[str, Any]:
        """Run forward search, or some seeds with one budget."""
        load_kernels(BOUND)
        problem = Problem(Bandit(task["horizon"], merges=False), BOUND)
        if task["variant"] == "forward":
            return describe_run(solve(problem, ForwardSearch()))
        _, solver = VARIANTS[task["variant"]]
        runs = []
        for seed in range(task["runs"]):
            result = solve(problem, solver, samples=task["samples"], seed=seed)
            runs.append({"seed": seed, **describe_run(result)})
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
            tables=[found.tabulate()] if found.horizons else [],
            figures=[Figure("slow-model", caption, found.draw)] if found.horizons else [],
            numbers=found.summarise(),
        )


class Findings:
    """What the records say, at horizons where forward search is known."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.forward = {
            r.task["horizon"]: r.found for r in records if r.task["variant"] == "forward"
        }
        others = [r for r in records if r.task["variant"] != "forward"]
        runs = gather_runs(others, ("variant", "horizon", "samples"))
        self.runs = {
            key: runs[key]
            for key in sorted(runs)
            if key[1] in self.forward and all(run["reward"] is not None for run in runs[key])
        }
        self.horizons = sorted({horizon for _, horizon, _ in self.runs})

    def errors(self, key: tuple[Any, ...]) -> list[float]:
        """Return how far each run is from forward search, in percent."""
        target = self.forward[key[1]]["reward"]
        return [round(100 * abs(run["reward"] / target - 1), 9) for run in self.runs[key]]

    def charge(self, key: tuple[Any, ...]) -> float:
        """Return the mean time that runs are charged."""
        return fmean(charge(run) for run in self.runs[key])

    def first_near(self, variant: str, horizon: int) -> tuple[Any, ...] | None:
        """Return the smallest budget from which on the mean error is at most `NEAR`."""
        found = None
        for key in reversed([key for key in self.runs if key[:2] == (variant, horizon)]):
            if fmean(self.errors(key)) > NEAR:
                break
            found = key
        return found

    def share(self, variant: str, horizon: int) -> float | None:
        """Return Vulcan's time until it is near, as a share of forward search's."""
        key = self.first_near(variant, horizon)
        return None if key is None else self.charge(key) / charge(self.forward[horizon])

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
            whole = charge(self.forward[horizon])
            sentences.append(f"At horizon {horizon} forward search is charged {whole:,.0f} s.")
            for variant, (name, _) in VARIANTS.items():
                if key := self.first_near(variant, horizon):
                    sentences.append(
                        f"{name} is within {NEAR:g} % of it, on average, after {key[2]:,} samples "
                        f"and {self.charge(key):,.0f} s, {100 * self.charge(key) / whole:.2g} % of "
                        "that."
                    )
        return " ".join(sentences)

    def judge(self) -> str:
        """Return what it means."""
        crossover = self.crossover("plain")
        if not self.horizons:
            return ""
        if crossover is None:
            return (
                f"At horizons up to {self.horizons[-1]} Vulcan is not within {NEAR:g} % before "
                "forward search is done."
            )
        shares = [self.share("plain", h) for h in self.horizons if h >= crossover]
        known = [share for share in shares if share is not None]
        falling = len(known) > 1 and known == sorted(known, reverse=True)
        return (
            f"From horizon {crossover} on, Vulcan is within {NEAR:g} % before forward search is "
            f"done: in {100 * known[0]:.2g} % of its time there, in {100 * known[-1]:.2g} % at "
            f"horizon {self.horizons[-1]}"
            + ("; the gain grows with the horizon." if falling else ".")
        )

    def tabulate(self) -> Table:
        """Return what it takes to be near, at each horizon."""
        rows: list[list[str | float | None]] = []
        for horizon in self.horizons:
            forward = self.forward[horizon]
            row: list[str | float | None] = [horizon, forward["evaluations"], charge(forward)]
            for variant in VARIANTS:
                key = self.first_near(variant, horizon)
                if key is None:
                    row += [None, None, None]
                    continue
                evaluations = round(fmean(run["evaluations"] for run in self.runs[key]))
                share = self.share(variant, horizon)
                row += [evaluations, self.charge(key), None if share is None else 100 * share]
            rows.append(row)
        header = ["horizon", "forward search: evaluations", "charged s"]
        for name, _ in VARIANTS.values():
            header += [f"{name}, within {NEAR:g} %: evaluations", "charged s", "% of the time"]
        caption = f"What it takes with {1000 * COST:g} ms for each model evaluation"
        return Table("slow-model", caption, header, rows)

    def draw(self) -> Any:
        """Draw the error against charged time, a panel for each horizon."""
        panels = []
        for horizon in self.horizons:
            curves = []
            for variant, (name, _) in VARIANTS.items():
                keys = [key for key in self.runs if key[:2] == (variant, horizon)]
                if keys:
                    places = [self.charge(key) for key in keys]
                    curves.append(Curve(name, places, [self.errors(key) for key in keys]))
            panels.append(
                Panel(
                    curves,
                    "charged time (s)",
                    "mean error (%)",
                    {"forward search is done": charge(self.forward[horizon])},
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
        for horizon in self.horizons:
            numbers[f"forward search {horizon}, charged"] = charge(self.forward[horizon])
            for variant in VARIANTS:
                numbers[f"{variant} {horizon}, share of time"] = self.share(variant, horizon)
        return numbers


def charge(run: dict[str, Any]) -> float:
    """Return what a run takes if the model is slow."""
    return float(run["seconds"] + COST * run["evaluations"])
