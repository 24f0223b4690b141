"""Local tests: tests on single histories that together bound a whole policy.

A policy all of whose reachable finished safe histories h pass a local test satisfies
er <= Δ(E g). So a search may look at one history at a time. With r_t the immediate risk and R̄_t
the expected reward of the action at step t, and survival_t = Π_{i<t} (1 - r_i):

**A, the sequence form** (the paper's φ(f)):

    ser(h) = (1 - survival_n) / survival_n  <=  Δ(f(h)),      E f <= E g,

where f is f₁ = Σ γ^t R̄_t, or g = Σ γ^t R_t, or a user's Σ γ^t f_t with f_t(state, action) <= R̄_t.
Where Δ can be negative the proof also needs 0 <= Δ(f) on every *failing* history, and an action of
immediate risk 1 is never admissible: no safe history remains on which the test could fail.

**B, the survival form** (the default):

    1 - survival_n  <=  Δ(f̂(h)),      f̂ = Σ γ^t survival_t R̄_t,

sound for rewards of any sign with nothing to check on failing histories. An action of immediate
risk 1 finishes its history there, with survival 0. B admits every policy that A with f₁ admits.

Where probabilities sum to 1 only within σ, up to about n σ (1 + d G) more than Δ(E g) may be
risked, with d the slope of Δ there and G the rewards of a history, all taken as positive (twice
that n σ for A with f = g). The certificate, which evaluates the given numbers, notices.

Proofs are in docs/theory/proofs.md. Both are sums along a history that a kernel carries in two
numbers, survival and credit. A third form is a declaration here, and four functions in
`vulcan.kernels.local_tests`, where each form has its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from vulcan.errors import OptionError
from vulcan.graph.states import Credit
from vulcan.kernels.codes import SEQUENCE, SEQUENCE_BY_OUTCOME, SURVIVAL, UNCONSTRAINED
from vulcan.solvers.base import Option


@dataclass(frozen=True)
class LocalConstraint:
    """A test on single histories. This one refuses none; see `SequenceConstraint` and others."""

    letter: ClassVar[str] = "none"  # its name for people
    form: ClassVar[int] = UNCONSTRAINED  # the number by which kernels know its form

    # Whether the credit of a history depends on the outcomes of its actions. If it does not, the
    # failures of an action pass wherever its ends pass, and only ends are tested: failures have the
    # same credit, and no risk is held against them.
    by_outcome: ClassVar[bool] = False

    @property
    def constrains(self) -> bool:
        """Whether it ever refuses a history."""
        return self.form != UNCONSTRAINED

    @property
    def own_credit(self) -> Credit | None:
        """The user's credit of a (state, action), or None for the expected reward."""
        return None


@dataclass(frozen=True)
class SurvivalConstraint(LocalConstraint):
    """Constraint B: 1 - survival <= Δ(Σ γ^t survival_t R̄_t)."""

    letter: ClassVar[str] = "B"
    form: ClassVar[int] = SURVIVAL


@dataclass(frozen=True)
class SequenceConstraint(LocalConstraint):
    """Constraint A, the paper's: (1 - survival) / survival <= Δ(f).

    Parameters
    ----------
    credit
        What a history may claim against the bound: "expected" for the paper's f₁ (the sum of
        expected rewards), "received" for f = g (the sum of the rewards that occurred), or a
        function `credit(state, action)` that is nowhere above the expected reward.
    """

    letter: ClassVar[str] = "A"

    credit: Literal["expected", "received"] | Credit = "expected"

    def __post_init__(self) -> None:
        if self.credit not in ("expected", "received") and not callable(self.credit):
            raise OptionError(
                f"credit must be 'expected', 'received' or a function, not {self.credit!r}"
            )

    @property
    def form(self) -> int:  # type: ignore[override]
        return SEQUENCE_BY_OUTCOME if self.by_outcome else SEQUENCE

    @property
    def by_outcome(self) -> bool:  # type: ignore[override]
        return self.credit == "received"

    @property
    def own_credit(self) -> Credit | None:
        return self.credit if callable(self.credit) else None


CONSTRAINT: Final = Option(
    "local_test",
    str,
    "The local test: B, the survival form, or A, the paper's.",
    default="B",
    choices=("A", "B"),
)
CREDIT: Final = Option(
    "credit",
    str,
    "What counts as reward in constraint A: expected rewards, or those received.",
    default="expected",
    choices=("expected", "received"),
)


def make_local_test(given: dict[str, Any]) -> LocalConstraint:
    """Return the constraint that options of the command line describe, taking them out of these."""
    letter, credit = given.pop("local_test", None), given.pop("credit", None)
    if letter == "A":
        return SequenceConstraint(credit or "expected")
    if credit is not None:
        raise OptionError("--credit belongs to --local-test A; test B has a credit of its own")
    return SurvivalConstraint()


def require_local_test(constraint: object) -> None:
    """Refuse what is no local test."""
    if not isinstance(constraint, LocalConstraint):
        raise OptionError(
            "local_test must be SurvivalConstraint() or SequenceConstraint(...), "
            f"not {constraint!r}"
        )
