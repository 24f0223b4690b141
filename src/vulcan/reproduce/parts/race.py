"""RAO* and Vulcan race to their final solutions, over horizons: part of `heuristic_search`.

They race where histories with the same counts are one state, and where every history is a state of
its own. Both ask the same model in plain Python, so that neither is helped by a compiled one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

from vulcan.domains import Bandit
from vulcan.plotting.convergence import Curve, Panel, plot_convergence
from vulcan.problem import Problem
from vulcan.reproduce.part import Claim, Figure, Record, Table, Task, Verdict, weigh
from vulcan.reproduce.runs import describe_run, gather_runs
from vulcan.risk import Constant
from vulcan.solve import solve
from vulcan.solvers.forward_search import ForwardSearch
from vulcan.solvers.rao_star import RAOStar
from vulcan.solvers.vulcan import Vulcan

__all__ = ["BOUND", "Race"]

BOUND: Final = Constant(0.0125)

RACERS: Final = {
    ("RAO*", True): ("RAO*, states", 9),
    ("Vulcan", True): ("Vulcan, states", 9),
    ("RAO*", False): ("RAO*, histories", 8),
    ("Vulcan", False): ("Vulcan, histories", 8),
}
"""Name of a racer, and the longest horizon that it runs at."""

SHORTEST: Final = 3
QUICK_LONGEST: Final = {True: 7, False: 6}
"""By whether histories merge."""

SHORT, LONG = 7, 9
"""Up to the one RAO* is faster, at the other Vulcan, as the paper says."""

SEEDS: Final = 5
FEWEST_SAMPLES: Final = 16
EXACTLY: Final = 1e-9


class PlainBandit(Bandit):
    """The bandit without its compiled form."""


class Race:
    """What the records say of the race."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.runs = gather_runs(records, ("solver", "merges", "horizon"))

    @staticmethod
    def list_tasks(quick: bool) -> Iterator[Task]:
        """Yield a task for each racer at each horizon."""
        for (solver, merges), (_, longest) in RACERS.items():
            for horizon in range(SHORTEST, (QUICK_LONGEST[merges] if quick else longest) + 1):
                yield {"solver": solver, "merges": merges, "horizon": horizon}

    @staticmethod
    def estimate(task: Task) -> float:
        """Return about how many seconds a task takes."""
        return float(1.0 + (12.0 if task["merges"] else 120.0) * 7.0 ** (task["horizon"] - 8))

    @staticmethod
    def run(task: Task) -> dict[str, Any]:
        """Return what it takes to reach the final solution: the optimum, or forward search's.

        Vulcan is given twice as many samples again and again until it has it; the last run counts.
        It takes the same samples whether histories merge or not, so that the quick case finds how
        many.
        """
        horizon = task["horizon"]
        problem = Problem(PlainBandit(horizon, merges=task["merges"]), BOUND)
        if task["solver"] == "RAO*":
            return {"runs": [describe_run(solve(problem, RAOStar()))]}
        quick = Problem(PlainBandit(horizon), BOUND)
        final = solve(quick, ForwardSearch()).certificate
        assert final is not None
        runs = []
        for seed in range(SEEDS):
            samples = FEWEST_SAMPLES
            while True:
                result = solve(quick, Vulcan(), samples=samples, seed=seed)
                reward = -1.0 if result.certificate is None else float(result.certificate.reward)
                if reward >= float(final.reward) - EXACTLY:
                    break
                samples *= 2
            result = solve(problem, Vulcan(), samples=samples, seed=seed)
            runs.append({"seed": seed, **describe_run(result)})
        return {"runs": runs}

    def judge(self) -> Iterator[str]:
        """Yield what the ratios say, with and without merging."""
        for merges, name in ((True, "Where states merge"), (False, "Over histories")):
            rows = self._list_pairs(merges)
            if rows:
                horizon, rao, vulcan = rows[-1]
                yield (
                    f"{name}, at horizon {horizon}, RAO* takes {rao:.2g} s and Vulcan "
                    f"{vulcan:.2g} s to its final solution, a ratio of {rao / vulcan:.2g}"
                    + (" that grows with the horizon." if _grows(rows) else ".")
                )

    def list_claims(self) -> Iterator[Claim]:
        """Yield the paper's claim: who is faster at short horizons, and who at long ones."""
        ratios = {horizon: rao / vulcan for horizon, rao, vulcan in self._list_pairs(True)}
        others = {horizon: rao / vulcan for horizon, rao, vulcan in self._list_pairs(False)}
        if not ratios:
            return
        short = [ratio for horizon, ratio in ratios.items() if horizon <= SHORT]
        behind, ahead = all(r < 1 for r in short), ratios.get(LONG, 0.0) > 1
        verdict = Verdict.PARTLY if behind or ahead else Verdict.FAILS
        if LONG not in ratios:
            verdict = Verdict.OPEN
        texts = [
            f"{max(of)}: {of[max(of)]:.2g} {name}"
            for of, name in ((ratios, "where states merge"), (others, "over histories"))
            if of
        ]
        yield Claim(
            f"RAO* is twice as fast up to horizon {SHORT}, Vulcan at {LONG}",
            f"time of RAO* over that of Vulcan at horizon {', '.join(texts)}; up to {SHORT} "
            f"{min(short):.2g} to {max(short):.2g} where states merge",
            weigh(behind and ahead, verdict),
        )

    def tabulate(self) -> Table:
        """Return what each racer needs at each horizon."""
        rows: list[list[str | float | None]] = []
        for horizon in sorted({key[2] for key in self.runs}):
            row: list[str | float | None] = [horizon]
            for racer in RACERS:
                runs = self.runs.get((*racer, horizon), [])
                for of in ("seconds", "evaluations"):
                    row.append(fmean(run[of] for run in runs) if runs else None)
            rows.append(row)
        names = [name for name, _ in RACERS.values()]
        header = [f"{name}: {of}" for name in names for of in ("seconds", "evaluations")]
        caption = f"Until the final solution is reached, Δ = {BOUND}; Vulcan to a factor of two"
        return Table("rao-star-race", caption, ["horizon", *header], rows)

    def list_figures(self) -> Iterator[Figure]:
        """Yield the figure, if there is data for it."""
        if self.runs:
            caption = "What RAO* and Vulcan take to their final solutions"
            yield Figure("rao-star-race", caption, self._draw)

    def _list_pairs(self, merges: bool) -> list[tuple[int, float, float]]:
        """Return horizons at which both raced, with their seconds."""
        pairs = []
        for horizon in sorted({key[2] for key in self.runs if key[1] == merges}):
            keys = [(solver, merges, horizon) for solver in ("RAO*", "Vulcan")]
            if all(key in self.runs for key in keys):
                rao, vulcan = (fmean(run["seconds"] for run in self.runs[key]) for key in keys)
                pairs.append((horizon, rao, vulcan))
        return pairs

    def _draw(self) -> Any:
        panels = []
        for of, up in (("seconds", "search time (s)"), ("evaluations", "model evaluations")):
            curves = []
            for racer, (name, _) in RACERS.items():
                horizons = sorted(key[2] for key in self.runs if key[:2] == racer)
                found = [[run[of] for run in self.runs[*racer, h]] for h in horizons]
                if horizons:
                    curves.append(Curve(name, horizons, found))
            panels.append(Panel(curves, "horizon", up, across_scale="linear", up_scale="log"))
        return plot_convergence(panels, title=f"Bandit, Δ = {BOUND}: time to the final solution")


def _grows(rows: Sequence[tuple[int, float, float]]) -> bool:
    """Whether the ratio of both racers is larger at each of the last horizons."""
    ratios = [rao / vulcan for _, rao, vulcan in rows[-3:]]
    return len(ratios) > 1 and ratios == sorted(ratios)
