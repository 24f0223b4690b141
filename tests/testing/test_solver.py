"""The solver checker: our solvers pass it, and broken ones are found out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

import vulcan
from vulcan.runtime.limits import Limits
from vulcan.solvers.base import PLACES, Coverage, Option, Solver, load_solvers, name_solver
from vulcan.testing import check_solver


@pytest.mark.parametrize("name", load_solvers())
def test_our_solvers_keep_their_promises(name: str) -> None:
    assert check_solver(load_solvers()[name]()) == []


def test_names_follow_from_classes() -> None:
    assert list(load_solvers()) == [
        "automatic",
        "forward-search",
        "vulcan",
        "growth",
        "local-vulcan",
        "vulcan-fs",
        "paper-vulcan",
        "uct",
        "pareto",
        "lagrangian",
        "subgoals",
        "linear-program",
        "integer-program",
        "rao-star",
        "penalty",
    ]
    assert len(load_solvers()) == len(PLACES)
    assert all(name_solver(kind) == name for name, kind in load_solvers().items())


def test_every_option_is_a_parameter_or_read_by_the_solver() -> None:
    for kind in load_solvers().values():
        for option in kind.options:
            assert isinstance(option, Option)
            given: dict[str, Any] = {"local_test": "A"} if option.name == "credit" else {}
            given[option.name] = option.choices[0] if option.choices else option.kind(1)
            made = kind.from_options(given, Limits())
            assert isinstance(made, vulcan.LocalVulcan if option.name == "paper" else kind)


@dataclass(frozen=True)
class Wrapped(Solver):
    """A solver whose findings are changed."""

    finds: ClassVar[str] = "something else"
    method: ClassVar[str] = "by another solver"
    limits: ClassVar[Sequence[str]] = ("time_limit", "memory", "gap")
    covers: ClassVar[Coverage] = Coverage.DETERMINISTIC

    def search(self, *arguments: Any) -> Any:
        return self.change(vulcan.Pareto().search(*arguments))

    def change(self, finding: Any) -> Any:
        return finding


class TooLow(Wrapped):
    def change(self, finding: Any) -> Any:
        return replace(finding, upper_bound=0.01)


class Silent(Wrapped):
    covers: ClassVar[Coverage] = Coverage.NOTHING


class Greedy(Wrapped):
    limits: ClassVar[Sequence[str]] = ("time_limit", "patience")


class Wrong(Wrapped):
    def change(self, finding: Any) -> Any:
        return replace(finding, reward=finding.reward + 0.5)


class Raising(Wrapped):
    def search(self, *arguments: Any) -> Any:
        raise TypeError("boo")


class Hopeless(Wrapped):
    def change(self, finding: Any) -> Any:
        nothing = {"policy": None, "upper_bound": None, "status": vulcan.planning.Status.INFEASIBLE}
        return replace(finding, **nothing)


class Fickle(Wrapped):
    runs: ClassVar[list[int]] = []

    def search(self, *arguments: Any) -> Any:
        self.runs.append(1)
        solver = vulcan.Pareto() if len(self.runs) % 2 else vulcan.baselines.Penalty()
        return solver.search(*arguments)


@pytest.mark.parametrize(
    ("solver", "violation"),
    [
        (TooLow(), "upper bounds: 0.01 is below the optimum"),
        (Silent(), "`covers` is NOTHING"),
        (Greedy(), "limits: there is no limit 'patience'"),
        (Wrong(), "DisagreementError"),
        (Fickle(), "repetition"),
        (Raising(), "TypeError: boo"),
        (Hopeless(), "it reports no admissible policy"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_broken_promises_are_found(solver: Solver, violation: str) -> None:
    assert violation in "\n".join(check_solver(solver))


def test_a_sound_solver_of_a_users_own() -> None:
    assert check_solver(Wrapped()) == []


def test_what_is_no_solver_is_refused() -> None:
    with pytest.raises(vulcan.errors.OptionError, match=r"derived from vulcan\.solvers\.Solver"):
        check_solver(vulcan.Vulcan)  # type: ignore[arg-type]
