"""RAO* and Vulcan race to their final solutions, over horizons: part of `heuristic_search`.

RAO* grows histories; it evaluates each state once, or each history. Vulcan as
printed grows histories, of a compiled model. RAO* is as published (`vulcan.baselines.rao_star`)
and knows when it is done. Vulcan does not: of twice as many samples again and again, the first run
counts that ends at the solution of forward search, or within 0.1 % of it as printed. A run that
does not get there with `MOST_SAMPLES`, or within the memory, is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from reproduction.figures.convergence import Curve, Panel, plot_convergence
from reproduction.part import Claim, Figure, Record, Table, Task, Verdict, weigh
from reproduction.runs import (
    CONSTRAINTS,
    MEMORY,
    PlainBandit,
    Runs,
    count_runs,
    describe_run,
    solve_timed,
)
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.baselines.rao_star import RAOStar
from vulcan.bounds.forms import Constant
from vulcan.domains import Bandit
from vulcan.planning.solve import solve
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits
from vulcan.sampling.local_vulcan import LocalVulcan

__all__ = ["BOUND", "Race"]

BOUND: Final = Constant(0.0125)

RACERS: Final = {"RAO*": "RAO*", "printed": "as printed, c = 2.8", "A": "LocalVulcan, A"}
FORMS: Final = {True: "states", False: "histories"}
"""By whether histories merge."""

SHORTEST: Final = 3
LONGEST: Final = {
    ("RAO*", True): 10,
    ("RAO*", False): 8,
    ("printed", False): 9,
    ("A", True): 9,
    ("A", False): 7,
}
QUICK_LONGEST: Final = 6

CLAIMED: Final = {7: 2.0, 8: 1.0, 9: 0.5}
"""Seconds of Vulcan over those of RAO* by horizon, about, as the paper says."""

SEEDS: Final = 5
FEWEST: Final = 3
"""Runs of a racer: seeds of Vulcan, and repetitions of RAO*; the fewest where they take long."""

GROWTH: Final = {
    ("RAO*", True): (3.0, 2.5),
    ("RAO*", False): (20.0, 4.0),
    ("printed", False): (36.0, 5.0),
    ("A", True): (12.0, 7.0),
    ("A", False): (120.0, 7.0),
}
"""About the seconds of a task at horizon 8, and their growth with each step."""

LONG_SECONDS: Final = 3.0
FEWEST_SAMPLES, MOST_SAMPLES = 16, 2**27
EXACTLY: Final = 1e-9

CLOSE: Final = 1e-3
"""The algorithm as printed comes so close to what its constraint admits, and seldom closer."""


class Race:
    """What the records say of the race."""

    def __init__(self, records: Sequence[Record]) -> None:
        reached = [r for r in records if all(run.get("reached", True) for run in r.found["runs"])]
        self.runs = Runs(reached, ("racer", "merges", "horizon"))

    @staticmethod
    def list_tasks(quick: bool) -> Iterator[Task]:
        """Yield a task for each racer at each horizon."""
        for (racer, merges), longest in LONGEST.items():
            for horizon in range(SHORTEST, (QUICK_LONGEST if quick else longest) + 1):
                yield {"racer": racer, "merges": merges, "horizon": horizon}

    @staticmethod
    def estimate(task: Task) -> float:
        """Return about how many seconds a task takes."""
        at_eight, growth = GROWTH[task["racer"], task["merges"]]
        return float(1.0 + at_eight * growth ** (task["horizon"] - 8))

    @staticmethod
    def run(task: Task) -> dict[str, Any]:
        """Return what it takes to reach the final solution: the optimum, or forward search's."""
        problem = Problem(PlainBandit(task["horizon"], merges=task["merges"]), BOUND)
        run = {"RAO*": _run_rao_star, "printed": _run_printed, "A": _run_vulcan}[task["racer"]]
        runs: list[dict[str, Any]] = []
        while len(runs) < FEWEST or (
            len(runs) < SEEDS and max(run["seconds"] for run in runs) <= LONG_SECONDS
        ):
            runs.append(run(problem, len(runs)))
        return {"runs": runs}

    def describe(self) -> str:
        """Return how the race is run."""
        return (
            f"In the race Vulcan runs {RACERS['printed']}, with twice as many samples again and "
            f"again until its policy is complete and within {100 * CLOSE:g} % of the best that "
            "constraint A admits; the seconds are those of its last run."
            if self.runs
            else ""
        )

    def judge(self) -> Iterator[str]:
        """Yield who is faster, and by how much."""
        seconds = self.list_ratios("seconds")
        if not seconds:
            return
        ends = sorted({min(seconds), max(seconds)})
        ratios = " and ".join(f"{seconds[horizon]:.2g} at {horizon}" for horizon in ends)
        yield (
            "Until its final solution the printed Vulcan takes this many times the seconds of "
            f"RAO* by horizon: {ratios}."
            + " RAO* is faster at every horizon."
            * (min(seconds.values()) > 1)
        )
        if actions := self.list_ratios("evaluations"):
            horizon = max(actions)
            yield (
                f"It evaluates {actions[horizon]:.2g} times as many actions at horizon {horizon}, "
                "where RAO* evaluates every history of its tree as Vulcan does; where it "
                "evaluates each state once, as in the seconds above, it evaluates "
                f"{self.runs.mean(('RAO*', True, horizon), 'evaluations'):,.0f}."
                if ("RAO*", True, horizon) in self.runs
                else ""
            )

    def list_claims(self) -> Iterator[Claim]:
        """Yield the paper's claims, who is faster where."""
        seconds = self.list_ratios("seconds")
        for horizon, claimed in CLAIMED.items():
            if horizon in seconds:
                ratio, near = seconds[horizon], 0.5 <= seconds[horizon] / claimed <= 2
                # "Comparable" names no winner, so that only a number near 1 agrees with it.
                same_winner = claimed != 1 and (ratio > 1) == (claimed > 1)
                yield Claim(
                    f"Seconds of Vulcan over those of RAO* at horizon {horizon}",
                    f"{ratio:.2g} times, until the final solution, {RACERS['printed']}, "
                    f"{count_runs(self.runs['printed', False, horizon])}; RAO* is "
                    + ("faster" if ratio > 1 else "slower"),
                    weigh(near, Verdict.PARTLY if same_winner else Verdict.FAILS),
                    f"{claimed:g}",
                    f"{ratio:.2g}",
                )

    def summarise(self) -> dict[str, float]:
        """Return the means of all racers."""
        return {
            f"{RACERS[racer]}, {FORMS[merges]}, horizon {horizon}, {of}": self.runs.mean(key, of)
            for key in sorted(self.runs)
            for racer, merges, horizon in [key]
            for of in ("seconds", "evaluations")
        }

    def tabulate(self) -> Table:
        """Return what RAO* and the printed Vulcan need at each horizon."""
        columns = [
            ("RAO*, s", ("RAO*", True), "seconds"),
            ("Vulcan as printed, s", ("printed", False), "seconds"),
            ("RAO*, histories", ("RAO*", True), "histories"),
            ("RAO*, evaluations over histories", ("RAO*", False), "evaluations"),
            ("Vulcan, evaluations", ("printed", False), "evaluations"),
        ]
        rows: list[list[str | float | None]] = []
        for horizon in sorted({key[2] for key in self.runs}):
            row: list[str | float | None] = [horizon]
            for _, racer, of in columns:
                key = (*racer, horizon)
                mean = self.runs.mean(key, of) if key in self.runs else None
                row.append(mean if mean is None or of == "seconds" else round(mean))
            rows.append(row)
        caption = (
            f"Until the final solution, Δ = {BOUND}: means of {SEEDS} runs, of {FEWEST} where one "
            f"takes over {LONG_SECONDS:g} s; Vulcan {RACERS['printed']}"
        )
        header = ["horizon", *(name for name, _, _ in columns)]
        return Table("rao-star-race", caption, header, rows, brief=True)

    def list_figures(self) -> Iterator[Figure]:
        """Yield the figure, if there is data for it."""
        if self.runs:
            caption = (
                "What RAO* and Vulcan take to their final solutions, where states merge and over "
                "histories; RAO* knows when it is done, Vulcan is told when it has it"
            )
            yield Figure("rao-star-race", caption, self._draw)

    def list_ratios(self, of: str) -> dict[int, float]:
        """Return how many times as much the printed Vulcan takes as RAO*, by horizon.

        Seconds of RAO* are those of sharing answers of the model, its evaluations those without.
        """
        merges = of == "seconds"
        return {
            horizon: self.runs.mean(key, of) / self.runs.mean(("RAO*", merges, horizon), of)
            for key in sorted(self.runs)
            for racer, _, horizon in [key]
            if racer == "printed" and ("RAO*", merges, horizon) in self.runs
        }

    def _draw(self) -> Any:
        panels = []
        for of, up in (("seconds", "search time (s)"), ("evaluations", "model evaluations")):
            curves = []
            for merges, form in FORMS.items():
                for racer in RACERS:
                    keys = sorted(key for key in self.runs if key[:2] == (racer, merges))
                    found = [[float(run[of]) for run in self.runs[key]] for key in keys]
                    if keys:
                        horizons = [key[2] for key in keys]
                        curves.append(Curve(f"{RACERS[racer]}, {form}", horizons, found))
            panels.append(Panel(curves, "horizon", up, across_scale="linear", up_scale="log"))
        return plot_convergence(panels, title=f"Bandit, Δ = {BOUND}: to the final solution")


