"""One process of the campaign: it is handed blocks of problems, and says what came of each.

A worker tells with every case which problem it is at (`place`) and that it is alive (`beats`), so
that the parent knows which problem killed or hung the worker.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

BLOCK = 50
"""Problems that are done between two reports."""

READY = "ready"
"""What a worker says when it can begin."""

WARM_UPS = 60
"""Problems that are solved before that."""

REPRODUCERS = 3
"""Findings of one signature that are made smaller and written down."""

__all__ = ["BLOCK", "READY", "REPRODUCERS", "WARM_UPS", "Order", "be_strict", "warm_up", "work"]


@dataclass(frozen=True)
class Order:
    """The next block of a worker.

    Attributes
    ----------
    block
        Which problems: those from `block * BLOCK` on.
    lost
        Problems of it that must not be tried.
    known
        Signatures of which there are reproducers enough.
    check
        The only check that is made; None for all.
    """

    block: int
    lost: frozenset[int]
    known: frozenset[str]
    check: str | None = None


def work(
    connection: Connection, place: Any, beats: Any, seed: int, folder: Path, warm_ups: int
) -> None:
    """Process orders until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
    from fuzzing.checks.case import Means

    be_strict()
    warm_up(warm_ups)
    means = _beat(Means(), beats)
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        connection.send(READY)
        while True:
            order = connection.recv()
            if order is None:
                return
            connection.send(do_block(order, place, seed, folder, means))


def warm_up(count: int) -> None:
    """Let every solver work once: the first time, kernels are loaded or even compiled."""
    from fuzzing.campaign import run_case
    from fuzzing.checks.case import Case, Means
    from fuzzing.checks.registry import CHECKS
    from fuzzing.planners import draw_planner, draw_sampling
    from fuzzing.shapes import draw_problem, seed_random

    patient = Means(answer_timeout=math.inf)
    for number in range(count):
        random = seed_random(0, number)
        problem, oracle = draw_problem(random)
        for name in CHECKS if number == 1 else ["answer"]:
            planner = draw_sampling(random) if number == 1 else draw_planner(random)
            run_case(Case(name, problem, planner, number), patient, oracle)


def be_strict() -> None:
    """Turn unexpected warnings into errors."""
    from vulcan.errors import BoundWarning

    warnings.simplefilter("error")
    warnings.simplefilter("ignore", BoundWarning)
    sys.unraisablehook = _end_with_index_errors


def _end_with_index_errors(error: Any) -> None:
    """End the process where the machine code of a model leaves its arrays, which can't raise."""
    sys.__unraisablehook__(error)
    if isinstance(error.exc_value, IndexError):
        os._exit(1)


def _beat(means: Any, beats: Any) -> Any:
    """Return the same means, which say each time that they are used."""

    def solve(*given: Any, **options: Any) -> Any:
        beats.value += 1
        return means.solve(*given, **options)

    return replace(means, solve=solve)


def do_block(order: Order, place: Any, seed: int, folder: Path, means: Any) -> dict[str, Any]:
    """Return what came of a block."""
    from fuzzing.campaign import Finding, run_problem
    from fuzzing.reproducers import shrink, write_reproducer
    from fuzzing.statistics import Statistics

    statistics, written = Statistics(), Counter[str]()
    began = time.process_time()
    findings: list[Finding] = []
    for number in _numbers(order):
        place.value = number
        findings += run_problem(seed, number, means, statistics, order.check)
    statistics.seconds = time.process_time() - began
    for finding in findings:
        signature = finding.signature
        statistics.findings[signature] += 1
        if signature not in order.known and written[signature] < 1:
            written[signature] += 1
            place.value = finding.number
            write_reproducer(shrink(finding, means), folder)
    return {"block": order.block, "written": dict(written), "record": statistics.to_record()}


def _numbers(order: Order) -> Iterator[int]:
    first = order.block * BLOCK
    return (n for n in range(first, first + BLOCK) if n not in order.lost)
