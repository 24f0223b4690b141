"""The part over values of α."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reproduction.part import Record, Verdict
from reproduction.parts import alpha
from reproduction.parts.alpha import BETWEEN, INSIDE, OUTSIDE, Alpha
from tests.helpers.records import run_tasks, show_any
from tests.helpers.sections import check_section


@pytest.fixture(autouse=True, scope="module")
def run_once() -> Iterator[None]:
    """Repeat nothing for the sake of times."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(alpha, "REPEATS", 1)
        yield


@pytest.fixture(scope="module")
def alpha_records() -> list[Record]:
    return run_tasks(Alpha(), list(Alpha().tasks(quick=True)))


def test_values_of_alpha() -> None:
    assert [round(0.0005 + 0.00002 * k, 9) for k in range(126)] == list(INSIDE)
    assert sorted((*INSIDE, *BETWEEN)) == [round(0.0005 + 0.00001 * k, 9) for k in range(251)]
    assert (min(OUTSIDE), max(OUTSIDE)) == (0.0001, 0.006)
    assert not any(0.0005 <= alpha <= 0.003 for alpha in OUTSIDE)


def test_the_papers_average_over_alpha(alpha_records: list[Record]) -> None:
    known = {record.task["alpha"] for record in alpha_records}
    wanted = (*INSIDE, *BETWEEN)
    others = run_tasks(Alpha(), [{"alpha": alpha} for alpha in wanted if alpha not in known])
    records = [*alpha_records, *others]
    for found in (record.found for record in records):
        assert found["A"]["reward"] < found["optimum"]["reward"] * (1 + 1e-12)
    section = Alpha().show(records, quick=False)
    numbers = section.numbers
    assert numbers["mean loss A"] == pytest.approx(4.448, abs=5e-4)
    assert numbers["mean loss A, half the step"] == pytest.approx(4.420, abs=5e-4)
    assert numbers["values with a loss A"] == 112
    assert numbers["values A"] == 126
    assert numbers["largest loss A"] == pytest.approx(10.882, abs=5e-4)
    assert numbers["values of high loss A"] == 28
    assert numbers["largest loss outside A"] == pytest.approx(0, abs=1e-9)
    assert numbers["mean loss B"] < numbers["mean loss A"]
    assert numbers["least histories A, printed"] == numbers["most histories A, printed"] == 1555
    assert "4.448 % on average over the 112 of 126" in section.measured
    assert "With a step of 0.00002 the average is the paper's to all its digits" in section.meaning
    assert "nothing is lost outside the range, as it says" in section.meaning
    assert "more than its words suggest" in section.meaning
    verdicts = [claim.verdict.value for claim in section.claims]
    assert verdicts[:3] + verdicts[4:] == ["holds", "holds in part", "holds", "holds"]
    assert section.claims[3].text.startswith("Run time")  # its verdict is the machine's
    check_section(section)


def scale(record: Record, solver: str, what: str, factor: float) -> Record:
    one = {**record.found[solver], what: record.found[solver][what] * factor}
    return replace(record, found={**record.found, solver: one})


def test_words_over_alpha_follow_the_data(alpha_records: list[Record]) -> None:
    worse = [scale(r, "A", "reward", 0.99) for r in alpha_records]
    section = Alpha().show(worse, quick=False)
    assert [c.verdict for c in section.claims[::4]] == [Verdict.PARTLY, Verdict.FAILS]
    text = section.meaning
    assert "The average differs from the paper's by +0." in text
    assert "something is lost outside" in text
    lax = [r for r in alpha_records if r.task["alpha"] > 0.002]
    text = Alpha().show(lax, quick=False).meaning
    assert "fill 0 % of the range;" in text
    uneven = [scale(alpha_records[8], "A, printed", "histories", 2), *alpha_records[9:]]
    section = Alpha().show(uneven, quick=False)
    assert "depends on the bound even as printed" in section.meaning
    held = [scale(alpha_records[8], "A, printed", "seconds", 1e4), *alpha_records[9:11]]
    assert Alpha().show(held, quick=False).claims[3].verdict is Verdict.FAILS
    rising = [scale(r, "A", "reward", 1 - 50 * r.task["alpha"]) for r in alpha_records]
    section = Alpha().show(rising, quick=False)
    assert "the loss does not fall" in section.meaning
    assert section.claims[2].verdict is Verdict.FAILS


def test_some_values_of_alpha_are_missing(alpha_records: list[Record]) -> None:
    show_any(Alpha(), alpha_records)
    outside = Alpha().show(alpha_records[-3:], quick=True)
    assert outside.measured == "Nothing yet in the paper's range of α."
