"""What the runs at horizon 10 with a constant bound say: part of `heuristic_search`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, Final

from reproduction.figures.convergence import Curve, Panel, plot_convergence
from reproduction.paper import (
    COMPLETE_LOSS,
    COMPLETE_SECONDS,
    RAO_STAR_SECONDS,
    RAO_STAR_SPEEDUP,
)
from reproduction.part import Claim, Figure, Record, Table, Verdict, weigh
from reproduction.parts.race import BOUND
from reproduction.runs import (
    CONSTRAINTS,
    EXPLANATION,
    VARIANTS,
    Runs,
    count_runs,
    find_lasting,
    find_margin,
    note_shares,
)
from vulcan.baselines.rao_star import RAOStar

__all__ = ["HORIZON", "Findings"]

HORIZON: Final = 10

HALF_A_DIGIT: Final = 0.05
"""Percentage points: closer than this, losses agree as far as they are printed."""

EARLY: Final = 2_000_000
"""Samples up to which many runs are made."""

PRINTED: Final = ("printed", "tuned")

DRAWN: Final = ("tuned", "A", "B")
"""Variants in the figure; the table has all."""


class Findings:
    """What the records say of horizon 10."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.exact = {r.task["solver"]: r.found for r in records if r.task["what"] == "exact"}
        others = [r for r in records if r.task["what"] == "runs"]
        self.runs = Runs(others, ("variant", "samples"))

    def budgets(self, variant: str) -> list[tuple[Any, ...]]:
        """Return the budgets of a variant at which some run has a policy, the smallest first."""
        return [key for key in self.runs if key[0] == variant and self.runs.collect(key, "reward")]

    def judged(self, variant: str) -> list[tuple[Any, ...]]:
        """Return the budgets of which every run took all its samples, or ended complete."""
        return [key for key in self.budgets(variant) if self.runs.took_all(key, key[1])]

    def list_last(self) -> list[tuple[Any, ...]]:
        """Return the largest budget of each variant, and as printed all with many samples."""
        return [
            key
            for variant in VARIANTS
            for keys in [self.budgets(variant)]
            for key in keys
            if key == keys[-1] or (variant in PRINTED and key[1] >= EARLY)
        ]

    def lose(self, key: tuple[Any, ...] | str) -> float | None:
        """Return how far runs, or an exact solver, are below the optimum on average, in percent."""
        best = self.exact.get("optimum") or self.exact.get("RAO*")
        known = best is not None and (not isinstance(key, str) or key in self.exact)
        if best is None or not known:
            return None
        reward = (
            self.exact[key]["reward"] if isinstance(key, str) else self.runs.mean(key, "reward")
        )
        return round(100 * (1 - float(reward) / float(best["reward"])), 9)

    def describe(self) -> str:
        """Return what was measured; the numbers are in tables."""
        sentences = []
        if "RAO*" in self.exact:
            sentences.append(
                "RAO* is the published one over histories, compiled as Vulcan is, with the paper's "
                f"heuristic 0.7 (n - t); it evaluates each state and action once. Dead ends "
                f"are {RAOStar().dead_ends}: their value is -∞ and their execution risk 1, "
                "where the authors' code leaves them the value of the heuristic."
            )
        if self.runs:
            sentences.append(f"Vulcan and VulcanFS run over histories. {EXPLANATION}")
        return " ".join(sentences)

    def judge(self) -> Iterator[str]:
        """Yield what the differences mean."""
        for variant in PRINTED:
            yield from self._judge_printed(variant)
        losses = {letter: self.lose(letter) for letter in CONSTRAINTS}
        if losses["A"] is not None and losses["B"] is not None:
            yield (
                f"The best that constraint A admits is {losses['A']:.2f} % below the optimum, that "
                f"of B {losses['B']:.2f} %."
            )
        neutral = self.exact.get("risk-neutral")
        if neutral is not None:
            yield (
                f"The policy without regard to risk earns {neutral['reward']:.6f} at risk "
                f"{neutral['risk']:.5f}, {'within' if self._is_idle() else 'above'} the bound of "
                f"{BOUND(0.0)}: "
                + (
                    "the experiment needs no bound, and what is lost is lost to the constraint."
                    if self._is_idle()
                    else "the bound has a price."
                )
            )

    def _is_idle(self) -> bool:
        """Whether the bound allows what is best without it."""
        neutral = self.exact.get("risk-neutral")
        return neutral is not None and bool(neutral["risk"] <= BOUND(0.0))

    def _judge_printed(self, variant: str) -> Iterator[str]:
        """Yield whether early estimates are too high, and from when on policies are complete."""
        best, keys, name = self.exact.get("A"), self.judged(variant), VARIANTS[variant].name
        if best is None or not keys:
            return
        top = max(keys, key=lambda key: self.runs.mean(key, "estimate"))
        estimate, certified = self.runs.mean(top, "estimate"), self.runs.mean(top, "reward")
        text = (
            f"Vulcan {name} overestimates: up to {estimate:.3f} on average, after {top[1]:,} "
            f"samples, when the certificate says {certified:.3f}"
            if estimate > best["reward"]
            else f"Vulcan {name} does not overestimate: at most {estimate:.3f} on average"
        )
        whole = self._first_complete(variant)
        if whole is None:
            most = max(self.runs.mean(key, "complete") for key in keys)
            yield f"{text}; no budget makes all policies complete ({100 * most:.0f} % at most)."
        else:
            seconds = float(f"{self.runs.mean(whole, 'seconds'):.2g}")
            yield (
                f"{text}; from {whole[1]:,} samples ({seconds:,g} s) on all policies are complete."
            )

    def _first_complete(self, variant: str) -> tuple[Any, ...] | None:
        return find_lasting(self.judged(variant), lambda key: self.runs.mean(key, "complete") == 1)

    def list_claims(self) -> Iterator[Claim]:
        """Yield the paper's claims; those of the printed algorithm with the better constant."""
        best, keys = self.exact.get("A"), self.judged("tuned")
        if best is None or not keys:
            return
        early = [key for key in keys if key[1] <= EARLY]
        if early:
            top = max(early, key=lambda key: self.runs.mean(key, "estimate"))
            highest = self.runs.mean(top, "estimate")
            yield Claim(
                f"Rewards are overestimated first: highest mean estimate at horizon {HORIZON}",
                f"{VARIANTS[top[0]].name}, {top[1]:,} samples, {count_runs(self.runs[top])}: "
                f"{highest:.3f} on average, where constraint A admits {best['reward']:.3f}",
                weigh(highest > best["reward"]),
                f"> {best['reward']:.2f}",
                f"{highest:.2f}",
            )
        whole = [key for v in PRINTED if (key := self._first_complete(v)) is not None]
        fastest = min(whole, key=lambda key: self.runs.mean(key, "seconds"), default=None)
        seconds = None if fastest is None else self.runs.mean(fastest, "seconds")
        yield Claim(
            f"Seconds after which all policies are complete at horizon {HORIZON}",
            f"{VARIANTS[fastest[0]].name}, {fastest[1]:,} samples, {count_runs(self.runs[fastest])}"
            if fastest
            else "not within the samples tried",
            weigh(seconds is not None and seconds <= COMPLETE_SECONDS, Verdict.FAILS),
            f"{COMPLETE_SECONDS} s",
            "none" if seconds is None else f"{seconds:.2g} s",
        )
        yield from self._weigh_loss(fastest)
        yield from self._weigh_speed(seconds)

    def _weigh_loss(self, whole: tuple[Any, ...] | None) -> Iterator[Claim]:
        """Yield what complete policies lose: those that were found, and the best there is."""
        loss = self.lose("A")
        if loss is None or whole is None:
            return
        lost = self.lose(whole) or 0.0
        longest = max((key for v in PRINTED for key in self.judged(v)), key=lambda key: key[1])
        idle = "; the bound itself costs nothing" * self._is_idle()
        yield Claim(
            "Complete policies lose then, on average",
            f"{VARIANTS[whole[0]].name}, {whole[1]:,} samples, {count_runs(self.runs[whole])}: "
            f"{lost:.2f} %; {VARIANTS[longest[0]].name}, {longest[1]:,} samples, "
            f"{count_runs(self.runs[longest])}: {self.lose(longest):.2f} %; the "
            f"best that constraint A admits: {loss:.2f} %{idle}",
            # The constraint's best loses that; what the printed algorithm returns loses more.
            weigh(abs(lost - COMPLETE_LOSS) < HALF_A_DIGIT, Verdict.PARTLY),
            f"{COMPLETE_LOSS} %",
            f"{lost:.1f} %",
        )

    def _weigh_speed(self, took: float | None) -> Iterator[Claim]:
        """Yield how long RAO* takes, and Vulcan until all its policies are complete."""
        rao, best = self.exact.get("RAO*"), self.exact.get("optimum")
        if rao is None or best is None:
            return
        found = abs(rao["reward"] - best["reward"]) < HALF_A_DIGIT / 100
        yield Claim(
            f"RAO* finds the optimum at horizon {HORIZON}",
            f"it finds {rao['reward']:.6f}, the optimum is {best['reward']:.6f}; it need not find "
            "it elsewhere",
            weigh(found),
            "yes",
            "yes" if found else "no",
        )
        yield Claim(
            f"Seconds of RAO* at horizon {HORIZON}",
            f"{rao['seconds']:.2g} s for {rao.get('histories', 0):,} histories, compiled",
            # Seconds of another machine and language: the same thing with another number.
            weigh(0.5 <= rao["seconds"] / RAO_STAR_SECONDS <= 2, Verdict.PARTLY),
            f"{RAO_STAR_SECONDS:,} s",
            f"{rao['seconds']:.2g} s",
        )
        if took is None:
            return
        ratio = rao["seconds"] / took
        yield Claim(
            "Seconds of RAO* over those of Vulcan until all its policies are complete, horizon "
            f"{HORIZON}",
            f"{ratio:.2g} times: RAO* takes {rao['seconds']:.2g} s, Vulcan as printed {took:.2g} s",
            weigh(ratio >= RAO_STAR_SPEEDUP),
            f"{RAO_STAR_SPEEDUP}",
            f"{ratio:.2g}",
        )

    def tabulate_last(self) -> Table:
        """Return exact solutions, and the largest budget of each variant, with intervals."""
        names = {"A": "VulcanFS, A", "B": "VulcanFS, B", "RAO*": "RAO*, as published"}
        rows: list[list[str | float | None]] = [
            [
                *(names.get(name, name), None, 1, found["seconds"], found["evaluations"]),
                *(found["reward"], None, None, self.lose(name), 100.0),
            ]
            for name, found in self.exact.items()
        ]
        for key in self.list_last():
            rewards = self.runs.collect(key, "reward")
            margin = find_margin(rewards)
            rows.append(
                [
                    VARIANTS[key[0]].name,
                    round(self.runs.mean(key, "samples")),
                    len(self.runs[key]),
                    self.runs.mean(key, "seconds"),
                    round(self.runs.mean(key, "evaluations")),
                    fmean(rewards),
                    margin if math.isfinite(margin) else None,
                    self.runs.mean(key, "estimate"),
                    self.lose(key),
                    100 * self.runs.mean(key, "complete"),
                ]
            )
        rewarded = ("certified reward", "estimate")
        header = ["", "samples taken", "runs", "seconds", "evaluations", rewarded[0], "± 95 %"]
        header += [rewarded[1], "loss %", "complete %"]
        caption = (
            f"Horizon {HORIZON}, Δ = {BOUND}, after the most samples; "
            f"{note_shares(len(self.runs[key]) for key in self.list_last())}"
        )
        return Table("rao-star-last", caption, header, rows, brief=True, rewards=rewarded)

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
                self.runs.mean(key, "seconds"),
                round(self.runs.mean(key, "evaluations")),
                *(self.runs.mean(key, of) for of in columns[2:]),
                100 * self.runs.mean(key, "complete"),
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
                for key, name in (
                    ("RAO*", "RAO* ends"),
                    ("A", "forward search ends, A"),
                )
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
            places = [self.runs.mean(key, of) for key in keys]
            certified = [self.runs.collect(key, "reward") for key in keys]
            if keys and not described.complete:
                estimates = [self.runs.collect(key, "estimate") for key in keys]
                curves.append(Curve(f"{described.name}: estimate", places, estimates))
            if keys:
                curves.append(Curve(_name_certified(variant), places, certified))
        return curves

    def _trace_shares(self, of: str) -> list[Curve]:
        return [
            Curve(
                _name_certified(variant),
                [self.runs.mean(key, of) for key in keys],
                [[100 * self.runs.mean(key, "complete")] for key in keys],
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
                    numbers[f"Vulcan {variant}, {of}"] = self.runs.mean(key, of)
        return numbers


def _name_certified(variant: str) -> str:
    described = VARIANTS[variant]
    return described.name if described.complete else f"{described.name}: certified"
