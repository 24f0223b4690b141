"""The page of the reproduction, and its tables."""

from __future__ import annotations

import csv
import html
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from reproduction import Claim, Section, Table, Verdict
from reproduction.parts import PARTS
from reproduction.parts.bandit_table import BanditTable
from reproduction.report import Shown, write_report


class Links(HTMLParser):
    """Gathers where a page points to, and whether its tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.places += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_has_all_that_it_points_to(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    links = Links()
    links.feed(page)
    assert not links.open
    assert "quick report" in page
    for part in PARTS:
        assert (f'id="{part.name}"' in page) == (part.name in ("penalty", "policy-space"))
    for place in links.places:
        if place.startswith("#"):
            assert f'id="{place[1:]}"' in page
        else:
            assert (folder / place).stat().st_size > 0


def test_tables_keep_every_digit(tmp_path: Path) -> None:
    part: Any = BanditTable()
    table = Table("some", "Some numbers", ["name", "value"], [["a < b", 1 / 3], ["none", None]])
    claim = Claim("1 < 2", "1 > 2", Verdict.FAILS)
    numbers = {"third": 1 / 3}
    section = Section("paper", "we", "means <this> `code`", [claim], [table], numbers=numbers)
    shown = [Shown(part, section, 3, 3)]
    page = write_report(tmp_path, shown, quick=False).read_text()
    assert "a &lt; b" in page
    assert "means &lt;this&gt; <code>code</code>" in page
    assert "0.333333<" in page
    assert f'<a href="#{part.name}">1 &lt; 2</a></td><td>1 &gt; 2</td>' in page
    assert "quick report" not in page
    assert f"<td>{Verdict.FAILS.badge}</td>" in page
    assert page.count(html.escape(Verdict.OPEN.meaning)) == 1  # what is left open is explained
    assert "from commit" in page
    assert '<table class="wide">' not in page.split('id="making"')[0]
    with (tmp_path / "tables" / "some.csv").open() as file:
        assert list(csv.reader(file))[1] == ["a < b", str(1 / 3)]
    document = json.loads((tmp_path / "numbers.json").read_text())
    assert document["parts"][part.name]["third"] == 1 / 3
    assert document["claims"][part.name][0]["verdict"] == "does not hold"
