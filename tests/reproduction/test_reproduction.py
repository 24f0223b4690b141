"""The reproduction as a whole: resuming, redrawing, errors, raw data and the page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reproduction import Record, page, reproduce
from reproduction.parts import PARTS
from reproduction.parts.bandit_table import BanditTable
from reproduction.runner import Advance
from reproduction.store import Store
from tests.helpers.failing_part import FailingPart
from vulcan.errors import OptionError, VulcanError


def test_what_was_run_is_not_run_again(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (folder / "data-quick").iterdir()}
    told: list[Advance] = []
    reproduce(folder, quick=True, only=["penalty", "policy-space"], on_advance=told.append)
    assert [(advance.done, advance.total) for advance in told] == [(0, 0)]
    assert {path: path.stat().st_mtime_ns for path in (folder / "data-quick").iterdir()} == before


def test_figures_are_drawn_again_without_running(folder: Path) -> None:
    figure = next((folder / "figures").glob("*.png"))
    content = figure.read_bytes()
    figure.unlink()
    reproduce(folder, quick=True, redraw=True)
    assert figure.read_bytes() == content


def test_every_part_can_be_told_apart() -> None:
    names = [part.name for part in PARTS]
    assert len(set(names)) == len(names)
    for part in PARTS:
        for quick in (True, False):
            tasks = part.tasks(quick)
            texts = [json.dumps(dict(task), sort_keys=True) for task in tasks]
            assert len(set(texts)) == len(texts) > 0
            assert [json.loads(text) for text in texts] == [dict(task) for task in tasks]
            assert all(part.estimate(task) > 0 for task in tasks)
        quick_work = sum(part.estimate(task) for task in part.tasks(True))
        assert quick_work <= sum(part.estimate(task) for task in part.tasks(False))


def test_errors_say_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no part 'penalti'; did you mean 'penalty'"):
        reproduce(tmp_path, only=["penalti"])
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="no folder can be made there"):
        reproduce(tmp_path / "file" / "report")
    command = [sys.executable, "-m", "reproduction", "--only", "nothing", "-o", str(tmp_path)]
    found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout) == (2, "")
    assert "no part 'nothing'" in found.stderr


def test_quick_and_full_reports_have_folders_of_their_own(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="has a quick reproduction in it"):
        reproduce(folder, redraw=True)
    with pytest.raises(OptionError, match="no data of such a reproduction"):
        reproduce(tmp_path, quick=True, redraw=True)


def test_ctrl_c_keeps_what_was_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reproduction", "--quick", "--parallel", "1"]
    command += ["--only", "penalty", "--only", "convergence", "-o", str(tmp_path)]
    run = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    data = tmp_path / "data-quick"
    deadline = time.monotonic() + 60
    while not any(data.glob("*.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGINT)
    output, errors = run.communicate(timeout=30)
    assert run.returncode == 130, errors
    parts = [part for part in PARTS if part.name in ("penalty", "convergence")]
    store, total = Store(data), sum(len(part.tasks(True)) for part in parts)
    done = total - sum(len(store.missing(part, part.tasks(True))) for part in parts)
    assert 0 < done < total
    assert f"interrupted: {done:,} of {total:,} tasks were run and are kept".encode() in output
    assert "tasks were run" in (tmp_path / "index.html").read_text()
    told: list[Advance] = []

    def stop(advance: Advance) -> None:
        told.append(advance)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(
            tmp_path, quick=True, only=["penalty", "convergence"], parallel=1, on_advance=stop
        )
    assert told[0].total == total - done  # what was run is not run again


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


def test_every_claim_of_the_document_has_both_numbers_and_a_verdict(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "PARTS", [p for p in PARTS if p.name in ("penalty", "policy-space")])
    shown = page.read_shown(folder / "data-quick", quick=True)
    text = "\n".join(page.write_page(shown, tmp_path, quick=True))
    table = text.split("|---|---:|---:|---|\n")[1].split("\n\n")[0].splitlines()
    assert len(table) == sum(len(section.claims) for _, section, _ in shown) > 2
    for row in table:
        *cells, verdict = (cell.strip() for cell in row.split("|")[1:-1])
        assert (len(cells), all(cells), verdict[0] in "✓◐✗") == (3, True, True)
    assert "not recorded" not in text
    assert f"{os.cpu_count()} cores" in text
    for figure in re.findall(r"\]\(reproduction/(.+?)\)", text):
        assert (tmp_path / figure).exists()
    assert [page.to_digits(x) for x in (122.746, 0.04, 12345.6)] == ["123", "0.04", "12,300"]
    assert page.to_digits(1.528, reward=True) == "1.5280"


def test_a_task_that_fails_is_named_and_the_others_are_run(tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.reproduction.PARTS", [FailingPart("broken")])
    for _ in range(2):
        with pytest.raises(VulcanError, match=r"1 tasks failed(.|\n)*'broken'\}: out of tea"):
            reproduce(tmp_path, quick=True, parallel=2)
        page = (tmp_path / "index.html").read_text()
        assert "4 records" in page
        assert "4 of 5 tasks were run" in page
    assert len((tmp_path / "data-quick" / "failing.jsonl").read_text().splitlines()) == 4


def test_a_killed_worker_is_told_and_what_was_run_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("reproduction.reproduction.PARTS", [FailingPart("killed")])
    with pytest.raises(VulcanError, match=r"1 tasks failed(.|\n)*its worker was killed"):
        reproduce(tmp_path, quick=True, parallel=1)
    assert "4 of 5 tasks were run" in (tmp_path / "index.html").read_text()  # short ones come first


def test_a_line_that_was_written_by_halves_is_run_again(tmp_path: Path) -> None:
    part, store = BanditTable(), Store(tmp_path)
    tasks = part.tasks(True)[:3]
    for k, task in enumerate(tasks):
        store.add(part, Record(dict(task), {"reward": float(k)}, 0.1))
    assert store.missing(part, tasks) == []
    path = tmp_path / "bandit-table.jsonl"
    path.write_text(path.read_text()[:-9])
    assert store.missing(part, tasks) == [tasks[2]]
    assert [record.found["reward"] for record in store.find(part, tasks)] == [0.0, 1.0]
    store.add(part, Record(dict(tasks[2]), {"reward": 7.0}, 0.1))
    assert store.missing(part, tasks) == []
    assert [record.found["reward"] for record in store.find(part, tasks)] == [0.0, 1.0, 7.0]


def test_records_of_another_version_are_run_again(tmp_path: Path) -> None:
    part, store = BanditTable(), Store(tmp_path)
    task = part.tasks(True)[0]
    store.add(part, Record(dict(task), {"reward": 1.0}, 0.1))
    part.version += 1
    assert store.missing(part, [task]) == [task]
