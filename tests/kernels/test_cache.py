"""Where compiled functions are kept, what is trusted there, and what becomes of damage."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from vulcan.kernels import codes, compilation
from vulcan.kernels.compilation import find_directory

KERNELS = """
from vulcan.kernels.compilation import kernel

@kernel
def double(number):
    return 2 * number
"""

PROGRAM = """
from glider.kernels import double
print(double(21), sum(double._cache_hits.values()))
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Let temporary directories be made where nothing else is, and forget the one there is."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(compilation.tempfile, "tempdir", str(folder))
    monkeypatch.setenv("VULCAN_CACHE_DIR", str(tmp_path / "cache"))
    registered = []
    monkeypatch.setattr(
        compilation.atexit, "register", lambda *call, **how: registered.append(call)
    )
    compilation._make_temporary_directory.cache_clear()
    yield folder
    compilation._make_temporary_directory.cache_clear()


def import_again(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import a module anew, which others get as well until the test ends."""
    package, _, last = name.rpartition(".")
    old = import_module(name)
    monkeypatch.delitem(sys.modules, name)
    fresh = import_module(name)
    assert fresh is not old
    monkeypatch.setitem(sys.modules, name, fresh)
    monkeypatch.setattr(sys.modules[package], last, fresh)
    return fresh


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a kernel that is compiled in no time, and its cache."""
    import_again("vulcan.kernels.compilation", monkeypatch)
    folder = tmp_path / "glider"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("VULCAN_CACHE_DIR", str(tmp_path / "cache"))
    yield tmp_path
    for name in ("glider", "glider.kernels"):
        sys.modules.pop(name, None)


def clear(module=compilation):
    """Forget which sources there are."""
    for cached in (module.cache_directory, module._list_imports, module._find_file):
        cached.cache_clear()


def load_again():
    """Return the kernel as a new process would have it."""
    for name in ("glider", "glider.kernels"):
        sys.modules.pop(name, None)
    clear(import_module("vulcan.kernels.compilation"))
    return import_module("glider.kernels").double


def call(function, number=21):
    """Return what it answers, and whether it was in the cache."""
    return function(number), sum(function._cache_hits.values()) > 0


def test_damaged_files_are_compiled_again(package, caplog):
    assert call(load_again()) == (42, False)
    assert call(load_again()) == (42, True)
    [file] = package.glob("cache/*/*/*.nbc")
    whole = file.read_bytes()
    middle = len(whole) // 2
    one_bit = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (b"", whole[:-1], os.urandom(len(whole)), one_bit):
        file.write_bytes(damaged)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert call(load_again()) == (42, False)
        assert f"{file} is damaged, so this kernel is compiled again" in caplog.text
        assert call(load_again()) == (42, True)


def test_an_upgrade_that_changes_no_source_keeps_what_is_compiled(package):
    assert call(load_again()) == (42, False)
    os.utime(package / "glider" / "kernels.py", (1, 1))
    assert call(load_again()) == (42, True)


def test_python_cannot_call_a_part_of_a_kernel():
    with pytest.raises(TypeError):
        compilation.find_bin(0.5, 7)


@pytest.mark.usefixtures("temporary")
def test_directories_are_ours_alone(tmp_path):
    directory = find_directory("kernels-1")
    assert directory.parent == tmp_path / "cache"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert find_directory("kernels-1") == directory


def spoil_by_link(directory):
    elsewhere = directory.with_name("elsewhere")
    directory.rename(elsewhere)
    directory.symlink_to(elsewhere)


def spoil_by_owner(directory):
    if os.getuid() != 0:
        pytest.skip("only root gives directories away")
    os.chown(directory, 12345, -1)


def open_to_others(directory):
    directory.chmod(0o770)


def open_parent_to_others(directory):
    directory.parent.chmod(0o777)


def replace_by_file(directory):
    directory.rmdir()
    directory.write_text("")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoil_by_link, "is not a directory"),
        (spoil_by_owner, "belongs to another user"),
        (open_to_others, "others may write to"),
        (open_parent_to_others, "others may write there"),
        (replace_by_file, "File exists"),
    ],
)
def test_what_others_could_have_prepared_is_not_used(tmp_path, temporary, caplog, spoil, reason):
    directory = find_directory("kernels-1")
    spoil(directory)
    with caplog.at_level(logging.WARNING):
        found = find_directory("kernels-1")
    assert found.is_relative_to(temporary)
    assert found.parent.stat().st_mode & 0o777 == 0o700
    assert f"{tmp_path / 'cache'} can't be used as a cache (" in caplog.text
    assert reason in caplog.text
    assert os.environ["VULCAN_CACHE_DIR"] == str(found.parent)  # for workers


