"""The paper's figures over α: what VulcanFS loses on the bandit with horizon 4 and Δ(x) = α x.

The paper shows α from 0.0005 to 0.003 and says that nothing is lost outside; so we look there too.
All rewards are exact: fronts prove the optimum, and forward search visits every history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

from reproduction.figures.curves import plot_curves
from reproduction.paper import ALPHA_HIGH_LOSS, ALPHA_MEAN_LOSS, ALPHA_RANGE
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
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.baselines.penalty import Penalty
from vulcan.bounds.forms import Linear
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Pareto
from vulcan.planning.solve import solve
from vulcan.problem import Problem
from vulcan.solvers.base import Solver
from vulcan.solvers.local_tests import SequenceConstraint, SurvivalConstraint

__all__ = ["Alpha"]

HORIZON: Final = 4

STEPS: Final = {0.0001: 50, 0.00002: 10, 0.00001: 5, 0.000002: 1}
"""How far values of α are apart, and in steps of the finest: averages depend on it."""

FINE: Final = tuple(round(0.0005 + 0.000002 * k, 6) for k in range(1251))
INSIDE: Final = FINE[::10]
"""The values at which every solver is run and timed; at the others, only what the loss needs."""

OUTSIDE: Final = (
    *(round(0.0001 + 0.00002 * k, 5) for k in range(20)),
    *(round(0.0031 + 0.0001 * k, 5) for k in range(30)),
)

TIMED: Final = frozenset((*INSIDE, *OUTSIDE))

SOLVERS: Final[Mapping[str, Solver]] = {
    "optimum": Pareto(),
    "A": ForwardSearch(SequenceConstraint()),
    "B": ForwardSearch(SurvivalConstraint()),
    # As the paper prints it: an action is not left at its first inadmissible outcome.
    "A, printed": ForwardSearch(SequenceConstraint(), cut_short=False),
    "penalties": Penalty(),
}

NEEDED: Final = ("optimum", "A", "B")
"""What the loss needs."""

REPEATS: Final = 5
"""The least time of this many runs is taken: what else the machine does only adds."""

HALF_A_DIGIT: Final = 0.005
"""Percentage points: closer than this, numbers agree as far as they are printed."""

WIDE: Final = 10.0
"""Regions that fill a larger share of the range, in percent, are not called small."""

NOTHING: Final = 1e-9
"""A smaller loss, as a share, is a rounding."""

Point = tuple[float, float]


class Alpha:
    """Loss, rewards and work of VulcanFS over the slope of the bound."""

    name = "alpha"
    title = "Bandit: what the local constraint costs, over risk bounds"
    version = 4

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for each α; every fifth of the timed ones if it has to be quick."""
        chosen = (*INSIDE[::5], *OUTSIDE[::5]) if quick else (*FINE, *OUTSIDE)
        return [{"alpha": alpha} for alpha in sorted(chosen)]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        return 0.3 if task["alpha"] in TIMED else 0.05

    def run(self, task: Task) -> dict[str, Any]:
        """Solve the problem of one α with every solver."""
        problem = Problem(Bandit(horizon=HORIZON), Linear(task["alpha"]))
        found: dict[str, Any] = {}
        timed = task["alpha"] in TIMED
        for name in SOLVERS if timed else NEEDED:
            results = [solve(problem, SOLVERS[name]) for _ in range(REPEATS if timed else 1)]
            result = results[0]
            assert result.certificate is not None  # stopping at once is always acceptable
            found[name] = {
                "reward": float(result.certificate.reward),
                "histories": result.statistics.histories,
                "evaluations": result.statistics.evaluations,
                "seconds": min(result.statistics.search_seconds for result in results),
            }
        return found

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        everything = sorted(records, key=lambda record: float(record.task["alpha"]))
        timed = [record for record in everything if record.task["alpha"] in TIMED]
        losses = {letter: _find_losses(everything, letter) for letter in ("A", "B")}
        numbers = _summarise(losses) | _summarise_work(timed) | _summarise_penalties(timed)
        return Section(
            paper=(
                f"Over α from {ALPHA_RANGE[0]} to {ALPHA_RANGE[1]} VulcanFS loses "
                f"{ALPHA_MEAN_LOSS} % on average where it loses anything, over {ALPHA_HIGH_LOSS} % "
                "only in relatively small regions, less as the bound becomes less restrictive, and "
                "nothing outside this range. Its run time is not a strong function of the bound."
            ),
            measured=_describe(numbers),
            meaning=_judge(numbers),
            claims=leave_open(_list_claims(numbers), quick),
            tables=[_tabulate_steps(losses["A"]), _tabulate(timed)],
            figures=_draw(timed, losses),
            numbers=numbers,
        )


