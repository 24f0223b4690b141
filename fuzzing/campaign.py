"""What the campaign does with one problem: which checks it gets, and what is counted.

Problem n of campaign seed s can be done again alone: all that is drawn comes from both numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from fuzzing.checks.case import Case, Means, find_faults
from fuzzing.checks.registry import ANSWER, CHECKS
from fuzzing.claims import Fault
from fuzzing.oracle import Oracle
from fuzzing.planners import draw_planner
from fuzzing.problems import PlainProblem
from fuzzing.shapes import draw_problem, seed_random
from fuzzing.statistics import Statistics

__all__ = ["Finding", "draw_cases", "run_case", "run_problem"]

SECOND_PLANNER = 0.1
"""How often a problem is given to another planner as well."""


@dataclass(frozen=True)
class Finding:
    """A case that has faults.

    Attributes
    ----------
    seed, number
        Which problem of which campaign.
    case
        What was tried.
    faults
        What was found.
    """

    seed: int
    number: int
    case: Case
    faults: tuple[Fault, ...]

    @property
    def signature(self) -> str:
        """What findings are counted by: the first fault, and who made it."""
        return f"{self.faults[0].check} / {self.case.planner.name} / {self.case.check}"


def draw_cases(random: Random, check: str | None = None) -> tuple[Oracle, list[Case]]:
    """Return a problem's truth, and what is tried with it: one check alone, if given."""
    problem, oracle = draw_problem(random)
    if check is not None:
        return oracle, [_draw_case(random, check, problem)]
    cases = [_draw_case(random, ANSWER, problem)]
    if random.random() < SECOND_PLANNER:
        cases.append(_draw_case(random, ANSWER, problem))
    for name, rare in CHECKS.items():
        if random.random() < rare.share:
            cases.append(_draw_case(random, name, problem))
    return oracle, cases


def _draw_case(random: Random, name: str, problem: PlainProblem) -> Case:
    check = CHECKS[name]
    planner = (check.planner or draw_planner)(random)
    if check.change is not None:
        problem = check.change(random, problem)
    return Case(name, problem, planner, random.randrange(1 << 32))


def run_problem(
    seed: int, number: int, means: Means, statistics: Statistics, check: str | None = None
) -> Iterator[Finding]:
    """Yield what is wrong with what Vulcan says of one problem, in one check or in all."""
    oracle, cases = draw_cases(seed_random(seed, number), check)
    # Tags of all cases, each once: some have limits that the others do not have.
    statistics.add_problem(dict.fromkeys(tag for case in cases for tag in case.problem.tags))
    for case in cases:
        faults, counts = run_case(case, means, oracle)
        statistics.add_case(case, counts, faults)
        if faults:
            yield Finding(seed, number, case, tuple(faults))


def run_case(
    case: Case, means: Means, oracle: Oracle | None = None
) -> tuple[list[Fault], Counter[str]]:
    """Return the faults of a case, and what happened."""
    return find_faults(CHECKS[case.check].check, case, means, oracle)