def run(folder: Path, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call the kernel in a process of its own."""
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", "\n".join([*more, PROGRAM])],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def test_without_a_home_nothing_is_left(package):
    left = package / "temporary"
    left.mkdir()
    nowhere = {"HOME": "/proc/nowhere", "VULCAN_CACHE_DIR": "", "XDG_CACHE_HOME": ""}
    answer = run(package, TMPDIR=str(left), **nowhere)
    assert "can't be used as a cache" in answer.stderr
    assert answer.stdout == "42 0\n"
    assert os.listdir(left) == []


def test_a_full_disk_keeps_nothing_from_running(package):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    answer = run(package, full)
    assert answer.stdout == "42 0\n"
    assert "compiled kernels can't be cached in" in answer.stderr
    assert list(package.glob("cache/*/*/*")) == []


def test_two_processes_share_a_cache(package):
    path = os.pathsep.join([str(package), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    answers = [process.communicate()[0] for process in started]
    assert {answer.split()[0] for answer in answers} == {"42"}
    assert call(load_again()) == (42, True)


@pytest.fixture
def frozen_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of which `code` freezes a constant of `wind`, by way of `model`."""
    folder = tmp_path / "glider"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "code.py").write_text(
        "def f():\n    from glider.model import SPEED\n    return SPEED\n"
    )
    (folder / "model.py").write_text("import math\nfrom glider.wind import SPEED\n")
    (folder / "wind.py").write_text("SPEED = 1\n")
    (folder / "other.py").write_text("")
    module = ModuleType("glider")
    module.__file__ = str(folder / "__init__.py")
    monkeypatch.setitem(sys.modules, "glider", module)
    monkeypatch.setenv("VULCAN_CACHE_DIR", str(tmp_path / "cache"))
    clear()
    return folder


def test_a_constant_that_is_frozen_elsewhere_gives_a_new_cache(frozen_package: Path) -> None:
    before = compilation.cache_directory("glider.code")
    assert set(compilation.find_sources("glider.code")) == {
        "glider.code",
        "glider.model",
        "glider.wind",
    }
    (frozen_package / "other.py").write_text("changed = True\n")
    clear()
    assert compilation.cache_directory("glider.code") == before
    (frozen_package / "wind.py").write_text("SPEED = 2\n")
    clear()
    assert compilation.cache_directory("glider.code") != before


@pytest.mark.usefixtures("frozen_package")
def test_checked_and_unchecked_code_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for flag in (None, 0, 1):
        monkeypatch.setattr("numba.core.config.BOUNDSCHECK", flag)
        clear()
        found[flag] = compilation.cache_directory("glider.code")
    assert found[None] == found[0] != found[1]


def test_compiled_domains_depend_on_what_they_freeze() -> None:
    sources = compilation.find_sources("vulcan.domains.exploration.compiled")
    # MOVES, LARGEST_DEGREE and SMALLEST_SHARE are frozen there.
    assert {"vulcan.domains.exploration.model", "vulcan.domains.exploration.field"} <= set(sources)
    kernels = compilation.find_sources("vulcan.kernels.paper_tree")
    assert {"vulcan.numerics", "vulcan.kernels.local_tests"} <= set(kernels)
    assert "vulcan.sampling.local_vulcan" not in kernels


def test_first_compilation_is_announced_and_cached(tmp_path) -> None:
    script = (
        "import vulcan\nfrom vulcan.domains import Bandit\n"
        "problem = vulcan.Problem(Bandit(2), vulcan.Linear(0.002))\n"
        "print(vulcan.solve(problem, vulcan.ForwardSearch()).safe)"
    )
    environment = {**os.environ, "VULCAN_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    assert [run.stdout for run in runs] == ["True\n", "True\n"]
    assert "compiling" in runs[0].stderr
    assert runs[1].stderr == ""


def test_all_codes_differ() -> None:
    forms = {"SURVIVAL", "SEQUENCE", "SEQUENCE_BY_OUTCOME", "UNCONSTRAINED"}  # never returned
    names = {name for name in vars(codes) if name.isupper()} - forms
    numbers = [vars(codes)[name] for name in names]
    assert len(numbers) > 20
    assert len(set(numbers)) == len(numbers)
    assert min(numbers) > 0  # none is false, and none is a sentinel
