"""Convergence of Vulcan to the policy of forward search: horizon 9, Δ(x) = 0.002 x.

The paper's budgets are seconds on its machine. Ours are samples, so that a run can be repeated to
the last bit; seconds and model evaluations are recorded with each. Histories don't merge, as in the
paper: the model is evaluated in every history that a search visits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

from reproduction.figures.convergence import Curve, Panel, plot_convergence
from reproduction.paper import (
    CONVERGENCE_ERROR,
    CONVERGENCE_SAME,
    CONVERGENCE_SECONDS,
    CONVERGENCE_SHARE,
    FORWARD_SEARCH_SECONDS,
)
from reproduction.part import (
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
from reproduction.runs import (
    CONSTRAINTS,
    EXPLANATION,
    SCANNED,
    TUNED,
    VARIANTS,
    Runs,
    count_runs,
    describe_run,
    estimate_seeds,
    find_lasting,
    find_margin,
    list_seeds,
    load_kernels,
    note_shares,
    run_seeds,
    show_mean,
    show_power,
    show_share,
    solve_timed,
)
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.bounds.forms import Linear
from vulcan.domains import Bandit
from vulcan.planning.solve import solve
from vulcan.problem import Problem

__all__ = ["Convergence"]

HORIZON: Final = 9
BOUND: Final = Linear(0.002)

THOUSANDS: Final = (1, 5, 20, 50, 100, 500, 2000)
QUICK_THOUSANDS: Final = (3, 30, 300)
RUNS, QUICK_RUNS = 10, 5

ALL: Final = VARIANTS | SCANNED

PLAIN: Final = "A, printed"

FORWARD: Final = {
    **{letter: ForwardSearch(constraint) for letter, constraint in CONSTRAINTS.items()},
    # It does not leave an action at its first inadmissible outcome.
    PLAIN: ForwardSearch(CONSTRAINTS["A"], cut_short=False),
}

HEADER: Final = [
    "",
    "samples",
    "runs",
    "seconds",
    "evaluations",
    "error %",
    "± error",
    "error % of the estimate",
    "± estimate",
    "same policy %",
    "complete %",
]

ESTIMATES: Final = {"reward": "what is certified", "estimate": "the search's own estimate"}

BRANCHES: Final = 4 * 3
"""Actions of the bandit (three machines and "stop") times outcomes of one (two and failure)."""

NEARLY_ALL: Final = 0.95
"""Share of runs that have to be complete for their error to count as the algorithm's."""

HALF_A_DIGIT: Final = 0.005
"""Percentage points: closer than this, errors agree as far as the paper prints them."""

SCAN, SCANNED_RUNS = 2_000_000, 3
"""Samples with which constants of UCT are compared, and runs of each."""

LONG: Final = ("c = 2.8", 5_000_000)
LONG_RUNS, LONG_BUNDLE = 60, 5
"""The best constant, in as many runs as the paper's."""

JUDGED: Final = {
    "printed": ("With c = √2, the algorithm as printed", False),
    "tuned": (f"With c = {TUNED:g}, it", True),
    LONG[0]: (f"With {LONG[0]}, it", True),
    "A": ("LocalVulcan with constraint A", True),
    "B": ("Under constraint B, it", False),
}
"""Variants in the order of the text: what it calls them, and whether it says what they save."""

SHOWN: Final = (*VARIANTS, LONG[0])
"""Variants in figures, and in the table of the largest budgets."""

ROUNDING: Final = 1e-7
"""Percent: a smaller error is none."""

VISIBLE_ERROR: Final = 0.01
"""Percent: errors below this are drawn on a linear scale, down to 0."""


