"""What the parts that run searches share: how a run is recorded, and how runs are gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vulcan.domains import Bandit
from vulcan.policy import Policy
from vulcan.problem import Problem
from vulcan.randomised import AnyPolicy
from vulcan.reproduce.part import Record
from vulcan.result import Result
from vulcan.risk import RiskBound
from vulcan.solve import solve
from vulcan.solvers.forward_search import ForwardSearch
from vulcan.solvers.pareto import Pareto
from vulcan.solvers.rao_star import RAOStar
from vulcan.solvers.vulcan import Vulcan

__all__ = ["acts_alike", "describe_run", "gather_runs", "load_kernels"]


def load_kernels(bound: RiskBound) -> None:
    """Solve something tiny with each solver, so that nothing is compiled while runs are timed."""
    problem = Problem(Bandit(2), bound)
    for sampling in (Vulcan(), Vulcan.paper()):
        solve(problem, sampling, samples=10)
    for exact in (ForwardSearch(), RAOStar(), Pareto()):
        solve(problem, exact)


def describe_run(result: Result) -> dict[str, Any]:
    """Return what a run found and what it took, as JSON knows it."""
    certificate, statistics = result.certificate, result.statistics
    return {
        "reward": None if certificate is None else float(certificate.reward),
        "risk": None if certificate is None else float(certificate.risk),
        "complete": certificate is not None and certificate.complete,
        "estimate": result.estimate,
        "samples": statistics.samples,
        "evaluations": statistics.evaluations,
        "seconds": statistics.search_seconds,
    }


def gather_runs(
    records: Sequence[Record], names: Sequence[str]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Return the runs of all records whose tasks agree in some values, by those values."""
    runs: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in records:
        key = tuple(record.task[name] for name in names)
        runs.setdefault(key, []).extend(record.found["runs"])
    return runs


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
