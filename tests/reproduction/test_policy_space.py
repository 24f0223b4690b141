"""The part on the space of policies."""

from __future__ import annotations

from dataclasses import replace

import pytest

import vulcan
from reproduction.part import Record
from reproduction.parts.policy_space import SPACES, PolicySpace, enumerate_policies
from tests.helpers.records import run_tasks
from tests.helpers.sections import check_section
from vulcan.domains import Bandit


@pytest.fixture(scope="module")
def space_records() -> list[Record]:
    return run_tasks(PolicySpace(), list(SPACES))


def test_the_best_of_all_policies(space_records: list[Record]) -> None:
    bound = vulcan.Linear(0.002)
    points = enumerate_policies(Bandit(3), bound)
    assert len(points) == 7204 == 1 + 3 * (1 + 3 * 4**2) ** 2
    best = max(p.reward for p in points if p.risk <= bound(p.reward))
    admitted = [max(p.reward for p in points if p.by_a), max(p.reward for p in points if p.by_b)]
    assert best == pytest.approx(1.52800194527325, abs=1e-12)
    assert admitted == pytest.approx([1.489223680605] * 2, abs=1e-12)
    assert all(p.risk <= bound(p.reward) for p in points if p.by_a or p.by_b)
    (shown,) = (r for r in space_records if r.task == {"horizon": 3, "slope": 0.002, "factor": 1})
    found = [shown.found["solved"][name][0] for name in ("all", "A", "B")]
    assert found == pytest.approx([best, *admitted], abs=1e-9)


def test_the_policy_space(space_records: list[Record]) -> None:
    section = PolicySpace().show(space_records, quick=True)
    check_section(section)
    assert "Horizon 3, slope 0.002: of 7,204 deterministic policies 3,446" in section.measured
    assert "A admits 629 and B 1,192" in section.measured
    assert "in 5 of 7 cases the optimum is among what A does not admit" in section.meaning
    assert "the solvers find exactly the best of these sets" in section.meaning
    assert len(section.figures) == 2


def test_words_on_policies_follow_the_data(space_records: list[Record]) -> None:
    first, *_ = space_records
    solved = {**first.found["solved"], "A": [0.1, 0.0]}
    rows = [[*row[:2], False, *row[3:]] if row[3] else row for row in first.found["points"]]
    rows.append([0.5, 0.0, True, True, True, 1])
    altered = replace(first, found={"points": rows, "solved": solved})
    text = PolicySpace().show([altered], quick=True).meaning
    assert "policies are admitted beyond the bound, which is a defect" in text
    assert "the solvers do not find the best" in text
    assert "B and A admit the same number" in text