class Convergence:
    """Mean error from VulcanFS over budgets."""

    name = "convergence"
    title = "Bandit: convergence of Vulcan to forward search"
    version = 6

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for every ten runs of a variant with a budget, and for forward search."""
        forward = ({"variant": "forward", "constraint": letter} for letter in FORWARD)
        seeds = (
            list_seeds(QUICK_THOUSANDS, QUICK_RUNS)
            if quick
            else list_seeds(THOUSANDS, RUNS, late=True)
        )
        scan = () if quick else _list_constants()
        return [*forward, *seeds, *scan]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        if task["variant"] == "forward":
            return 1.0
        return estimate_seeds(task)

    def run(self, task: Task) -> dict[str, Any]:
        """Run forward search, or some seeds of a variant with one budget."""
        load_kernels(BOUND)
        problem = Problem(Bandit(HORIZON, merges=False), BOUND)
        if task["variant"] == "forward":
            return describe_run(*solve_timed(problem, FORWARD[task["constraint"]]))
        variant = ALL[task["variant"]]
        target = solve(problem, ForwardSearch(CONSTRAINTS[variant.letter])).policy
        return {"runs": run_seeds(problem, variant, task, target)}

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        table = Findings(records)
        tables = [one for one in (table.tabulate_last(), table.tabulate_constants()) if one.rows]
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
                f"After {CONVERGENCE_SECONDS} s, less than {100 * CONVERGENCE_SHARE:.0f} % of the "
                f"{FORWARD_SEARCH_SECONDS[HORIZON]:,} s of VulcanFS, the mean error of 60 runs is "
                f"{CONVERGENCE_ERROR} %, and {CONVERGENCE_SAME} % of them return the very policy "
                "of VulcanFS."
            ),
            measured=table.describe(),
            meaning=table.judge(),
            claims=leave_open(table.list_claims(), quick),
            tables=[*tables, table.tabulate()],
            figures=figures,
            numbers=table.summarise(),
        )


def _list_constants() -> Iterator[Task]:
    """Yield a task for each of the other constants of UCT."""
    for variant in SCANNED:
        yield {"variant": variant, "samples": SCAN, "first": 0, "runs": SCANNED_RUNS}
    for first in range(0, LONG_RUNS, LONG_BUNDLE):
        yield {"variant": LONG[0], "samples": LONG[1], "first": first, "runs": LONG_BUNDLE}


class Findings:
    """What the records say: the error and cost of runs, by variant and budget."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.forward = {
            r.task["constraint"]: r.found for r in records if r.task["variant"] == "forward"
        }
        others = [r for r in records if r.task["variant"] != "forward"]
        self.runs = Runs(others, ("variant", "samples"))
        runs = self.runs.get(LONG, [])
        took = [run for run in runs if run["complete"] or run["samples"] == LONG[1]]
        self.stopped = len(runs) - len(took)
        if took:
            self.runs[LONG] = took
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

    def list_budgets(self, variant: str) -> list[tuple[Any, ...]]:
        """Return the budgets of a variant, the smallest first."""
        return [key for key in self.budgets if key[0] == variant]

    def list_last(self) -> list[tuple[Any, ...]]:
        """Return the largest budget of each variant."""
        return [keys[-1] for variant in SHOWN if (keys := self.list_budgets(variant))]

    def draw(self) -> Any:
        """Draw the error against time, and against evaluations."""
        panels = []
        for of, across in (("seconds", "search time (s)"), ("evaluations", "model evaluations")):
            curves = [self._trace(variant, of) for variant in SHOWN]
            shown = [curve for curve in curves if curve.places]
            marks = {"VulcanFS ends": min(float(f[of]) for f in self.forward.values())}
            levels = {"the paper's last error": CONVERGENCE_ERROR}
            up = "mean error (%)"
            panels.append(Panel(shown, across, up, marks, levels, up_scale=VISIBLE_ERROR))
        return plot_convergence(panels, title=f"Bandit(horizon={HORIZON}), Δ(x) = {BOUND}")

    def tabulate(self) -> Table:
        """Return all budgets."""
        caption = "Mean error from forward search by samples, with 95 % intervals"
        rows = self._list_rows(self.budgets)
        for letter, found in sorted(self.forward.items()):
            cost = [found["seconds"], found["evaluations"]]
            whole = [0.0, None, None, None, 100.0, 100.0]
            rows.append([f"VulcanFS, {letter}", None, 1, *cost, *whole])
        return Table("convergence", caption, HEADER, rows)

    def tabulate_last(self) -> Table:
        """Return the largest budget of each variant, and forward search."""
        rows = self._list_rows(self.list_last())
        for letter, found in sorted(self.forward.items()):
            cost = [found["seconds"], found["evaluations"]]
            rows.append([f"VulcanFS, {letter}", None, 1, *cost, 0.0, None, None, None, None, None])
        counts = [len(self.runs[key]) for key in self.list_last()]
        caption = f"After the most samples: means with 95 % intervals; {note_shares(counts)}"
        return Table("convergence-last", caption, HEADER, rows if len(rows) > 1 else [], brief=True)

    def tabulate_constants(self) -> Table:
        """Return how the constant of UCT matters, as printed."""
        keys = sorted(
            (
                key
                for key in self.budgets
                if (key[1] == SCAN or key == LONG) and not ALL[key[0]].complete
            ),
            key=lambda key: (ALL[key[0]].solver.exploration, key[1]),
        )
        counts = [len(self.runs[key]) for key in keys]
        caption = (
            "As printed, with other constants c of UCT: means with 95 % intervals; "
            f"{note_shares(counts)}"
        )
        few = len(keys) <= len(VARIANTS) - 2
        rows = [] if few else self._list_rows(keys)
        return Table("convergence-constants", caption, HEADER, rows, brief=True)

    def _list_rows(self, keys: Sequence[tuple[Any, ...]]) -> list[list[str | float | None]]:
        rows: list[list[str | float | None]] = []
        for key in keys:
            row: list[str | float | None] = [ALL[key[0]].name, key[1], len(self.runs[key])]
            row.append(self.runs.mean(key, "seconds"))
            row.append(round(self.runs.mean(key, "evaluations")))
            for of in ("reward", "estimate"):
                errors = self.errors(key, of)
                margin = find_margin(errors)
                row += [fmean(errors), margin if math.isfinite(margin) else None]
            row += [100 * self.runs.mean(key, of) for of in ("same", "complete")]
            rows.append(row)
        return rows

    def describe(self) -> str:
        """Return what was measured; the numbers are in tables."""
        return EXPLANATION if self.budgets else ""

    def judge(self) -> str:
        """Return what the difference means."""
        sentences = []
        for variant, (name, saves) in JUDGED.items():
            keys, key = self.list_budgets(variant), self.first_reaching(variant)
            if not keys:
                continue
            if key is None:
                sentences.append(f"{name} does not reach the paper's error within these budgets.")
                continue
            sentences.append(
                f"{name} reaches the paper's error by {key[1]:,} samples, with the policy of "
                f"forward search in {100 * self.runs.mean(key, 'same'):.0f} % of runs"
                + (f"; {self._compare(key)}." if saves else ".")
            )
        return " ".join([*sentences, *self._judge_constants(), *self._judge_long()])

    def _judge_long(self) -> Iterator[str]:
        """Yield what the runs say by which the claims are judged."""
        if LONG not in self.budgets or PLAIN not in self.forward:
            return
        runs, whole = self.runs[LONG], self._errors_of_complete(LONG)
        share = self.runs.mean(LONG, "evaluations") / self.forward[PLAIN]["evaluations"]
        yield (
            f"The claims are judged by {count_runs(runs)} {ALL[LONG[0]].name}, with {LONG[1]:,} "
            f"samples: {len(whole)} end complete"
            + (
                f", {min(whole):.2g} to {max(whole):.2g} % below VulcanFS, {fmean(whole):.2g} % on "
                "average"
                if whole
                else ""
            )
            + f". The mean of all is {show_mean(self.errors(LONG))} % "
            f"({show_mean(self.errors(LONG, 'estimate'))} % by the search's own estimate), after "
            f"{self.runs.mean(LONG, 'seconds'):.2g} s of the processor and {100 * share:.0f} % of "
            "the evaluations of VulcanFS as printed. Incomplete policies count as what they earn "
            "up to their frontier."
        )

    def _judge_constants(self) -> Iterator[str]:
        """Yield which constant of UCT is the best, as printed."""
        keys = [key for key in self.budgets if key[1] == SCAN and not ALL[key[0]].complete]
        if len(keys) < len(SCANNED) + 2:
            return
        constants = {key: ALL[key[0]].solver.exploration for key in keys}
        by = {of: min(keys, key=lambda key: fmean(self.errors(key, of))) for of in ESTIMATES}
        texts = [
            f"{constants[key]:.3g} by {ESTIMATES[of]} ({show_mean(self.errors(key, of))} %)"
            for of, key in by.items()
        ]
        yield (
            f"Of the constants from {min(constants.values()):g} to {max(constants.values()):g}, "
            f"with {SCAN:,} samples, the best is {' and '.join(texts)}."
        )

    def list_claims(self) -> Iterator[Claim]:
        """Yield the paper's claims, judged as printed by `LONG`, or else by the most samples.

        The least error of many budgets would be that of the luckiest one.
        """
        printed = [
            key
            for key in self.budgets
            if not ALL[key[0]].complete and self.runs.took_all(key, key[1])
        ]
        if not printed:
            return
        best = LONG if LONG in printed else max(printed, key=lambda key: (key[1], key[0]))
        left_out = f" ({self.stopped} more stopped early)" * (best == LONG and self.stopped > 0)
        runs, error = self.runs[best], fmean(self.errors(best))
        there = (
            f"{ALL[best[0]].name}, {best[1]:,} samples, {count_runs(runs)}{left_out}: "
            f"{self._show(best)}, "
            f"{show_share(self.runs.collect(best, 'complete'))} of them complete"
        )
        if whole := self._errors_of_complete(best):
            there += f", which come within {max(whole):.2g} %, on average {fmean(whole):.2g} %"
        yield Claim(
            f"Mean error at horizon {HORIZON} in the end",
            there,
            # Every complete run is as good as the paper's mean, or nearly.
            weigh(
                error < CONVERGENCE_ERROR + HALF_A_DIGIT,
                Verdict.PARTLY if self._is_near(best) else Verdict.FAILS,
            ),
            f"{CONVERGENCE_ERROR} %",
            f"{error:.2g} %",
        )
        seconds = self.runs.mean(best, "seconds")
        yield Claim(
            "Seconds after which it has that error",
            f"{seconds:.2g} s of our processor, {ALL[best[0]].name}, {best[1]:,} samples",
            weigh(self._is_near(best) and seconds <= CONVERGENCE_SECONDS),
            f"{CONVERGENCE_SECONDS} s",
            f"{seconds:.2g} s",
        )
        if PLAIN in self.forward:
            share = self.runs.mean(best, "evaluations") / self.forward[PLAIN]["evaluations"]
            yield Claim(
                "Its evaluations by then, as a share of VulcanFS's (the paper: of its seconds)",
                f"{self.runs.mean(best, 'evaluations'):,.0f} of the "
                f"{self.forward[PLAIN]['evaluations']:,} of VulcanFS as printed",
                weigh(share <= CONVERGENCE_SHARE),
                f"{100 * CONVERGENCE_SHARE:.0f} %",
                f"{100 * share:.0f} %",
            )
        same = 100 * self.runs.mean(best, "same")
        yield Claim(
            "Runs that then return the very policy of VulcanFS",
            f"{show_share(self.runs.collect(best, 'same'))} of {count_runs(runs)}; the authors' "
            "code probably differs from what is printed",
            weigh(same >= CONVERGENCE_SAME),
            f"{CONVERGENCE_SAME} %",
            f"{same:.0f} %",
        )
        yield from self._weigh_upper_bound(best)

    def _errors_of_complete(self, key: tuple[Any, ...]) -> list[float]:
        """Return the errors of runs whose policy is complete."""
        planned = [run for run in self.runs[key] if run["reward"] is not None]
        pairs = zip(self.errors(key), planned, strict=True)
        return [error for error, run in pairs if run["complete"]]

    def _is_near(self, key: tuple[Any, ...]) -> bool:
        """Whether the mean error of complete policies is the paper's, and nearly all are."""
        errors = self._errors_of_complete(key)
        return (
            len(errors) >= NEARLY_ALL * len(self.runs[key]) and fmean(errors) <= CONVERGENCE_ERROR
        )

    def _weigh_upper_bound(self, last: tuple[Any, ...]) -> Iterator[Claim]:
        """Yield whether Vulcan needs less than VulcanFS, in evaluations and in seconds."""
        if PLAIN not in self.forward:
            return
        plain = self.forward[PLAIN]
        evaluations = self.runs.mean(last, "evaluations") / plain["evaluations"]
        seconds = self.runs.mean(last, "seconds") / plain["seconds"]
        there = f"{ALL[last[0]].name}, {last[1]:,} samples, over VulcanFS as printed"
        yield Claim(
            "VulcanFS is an upper bound on Vulcan's work: evaluations, over those of VulcanFS",
            f"{there}: no history is evaluated twice",
            weigh(evaluations <= 1),
            "< 1",
            f"{evaluations:.2g}",
        )
        yield Claim(
            "The same ratio in seconds, both compiled",
            f"{there}: {self.runs.mean(last, 'seconds'):.2g} s over {plain['seconds']:.2g} s; "
            "histories are sampled again and again",
            weigh(seconds <= 1),
            "< 1",
            f"{seconds:.2g}",
        )
        if "histories" not in plain:
            return
        most = BRANCHES**HORIZON
        yield Claim(
            f"VulcanFS visits O((|A| B)^n) histories: at horizon {HORIZON}",
            f"{plain['histories']:,} as printed, where (4 · 3)^{HORIZON} are {most:.2g}",
            weigh(plain["histories"] <= most),
            f"≤ {show_power(most)}",
            show_power(plain["histories"]),
        )

    def _show(self, key: tuple[Any, ...]) -> str:
        """Return the error of a budget, certified and as the search estimates it."""
        certified, estimated = (show_mean(self.errors(key, of)) for of in ESTIMATES)
        return f"{certified} % ({estimated} % by its own estimate)"

    def first_reaching(self, variant: str) -> tuple[Any, ...] | None:
        """Return the smallest budget from which on the mean error is no larger than the paper's."""
        return find_lasting(
            self.list_budgets(variant), lambda key: fmean(self.errors(key)) <= CONVERGENCE_ERROR
        )

    def summarise(self) -> dict[str, Any]:
        """Return the numbers of the largest budgets, and where the paper's error is reached."""
        numbers: dict[str, Any] = {}
        for key in self.list_last():
            numbers[f"{key[0]} samples"] = key[1]
            numbers[f"{key[0]} error percent"] = fmean(self.errors(key))
            numbers[f"{key[0]} same policy"] = self.runs.mean(key, "same")
            reaching = self.first_reaching(key[0])
            numbers[f"{key[0]} samples to the paper's error"] = reaching and reaching[1]
        for letter, found in self.forward.items():
            for of in ("reward", "seconds", "evaluations"):
                numbers[f"forward search {letter}, {of}"] = found[of]
        return numbers

    def _compare(self, key: tuple[Any, ...]) -> str:
        """Return what a budget takes, beside forward search."""
        forward = self.forward[ALL[key[0]].letter]
        seconds, evaluations = self._share(key)
        saving = (
            "holds"
            if seconds < CONVERGENCE_SHARE
            else "is smaller here"
            if seconds < 1
            else "does not hold on a model as cheap as this one"
        )
        return (
            f"that takes {100 * evaluations:.2g} % of the evaluations of forward search, and "
            f"{self.runs.mean(key, 'seconds'):.2g} s where compiled forward search takes "
            f"{forward['seconds']:.2g} s: the paper's saving of time {saving}"
        )

    def _share(self, key: tuple[Any, ...]) -> tuple[float, float]:
        """Return the seconds and evaluations of a budget, as shares of forward search's."""
        forward = self.forward[ALL[key[0]].letter]
        seconds, evaluations = (
            self.runs.mean(key, of) / forward[of] for of in ("seconds", "evaluations")
        )
        return seconds, evaluations

    def _target(self, variant: str) -> float | None:
        found = self.forward.get(ALL[variant].letter)
        return None if found is None else float(found["reward"])

    def _trace(self, variant: str, of: str) -> Curve:
        keys = self.list_budgets(variant)
        places = [self.runs.mean(key, of) for key in keys]
        return Curve(ALL[variant].name, places, [self.errors(key) for key in keys])


def _order(item: tuple[tuple[Any, ...], Any]) -> tuple[int, int]:
    (variant, samples), _ = item
    return list(ALL).index(variant), samples
