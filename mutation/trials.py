"""Whether the tests catch a mutant."""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import pytest

from mutation.mutants import SOURCES, Mutant
from mutation.processes import install_mutant, run_apart, run_tests
from mutation.traces import Trace

SLOWER = 4.0
"""A mutant may take this many times as long as the original, and some seconds to begin."""

BEGINNING = 20.0

PATIENCE = 5.0
"""How many seconds longer a single test may take: one that never ends costs no more."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Attributes
    ----------
    key, source
        Of the mutant; a digest of the module that it was made of.
    caught
        Whether some test failed, or never ended.
    how
        The first test that failed, or what else happened.
    tests
        How many were to be run.
    """

    key: str
    source: str
    caught: bool
    how: str
    tests: int


class Witness:
    """Notes the first thing that goes wrong, and has no patience with what never ends."""

    def __init__(self, notes: TextIO, tests: Sequence[Trace]) -> None:
        self.notes = notes
        self.seconds = {trace.test: trace.seconds for trace in tests}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        signal.signal(signal.SIGPROF, _give_up)
        longest = PATIENCE + SLOWER * self.seconds.get(item.nodeid, 0.0)
        signal.setitimer(signal.ITIMER_PROF, longest)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.notes.write(json.dumps(report.nodeid) + "\n")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.notes.write(json.dumps(f"{report.nodeid} (while it was read)") + "\n")


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("it never ends")


def try_mutant(mutant: Mutant, tests: Sequence[Trace]) -> Verdict:
    """Run tests on a mutant until one fails."""

    def work(notes: TextIO) -> None:
        install_mutant(mutant)
        code = run_tests([trace.test for trace in tests], Witness(notes, tests))
        notes.write(json.dumps(code) + "\n")

    def conclude(caught: bool, how: str) -> Verdict:
        return Verdict(mutant.key, digest_source(mutant.module), caught, how, len(tests))

    if not tests:
        return conclude(False, "no test reaches it")
    seconds = BEGINNING + SLOWER * sum(trace.seconds for trace in tests)
    found, code = run_apart(work, seconds)
    if found and found[-1] == 0:
        lines = (trace.lines.get(mutant.module, ()) for trace in tests)
        reached = not mutant.function or any(mutant.line in reached for reached in lines)
        return conclude(False, "all passed" if reached else "no test reaches it")
    if found and isinstance(found[0], str):
        return conclude(True, found[0])
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return conclude(True, "it never ended")
    return conclude(True, f"it could not be run ({code})")


def digest_source(module: str) -> str:
    """Return what a module is known by."""
    return hashlib.sha256((SOURCES / module).read_bytes()).hexdigest()[:16]


class Verdicts:
    """All that is known of mutants, in a file to which each verdict is added when it is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[tuple[str, str], Verdict] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                verdict = Verdict(**json.loads(line))
                self.known[verdict.key, verdict.source] = verdict

    def find(self, mutant: Mutant) -> Verdict | None:
        """Return what is known of a mutant."""
        return self.known.get((mutant.key, digest_source(mutant.module)))

    def add(self, verdict: Verdict) -> None:
        """Note a verdict."""
        self.known[verdict.key, verdict.source] = verdict
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(verdict)) + "\n")
