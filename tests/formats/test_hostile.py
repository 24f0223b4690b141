"""Files made to do harm: claims of size, nesting, endless numbers; all of them errors of ours."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib import format as npy

import vulcan
from vulcan.errors import OptionError
from vulcan.formats import arrays
from vulcan.formats.arrays import from_arrays
from vulcan.formats.registry import open_model
from vulcan.model.arrays import ArrayModel
from vulcan.runtime import files as texts

DEEP = 100_000
ROW = [[0, 0, 1, 1.0, 0.0]]


def write_array(header: dict[str, Any], content: bytes) -> bytes:
    stream = io.BytesIO()
    npy.write_array_header_1_0(stream, header)
    return stream.getvalue() + content


def write_archive(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)


def test_an_array_that_claims_more_than_there_is_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    for shape in ((10**12, 4), (1 << 62, 1 << 62), (-1, 4), (3, 4)):
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        write_archive(path, transitions=write_array(header, bytes(32)))
        with pytest.raises(OptionError, match=r"model.npz: this is not what numpy.savez writes"):
            open_model(str(path), ["horizon=3"])


def test_an_archive_is_not_unpacked_beyond_what_a_search_may_take(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    np.savez_compressed(path, transitions=np.zeros((1000, 4)))
    assert path.stat().st_size < 1000
    monkeypatch.setattr(arrays, "find_default_memory", lambda: 30_000)
    with pytest.raises(OptionError, match=r"its arrays take 3.21e-05 GB; 3e-05 GB are allowed"):
        open_model(str(path), ["horizon=3"])


def test_damaged_and_foreign_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    np.savez_compressed(path, transitions=np.array(ROW), horizon=3)
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :])
        with suppress(vulcan.VulcanError):  # some bytes of an archive mean nothing
            open_model(str(path))
    header = {"descr": "|O", "fortran_order": False, "shape": (1,)}
    write_archive(path, transitions=write_array(header, b"cos\nsystem\n."))
    with pytest.raises(OptionError, match="allow_pickle=False"):
        open_model(str(path), ["horizon=3"])


@pytest.mark.parametrize("number", [1e15, 2**31, 1 << 21])
def test_state_and_action_numbers_without_room_are_refused(number: float) -> None:
    for row in ([0, 0, number], [number, 0, 0], [0, number, 1]):
        with pytest.raises(vulcan.errors.ModelError, match=r"numbered without large gaps.*1048575"):
            from_arrays([[*row, 1.0, 0.0]], horizon=3)
    for state, action in ((int(number), 0), (0, int(number))):
        with pytest.raises(vulcan.errors.ModelError, match="must be numbered without large gaps"):
            ArrayModel([state], [action], [-1], [1.0], horizon=3)


def test_gaps_between_numbers_are_allowed() -> None:
    model = from_arrays([[0, 0, 1_000_000, 1.0, 0.0]], horizon=3)
    assert model.states == 1_000_001


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("model.json", "[" * DEEP, "lists or objects are nested too deeply"),
        ("model.json", '{"a":' * DEEP, "lists or objects are nested too deeply"),
        ("model.json", '{"horizon": ' + "9" * 10_000 + "}", "this is not JSON"),
        ("mission.toml", "map = " + "[" * DEEP, "too many arrays or tables inside each other"),
        ("mission.toml", "horizon = " + "9" * 10_000, "this is not TOML|must be a whole number"),
        ("mission.toml", "horizon = 1e999", "horizon must be a whole number"),
    ],
)
def test_nesting_and_endless_numbers(tmp_path: Path, name: str, content: str, problem: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(OptionError, match=rf"{name}.*({problem})"):
        open_model(str(path))


@pytest.mark.parametrize("name", ["model.json", "mission.toml", "maps.txt"])
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    number = ":1" if name == "maps.txt" else ""  # of the map that is meant
    with pytest.raises(OptionError, match=rf"{name}: can't be read: No such file"):
        open_model(f"{path}{number}")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match=rf"{name}: can't be read: not UTF-8 text"):
        open_model(str(path))


@pytest.mark.parametrize("name", ["model.json", "mission.toml"])
def test_texts_are_read_up_to_a_size(tmp_path, name, monkeypatch):
    monkeypatch.setattr(texts, "LARGEST_TEXT", 1 << 20)
    path = tmp_path / name
    path.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(OptionError, match=rf"{name}: can't be read: text files are limited to"):
        open_model(str(path))
