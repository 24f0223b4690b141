"""What programs read: the same answers as JSON documents.

Strict JSON: numbers have all their digits, and those that JSON lacks are the texts "inf", "-inf"
and "nan", which `float` reads in most languages. Keys are only ever added.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vulcan.certificate import Certificate
    from vulcan.comparison import Comparison, ComparisonRow
    from vulcan.frontier import Frontier
    from vulcan.policy import Policy
    from vulcan.randomised import AnyPolicy
    from vulcan.result import Result

__all__ = [
    "describe_certificate",
    "describe_comparison",
    "describe_frontier",
    "describe_policy",
    "describe_result",
    "print_document",
]

Document = dict[str, Any]


def print_document(document: Document) -> None:
    """Print a document, and nothing else, on standard output."""
    print(json.dumps(document, allow_nan=False, indent=2), flush=True)


def describe_result(result: Result, depth: int) -> Document:
    """Return everything about a result, with the first levels of its policy."""
    from vulcan.model import describe_model

    statistics = result.statistics
    return {
        "status": result.status.value,
        "explanation": result.explanation,
        "stopped_by": result.stopped_by,
        "safe": result.safe,
        "certificate": describe_certificate(result.certificate),
        "statistics": {
            "search_seconds": _number(statistics.search_seconds),
            "certificate_seconds": _number(statistics.certificate_seconds),
            "histories": statistics.histories,
            "evaluations": statistics.evaluations,
            "samples": statistics.samples,
            "memory": statistics.memory,
            "nodes": statistics.nodes,
            "bound_seconds": _number(statistics.bound_seconds),
        },
        "policy": describe_policy(result.policy, depth),
        "model": describe_model(result.problem.model),
        "bound": str(result.problem.risk_bound),
        "solver": result.solver,
        "upper_bound": _number(result.upper_bound),
        "gap": _number(result.gap),
        "price": _number(result.price),
        "trials": [
            {
                "multiplier": _number(trial.multiplier),
                "reward": _number(trial.reward),
                "risk": _number(trial.risk),
                "allowed": _number(trial.allowed),
                "passes": trial.passes,
            }
            for trial in result.trials
        ],
    }


def describe_frontier(frontier: Frontier) -> Document:
    """Return everything about a frontier but its policies."""
    return {
        "model": frontier.model,
        "bound": None if frontier.bound is None else str(frontier.bound),
        "solver": frontier.solver,
        "stopped_by": frontier.stopped_by,
        "points": [
            {
                "level": _number(point.level),
                "scale": _number(point.scale),
                "bound": str(point.bound),
                "allowed": _number(point.allowed),
                "reward": _number(point.reward),
                "risk": _number(point.risk),
                "upper_bound": _number(point.upper_bound),
                "gap": _number(point.gap),
                "price": _number(point.price),
                "price_from": point.price_from,
                "safe": point.safe,
                "carried_from": _number(point.carried_from),
                "status": point.result.status.value,
                "explanation": point.explanation,
                "stopped_by": point.result.stopped_by,
                "search_seconds": _number(point.result.statistics.search_seconds),
            }
            for point in frontier
        ],
        "statistics": {
            "seconds": _number(frontier.seconds),
            "evaluations": frontier.evaluations,
        },
    }


def describe_comparison(comparison: Comparison) -> Document:
    """Return everything about a comparison but its policies."""
    from vulcan.model import describe_model

    return {
        "model": describe_model(comparison.problem.model),
        "bound": str(comparison.problem.risk_bound),
        "upper_bound": _number(comparison.upper_bound),
        "randomised_upper_bound": _number(comparison.randomised_upper_bound),
        "stopped_by": comparison.stopped_by,
        "rows": [_describe_row(row) for row in comparison],
    }


def _describe_row(row: ComparisonRow) -> Document:
    statistics = None if row.result is None else row.result.statistics
    return {
        "name": row.name,
        "solver": repr(row.solver),
        "safe": row.safe,
        "reward": _number(row.reward),
        "risk": _number(row.risk),
        "allowed": _number(row.allowed),
        "upper_bound": _number(row.upper_bound),
        "gap": _number(row.gap),
        "complete": row.complete,
        "deterministic": row.deterministic,
        "status": None if row.result is None else row.result.status.value,
        "explanation": row.explanation,
        "stopped_by": None if row.result is None else row.result.stopped_by,
        "error": row.error,
        "statistics": statistics
        and {
            "search_seconds": _number(statistics.search_seconds),
            "evaluations": statistics.evaluations,
            "histories": statistics.histories,
            "samples": statistics.samples,
            "nodes": statistics.nodes,
            "memory": statistics.memory,
        },
    }


def describe_certificate(certificate: Certificate | None) -> Document | None:
    """Return a certificate; an exact one also as fractions."""
    if certificate is None:
        return None
    names = ("reward", "risk", "allowed", "slack", "frontier")
    document: Document = {
        **{name: _number(getattr(certificate, name)) for name in names},
        "margin": _number(certificate.margin),
        "complete": certificate.complete,
        "passes": certificate.passes,
        "exact": certificate.exact,
        "evaluations": certificate.evaluations,
    }
    if certificate.exact:
        # Python refuses to write very long integers; these are its own, and wanted in full.
        sys.set_int_max_str_digits(0)
        document["fractions"] = {name: str(getattr(certificate, name)) for name in names}
    return document


def describe_policy(policy: AnyPolicy | None, depth: int) -> Document | None:
    """Return what a policy holds: where it comes from, its size, and its first decisions.

    The decisions of a randomised policy are those of its members, each with its own nodes; a
    deterministic policy has no members.
    """
    from vulcan.randomised import RandomisedPolicy

    if policy is None:
        return None
    about = policy.about
    randomised = isinstance(policy, RandomisedPolicy)
    members: list[Document] = [
        {
            "weight": weight,
            "nodes": len(member),
            "outcomes": len(member.label),
            "complete": member.complete,
            "decisions": list(_describe_decisions(member, depth)),
        }
        for weight, member in zip(policy.weights, policy.members, strict=True)
    ]
    return {
        "nodes": len(policy),
        "outcomes": sum(member["outcomes"] for member in members),
        "complete": policy.complete,
        "model": about.model,
        "fingerprint": about.fingerprint,
        "horizon": about.horizon,
        "discount": _number(about.discount),
        "bound": about.risk_bound,
        "solver": about.solver,
        "decisions": [] if randomised else members[0]["decisions"],
        "randomised": randomised,
        "members": members if randomised else [],
    }


def _describe_decisions(policy: Policy, depth: int) -> Iterator[Document]:
    """Yield the nodes at most so many decisions away, each once."""
    from vulcan.policy import END, FAILED, UNPLANNED

    ends = {END: "end", FAILED: "failed", UNPLANNED: "unplanned"}
    level = [0] if len(policy) else []
    seen = set(level)
    for _ in range(depth):
        following: list[int] = []
        for node in level:
            rows = policy.outcomes(node)
            children = [int(policy.child[row]) for row in rows]
            yield {
                "node": node,
                "action": policy.labels[policy.action[node]],
                "outcomes": [
                    {
                        "label": policy.labels[policy.label[row]],
                        "probability": float(policy.probability[row]),
                        "reward": float(policy.reward[row]),
                        "next": ends.get(child, child),
                    }
                    for row, child in zip(rows, children, strict=True)
                ],
            }
            for child in children:
                if child >= 0 and child not in seen:
                    seen.add(child)
                    following.append(child)
        level = following


def _number(value: float | Fraction | None) -> float | str | None:
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else str(number)