def _find_losses(records: Sequence[Record], letter: str) -> list[Point]:
    """Return the loss of a constraint in percent over α."""
    return [
        (r.task["alpha"], 100 * (1 - r.found[letter]["reward"] / r.found["optimum"]["reward"]))
        for r in records
    ]


def _summarise(losses: Mapping[str, Sequence[Point]]) -> dict[str, float | int]:
    """Return the numbers of the text; those of which there is no data are left out."""
    low, high = ALPHA_RANGE
    numbers: dict[str, float | int] = {}
    for letter, points in losses.items():
        inside = [loss for alpha, loss in points if low <= alpha <= high]
        lost = [loss for loss in inside if loss > 100 * NOTHING]
        outside = [loss for alpha, loss in points if not low <= alpha <= high]
        numbers[f"values {letter}"] = len(inside)
        numbers[f"values with a loss {letter}"] = len(lost)
        numbers[f"mean loss {letter}"] = fmean(lost) if lost else 0.0
        numbers[f"largest loss {letter}"] = max(inside, default=0.0)
        numbers[f"values of high loss {letter}"] = sum(loss > ALPHA_HIGH_LOSS for loss in inside)
        numbers[f"regions of high loss {letter}"] = _count_regions(inside)
        numbers[f"values outside {letter}"] = len(outside)
        numbers[f"largest loss outside {letter}"] = max(outside, default=0.0)
        # The range in two halves, to see whether the loss falls.
        for half, part in (
            ("first", inside[: len(inside) // 2]),
            ("second", inside[len(inside) // 2 :]),
        ):
            numbers[f"mean loss, {half} half {letter}"] = fmean(part) if part else 0.0
    return numbers


def _summarise_work(records: Sequence[Record]) -> dict[str, float | int]:
    """Return what forward search took where it was timed."""
    low, high = ALPHA_RANGE
    numbers: dict[str, float | int] = {}
    for name in ("A", "A, printed"):
        for what in ("histories", "evaluations", "seconds"):
            values = sorted(r.found[name][what] for r in records if low <= r.task["alpha"] <= high)
            if values:
                numbers[f"least {what} {name}"] = values[0]
                numbers[f"most {what} {name}"] = values[-1]
                # Runs that the machine held up are no function of the bound.
                numbers[f"low {what} {name}"] = values[len(values) // 10]
                numbers[f"high {what} {name}"] = values[-1 - len(values) // 10]
    return numbers


def _summarise_penalties(records: Sequence[Record]) -> dict[str, float | int]:
    """Return how a sweep over penalties compares with VulcanFS over the range."""
    low, high = ALPHA_RANGE
    swept, plain = (
        [loss for alpha, loss in _find_losses(records, name) if low <= alpha <= high]
        for name in ("penalties", "A")
    )
    ahead = [p - a for p, a in zip(swept, plain, strict=True)]
    return {
        "values of penalties": len(swept),
        "mean loss, all values A": fmean(plain) if plain else 0.0,
        "mean loss, all values penalties": fmean(swept) if swept else 0.0,
        "largest loss penalties": max(swept, default=0.0),
        "values where penalties earn more": sum(x < -100 * NOTHING for x in ahead),
        "values where penalties earn less": sum(x > 100 * NOTHING for x in ahead),
    }


def _count_regions(losses: Sequence[float]) -> int:
    """Return how many times a loss becomes high."""
    high = [False, *(loss > ALPHA_HIGH_LOSS for loss in losses)]
    return sum(now and not before for before, now in pairwise(high))


def _describe(n: Mapping[str, float | int]) -> str:
    if not n["values A"]:
        return "Nothing yet in the paper's range of α."
    text = (
        f"{n['mean loss A']:.4f} % on average over the {n['values with a loss A']:,} of "
        f"{n['values A']:,} values of α with a loss, {n['largest loss A']:.1f} % at most, and over "
        f"{ALPHA_HIGH_LOSS} % at {n['values of high loss A']} values "
        f"({_find_share(n):.0f} % of the range, in {n['regions of high loss A']} regions). "
        f"The average over all values is {n['mean loss, first half A']:.2f} % in the lower half of "
        f"the range and {n['mean loss, second half A']:.2f} % in the upper. "
    )
    if n["values outside A"]:
        text += (
            f"At {n['values outside A']} values outside the range the largest loss is "
            f"{max(0.0, n['largest loss outside A']):.2g} %. "
        )
    text += (
        f"Constraint B loses {n['mean loss B']:.3f} % on average where it loses anything "
        f"({n['values with a loss B']:,} values). "
        f"A sweep over penalties (`Penalty()`) earns more than VulcanFS at "
        f"{n['values where penalties earn more']} of {n['values of penalties']} values and less at "
        f"{n['values where penalties earn less']}; over all of these it loses "
        f"{n['mean loss, all values penalties']:.2f} % on average "
        f"({n['largest loss penalties']:.1f} % at most), VulcanFS "
        f"{n['mean loss, all values A']:.2f} %. "
    )
    if "least histories A" not in n:
        return text
    return text + (
        f"As printed, VulcanFS visits {_span(n, 'histories', 'A, printed')} histories over "
        f"this range; ours, which leaves an action at its first inadmissible outcome, "
        f"{_span(n, 'histories', 'A')}, with {_span(n, 'evaluations', 'A')} "
        "evaluations of the model."
    )


def _find_share(n: Mapping[str, float | int]) -> float:
    return 100 * n["values of high loss A"] / n["values A"]


def _span(n: Mapping[str, float | int], what: str, name: str) -> str:
    least, most = n[f"least {what} {name}"], n[f"most {what} {name}"]
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _judge(n: Mapping[str, float | int]) -> str:
    """Return which of the paper's claims hold."""
    if not n["values A"]:
        return ""
    average = abs(n["mean loss A"] - ALPHA_MEAN_LOSS) < HALF_A_DIGIT
    verdicts = [
        f"Over {n['values A']:,} values of α the average is the paper's to all its digits"
        if average
        else f"The average differs from the paper's by {n['mean loss A'] - ALPHA_MEAN_LOSS:+.2f} "
        "percentage points, which depends on the values of α that are looked at"
    ]
    if n["values outside A"]:
        outside = n["largest loss outside A"] <= 100 * NOTHING
        verdicts.append(
            "nothing is lost outside the range, as it says"
            if outside
            else "but something is lost outside the range, against what it says"
        )
    falls = n["mean loss, second half A"] < n["mean loss, first half A"]
    verdicts.append(
        "the loss falls as the bound becomes less restrictive"
        if falls
        else "the loss does not fall as the bound becomes less restrictive"
    )
    share = _find_share(n)
    wide = ", more than its words suggest" if share > WIDE else ""
    verdicts.append(f"losses over {ALPHA_HIGH_LOSS} % fill {share:.0f} % of the range{wide}")
    if "least histories A" not in n:
        return "; ".join(verdicts) + "."
    steady = n["most histories A, printed"] == n["least histories A, printed"]
    early = n["most histories A"] / n["least histories A"]
    verdicts.append(
        f"run time does not depend on the bound at all as printed{_add_early(early)}"
        if steady
        else f"run time depends on the bound even as printed{_add_early(early)}"
    )
    return "; ".join(verdicts) + "."


def _list_claims(n: Mapping[str, float | int]) -> list[Claim]:
    if not n["values A"]:
        return []
    share, outside = _find_share(n), n["largest loss outside A"]
    halves = [n[f"mean loss, {half} half A"] for half in ("first", "second")]
    claims = [
        Claim(
            "Mean loss of VulcanFS over α, where there is one",
            f"{n['mean loss A']:.4f} % over the {n['values with a loss A']:,} of {n['values A']:,} "
            f"values of α with a loss; {n['largest loss A']:.1f} % at most",
            weigh(abs(n["mean loss A"] - ALPHA_MEAN_LOSS) < HALF_A_DIGIT, Verdict.PARTLY),
            f"{ALPHA_MEAN_LOSS} %",
            f"{n['mean loss A']:.2f} %",
        ),
        Claim(
            f"Share of the range of α in which more than {ALPHA_HIGH_LOSS} % is lost",
            f"{share:.0f} % of the range, in {n['regions of high loss A']} regions",
            weigh(share <= WIDE, Verdict.PARTLY),
            "“small”",
            f"{share:.0f} %",
        ),
        Claim(
            "Loss in the upper half of the range of α, in units of that in the lower half",
            f"{halves[0]:.2f} % in the lower half of the range, {halves[1]:.2f} % in the upper",
            weigh(halves[1] < halves[0]),
            "< 1",
            f"{halves[1] / halves[0]:.2f}" if halves[0] else "",
        ),
    ]
    if "least histories A" in n:
        claims.append(
            Claim(
                "Run time depends little on the bound: most histories of VulcanFS over fewest",
                f"{_span(n, 'histories', 'A, printed')} histories as printed at every bound, "
                f"{_span(n, 'histories', 'A')} where inadmissible actions are left early",
                weigh(n["most histories A, printed"] == n["least histories A, printed"]),
                "about 1",
                f"{n['most histories A, printed'] / n['least histories A, printed']:.2g}",
            )
        )
    if n["values outside A"]:
        found = f"{max(0.0, outside):.2g} % at most, at {n['values outside A']} values"
        text = "Largest loss outside the range of α"
        ours = f"{round(max(0.0, outside), 6):g} %"
        claims.append(Claim(text, found, weigh(outside <= 100 * NOTHING), "0 %", ours))
    return claims


def _add_early(ratio: float) -> str:
    """Return what leaving early does to the dependence on the bound."""
    if ratio < 1.5:
        return ", nor much with early leaving"
    return f", but by a factor of {ratio:.1f} when inadmissible actions are left early"


def _tabulate_steps(points: Sequence[Point]) -> Table:
    """Return what the average is with other steps of α, for which all values are there."""
    known, rows = dict(points), list[list[str | float | None]]()
    for step, every in STEPS.items():
        losses = [known[alpha] for alpha in FINE[::every] if alpha in known]
        if len(losses) < len(FINE[::every]):
            continue
        lost = [loss for loss in losses if loss > 100 * NOTHING]
        high = 100 * sum(loss > ALPHA_HIGH_LOSS for loss in losses) / len(losses)
        rows.append([f"{step:.6f}", len(losses), len(lost), fmean(lost), max(lost), high])
    header = ["step of α", "values", "with a loss", "mean loss % where any", "largest loss %"]
    caption = "What VulcanFS loses over the paper's range of α; the paper does not say its step"
    header += [f"values above {ALPHA_HIGH_LOSS} %, in %"]
    return Table("alpha-steps", caption, header, rows, brief=True)


def _tabulate(records: Sequence[Record]) -> Table:
    losses = {letter: dict(_find_losses(records, letter)) for letter in ("A", "B")}
    rows = []
    for record in records:
        alpha = record.task["alpha"]
        rewards = [record.found[name]["reward"] for name in ("optimum", "A", "B")]
        work = [record.found[name]["histories"] for name in ("A", "A, printed")]
        rows.append([alpha, *rewards, losses["A"][alpha], losses["B"][alpha], *work])
    header = ["α", "optimum", "A", "B", "loss % of A", "loss % of B"]
    header += ["histories, A", "histories, A as printed"]
    return Table("alpha", "The bandit with horizon 4 and Δ(x) = α x", header, rows)


def _draw(records: Sequence[Record], losses: Mapping[str, Sequence[Point]]) -> list[Figure]:
    x_label = "α, allowed risk per unit of reward"
    title = f"{Bandit(horizon=HORIZON)}, Δ(x) = α x"
    common: dict[str, Any] = {"x_label": x_label, "title": title}
    names = {"A": "VulcanFS, constraint A", "B": "VulcanFS, constraint B"}

    def collect(name: str, what: str) -> list[Point]:
        return [(r.task["alpha"], r.found[name][what]) for r in records]

    rewards = {"optimum": "optimum", **names}
    work = {"A, printed": "A, as printed", "A": "A, leaving early", "B": "B, leaving early"}
    return [
        Figure(
            "alpha-loss",
            "What VulcanFS loses against the optimum, and the paper's average where it loses",
            lambda: plot_curves(
                {names[letter]: points for letter, points in losses.items()},
                y_label="loss of reward (%)",
                from_zero=True,
                levels={
                    f"paper's average, {ALPHA_MEAN_LOSS} %": ALPHA_MEAN_LOSS,
                    f"{ALPHA_HIGH_LOSS} %": ALPHA_HIGH_LOSS,
                },
                span=("paper's range", *ALPHA_RANGE),
                **common,
            ),
        ),
        Figure(
            "alpha-rewards",
            "Expected rewards: the optimum rises in small steps, VulcanFS in large ones",
            lambda: plot_curves(
                {text: collect(name, "reward") for name, text in rewards.items()},
                y_label="expected reward",
                span=("paper's range", *ALPHA_RANGE),
                **common,
            ),
        ),
        Figure(
            "alpha-work",
            "Histories that forward search visits",
            lambda: plot_curves(
                {text: collect(name, "histories") for name, text in work.items()},
                y_label="histories visited",
                from_zero=True,
                span=("paper's range", *ALPHA_RANGE),
                **common,
            ),
        ),
    ]
