"""Prints comparisons: `python -m benchmarks.several [NAME ...]`.

Names are fields, programs, enumeration, local and storm.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections import Counter

import vulcan
from benchmarks.several.enumeration import compare_with_enumeration
from benchmarks.several.fields import FIELDS, Field
from benchmarks.several.local_form import compare_forms
from benchmarks.several.programs import compare, draw_problems
from benchmarks.several.storm import QUERIES, ask_both
from vulcan.errors import BoundWarning

TIME_LIMIT = 20.0
PROBLEMS = 1000
ENUMERATED = 2000
GROWN = 100


def show_fields() -> None:
    """Solve each field by default, and print gaps."""
    columns = "{:<13} {:>6}  {:>10} {:>11} {:>11} {:>8} {:>8}  {}"
    print(columns.format("field", "pairs", "reward", "randomised", "bound", "gap", "seconds", ""))
    gaps = []
    for field in FIELDS:
        gaps.append(show_field(field, columns))
    print(f"mean gap {100 * sum(gaps) / len(gaps):.3f} %")


def show_field(field: Field, columns: str) -> float:
    """Solve a field by default, print a line, and return the gap; 1 without a policy."""
    mixed = vulcan.solve(field.problem, vulcan.Automatic(randomised=True), time_limit=TIME_LIMIT)
    began = time.perf_counter()
    result = vulcan.solve(field.problem, time_limit=TIME_LIMIT)
    seconds = time.perf_counter() - began
    best, upper = mixed.certificate, result.upper_bound
    assert best is not None, f"{field.name}: no mixture"
    assert upper is not None, f"{field.name}: no bound"
    randomised, found = float(best.reward), result.certificate
    gap = 1.0 if found is None or result.gap is None else result.gap
    reward, used = "none", ""
    if found is not None:
        assert found.safe, f"{field.name}: {found!r}"
        reward = f"{float(found.reward):.6g}"
        limited = [("risk", found.risk, found.allowed)]
        limited += [(one.quantity, one.value, one.allowed) for one in found.constraints]
        used = ", ".join(f"{name} {float(x):.4g} of {float(y):.4g}" for name, x, y in limited)
    shares = f"{randomised:.6g}", f"{upper:.6g}", f"{100 * gap:.4f} %", f"{seconds:.1f}"
    line = columns.format(field.name, result.statistics.nodes or 0, reward, *shares, used)
    print(line.rstrip(), flush=True)
    return gap


def show_programs() -> None:
    """Compare randomised optima with linear programs, and print the largest difference."""
    began, worst, count = time.perf_counter(), 0.0, 0
    for problem in draw_problems(PROBLEMS):
        off, feasible = compare(problem)
        worst, count = max(worst, off), count + feasible
    seconds = time.perf_counter() - began
    print(
        f"{PROBLEMS} linear programs, {count} feasible: largest relative difference {worst:.2g}, "
        f"{seconds:.0f} s"
    )


def show_enumeration() -> None:
    """Compare best deterministic policies with enumeration, and count how they agree."""
    counts = Counter(compare_with_enumeration(seed) for seed in range(10_000, 10_000 + ENUMERATED))
    for answer, count in sorted(counts.items()):
        print(f"{count:6}  {answer}")


def show_local() -> None:
    """Compare the survival form and plans that grow with the best policies of small problems."""
    found = [rewards for seed in range(GROWN) if (rewards := compare_forms(seed))]
    for name, k in (("survival form", 1), ("growing plan", 2)):
        solved = [row for row in found if row[k] > -math.inf]
        best = sum(row[k] >= row[0] - 1e-9 for row in solved)
        losses = [1 - row[k] / row[0] for row in solved if row[0] > 0]
        mean = 100 * sum(losses) / max(1, len(losses))
        print(
            f"{name:14} {len(solved)} of {len(found)} solved, {best} best, mean loss {mean:.2f} %"
        )


def show_storm() -> None:
    """Compare multi-objective queries with Storm, and print the values."""
    columns = "{:<20} {:>6} {:>5}  {:<18} {:>13} {:>13} {:>9}  {}"
    titles = ("file", "states", "steps", "largest", "ours", "Storm's", "apart", "within")
    print(columns.format(*titles))
    for query in QUERIES:
        states, limits, storm, ours = ask_both(query)
        apart = 0.0 if storm is ours is None else math.inf
        if storm is not None and ours is not None:
            apart = abs(storm - ours)
        told = ["infeasible" if x is None else f"{x:.8f}" for x in (ours, storm)]
        pairs = zip(query.limited, limits, strict=True)
        within = ", ".join(f"{name.removeprefix('R ')} {x:g}" for name, x in pairs)
        what = query.file, states, query.steps, query.objective
        print(columns.format(*what, *told, f"{apart:.1e}", within), flush=True)


def main() -> None:
    """Print what was asked for; all of it by default."""
    warnings.simplefilter("ignore", BoundWarning)
    shows = {
        "fields": show_fields,
        "programs": show_programs,
        "enumeration": show_enumeration,
        "local": show_local,
        "storm": show_storm,
    }
    for name in sys.argv[1:] or shows:
        shows[name]()


if __name__ == "__main__":
    main()
