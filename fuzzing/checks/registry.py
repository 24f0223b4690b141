"""All checks by their names, and how often a problem gets each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from fuzzing.checks.answer import check_answer
from fuzzing.checks.case import Check
from fuzzing.checks.files import (
    check_checkpoint_bytes,
    check_policy_bytes,
    check_resealed_policy,
)
from fuzzing.checks.forms import check_arrays, check_compiled, check_merging, check_repetition
from fuzzing.checks.hostility import check_kill, check_lies, check_memory
from fuzzing.checks.missions import check_replans, check_simulation
from fuzzing.checks.opinions import check_checker, check_margin, check_storm
from fuzzing.checks.several import check_several
from fuzzing.limit_shapes import draw_limits
from fuzzing.planners import (
    Planner,
    draw_cheap,
    draw_compiled,
    draw_sampling,
    draw_several,
    draw_thrifty,
)
from fuzzing.problems import PlainProblem

__all__ = ["ANSWER", "CHECKS", "RareCheck"]

ANSWER = "answer"
"""The check that every problem gets."""


@dataclass(frozen=True)
class RareCheck:
    """A check, and how often it is made.

    Attributes
    ----------
    check
        The check.
    share
        The share of problems that get it, beside what they get anyway.
    planner
        Planners to draw from; None for any.
    change
        What is drawn beside the problem; None for nothing.
    """

    check: Check
    share: float
    planner: Callable[[Random], Planner] | None = None
    change: Callable[[Random, PlainProblem], PlainProblem] | None = None


CHECKS: dict[str, RareCheck] = {
    ANSWER: RareCheck(check_answer, 0.0),
    "arrays": RareCheck(check_arrays, 0.02, draw_cheap),
    "compiled": RareCheck(check_compiled, 0.01, draw_compiled),
    "merging": RareCheck(check_merging, 0.01, draw_cheap),
    "repetition": RareCheck(check_repetition, 0.01),
    "margin": RareCheck(check_margin, 0.01, draw_cheap),
    "checker": RareCheck(check_checker, 0.012, draw_cheap),
    "Storm": RareCheck(check_storm, 0.005, draw_cheap),
    "replans": RareCheck(check_replans, 0.003, draw_cheap),
    "simulation": RareCheck(check_simulation, 0.002, draw_cheap),
    "lies": RareCheck(check_lies, 0.02),
    "memory": RareCheck(check_memory, 0.01, draw_thrifty),
    "policy bytes": RareCheck(check_policy_bytes, 0.0005, draw_cheap),
    "resealed policy": RareCheck(check_resealed_policy, 0.0003, draw_cheap),
    "checkpoint bytes": RareCheck(check_checkpoint_bytes, 0.0005, draw_sampling),
    "kill": RareCheck(check_kill, 0.001, draw_sampling),
    "several": RareCheck(check_several, 0.5, draw_several, draw_limits),
}
