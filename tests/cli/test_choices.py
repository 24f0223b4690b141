"""How strings on the command line are read and completed."""

from __future__ import annotations

import pytest
import typer

from tests.helpers.model_files import write
from vulcan.cli.choices import complete_model, read_size, spell_out
from vulcan.domains import DOMAINS


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1234", 1234),
        ("12B", 12),
        ("4GB", 4_000_000_000),
        ("1.5GiB", 3 << 29),
        ("500 mb", 500_000_000),
        ("3kB", 3000),
        ("3KIB", 3072),
        ("2MiB", 2 << 20),
        (" 7 ", 7),
        ("0.3kB", 300),
    ],
)
def test_sizes(text, size):
    assert read_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "GB", "4G", "4TB", "-1", "1e9", "4,5GB", "nan", "٣", "9" * 99]
)
def test_what_is_no_size(text):
    with pytest.raises(typer.BadParameter, match="a size is a number of bytes"):
        read_size(text)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("bandit --horizon 9 --json", "bandit --set horizon=9 --json"),
        ("bandit --horizon=9", "bandit --set horizon=9"),
        ("--horizon 9 --set slip=1", "--set horizon=9 --set slip=1"),
        ("bandit --horizon", "bandit --horizon"),
        ("bandit -- --horizon 9", "bandit -- --horizon 9"),
        ("bandit --horizons 9", "bandit --horizons 9"),
    ],
)
def test_the_horizon_is_a_setting(given, written):
    assert spell_out(given.split()) == written.split()


def test_completion_knows_names_files_and_folders(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "bay.py", "")
    write(tmp_path / "bank" / "port.py", "")
    write(tmp_path / "basin.md", "")
    assert complete_model("ba") == ["bandit", "bank/", "bay.py:"]
    assert complete_model("bank/") == ["bank/port.py:"]
    assert complete_model("nowhere/x") == []
    assert complete_model("") == [*DOMAINS, "gymnasium:", "rddl:", "bank/", "bay.py:"]


def test_completion_knows_mission_files(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "mission.toml", "")
    assert complete_model("mi") == ["mission.toml"]
