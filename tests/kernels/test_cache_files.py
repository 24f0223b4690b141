"""Files and directories of the cache: written whole or not at all, and cleared away by whoever may.

What several processes do to each other is in test_cache.py.
"""

from __future__ import annotations

import logging
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

from vulcan.kernels import cache
from vulcan.kernels.cache import DIGEST_SIZE, PREFIX, SUFFIX, VARIABLE, KernelFile, find_directory


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Where temporary directories are made, and what is done when the process ends."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(cache.tempfile, "tempdir", str(folder))
    monkeypatch.setenv(VARIABLE, "")
    registered: list[Any] = []
    monkeypatch.setattr(
        cache.atexit, "register", lambda *call, **how: registered.append((call, how))
    )
    cache._make_temporary_directory.cache_clear()
    yield folder, registered
    cache._make_temporary_directory.cache_clear()


def make_abandoned(folder: Path, name: str, mode: int = 0o700) -> Path:
    directory = folder / f"{PREFIX}{name}"
    directory.mkdir()
    directory.chmod(mode)
    (directory / "file").write_text("kernel")
    return directory


def test_only_what_is_ours_and_abandoned_is_cleared_away(temporary: Any) -> None:
    folder, _ = temporary
    abandoned = [make_abandoned(folder, name) for name in "ab"]
    open_to_all, owned = make_abandoned(folder, "c", 0o777), make_abandoned(folder, "d")
    other = folder / "other"
    other.mkdir()
    lock = cache._lock(owned)
    assert lock is not None
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    made = cache._make_temporary_directory("there", "a reason")
    assert not any(directory.exists() for directory in abandoned)
    assert all(directory.is_dir() for directory in (open_to_all, owned, other, made))
    if before:  # the lock of the new one is the only file that stays open
        assert len(os.listdir("/proc/self/fd")) == before + 1
    os.close(lock)


def test_a_temporary_directory_is_locked_and_removed_at_the_end(
    temporary: Any, caplog: pytest.LogCaptureFixture
) -> None:
    folder, registered = temporary
    with caplog.at_level(logging.WARNING):
        made = cache._make_temporary_directory("there", "a reason")
        assert cache._make_temporary_directory("there", "a reason") == made
    assert caplog.text.count("there can't be used as a cache (a reason)") == 1
    assert VARIABLE in caplog.text
    assert made.parent == folder
    assert made.name.startswith(PREFIX)
    assert registered == [((shutil.rmtree, made), {"ignore_errors": True})]
    assert os.environ[VARIABLE] == str(made)
    assert cache._lock(made) is None


@pytest.mark.parametrize("attempts", [1, 2, cache.TRIES])
def test_another_directory_is_made_where_somebody_was_faster(
    temporary: Any, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    folder, _ = temporary
    tried: list[Path] = []
    lock = cache._lock

    def be_slow(directory: Path) -> int | None:
        tried.append(directory)
        if len(tried) < attempts:
            directory.rmdir()
            return 0
        return lock(directory)

    monkeypatch.setattr(cache, "_lock", be_slow)
    made = cache._make_temporary_directory("there", "a reason")
    assert len(tried) == attempts
    assert made == tried[-1]
    assert os.listdir(folder) == [made.name]


def test_a_directory_that_can_not_be_locked_is_used_in_the_end(
    temporary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "fcntl", None)
    folder, _ = temporary
    abandoned = make_abandoned(folder, "a")
    made = cache._make_temporary_directory("there", "a reason")
    assert made.is_dir()
    assert abandoned.is_dir()  # who knows whether it is
    assert len(os.listdir(folder)) == 1 + cache.TRIES


def test_locks_last_as_long_as_their_file(tmp_path: Path) -> None:
    assert cache._lock(tmp_path / "missing") is None
    first = cache._lock(tmp_path)
    assert first is not None
    files = set(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else set()
    assert cache._lock(tmp_path) is None
    if files:  # what could not be locked is closed
        assert set(os.listdir("/proc/self/fd")) == files
    os.close(first)
    second = cache._lock(tmp_path)
    assert second is not None
    os.close(second)


def test_directories_of_all_users_have_their_names(
    temporary: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "user_cache_path", lambda name: tmp_path / name)
    assert find_directory("kernels") == tmp_path / "vulcan-planner" / f"kernels-{os.geteuid()}"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "deep" / "chosen"))
    assert find_directory("kernels").parent == tmp_path / "deep" / "chosen"
    monkeypatch.delattr(os, "geteuid")
    assert find_directory("kernels").name == "kernels"


def test_a_sticky_place_is_guarded(temporary: Any, tmp_path: Path) -> None:
    folder, _ = temporary
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    os.environ[VARIABLE] = str(shared)
    assert find_directory("kernels").parent == shared
    shared.chmod(0o777)
    assert find_directory("kernels").parent.parent == folder


def test_files_are_sealed_and_pickled(tmp_path: Path) -> None:
    file = KernelFile(str(tmp_path), "kernels.double", "today")
    file.save("key", [1, 2])
    [path] = tmp_path.iterdir()
    assert path.name.startswith("kernels.double.")
    assert path.name.endswith(SUFFIX)
    assert len(path.name) == len("kernels.double.") + 16 + len(SUFFIX)
    content = path.read_bytes()
    assert DIGEST_SIZE == 32
    assert pickle.loads(content[DIGEST_SIZE:]) == ("today", "key", [1, 2])
    assert content[:DIGEST_SIZE] == cache._digest(content[DIGEST_SIZE:])


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_what_can_not_be_saved_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    def fail(*_: Any) -> None:
        raise error

    cache._tell_unsaved.cache_clear()
    file = KernelFile(str(tmp_path), "kernels.double", "today")
    monkeypatch.setattr(cache.os, "replace", fail)
    with caplog.at_level(logging.WARNING):
        if isinstance(error, OSError):
            file.save("key", "compiled")
            file.save("key", "compiled")  # it is said once
            assert caplog.text.count(f"kernels can't be kept in {tmp_path}: No space left") == 1
        else:
            with pytest.raises(KeyboardInterrupt):
                file.save("key", "compiled")
            assert not caplog.text
    assert list(tmp_path.iterdir()) == []


def test_flushing_leaves_other_functions_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, other = (KernelFile(str(tmp_path), f"kernels.{name}", 1) for name in ("double", "halve"))
    for key in ("a", "b"):
        ours.save(key, key)
        other.save(key, key)
    ours.flush()
    with caplog.at_level(logging.WARNING):
        assert [ours.load("a"), ours.load("b")] == [None, None]
    assert not caplog.text  # a file that is not there is not damaged
    assert [other.load("a"), other.load("b")] == ["a", "b"]
