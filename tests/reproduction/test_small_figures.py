"""The part on the paper's small figures."""

import pytest

from reproduction.part import Record
from reproduction.parts.small_figures import SmallFigures
from tests.helpers.records import run_tasks, show_any
from tests.helpers.sections import check_drawn


@pytest.fixture(scope="module")
def records():
    part = SmallFigures()
    return run_tasks(part, [task for task in part.tasks(True) if task.get("horizon", 2) <= 4])


def test_small_figures_are_what_the_paper_says(records):
    section = SmallFigures().show(records, quick=False)
    check_drawn(section)
    assert [figure.name for figure in section.figures] == ["ser", "bad-f", "cleanup"]
    assert [claim.verdict for claim in section.claims] == ["holds"] * 3
    assert section.numbers["ser"]["risk"] == pytest.approx(0.18)
    assert section.numbers["credit"] == {"f₁": pytest.approx(4.8), "g": pytest.approx(1.0)}
    show_any(SmallFigures(), records)


def test_cleanup_goes_on_as_in_the_figure(records):
    pictures = next(r.found["pictures"] for r in records if r.task["what"] == "cleanup")
    refused = [[name for name, _, is_refused in p["nodes"] if is_refused] for p in pictures]
    assert list(map(len, refused)) == [0, 1, 1, 0]
    first, second = refused[1][0], refused[2][0]
    assert first[:2] == second[:2] == "l2"  # below one outcome, by one action and then the other
    assert first[2] != second[2]
    remaining = [{label for name, label, _ in p["actions"] if name == ""} for p in pictures]
    assert remaining == [{"left", "right"}] * 3 + [{"right"}]


def test_words_on_small_figures_follow_the_data(records):
    changes = {"ser": {"collapsed risk": 0.3}, "credit": {"g": 4.8}}
    other = [Record(r.task, r.found | changes.get(r.task["what"], {}), 1.0) for r in records]
    verdicts = [claim.verdict for claim in SmallFigures().show(other, quick=False).claims]
    assert verdicts == ["does not hold", "does not hold", "holds"]
