"""Vulcan against RAO*: horizon 10 with a constant bound of 0.0125, and a race over horizons.

Early policies of the algorithm as printed are incomplete, and what the search takes them to earn is
too much. Vulcan and forward search are run where every history is a state of its own, as in the
tree that Vulcan grows; RAO* where histories with the same counts are one state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

from vulcan.domains import Bandit
from vulcan.plotting.convergence import Curve, Panel, plot_convergence
from vulcan.problem import Problem
from vulcan.reproduce.paper import (
    COMPLETE_LOSS,
    COMPLETE_SECONDS,
    RAO_STAR_SECONDS,
    RAO_STAR_SPEEDUP,
)
from vulcan.reproduce.part import (
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
from vulcan.reproduce.parts.race import BOUND, Race
from vulcan.reproduce.runs import (
    CONSTRAINTS,
    VARIANTS,
    describe_run,
    estimate_seeds,
    find_lasting,
    gather_runs,
    list_seeds,
    load_kernels,
    run_seeds,
)
from vulcan.risk import Constant
from vulcan.solve import solve
from vulcan.solvers.forward_search import ForwardSearch
from vulcan.solvers.pareto import Pareto
from vulcan.solvers.rao_star import RAOStar
from vulcan.solvers.solver import Solver

__all__ = ["HeuristicSearch"]

HORIZON: Final = 10

EXACT: Final[dict[str, tuple[Solver, Constant, bool]]] = {
    "optimum": (Pareto(), BOUND, True),
    "RAO*": (RAOStar(), BOUND, True),
    "risk-neutral": (Pareto(), Constant(1.0), True),
    "A": (ForwardSearch(CONSTRAINTS["A"]), BOUND, False),
    "B": (ForwardSearch(CONSTRAINTS["B"]), BOUND, False),
}
"""Solver, bound, and whether histories merge."""

THOUSANDS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
QUICK_THOUSANDS: Final = (1, 10, 100)
RUNS, QUICK_RUNS = 100, 5

REPEATS: Final = 3
"""Exact solvers are run so often, and the least time is taken."""


HALF_A_DIGIT: Final = 0.05
"""Percentage points: closer than this, losses agree as far as they are printed."""

NEAR: Final = 0.1
"""Percentage points: so close to what the constraint admits, a policy is found."""

DRAWN: Final = ("tuned", "A", "B")
"""Variants in the figure; the table has all."""


class HeuristicSearch:
    """Vulcan against RAO*."""

    name = "rao-star"
    title = "Bandit: Vulcan against heuristic search"
    version = 3

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return tasks for exact solvers, for every ten runs with a budget, and for the race."""
        exact = ({"what": "exact", "solver": solver} for solver in EXACT)
        race = ({"what": "race", **task} for task in Race.list_tasks(quick))
        seeds = list_seeds(QUICK_THOUSANDS, QUICK_RUNS) if quick else list_seeds(THOUSANDS, RUNS)
        return [*exact, *race, *({"what": "runs", **task} for task in seeds)]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        if task["what"] == "exact":
            return 2.0
        if task["what"] == "race":
            return Race.estimate(task)
        return estimate_seeds(task)

    def run(self, task: Task) -> dict[str, Any]:
        """Solve exactly, run some seeds with one budget, or race to the final solution."""
        load_kernels(BOUND)
        if task["what"] == "race":
            return Race.run(task)
        if task["what"] == "exact":
            solver, bound, merges = EXACT[task["solver"]]
            problem = Problem(Bandit(HORIZON, merges=merges), bound)
            runs = [describe_run(solve(problem, solver)) for _ in range(REPEATS)]
            return min(runs, key=lambda run: float(run["seconds"]))
        problem = Problem(Bandit(HORIZON, merges=False), BOUND)
        return {"runs": run_seeds(problem, VARIANTS[task["variant"]], task)}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = Findings([record for record in records if record.task["what"] != "race"])
        race = Race([record for record in records if record.task["what"] == "race"])
        return Section(
            paper=(
                f"At horizon {HORIZON} RAO* takes {RAO_STAR_SECONDS:,} s. Vulcan overestimates at "
                f"first, returns complete policies only from {COMPLETE_SECONDS} s on, "
                f"{RAO_STAR_SPEEDUP} times faster, and these lose {COMPLETE_LOSS} % on average. Up "
                "to horizon 7 RAO* is twice as fast, at 9 Vulcan is."
            ),
            measured=found.describe(),
            meaning=" ".join((*found.judge(), *race.judge())),
            claims=leave_open((*found.list_claims(), *race.list_claims()), quick),
            tables=[table for table in (found.tabulate(), race.tabulate()) if table.rows],
            figures=[*found.list_figures(), *race.list_figures()],
            numbers=found.summarise() | race.summarise(),
        )


