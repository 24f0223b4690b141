"""The page of the documents, from what a reproduction found."""

from __future__ import annotations

from pathlib import Path

from reproduction import Claim, Section, Table, Verdict
from reproduction.page import write_page
from reproduction.parts.bandit_table import BanditTable


def test_the_page_has_claims_short_tables_and_how_it_was_made(tmp_path: Path) -> None:
    tables = [
        Table(
            "brief", "Some | numbers", ["name", "value"], [["a*", 1 / 3], ["b", None]], brief=True
        ),
        Table("long", "All of them", ["value"], [[0.0]]),
    ]
    claim = Claim("It is", "it can't be told", Verdict.OPEN)
    section = Section("paper", "we", "means", [claim], tables)
    page = "\n".join(write_page([(BanditTable(), section, [])], tmp_path))
    assert f"| It is | it can't be told | {Verdict.OPEN.badge} |" in page
    assert f"{Verdict.OPEN.badge}: {Verdict.OPEN.meaning}." in page
    assert "*Some \\| numbers.*" in page
    assert "|---|---:|\n| a\\* | 0.333333 |\n| b |  |" in page
    assert "All of them" not in page
    assert page.index("When and with what") > page.index("Some")
