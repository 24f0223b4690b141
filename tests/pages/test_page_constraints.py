"""Pages, cards and texts of plans within several constraints."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import vulcan
from tests.helpers.tables import Table
from vulcan import Outcome


@pytest.fixture(scope="module")
def result() -> vulcan.Result:
    table = {
        0: {
            "drive": [
                Outcome(0.5, 3.0, 0, "far", costs={"fuel": 2}, event="late"),
                Outcome(0.5, 1.0, 0, "near"),
            ],
            "wait": [Outcome(1.0, 0.5, 0)],
        }
    }
    limits = ["fuel <= 1.5", "risk(late) <= 0.9", "risk ahead <= 0.1"]
    return vulcan.solve(vulcan.Problem(Table(table, 2), constraints=limits))


def test_the_page_has_a_row_for_each_constraint(result: Any) -> None:
    page = vulcan.explore(result.problem, result.policy)
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page.html, re.DOTALL)[1])
    assert [name for name, _ in facts["plans"][0]["constraints"]] == [
        "fuel",
        "risk(late)",
        "risk ahead",
    ]
    head = page.html[page.html.index("<body>") : page.html.index("</header>")]
    assert "fuel: 1.500000 of 1.500000  acceptable" in head
    assert "✓ acceptable" in head
    one = vulcan.Problem(result.problem.model, 1.0)
    plain = vulcan.explore(one, vulcan.solve(one).policy, what_if=None).html
    assert "constraints" not in re.search(r'id="facts">(.*?)</script>', plain, re.DOTALL)[1]


def test_texts_and_cards_show_what_is_limited(result: Any) -> None:
    for shown in (str(result), result._repr_html_(), result.certificate._repr_html_()):
        for quantity in ("fuel", "risk(late)", "risk ahead"):
            assert quantity in shown
    strict = vulcan.Problem(result.problem.model, 1.0, constraints=["fuel <= 0.25"])
    broken = vulcan.certify(strict, result.policy)
    assert not broken.passes
    assert "NOT ACCEPTABLE" in broken._repr_html_()


def test_tables_and_texts_of_policies_are_not_disturbed(result: Any) -> None:
    table = result.policy.table()
    assert "drive" in table.to_csv()
    assert "drive" in str(table)
    assert "drive" in str(result.policy)
    assert "drive" in result.policy._repr_html_()
