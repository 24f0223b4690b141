"""The integer program as published: nothing of ours helps it."""

from __future__ import annotations

from typing import Any

import pytest

import vulcan
from vulcan.domains import Bandit
from vulcan.solvers.baselines.switch_program import SwitchProgram
from vulcan.solvers.layered.run import LayeredRun


@pytest.mark.parametrize("on", ["tree", "graph"])
@pytest.mark.parametrize(
    "bound",
    [vulcan.Linear(0.002), vulcan.parse("0.006 * (1 - exp(-x))"), vulcan.Constant(-0.1)],
    ids=str,
)
def test_no_dual_bound_no_cutoff_and_no_start(
    on: Any, bound: vulcan.RiskBound, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = vulcan.Problem(Bandit(3), bound)
    best = vulcan.solve(problem, vulcan.IntegerProgram(on))

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the published program has no such help")

    for name in ("find_dual", "find_relaxed", "sweep", "improve"):
        monkeypatch.setattr(LayeredRun, name, refuse)
    monkeypatch.setattr(SwitchProgram, "suggest", refuse)
    cuts = []
    add = SwitchProgram.add_cut
    monkeypatch.setattr(
        SwitchProgram, "add_cut", lambda self, cut: cuts.append(cut) or add(self, cut)
    )
    found = vulcan.solve(problem, vulcan.IntegerProgram(on, reduced=False))
    assert all(cut.risk > 0 for cut in cuts)  # tangents of the bound; none asks for a reward
    assert found.safe == best.safe
    if best.certificate is not None:
        assert found.certificate.reward == pytest.approx(best.certificate.reward, abs=1e-9)
        assert "proved by HiGHS" in found.explanation
    if on == "graph":
        assert found.upper_bound is None


def test_it_has_a_switch_for_every_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    add = SwitchProgram._add_switches

    def count(self: SwitchProgram, edges: Any) -> None:
        counts.append((len(edges), len(self._links.owner)))
        add(self, edges)

    monkeypatch.setattr(SwitchProgram, "_add_switches", count)
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    vulcan.solve(problem, vulcan.IntegerProgram("tree", reduced=False))
    vulcan.solve(problem, vulcan.IntegerProgram("tree"))
    (switches, edges), (ours, _) = counts
    assert switches == edges  # the bandit has a choice everywhere
    assert ours == 0  # on histories flows are binary themselves
