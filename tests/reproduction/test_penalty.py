"""The part on penalties."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reproduction.part import Record, Verdict
from reproduction.parts.penalty import PenaltyExample, list_penalties
from tests.helpers.records import run_tasks, show_any
from tests.helpers.sections import check_section


@pytest.fixture(scope="module")
def penalty_records() -> list[Record]:
    return run_tasks(PenaltyExample(), PenaltyExample().tasks(quick=True))


def test_no_penalty_finds_the_second_action(penalty_records: list[Record]) -> None:
    part = PenaltyExample()
    section = part.show(penalty_records, quick=True)
    numbers = section.numbers
    assert numbers["penalties"] == len(list_penalties()) > 2000
    assert numbers["best action"] == "a2"
    assert numbers["actions found by penalties"] == ["a1", "a3"]
    assert numbers["ties"] == pytest.approx([125])
    assert [numbers[name] for name in numbers if name.startswith("action of")] == ["a2"] * 7
    assert "None of 2,199 penalties finds a2" in section.meaning
    assert [claim.verdict for claim in section.claims] == [Verdict.HOLDS, Verdict.HOLDS]
    check_section(section)
    trials = penalty_records[0].found["trials"]
    assert all(reward == pytest.approx(10) for m, reward, *_ in trials if m < 125)
    assert all(reward == pytest.approx(5) for m, reward, *_ in trials if m > 125)


def test_words_on_penalties_follow_the_data(penalty_records: list[Record]) -> None:
    sweep, *others = penalty_records
    trials = [*sweep.found["trials"], [2e9, 6.0, 0.02, True]]
    wrong = replace(others[0], found={"reward": 5.0, "risk": 0.01, "passes": True})
    lucky = replace(sweep, found={"trials": trials})
    section = PenaltyExample().show([lucky, wrong, *others[1:]], quick=True)
    assert [claim.verdict for claim in section.claims] == [Verdict.FAILS, Verdict.FAILS]
    text = section.meaning
    assert "Some penalty finds a2, against" in text
    assert "of those that know the bound, Vulcan, as printed miss a2" in text
    show_any(PenaltyExample(), penalty_records)
