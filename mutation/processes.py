"""Tests in a forked process, which inherits the libraries that it needs and may end in any way."""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

from mutation import plain_kernels
from mutation.mutants import SOURCES, Mutant, write_mutant
from mutation.subjects import ROOT

# Neither the library nor its tests: a mutant must be there before they are.
LIBRARIES = ("hypothesis", "msgspec", "numba", "numpy", "pytest", "rich", "scipy.optimize", "typer")

EXAMPLES = 25
"""Hypothesis draws no more of them, and always the same."""

MEMORY = 6 << 30

OPTIONS = (
    "--exitfirst",
    "--quiet",
    "--no-header",
    "--hypothesis-profile=mutation",
    "--pythonwarnings=ignore::pytest.PytestAssertRewriteWarning",  # Hypothesis is there already
    *("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:benchmark"),
)


def load_libraries() -> None:
    """Import what tests need, once for all processes to come."""
    for name in LIBRARIES:
        importlib.import_module(name)
    _set_up_hypothesis()
    sys.dont_write_bytecode = False  # or each process would compile the library anew
    os.fsync = lambda fd: None  # files of tests need not outlive the machine
    os.chdir(ROOT)
    sys.path[:0] = [str(SOURCES), str(ROOT)]
    os.environ["PYTHONPATH"] = str(SOURCES)
    gc.collect()
    gc.freeze()


def _set_up_hypothesis() -> None:
    """Let tests draw few examples, the same in each run, and end with the first that fails."""
    from hypothesis import HealthCheck, Phase, settings

    begin = settings.__init__

    def begin_smaller(self: Any, parent: Any = None, **chosen: Any) -> None:
        if isinstance(most := chosen.get("max_examples"), int):
            chosen["max_examples"] = min(most, EXAMPLES)
        begin(self, parent, **chosen)

    settings.__init__ = begin_smaller  # type: ignore[method-assign]
    settings.register_profile(
        "mutation",
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


def run_apart(work: Callable[[TextIO], None], seconds: float) -> tuple[list[Any], int]:
    """Do some work in a forked process; return the lines of JSON that it wrote, and how it ended.

    It may use this many seconds of the processor, and ten times as many pass.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8") as notes:
        process = os.fork()
        if process == 0:
            _work_and_end(work, notes, seconds)
        code = _wait(process, 10.0 * seconds)
        notes.seek(0)
        return [json.loads(line) for line in notes if line.endswith("\n")], code


def _work_and_end(work: Callable[[TextIO], None], notes: TextIO, seconds: float) -> None:
    code = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        limit = int(time.process_time() + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        work(notes)
        code = 0
    finally:
        notes.flush()
        os._exit(code)


def _wait(process: int, seconds: float) -> int:
    """Wait for a process, and end it and all that it has started; return how it ended."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(process, os.WNOHANG)
        if done or time.monotonic() > end:
            break
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    if not done:
        _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def run_tests(tests: Sequence[str], plugin: object, *options: str) -> int:
    """Run tests in this process, which has not yet imported the library."""
    import pytest

    subprocess.Popen.__init__ = _refuse_program  # type: ignore[method-assign]
    plain_kernels.install()
    return int(pytest.main([*OPTIONS, *options, *tests], plugins=[plugin]))


def _refuse_program(self: object, *arguments: object, **named: object) -> None:
    raise RuntimeError("another program knows nothing of a mutant")


class _MutantLoader(SourceFileLoader):
    """Loads another tree than that of the file."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        super().__init__(name, str(path))
        self.tree = tree

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.tree, self.path, "exec", dont_inherit=True)


class _MutantFinder(importlib.abc.MetaPathFinder):
    """Finds a mutant in the place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = mutant.module.removesuffix(".py").replace("/", ".")
        path = SOURCES / mutant.module
        self.loader = _MutantLoader(self.name, path, write_mutant(mutant.module, mutant.place))

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self.loader.path, loader=self.loader
        )


def install_mutant(mutant: Mutant) -> None:
    """Let a mutant be imported in the place of its module."""
    sys.meta_path.insert(0, _MutantFinder(mutant))
