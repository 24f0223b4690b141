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
    from vulcan.policy import Policy
    from vulcan.randomised import AnyPolicy
    from vulcan.result import Result

__all__ = ["describe_certificate", "describe_policy", "describe_result", "print_document"]

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
        },
        "policy": describe_policy(result.policy, depth),
        "model": describe_model(result.problem.model),
        "bound": str(result.problem.risk_bound),
        "solver": result.solver,
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


def _number(value: float | Fraction) -> float | str:
    number = float(value)
    return number if math.isfinite(number) else str(number)
