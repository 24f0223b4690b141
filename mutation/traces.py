"""Which lines a test reaches, and how long it takes: so a mutant meets the tests that can tell."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TextIO

import pytest

from mutation.mutants import SOURCES
from mutation.processes import run_apart, run_tests
from mutation.subjects import ROOT, Subject

LONGEST_TEST = 4.0
"""In seconds of the processor, while traced; longer ones don't take part."""

LONGEST_FILE = 300.0
"""What comes later in a file does not take part."""

HELPERS = ("helpers", "oracles", "golden")
"""What tests use: when it changes, they are traced anew."""

MOST_CALLS = 2000
"""Of a function in one test: if some of its lines were not reached until then, they stay so."""


@dataclass(frozen=True)
class Trace:
    """What one test did: its name for pytest, seconds, and the lines that it reached by module."""

    test: str
    seconds: float
    lines: dict[str, list[int]]


class Tracer:
    """Notes which lines of some files are reached."""

    def __init__(self, modules: list[str]) -> None:
        self.names = {str(SOURCES / module): module for module in modules}
        self.lines: set[tuple[str, int]] = set()
        self.left: dict[CodeType, set[int]] = {}
        self.calls: Counter[CodeType] = Counter()
        self.depth = 0

    @contextmanager
    def record(self) -> Iterator[set[tuple[str, int]]]:
        """Note what is reached meanwhile."""
        before = self.lines, self.left, self.calls
        self.lines, self.left, self.calls = set(), {}, Counter()
        found = self.lines
        self.depth += 1
        threading.settrace(self.enter)
        sys.settrace(self.enter)
        try:
            yield found
        finally:
            self.lines, self.left, self.calls = before
            self.depth -= 1
            if not self.depth:
                sys.settrace(None)
                threading.settrace(None)

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Look into functions of these files, until all their lines were reached."""
        code = frame.f_code
        # A module and a class are run once, for whichever test comes first.
        if code.co_filename not in self.names or not code.co_flags & CO_OPTIMIZED:
            return None
        left = self.left.get(code)
        if left is None:
            left = self.left[code] = {line for _, _, line in code.co_lines() if line is not None}
        self.calls[code] += 1
        return self.reach if left and self.calls[code] < MOST_CALLS else None

    def reach(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Note a line."""
        code = frame.f_code
        self.lines.add((self.names[code.co_filename], frame.f_lineno))
        self.left[code].discard(frame.f_lineno)
        return self.reach


class Recorder:
    """Traces each test of a run, and writes down those that pass in time."""

    def __init__(self, modules: list[str], notes: TextIO) -> None:
        self.tracer = Tracer(modules)
        self.notes = notes
        self.fixtures: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
        self.passed = True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Fixtures may be shared: what they reach counts for each test that has them."""
        with self.tracer.record() as lines:
            result = yield
        self.fixtures[fixturedef.argname] |= lines
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.passed = True
        signal.signal(signal.SIGPROF, _give_up)
        signal.setitimer(signal.ITIMER_PROF, LONGEST_TEST)
        begin = time.process_time()
        with self.tracer.record() as lines:
            result = yield
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        seconds = time.process_time() - begin
        if self.passed and seconds < LONGEST_TEST:
            for name in item.fixturenames:
                lines |= self.fixtures[name]
            modules: defaultdict[str, list[int]] = defaultdict(list)
            for module, line in sorted(lines):
                modules[module].append(line)
            self.notes.write(json.dumps(asdict(Trace(item.nodeid, seconds, dict(modules)))) + "\n")
            self.notes.flush()
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.passed &= report.outcome == "passed"


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("this test takes too long to tell mutants apart")


def trace_tests(subject: Subject, folder: Path, named: str = "") -> list[Trace]:
    """Return what the tests of a subject reach; what is known from earlier is in a folder.

    Only files with some name in their path take part.
    """
    modules = subject.list_modules()
    common = [SOURCES / module for module in modules]
    for helpers in HELPERS:
        common += sorted((ROOT / "tests" / helpers).glob("*.*"))
    sources = b"".join(path.read_bytes() for path in common)
    traces: list[Trace] = []
    for path in subject.list_tests():
        name = path.relative_to(ROOT).as_posix()
        if named not in name:
            continue
        digest = hashlib.sha256(sources + path.read_bytes()).hexdigest()
        known = folder / "traces" / f"{name.replace('/', '-')}-{digest[:16]}.json"
        if not known.exists():
            found = _trace_file(name, modules)
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_text(json.dumps(found), encoding="utf-8")
            spent = sum(trace["seconds"] for trace in found)
            print(f"  {name}: {len(found)} tests take part, {spent:.1f} s", flush=True)
        traces += [Trace(**trace) for trace in json.loads(known.read_text(encoding="utf-8"))]
    return traces


def _trace_file(name: str, modules: list[str]) -> list[Any]:
    def work(notes: TextIO) -> None:
        code = run_tests([name], Recorder(modules, notes), "--maxfail=1000")
        if code > pytest.ExitCode.TESTS_FAILED:
            raise RuntimeError(f"pytest ended with {code}")

    found, code = run_apart(work, LONGEST_FILE)
    if code:
        print(f"  {name}: not read to its end", flush=True)
    return found


def choose_tests(traces: list[Trace], module: str, line: int, seconds: float) -> list[Trace]:
    """Return the tests that may tell a mutant, the quickest first, for so many seconds in all.

    First those that reach its line, then the others of their files: what one test has computed may
    be kept for another. What is outside of functions matters to all that reach the module.
    """
    near = [trace for trace in traces if module in trace.lines] or traces
    here = [trace for trace in near if line in trace.lines.get(module, ())] or near
    files = {trace.test.partition("::")[0] for trace in here}
    beside = [trace for trace in near if trace.test.partition("::")[0] in files]
    order = sorted(here, key=_by_seconds) + sorted(beside, key=_by_seconds)
    chosen: dict[str, Trace] = {}
    spent = 0.0
    for trace in order:
        if trace.test not in chosen and spent + trace.seconds < seconds:
            chosen[trace.test] = trace
            spent += trace.seconds
    return list(chosen.values())


def _by_seconds(trace: Trace) -> float:
    return trace.seconds
