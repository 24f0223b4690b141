"""What programs read: the same answers as JSON documents.

Strict JSON: numbers have all their digits, and those that JSON lacks are the strings "inf", "-inf"
and "nan", which `float` reads in most languages. Keys are only ever added. A document has all that
the fields of an object hold (but for models, bounds and policies, which are described), so that
nothing can be forgotten here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from vulcan.certificates.certificate import Certificate
    from vulcan.certificates.explanation import Explanation
    from vulcan.certificates.problem import Problem
    from vulcan.execution.estimates import Simulation
    from vulcan.planning.comparison import Comparison, ComparisonRow
    from vulcan.planning.frontier import Frontier, FrontierPoint
    from vulcan.planning.result import Result
    from vulcan.policies.policy import Policy
    from vulcan.policies.randomised import AnyPolicy

__all__ = [
    "describe_certificate",
    "describe_comparison",
    "describe_explanation",
    "describe_fields",
    "describe_frontier",
    "describe_policy",
    "describe_problem",
    "describe_result",
    "describe_simulation",
    "print_document",
]

Document = dict[str, Any]


def print_document(document: Document) -> None:
    """Print a document, and nothing else, on standard output."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    # Labels may hold anything, and a terminal acts on some characters that JSON allows.
    print("".join(c if c in "\n" or " " <= c <= "~" else _escape(c) for c in text), flush=True)


def _escape(character: str) -> str:
    """Return a character as JSON writes it in ASCII: by its one or two UTF-16 units."""
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))


def describe_fields(thing: Any, *properties: str, omit: tuple[str, ...] = ()) -> Document:
    """Return all fields of a dataclass, and some of its properties.

    Parameters
    ----------
    thing
        The dataclass.
    properties
        What is added to its fields.
    omit
        Fields that are described elsewhere.
    """
    names = [field.name for field in fields(thing) if field.name not in omit]
    return {name: _describe_value(getattr(thing, name)) for name in (*names, *properties)}


def _describe_value(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bool | str | int | None):
        return value
    if isinstance(value, tuple | list):
        return [_describe_value(part) for part in value]
    if isinstance(value, BaseException):
        return str(value)
    if is_dataclass(value):
        return describe_fields(value)
    number = float(value)
    return number if math.isfinite(number) else str(number)


def describe_problem(problem: Problem) -> Document:
    """Return a model and a risk bound, as their texts."""
    from vulcan.model.interface import describe_model

    return {"model": describe_model(problem.model), "bound": str(problem.risk_bound)}


def describe_result(result: Result, depth: int) -> Document:
    """Return everything about a result, with the first levels of its policy."""
    omit = ("problem", "policy", "certificate", "lines", "knowledge")
    return {
        **describe_fields(result, "safe", "gap", omit=omit),
        **describe_problem(result.problem),
        "certificate": describe_certificate(result.certificate),
        "policy": describe_policy(result.policy, depth),
    }


def describe_frontier(frontier: Frontier) -> Document:
    """Return everything about a frontier but its policies."""
    return {
        **describe_fields(frontier, omit=("bound", "points", "seconds", "evaluations")),
        "bound": None if frontier.bound is None else str(frontier.bound),
        "points": [_describe_point(point) for point in frontier],
        "statistics": {"seconds": frontier.seconds, "evaluations": frontier.evaluations},
    }


def _describe_point(point: FrontierPoint) -> Document:
    result = point.result
    shown = ("allowed", "reward", "risk", "gap", "safe", "explanation")
    return {
        **describe_fields(point, *shown, omit=("bound", "result", "policy", "certificate")),
        "bound": str(point.bound),
        **_describe_ending(result),
        "search_seconds": result.statistics.search_seconds,
    }


def _describe_ending(result: Result | None) -> Document:
    """Return what a row says of how its search ended."""
    names = ("status", "stopped_by")
    return {name: result and _describe_value(getattr(result, name)) for name in names}


def describe_comparison(comparison: Comparison) -> Document:
    """Return everything about a comparison but its policies."""
    return {
        **describe_fields(comparison, omit=("problem", "rows")),
        **describe_problem(comparison.problem),
        "rows": [_describe_row(row) for row in comparison],
    }


def _describe_row(row: ComparisonRow) -> Document:
    shown = ("safe", "reward", "risk", "allowed", "gap", "complete", "deterministic")
    result = row.result
    return {
        **describe_fields(row, *shown, "explanation", omit=("solver", "result")),
        "solver": repr(row.solver),
        **_describe_ending(result),
        "statistics": None if result is None else describe_fields(result.statistics),
    }


def describe_certificate(certificate: Certificate | None) -> Document | None:
    """Return a certificate; an exact one also as fractions."""
    if certificate is None:
        return None
    document = describe_fields(certificate, "slack", "passes")
    if certificate.exact:
        # Python refuses to write very long integers; these are its own, and wanted in full.
        sys.set_int_max_str_digits(0)
        names = ("reward", "risk", "allowed", "slack", "frontier")
        document["fractions"] = {name: str(getattr(certificate, name)) for name in names}
    return document


def describe_explanation(explanation: Explanation, problem: Problem, most: int) -> Document:
    """Return where a policy takes its risk, with this many rows of each kind."""
    lists = ("failures", "choices", "actions")
    return {
        **describe_problem(problem),
        **describe_fields(explanation, "deliberate", "tempting", omit=lists),
        **{name: _describe_value(getattr(explanation, name)[:most]) for name in lists},
    }


def describe_simulation(simulation: Simulation, most_bins: int) -> Document:
    """Return everything about a simulation, its histogram in at most this many bins."""
    edges, counts = simulation.coarsen(most_bins)
    return {
        **describe_fields(simulation, "agrees", omit=("edges", "counts")),
        "histogram": {"edges": list(edges), "counts": list(counts)},
    }


def describe_policy(policy: AnyPolicy | None, depth: int) -> Document | None:
    """Return what a policy holds: where it comes from, its size, and its first decisions.

    The decisions of a randomised policy are those of its members, each with its own nodes; a
    deterministic policy has no members.
    """
    from vulcan.policies.randomised import RandomisedPolicy

    if policy is None:
        return None
    about = msgspec.structs.asdict(policy.about)
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
        "bound": about.pop("risk_bound"),
        **about,
        "decisions": [] if randomised else members[0]["decisions"],
        "randomised": randomised,
        "members": members if randomised else [],
    }


def _describe_decisions(policy: Policy, depth: int) -> Iterator[Document]:
    """Yield the nodes at most this many decisions away, each once."""
    from vulcan.sentinels import END, FAILED, UNPLANNED

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
