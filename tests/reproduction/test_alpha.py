"""The part over values of α."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reproduction.part import Record, Verdict
from reproduction.parts import alpha
from reproduction.parts.alpha import FINE, INSIDE, OUTSIDE, Alpha
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
    assert [round(0.0005 + 0.000002 * k, 9) for k in range(1251)] == list(FINE)
    assert (min(OUTSIDE), max(OUTSIDE)) == (0.0001, 0.006)
    assert not any(0.0005 <= alpha <= 0.003 for alpha in OUTSIDE)


def test_the_papers_average_over_alpha(alpha_records: list[Record]) -> None:
    known = {record.task["alpha"] for record in alpha_records}
    wanted = (*INSIDE, *FINE[::5])
    others = run_tasks(Alpha(), [{"alpha": alpha} for alpha in set(wanted) - known])
    records = [*alpha_records, *others]
    for found in (record.found for record in records):
        assert found["A"]["reward"] < found["optimum"]["reward"] * (1 + 1e-12)
    section = Alpha().show(records, quick=False)
    numbers = section.numbers
    assert numbers["mean loss A"] == pytest.approx(4.420, abs=5e-4)
    assert numbers["values A"] == 251
    assert numbers["largest loss A"] == pytest.approx(11.345, abs=5e-4)
    steps = section.tables[0]
    assert [row[1:3] for row in steps.rows] == [[26, 22], [126, 112], [251, 224]]
    assert [row[3] for row in steps.rows] == pytest.approx([4.687, 4.448, 4.420], abs=5e-4)
    assert [row[4] for row in steps.rows] == pytest.approx([10.882, 10.882, 11.345], abs=5e-4)
    assert numbers["largest loss outside A"] == pytest.approx(0, abs=1e-9)
    assert numbers["mean loss B"] < numbers["mean loss A"]
    assert numbers["least histories A, printed"] == numbers["most histories A, printed"] == 1555
    assert "4.4196 % on average over the 224 of 251" in section.measured
    assert "The average differs from the paper's by -0.03" in section.meaning  # with this step
    assert "nothing is lost outside the range, as it says" in section.meaning
    assert "more than its words suggest" in section.meaning
    verdicts = [claim.verdict.value for claim in section.claims]
    assert verdicts == ["holds in part", "holds in part", "holds", "holds", "holds"]
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
    assert section.claims[3].verdict is Verdict.FAILS
    rising = [scale(r, "A", "reward", 1 - 50 * r.task["alpha"]) for r in alpha_records]
    section = Alpha().show(rising, quick=False)
    assert "the loss does not fall" in section.meaning
    assert section.claims[2].verdict is Verdict.FAILS


def test_some_values_of_alpha_are_missing(alpha_records: list[Record]) -> None:
    show_any(Alpha(), alpha_records)
    outside = Alpha().show(alpha_records[-3:], quick=True)
    assert outside.measured == "Nothing yet in the paper's range of α."
