"""Files are replaced at once, and nothing but plain files is."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from vulcan.runtime.files import write_atomically


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """A mask that no machine has by default."""
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_new_file_has_the_mode_of_new_files(tmp_path):
    write_atomically(tmp_path / "plan", b"new")
    assert mode_of(tmp_path / "plan") == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o660, 0o666, 0o755])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "plan"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode_of(path) == mode


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_file_keeps_its_owner_and_group(tmp_path):
    path = tmp_path / "plan"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid, mode_of(path)) == (12345, 54321, 0o640)


def test_a_group_that_can_not_be_kept_opens_the_file_to_no_other(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    path = tmp_path / "plan"
    path.write_bytes(b"old")
    path.chmod(0o664)
    look = os.stat

    def other_group(name, *arguments, **options):
        found = list(look(name, *arguments, **options))
        if Path(name) != path:
            found[stat.ST_GID] += 1
        return os.stat_result(found)

    monkeypatch.setattr("vulcan.runtime.files.os.chown", refuse)
    monkeypatch.setattr("vulcan.runtime.files.os.stat", other_group)
    write_atomically(path, b"new")
    monkeypatch.undo()
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o644)


def test_a_link_stays_and_its_file_is_written(tmp_path):
    (tmp_path / "store").mkdir()
    file, link = tmp_path / "store" / "plan", tmp_path / "latest"
    link.symlink_to(file)
    for content in (b"one", b"two"):  # at first the link leads nowhere
        write_atomically(link, content)
        assert link.is_symlink()
        assert file.read_bytes() == content
    assert os.listdir(tmp_path / "store") == ["plan"]


def test_links_that_lead_in_a_circle_are_refused(tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "one", b"new")
    assert (tmp_path / "one").is_symlink()


def test_pipes_and_sockets_are_refused_and_stay(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="this is a pipe, and only plain files are written"):
            write_atomically(tmp_path / name, b"new")
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(tmp_path, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{folder}/socket")  # such addresses are short
        os.close(folder)
        with pytest.raises(OSError, match="this is a socket"):
            write_atomically(tmp_path / "socket", b"new")
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe", "socket"]
    assert (tmp_path / "pipe").is_fifo()


def test_devices_and_directories_are_refused(tmp_path):
    with pytest.raises(OSError, match="this is a device"):
        write_atomically("/dev/null", b"new")
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, b"new")
    assert Path("/dev/null").is_char_device()


def test_what_is_missing_or_protected_is_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_atomically(tmp_path / "nowhere" / "plan", b"new")
    path = tmp_path / "plan"
    path.write_bytes(b"old")
    monkeypatch.setattr("vulcan.runtime.files.os.access", lambda name, _: Path(name) != path)
    with pytest.raises(PermissionError, match="plan"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failure_on_the_way_leaves_the_old_content_and_nothing_else(tmp_path, monkeypatch, step):
    def fail(*_):
        raise OSError("no space left")

    path = tmp_path / "plan"
    path.write_bytes(b"old")
    monkeypatch.setattr(f"vulcan.runtime.files.os.{step}", fail)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["plan"]
