"""What a comparison of solvers is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vulcan.certificates.certificate import Certificate
from vulcan.certificates.problem import Problem
from vulcan.planning.result import Result
from vulcan.policies.randomised import RandomisedPolicy
from vulcan.runtime.formatting import (
    MISSING,
    TextTable,
    show_count,
    show_gap,
    show_probability,
    show_reward,
    show_seconds,
)
from vulcan.runtime.limits import StopReason
from vulcan.solvers.base import Solver
from vulcan.solvers.finding import find_gap

__all__ = ["Comparison", "ComparisonRow"]


@dataclass(frozen=True)
class ComparisonRow:
    """One solver, and what it found.

    Attributes
    ----------
    name
        What the solver is called here.
    solver
        The solver.
    result
        Its result; None if it raised an error.
    error
        The error; None if there was none.
    upper_bound
        The least upper bound that holds for the kind of policy that it found; None if unknown.
    """

    name: str
    solver: Solver
    result: Result | None = None
    error: str | None = None
    upper_bound: float | None = None

    def __repr__(self) -> str:
        return f"<ComparisonRow {self.name}: {self.error or repr(self.result)}>"

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the policy; None without one."""
        return None if self.result is None else self.result.certificate

    @property
    def safe(self) -> bool:
        """Whether there is a complete policy whose certificate passes."""
        return self.result is not None and self.result.safe

    @property
    def complete(self) -> bool | None:
        """Whether the policy is complete; None without one."""
        return None if self.certificate is None else self.certificate.complete

    @property
    def deterministic(self) -> bool | None:
        """Whether the policy is deterministic; None without one."""
        if self.result is None or self.result.policy is None:
            return None
        return not isinstance(self.result.policy, RandomisedPolicy)

    @property
    def reward(self) -> float | None:
        """Certified reward, also of a policy that is not safe."""
        return None if self.certificate is None else float(self.certificate.reward)

    @property
    def risk(self) -> float | None:
        """Certified risk."""
        return None if self.certificate is None else float(self.certificate.risk)

    @property
    def allowed(self) -> float | None:
        """The risk that the bound allows for the reward."""
        return None if self.certificate is None else float(self.certificate.allowed)

    @property
    def gap(self) -> float | None:
        """How far the reward may be below the best possible; of safe policies only."""
        if self.reward is None or self.upper_bound is None or not self.safe:
            return None
        return find_gap(self.reward, self.upper_bound)

    @property
    def seconds(self) -> float | None:
        """Time of the search."""
        return None if self.result is None else self.result.statistics.search_seconds

    @property
    def evaluations(self) -> int | None:
        """(state, action) that the model was asked by the search."""
        return None if self.result is None else self.result.statistics.evaluations

    @property
    def explanation(self) -> str:
        """How the search ended, or the error."""
        if self.result is None:
            return self.error or ""
        text = self.result.summary
        known = self.deterministic is not False or "randomised" in text
        return text if known else f"{text}; randomised"


@dataclass(frozen=True)
class Comparison:
    """Solvers side by side.

    Attributes
    ----------
    problem
        What was solved.
    rows
        One for each solver, in the order in which they were given.
    upper_bound
        No deterministic policy within the risk bound earns more; None if unknown.
    randomised_upper_bound
        No policy earns more, randomised or not; None if unknown.
    stopped_by
        `StopReason.INTERRUPTED` if Ctrl-C came before the last solver was done; else None.
    lost_workers
        How many workers were lost; their searches were run again by others.
    """

    problem: Problem
    rows: tuple[ComparisonRow, ...]
    upper_bound: float | None = None
    randomised_upper_bound: float | None = None
    stopped_by: StopReason | None = None
    lost_workers: int = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[ComparisonRow]:
        """Return the rows, one after the other."""
        return iter(self.rows)

    def tabulate(self, *, wide: bool = True) -> TextTable:
        """Return the comparison as a table, for people.

        Parameters
        ----------
        wide
            Say also how much was searched.
        """
        header = ["", "solver", "reward", "risk", "allowed", "gap", "time", "evaluations"]
        return TextTable(
            [*header, *(["searched"] if wide else []), ""],
            [
                [
                    "✓" if row.safe else "✗" if row.reward is not None else MISSING,
                    row.name,
                    show_reward(row.reward),
                    show_probability(row.risk),
                    show_probability(row.allowed),
                    show_gap(row.gap),
                    show_seconds(row.seconds),
                    show_count(row.evaluations),
                    *([_searched(row)] if wide else []),
                    row.explanation,
                ]
                for row in self.rows
            ],
            left=2,
        )

    def __repr__(self) -> str:
        best = max(
            (row.reward for row in self.rows if row.safe and row.reward is not None), default=None
        )
        names = ", ".join(row.name for row in self.rows)
        return (
            f"<Comparison of {len(self)} solvers ({names}): best safe reward {show_reward(best)}>"
        )

    def _repr_html_(self) -> str:
        from vulcan.planning.cards import write_comparison

        return write_comparison(self)

    def __str__(self) -> str:
        return str(self.tabulate())


def _searched(row: ComparisonRow) -> str:
    if row.result is None:
        return MISSING
    statistics = row.result.statistics
    if statistics.samples:
        return f"{show_count(statistics.samples)} samples"
    if statistics.nodes:
        return f"{show_count(statistics.nodes)} nodes"
    return f"{show_count(statistics.histories)} histories"
