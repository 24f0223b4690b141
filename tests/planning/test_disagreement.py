"""The search's own reward and risk against the certificate's, for every solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import vulcan
from vulcan.domains import Bandit
from vulcan.solvers.registry import load_solvers
from vulcan.solvers.tree.sampling import TreeRun

PROBLEM = vulcan.Problem(Bandit(4), vulcan.Linear(0.002))


@pytest.mark.parametrize("change", [{"reward": 0.5}, {"risk": 0.01}], ids=str)
@pytest.mark.parametrize("name", load_solvers())
def test_a_search_that_errs_is_found_out(
    name: str, change: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = load_solvers()[name]
    search = kind.search

    def err(self: Any, *arguments: Any) -> Any:
        finding = search(self, *arguments)
        return replace(finding, **{of: getattr(finding, of) + by for of, by in change.items()})

    assert vulcan.solve(PROBLEM, kind()).certificate is not None
    monkeypatch.setattr(kind, "search", err)
    with pytest.raises(vulcan.DisagreementError, match=f"the search found {next(iter(change))}"):
        vulcan.solve(PROBLEM, kind())


@pytest.mark.parametrize("change", [{"reward": 0.5}, {"risk": 0.01}], ids=str)
@pytest.mark.parametrize(
    "solver", [vulcan.LocalVulcan(), vulcan.UCT(), vulcan.LocalVulcan.paper()], ids=str
)
def test_a_tree_that_misjudges_its_policy_is_found_out(
    solver: vulcan.Solver, change: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = TreeRun._write_outline

    def misjudge(self: TreeRun) -> Any:
        draft = write(self)
        return replace(draft, **{of: getattr(draft, of) + by for of, by in change.items()})

    monkeypatch.setattr(TreeRun, "_write_outline", misjudge)
    with pytest.raises(vulcan.DisagreementError):
        vulcan.solve(PROBLEM, solver, samples=2000)