class Findings:
    """What the records say of horizon 10."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.exact = {r.task["solver"]: r.found for r in records if r.task["what"] == "exact"}
        others = [r for r in records if r.task["what"] == "runs"]
        self.runs = gather_runs(others, ("variant", "samples"))

    def budgets(self, variant: str) -> list[tuple[Any, ...]]:
        """Return the budgets of a variant at which some run has a policy, the smallest first."""
        keys = [key for key in self.runs if key[0] == variant and self.values(key, "reward")]
        return sorted(keys, key=lambda key: key[1])

    def values(self, key: tuple[Any, ...], of: str) -> list[float]:
        """Return one value of all runs with a budget."""
        return [float(run[of]) for run in self.runs[key] if run[of] is not None]

    def mean(self, key: tuple[Any, ...], of: str) -> float:
        """Return the mean over runs."""
        return fmean(self.values(key, of))

    def lose(self, key: tuple[Any, ...] | str) -> float | None:
        """Return how far runs, or an exact solver, are below the optimum on average, in percent."""
        best = self.exact.get("optimum") or self.exact.get("RAO*")
        known = best is not None and (not isinstance(key, str) or key in self.exact)
        if best is None or not known:
            return None
        reward = self.exact[key]["reward"] if isinstance(key, str) else self.mean(key, "reward")
        return 100 * (1 - float(reward) / float(best["reward"]))

    def describe(self) -> str:
        """Return what was measured."""
        sentences = [
            f"{name} takes {found['seconds']:.2g} s and {found['evaluations']:,} model evaluations "
            f"to find {found['reward']:.6f}."
            for key, name in (
                ("RAO*", "RAO*, with states merged,"),
                ("A", "Forward search with constraint A, over histories,"),
            )
            if (found := self.exact.get(key))
        ]
        for variant in VARIANTS:
            if keys := self.budgets(variant):
                last, name = keys[-1], VARIANTS[variant].name
                sentences.append(
                    f"{name[0].upper()}{name[1:]}: after {last[1]:,} samples "
                    f"({self.mean(last, 'seconds'):.2g} s) the search estimates "
                    f"{self.mean(last, 'estimate'):.3f} and the certificate says "
                    f"{self.mean(last, 'reward'):.3f}, mean of {len(self.runs[last])} runs; "
                    f"{100 * self.mean(last, 'complete'):.0f} % of policies are complete."
                )
        return " ".join(sentences)

    def judge(self) -> Iterator[str]:
        """Yield what the differences mean."""
        yield from self._judge_printed()
        loss = self.lose("A")
        if loss is not None:
            yield (
                f"What constraint A admits loses {loss:.2f} % of the optimum (paper: "
                f"{COMPLETE_LOSS} %)."
            )
        neutral = self.exact.get("risk-neutral")
        if neutral is not None:
            within = neutral["risk"] <= BOUND(0.0)
            yield (
                f"The policy without regard to risk earns {neutral['reward']:.6f} at risk "
                f"{neutral['risk']:.5f}, {'within' if within else 'above'} the bound of "
                f"{BOUND(0.0)}: "
                + (
                    "the experiment needs no bound, and what is lost is lost to the constraint."
                    if within
                    else "the bound has a price."
                )
            )
        yield from self._judge_speed()

    def _judge_printed(self) -> Iterator[str]:
        """Yield whether early estimates are too high, and from when on policies are complete."""
        best = self.exact.get("A")
        for variant in ("printed", "tuned"):
            keys, name = self.budgets(variant), VARIANTS[variant].name
            if best is None or not keys:
                continue
            top = max(keys, key=lambda key: self.mean(key, "estimate"))
            estimate, certified = self.mean(top, "estimate"), self.mean(top, "reward")
            text = (
                f"Vulcan {name} overestimates as the paper says: up to {estimate:.3f} on average, "
                f"after {top[1]:,} samples, when the certificate says {certified:.3f}"
                if estimate > best["reward"]
                else f"Vulcan {name} does not overestimate: at most {estimate:.3f} on average"
            )
            whole = find_lasting(keys, lambda key: self.mean(key, "complete") == 1)
            if whole is None:
                most = max(self.mean(key, "complete") for key in keys)
                yield f"{text}; no budget makes all policies complete ({100 * most:.0f} % at most)."
            else:
                yield (
                    f"{text}; from {whole[1]:,} samples ({self.mean(whole, 'seconds'):.2g} s) on "
                    f"all policies are complete, and lose {self.lose(whole):.2g} %."
                )

    def _judge_speed(self) -> Iterator[str]:
        rao, keys = self.exact.get("RAO*"), self.budgets("B")
        if rao is None or not keys:
            return
        within = [key for key in keys if self.mean(key, "seconds") <= rao["seconds"]]
        loss = self.lose((within or keys)[-1])
        assert loss is not None
        when = "In the time of RAO*" if within else "In more time than RAO* takes"
        yield (
            f"{when} ({rao['seconds']:.2g} s, states merged) Vulcan is {loss:.2g} % below the "
            "optimum: " + ("here it is no faster." if loss > COMPLETE_LOSS else "as fast here.")
        )

    def list_claims(self) -> Iterator[Claim]:
        """Yield the paper's claims; those of the printed algorithm with the better constant."""
        best, keys, loss = self.exact.get("A"), self.budgets("tuned"), self.lose("A")
        if best is None or loss is None or not keys:
            return
        highest = max(self.mean(key, "estimate") for key in keys)
        yield Claim(
            "Rewards are overestimated at first",
            f"up to {highest:.3f} on average, where constraint A admits {best['reward']:.3f}",
            weigh(highest > best["reward"]),
        )
        whole = find_lasting(keys, lambda key: self.mean(key, "complete") == 1)
        share = max(self.mean(key, "complete") for key in keys)
        yield Claim(
            "With more time, all policies are complete",
            f"from {whole[1]:,} samples on"
            if whole
            else f"{100 * share:.0f} % at most, after up to {keys[-1][1]:,} samples",
            weigh(whole is not None, Verdict.PARTLY if share > 0 else Verdict.FAILS),
        )
        yield Claim(
            f"Complete policies lose {COMPLETE_LOSS} %",
            f"{loss:.2f} % is lost to the constraint; the bound itself costs nothing",
            weigh(abs(loss - COMPLETE_LOSS) < HALF_A_DIGIT),
        )
        rao = self.exact.get("RAO*")
        near = find_lasting(self.budgets("A"), lambda key: (self.lose(key) or 0) < loss + NEAR)
        if rao is not None:
            ratio = rao["seconds"] / self.mean(near, "seconds") if near else 0.0
            yield Claim(
                f"They are found {RAO_STAR_SPEEDUP} times faster than by RAO*",
                f"{ratio:.2g} times as fast as RAO* with states merged, which takes "
                f"{rao['seconds']:.2g} s"
                if near
                else "not found within these budgets",
                weigh(ratio >= RAO_STAR_SPEEDUP, Verdict.PARTLY if ratio > 1 else Verdict.FAILS),
            )

    def tabulate(self) -> Table:
        """Return exact solutions and all budgets."""
        columns = ("seconds", "evaluations", "reward", "estimate", "risk")
        rows: list[list[str | float | None]] = [
            [name, None, 1, *(found[of] for of in columns[:3]), None, found["risk"], 100.0]
            for name, found in self.exact.items()
        ]
        rows += [
            [
                VARIANTS[variant].name,
                key[1],
                len(self.runs[key]),
                self.mean(key, "seconds"),
                round(self.mean(key, "evaluations")),
                *(self.mean(key, of) for of in columns[2:]),
                100 * self.mean(key, "complete"),
            ]
            for variant in VARIANTS
            for key in self.budgets(variant)
        ]
        header = ["", "samples", "runs", *columns]
        caption = f"Horizon {HORIZON}, Δ = {BOUND}: means; A and B are forward search"
        return Table("rao-star", caption, [*header, "complete %"], rows)

    def list_figures(self) -> Iterator[Figure]:
        """Yield the figure, if there is data for it."""
        if any(self.budgets(variant) for variant in DRAWN):
            caption = (
                "Mean reward as the search estimates it and as certified, and the share of "
                "complete policies, by time and by model evaluations; bands hold eight runs of ten"
            )
            yield Figure("rao-star", caption, self._draw)

    def _draw(self) -> Any:
        levels = {
            name: self.exact[key]["reward"]
            for key, name in (("optimum", "optimum"), ("A", "best that A admits"))
            if key in self.exact
        }
        across = {"seconds": "search time (s)", "evaluations": "model evaluations"}
        marks = {
            of: {
                name: self.exact[key][of]
                for key, name in (("RAO*", "RAO* ends"), ("A", "forward search (A) ends"))
                if key in self.exact
            }
            for of in across
        }
        rewards = [
            Panel(self._trace_rewards(of), label, "expected reward", marks[of], levels)
            for of, label in across.items()
        ]
        shares = [
            Panel(self._trace_shares(of), label, "complete policies (%)", marks[of])
            for of, label in across.items()
        ]
        title = f"Bandit(horizon={HORIZON}), Δ = {BOUND}"
        return plot_convergence([*rewards, *shares], title=title)

    def _trace_rewards(self, of: str) -> list[Curve]:
        curves = []
        for variant in DRAWN:
            keys, described = self.budgets(variant), VARIANTS[variant]
            places = [self.mean(key, of) for key in keys]
            certified = [self.values(key, "reward") for key in keys]
            if keys and not described.complete:
                estimates = [self.values(key, "estimate") for key in keys]
                curves.append(Curve(f"{described.name}: estimate", places, estimates))
            if keys:
                curves.append(Curve(_name_certified(variant), places, certified))
        return curves

    def _trace_shares(self, of: str) -> list[Curve]:
        return [
            Curve(
                _name_certified(variant),
                [self.mean(key, of) for key in keys],
                [[100 * self.mean(key, "complete")] for key in keys],
            )
            for variant in DRAWN
            if (keys := self.budgets(variant))
        ]

    def summarise(self) -> dict[str, Any]:
        """Return the numbers."""
        numbers: dict[str, Any] = {}
        for name, found in self.exact.items():
            for of in ("reward", "risk", "seconds", "evaluations"):
                numbers[f"{name}, {of}"] = found[of]
        for variant in VARIANTS:
            for key in self.budgets(variant)[-1:]:
                for of in ("samples", "reward", "estimate", "complete", "seconds", "evaluations"):
                    numbers[f"Vulcan {variant}, {of}"] = self.mean(key, of)
        return numbers


def _name_certified(variant: str) -> str:
    described = VARIANTS[variant]
    return described.name if described.complete else f"{described.name}: certified"