def _run_rao_star(problem: Problem, seed: int) -> dict[str, Any]:
    """Return what RAO* takes; it draws nothing, so that a seed is only one more measurement."""
    return {"seed": seed, **describe_run(*solve_timed(problem, RAOStar()))}


def _run_printed(problem: Problem, seed: int) -> dict[str, Any]:
    """Return the first of longer and longer runs as printed that ends near forward search."""
    compiled = Problem(Bandit(problem.model.horizon, merges=False), problem.risk_bound)
    final = solve(compiled, ForwardSearch(CONSTRAINTS["A"])).certificate
    assert final is not None
    samples = FEWEST_SAMPLES
    while True:
        limits = Limits(samples=samples, memory=MEMORY)
        result, seconds = solve_timed(compiled, LocalVulcan.paper(2.8), limits, seed=seed)
        found, taken = result.certificate, result.statistics.samples
        least = final.reward * (1 - CLOSE)
        reached = found is not None and found.complete and bool(found.reward >= least)
        if reached or samples >= MOST_SAMPLES or taken < samples:
            return {"seed": seed, "reached": reached, **describe_run(result, seconds)}
        samples *= 2


def _run_vulcan(problem: Problem, seed: int) -> dict[str, Any]:
    """Return the first of longer and longer runs that ends at the solution of forward search.

    A search takes the same samples whether histories merge or not, so that the quick case finds
    how many it takes.
    """
    quick = Problem(PlainBandit(problem.model.horizon), problem.risk_bound)
    final = solve(quick, ForwardSearch(CONSTRAINTS["A"])).certificate
    assert final is not None
    solver, samples = LocalVulcan(local_test=CONSTRAINTS["A"]), FEWEST_SAMPLES
    reached = False
    while not reached and samples <= MOST_SAMPLES:
        limits = Limits(samples=samples, memory=MEMORY)
        certificate = solve(quick, solver, limits=limits, seed=seed).certificate
        reached = certificate is not None and bool(certificate.reward >= final.reward - EXACTLY)
        samples *= 1 if reached else 2
    limits = Limits(samples=min(samples, MOST_SAMPLES), memory=MEMORY)
    run = describe_run(*solve_timed(problem, solver, limits, seed=seed))
    return {"seed": seed, "reached": reached, **run}
