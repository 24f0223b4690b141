"""Findings as pytest files that fail as long as the defect is there."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzzing.campaign import Finding, run_case
from fuzzing.checks.case import Case, Means
from fuzzing.claims import Fault
from fuzzing.minimising import minimise
from fuzzing.problems import PlainProblem

__all__ = ["judge", "shrink", "write_reproducer"]

TEMPLATE = '''"""{title}

Found by `python -m fuzzing --only {seed}:{number}`, and made smaller since.
"""

from fuzzing.checks.case import Case
from fuzzing.planners import Planner
from fuzzing.problems import Bound, Limit, PlainProblem, Way
from fuzzing.reproducers import judge

CASE = {case}


def test_nothing_is_wrong() -> None:
    assert judge(CASE) == []
'''


def judge(case: Case, means: Means | None = None) -> list[Fault]:
    """Return what is wrong with what Vulcan says of a case."""
    faults, _ = run_case(case, means or Means())
    return list(faults)


def shrink(finding: Finding, means: Means, seconds: float = 20.0) -> Finding:
    """Return a finding with a smaller case of the same fault."""
    kind = finding.faults[0].check
    if kind == "no answer":
        means = replace(means, answer_timeout=1.0)

    def fails(case: Case) -> bool:
        try:
            return any(fault.check == kind for fault in judge(case, means))
        except Exception:
            return False  # no problem any more

    case = minimise(finding.case, fails, seconds)
    faults = sorted(judge(case, means), key=lambda fault: fault.check != kind)
    return Finding(finding.seed, finding.number, case, tuple(faults) or finding.faults)


def write_reproducer(finding: Finding, folder: Path) -> Path:
    """Write a finding as a test, and return the file."""
    fault, case = finding.faults[0], finding.case
    parts = (fault.check, case.planner.name, str(finding.seed), str(finding.number))
    name = re.sub(r"\W+", "_", "_".join(parts)).lower()
    title = f"{fault.check} ({case.planner.name}): {fault.message}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"test_{name}.py"
    path.write_text(
        TEMPLATE.format(
            title="\n".join(textwrap.wrap(title.replace("\\", "/"), 98)),
            seed=finding.seed,
            number=finding.number,
            case=_write_case(case),
        )
    )
    return path


def _write_case(case: Case) -> str:
    lines = ["Case(", f"    {case.check!r},"]
    lines += textwrap.indent(_write_problem(case.problem), "    ").splitlines()
    lines += [f"    {case.planner!r},", f"    seed={case.seed},", ")"]
    return "\n".join(lines)


def _write_problem(problem: PlainProblem) -> str:
    lines = [
        "PlainProblem(",
        f"    horizon={problem.horizon},",
        f"    discount={problem.discount!r},",
        "    states={",
    ]
    for state, actions in problem.states.items():
        lines.append(f"        {state}: {{")
        lines += textwrap.indent(_write_actions(actions), " " * 12).splitlines()
        lines.append("        },")
    lines.append("    },")
    if isinstance(problem.start, int):
        lines.append(f"    start={problem.start},")
    else:
        lines.append("    start={")
        lines += textwrap.indent(_write_actions(problem.start), " " * 8).splitlines()
        lines.append("    },")
    lines += [f"    bound={problem.bound!r},", f"    tags={problem.tags!r},"]
    lines += [f"    limits={problem.limits!r},", "),"]
    return "\n".join(lines)


def _write_actions(actions: Mapping[str, Any]) -> str:
    lines = []
    for action, ways in actions.items():
        lines.append(f"{action!r}: (")
        lines += [f"    {way!r}," for way in ways]
        lines.append("),")
    return "\n".join(lines)
