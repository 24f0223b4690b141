"""What the parts that run searches share: what is run, how it is recorded, how it is gathered."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, Final

from reproduction.part import Record, Task
from vulcan.baselines.forward_search import ForwardSearch
from vulcan.baselines.rao_star import RAOStar
from vulcan.bounds.base import RiskBound
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Pareto
from vulcan.planning.result import Result
from vulcan.planning.solve import solve
from vulcan.policy.policy import AnyPolicy, Policy
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits
from vulcan.sampling.local_vulcan import LocalVulcan
from vulcan.solvers.base import Solver
from vulcan.solvers.local_tests import LocalConstraint, SequenceConstraint, SurvivalConstraint

__all__ = [
    "CONSTRAINTS",
    "EXPLANATION",
    "MEMORY",
    "SCANNED",
    "TUNED",
    "VARIANTS",
    "PlainBandit",
    "Runs",
    "Variant",
    "acts_alike",
    "count_runs",
    "describe_run",
    "estimate_seeds",
    "find_lasting",
    "find_margin",
    "list_seeds",
    "load_kernels",
    "note_shares",
    "run_seeds",
    "show_mean",
    "show_power",
    "show_share",
    "solve_timed",
]

CONSTRAINTS: Final[dict[str, LocalConstraint]] = {
    "A": SequenceConstraint(),
    "B": SurvivalConstraint(),
}

MEMORY: Final = 8_000_000_000
"""Bytes that a search may take: two of them at once fit into 24 GB."""


class PlainBandit(Bandit):
    """The bandit without its compiled form."""


@dataclass(frozen=True)
class Variant:
    """A way to run Vulcan.

    Attributes
    ----------
    name
        What texts and figures call it.
    solver
        The solver.
    letter
        Its constraint.
    complete
        Whether policies are completed; those of the paper are not.
    """

    name: str
    solver: LocalVulcan
    letter: str
    complete: bool


TUNED: Final = 2.0
"""Of the constants of UCT from 0.7 to 4 this one and 2.8 come closest at horizon 9, as printed."""

VARIANTS: Final = {
    "printed": Variant("as printed, c = √2", LocalVulcan.paper(), "A", False),
    "tuned": Variant(f"as printed, c = {TUNED:g}", LocalVulcan.paper(TUNED), "A", False),
    "A": Variant("LocalVulcan, A", LocalVulcan(local_test=CONSTRAINTS["A"]), "A", True),
    "B": Variant("LocalVulcan, B", LocalVulcan(), "B", True),
}

SCANNED: Final = {
    f"c = {c:g}": Variant(f"as printed, c = {c:g}", LocalVulcan.paper(c), "A", False)
    for c in (0.7, 1.0, 2.8, 4.0)
}
"""Other constants of UCT, to see which is the best."""

EXPLANATION: Final = (
    "“As printed” is `Vulcan.paper()`, algorithms 2 to 4 line by line with the constant c of UCT "
    "taken literally, in units of reward. The paper gives neither c nor the default policy: "
    "untried actions are tried at random here, and √2 is the theoretical value that it mentions. "
    "`LocalVulcan` is the paper's planner, improved: known probabilities instead of counts, solved "
    "parts not sampled again, completed policies."
)
"""What has to be known of the algorithm as printed."""

SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

PRINTED: Final = ("printed", "tuned")
LATE: Final = {True: 1000, False: 200}
LATE_RUNS: Final = 10
LAST: Final = {True: 5000, False: 500}
"""From so many thousand samples on there are few runs, and no more than so many: the algorithm as
printed takes long, and the other has the policy of forward search before that."""

BUNDLE: Final = 10
"""Runs of one task: few enough that little is lost when it is interrupted."""


def load_kernels(bound: RiskBound) -> None:
    """Solve something tiny with each solver, so that nothing is compiled while runs are timed."""
    problem = Problem(Bandit(2), bound)
    for sampling in (LocalVulcan(), LocalVulcan.paper()):
        solve(problem, sampling, samples=10)
    for exact in (ForwardSearch(), RAOStar(update="exact"), Pareto()):
        solve(problem, exact)


def solve_timed(
    problem: Problem, solver: Solver, limits: Limits | None = None, **options: Any
) -> tuple[Result, float]:
    """Solve a problem; return the result, and the processor's seconds for its search.

    The memory limit is `MEMORY` unless `limits` has another. Other programs may use the machine:
    the time of the search counts by the share in which the processor worked for us.
    """
    limits = Limits() if limits is None else limits
    if limits.memory is None and "memory" in solver.limits:
        limits = replace(limits, memory=MEMORY)
    began, worked = time.perf_counter(), time.process_time()
    result = solve(problem, solver, limits=limits, **options)
    share = (time.process_time() - worked) / (time.perf_counter() - began)
    return result, result.statistics.search_seconds * min(1.0, share)


def describe_run(result: Result, seconds: float) -> dict[str, Any]:
    """Return what a run found and what it took, as JSON knows it."""
    certificate, statistics = result.certificate, result.statistics
    return {
        "reward": None if certificate is None else float(certificate.reward),
        "risk": None if certificate is None else float(certificate.risk),
        "complete": certificate is not None and certificate.complete,
        "estimate": result.estimate,
        "samples": statistics.samples,
        "stopped_by": result.stopped_by,
        "evaluations": statistics.evaluations,
        "histories": statistics.histories,
        "seconds": seconds,
    }


def list_seeds(thousands: Sequence[int], runs: int, late: bool = False) -> Iterator[Task]:
    """Yield a task for every ten runs of each variant with each budget.

    Parameters
    ----------
    thousands
        The budgets, in thousands of samples.
    runs
        Runs of each.
    late
        Add the largest budget for the algorithm as printed.
    """
    budgets = [
        (variant, budget, min(runs, LATE_RUNS) if budget >= LATE[variant in PRINTED] else runs)
        for variant in VARIANTS
        for budget in thousands
        if budget <= LAST[variant in PRINTED]
    ]
    if late:
        budgets += [("tuned", LAST[True], LATE_RUNS)]
    for variant, budget, count in budgets:
        for first in range(0, count, BUNDLE):
            yield {
                "variant": variant,
                "samples": 1000 * budget,
                "first": first,
                "runs": min(BUNDLE, count - first),
            }


def estimate_seeds(task: Task) -> float:
    """Return about how many seconds such a task takes."""
    return float(1.0 + task["runs"] * (0.1 + 0.003 * task["samples"] / 1000))


def run_seeds(
    problem: Problem, variant: Variant, task: Task, target: AnyPolicy | None = None
) -> list[dict[str, Any]]:
    """Return what some seeds of a variant find with one budget.

    Parameters
    ----------
    problem, variant
        What to solve, and how.
    task
        How many `samples` each takes, the `first` seed, and how many `runs` there are.
    target
        A policy; whether a run finds the same is recorded.
    """
    solver, runs = variant.solver, []
    if isinstance(solver, LocalVulcan):
        solver = replace(solver, complete=variant.complete)
    for seed in range(task["first"], task["first"] + task["runs"]):
        limits = Limits(samples=task["samples"], memory=MEMORY)
        result, seconds = solve_timed(problem, solver, seed=seed, limits=limits)
        found = {"seed": seed, **describe_run(result, seconds)}
        if target is not None:
            found["same"] = acts_alike(result.policy, target)
        runs.append(found)
    return runs


class Runs(dict[tuple[Any, ...], list[dict[str, Any]]]):
    """The runs of all records whose tasks agree in some values, by those values and in their order.

    Parameters
    ----------
    records
        The records.
    names
        The values in which tasks agree.
    """

    def __init__(self, records: Sequence[Record], names: Sequence[str]) -> None:
        super().__init__()
        keys = [tuple(record.task[name] for name in names) for record in records]
        for key, record in sorted(zip(keys, records, strict=True), key=lambda pair: pair[0]):
            self.setdefault(key, []).extend(record.found["runs"])

    def collect(self, key: tuple[Any, ...], of: str) -> list[float]:
        """Return one value of all runs that have it."""
        return [float(run[of]) for run in self[key] if run[of] is not None]

    def took_all(self, key: tuple[Any, ...], samples: int) -> bool:
        """Whether every run took all its samples, or ended with a complete policy."""
        return all(run["complete"] or run["samples"] == samples for run in self[key])

    def mean(self, key: tuple[Any, ...], of: str) -> float:
        """Return its mean."""
        return fmean(self.collect(key, of))


def find_margin(values: Sequence[float]) -> float:
    """Return how far the mean may be off, nineteen times of twenty: 1.96 standard errors."""
    return 1.96 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.inf


def show_mean(values: Sequence[float], digits: int = 2) -> str:
    """Return a mean with its 95 % interval, as text."""
    margin = find_margin(values)
    spread = "" if math.isinf(margin) else f" ± {margin:.{digits}g}"
    return f"{fmean(values):.{digits}g}{spread}"


def show_share(values: Sequence[float]) -> str:
    """Return a share in percent with its 95 % interval (Wilson's), as text."""
    count, share, z = len(values), fmean(values), 1.96
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    reach = (
        z
        / (1 + z * z / count)
        * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    )
    low, high = max(0.0, centre - reach), min(1.0, centre + reach)
    return f"{100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)"


def count_runs(runs: Sequence[Any]) -> str:
    """Return how many runs there are, as text."""
    return f"{len(runs)} run{'s' * (len(runs) != 1)}"


def note_shares(counts: Iterable[int]) -> str:
    """Return how far shares of so many runs may be off, for the caption of a table."""
    texts = [
        f"0 % of {count} runs may be up to {100 * 3.84 / (count + 3.84):.0f} %"
        for count in sorted({*counts} - {1})
    ]
    return f"95 % intervals of shares: {', '.join(texts)}" if texts else "single runs"


def show_power(number: float) -> str:
    """Return a large number with two digits and a power of ten."""
    digits, power = f"{number:.1e}".split("e")
    return f"{digits}·10{str(int(power)).translate(SUPERSCRIPTS)}"


def find_lasting(
    keys: Sequence[tuple[Any, ...]], holds: Callable[[tuple[Any, ...]], bool]
) -> tuple[Any, ...] | None:
    """Return the first budget from which on something holds to the last; None if there is none."""
    found = None
    for key in reversed(keys):
        if not holds(key):
            break
        found = key
    return found


def acts_alike(one: AnyPolicy | None, other: AnyPolicy | None) -> bool:
    """Whether two deterministic policies take the same action after every history."""
    if not isinstance(one, Policy) or not isinstance(other, Policy):
        return False
    pairs = [(0, 0)]
    while pairs:
        nodes = pairs.pop()
        if min(nodes) < 0:
            if nodes[0] != nodes[1]:
                return False  # one of them ends where the other has a plan
            continue
        ours, theirs = (
            {policy.labels[policy.label[k]]: int(policy.child[k]) for k in policy.outcomes(node)}
            for policy, node in zip((one, other), nodes, strict=True)
        )
        if one.labels[one.action[nodes[0]]] != other.labels[other.action[nodes[1]]]:
            return False
        pairs += [(child, theirs[label]) for label, child in ours.items()]
    return True
