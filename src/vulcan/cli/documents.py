"""Answers as JSON documents, for programs.

Strict JSON: numbers have all their digits, and those that JSON lacks are the strings "inf", "-inf"
and "nan", which `float` reads in most languages. Keys are only ever added. A document has every
field of an object, except models, bounds and policies, which are described.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from vulcan.numerics import to_float

if TYPE_CHECKING:
    from vulcan.certificate.certify import Certificate
    from vulcan.certificate.confidence import StatisticalCertificate
    from vulcan.execution.simulation import Simulation
    from vulcan.planning.compare import Comparison, ComparisonRow
    from vulcan.planning.explain import Explanation
    from vulcan.planning.frontier import Frontier, FrontierPoint
    from vulcan.planning.result import Result
    from vulcan.policy.policy import AnyPolicy, Policy
    from vulcan.policy.views import PolicyTable
    from vulcan.problem import Problem

Document = dict[str, Any]


def print_document(document: Document, indent: int | None = 2) -> None:
    """Print a document, and nothing else, on standard output; on one line without an indent."""
    # In ASCII: labels may hold anything, and a terminal acts on some characters that JSON allows.
    text = json.dumps(document, indent=indent, allow_nan=False)
    print(text.replace("\x7f", "\\u007f"), flush=True)


def describe(thing: Any, *properties: str, omit: Sequence[str] = (), **others: Any) -> Document:
    """Return the fields of a dataclass, except `omit`, some of its properties, and others."""
    names = [field.name for field in fields(thing) if field.name not in (*omit, *others)]
    return {name: _describe_value(getattr(thing, name)) for name in (*names, *properties)} | others


def _describe_value(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bool | str | int | None):
        return value
    if isinstance(value, tuple | list):
        return [_describe_value(part) for part in value]
    if isinstance(value, dict):
        return {name: _describe_value(part) for name, part in value.items()}
    if isinstance(value, BaseException):
        return str(value)
    if is_dataclass(value):
        return describe(value)
    number = to_float(value)
    return number if math.isfinite(number) else str(number)


def describe_problem(problem: Problem) -> Document:
    """Return the texts of a model and its limits."""
    from vulcan.model.interface import describe_model

    texts = {"model": describe_model(problem.model), "bound": str(problem.risk_bound)}
    limits = list(map(str, problem.constraints))
    return {**texts, **({"constraints": limits} if limits else {})}


def describe_result(result: Result, depth: int) -> Document:
    """Return everything about a result, with the first levels of its policy."""
    return describe(
        result,
        *("safe", "gap", "absolute_gap"),
        omit=("problem", "lines", "reward", "risk", "credits"),
        **describe_problem(result.problem),
        certificate=describe_certificate(result.certificate),
        policy=describe_policy(result.policy, depth),
    )


def describe_frontier(frontier: Frontier) -> Document:
    """Return everything about a frontier but its policies."""
    return describe(
        frontier,
        bound=None if frontier.bound is None else str(frontier.bound),
        omit=("constraints",),  # those of a problem with one risk bound look as they always did
        points=[
            _describe_search(point, "upper_bound", "price", bound=str(point.bound))
            for point in frontier
        ],
        failures=[{"at": at, "error": error} for at, error in frontier.failures.items()],
        **({"constraints": list(map(str, frontier.constraints))} if frontier.constraints else {}),
    )


def describe_comparison(comparison: Comparison) -> Document:
    """Return everything about a comparison but its policies."""
    names = ("complete", "deterministic")
    rows = [_describe_search(row, *names, solver=repr(row.solver)) for row in comparison]
    return describe(
        comparison, omit=("problem",), rows=rows, **describe_problem(comparison.problem)
    )


def _describe_search(
    row: FrontierPoint | ComparisonRow, *properties: str, **others: Any
) -> Document:
    """Return a point or a row: its values, how its search ended, and its statistics."""
    values = ("safe", "reward", "risk", "allowed", "gap", "absolute_gap", "explanation")
    for name in ("status", "stopped_by", "statistics"):
        others[name] = row.result and _describe_value(getattr(row.result, name))
    return describe(row, *values, *properties, omit=("result", "best"), **others)


def describe_certificate(certificate: Certificate | None) -> Document | None:
    """Return a certificate; an exact one also as fractions."""
    if certificate is None:
        return None
    limited = [
        describe(one, "slack", "passes", bound=str(one.bound)) for one in certificate.constraints
    ]
    document = describe(certificate, "slack", "passes", "undecided", constraints=limited)
    if certificate.exact:
        names = ("reward", "risk", "allowed", "slack", "frontier")
        digits = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(0)  # fractions may be long
        document["fractions"] = {
            **{name: str(getattr(certificate, name)) for name in names},
            **{one.quantity: str(one.value) for one in certificate.constraints},
        }
        sys.set_int_max_str_digits(digits)
    return document


def describe_statistical(certificate: StatisticalCertificate | None) -> Document | None:
    """Return a certificate at a confidence, which says that it is one."""
    if certificate is None:
        return None
    kind = "statistical certificate"
    return {"kind": kind} | describe(certificate, "verdict", "sentence")


def describe_explanation(explanation: Explanation, problem: Problem, most: int) -> Document:
    """Return an explanation, with at most this many rows of each kind."""
    lists = {
        name: _describe_value(getattr(explanation, name)[:most])
        for name in ("failures", "choices", "actions")
    }
    return describe(explanation, "deliberate", "tempting", **lists, **describe_problem(problem))


def describe_simulation(simulation: Simulation) -> Document:
    """Return everything about a simulation, its rewards as a histogram of 60 bins."""
    import numpy as np

    counts, edges = np.histogram(simulation.rewards, 60)
    histogram = {"edges": edges.tolist(), "counts": counts.tolist()}
    return describe(simulation, "agrees", omit=("rewards",), histogram=histogram)


def describe_policy(policy: AnyPolicy | None, depth: int | None) -> Document | None:
    """Return the origin and the size of a policy, and the decisions of its first levels, or of all.

    The decisions of a randomised policy are those of its members, each with its own nodes; a
    deterministic policy has no members.
    """
    if policy is None:
        return None
    about = msgspec.structs.asdict(policy.about)
    if not about["constraints"]:
        del about["constraints"]
    members: list[Document] = [
        {
            "weight": weight,
            "nodes": len(member),
            "outcomes": len(member.label),
            "complete": member.complete,
            "beyond": None if member.beyond is None else member.beyond.claim,
            "decisions": _describe_decisions(member, depth),
        }
        for weight, member in zip(policy.weights, policy.members, strict=True)
    ]
    randomised = len(members) > 1
    return {
        "nodes": len(policy),
        "outcomes": sum(member["outcomes"] for member in members),
        "complete": policy.complete,
        "beyond": members[0]["beyond"],
        "bound": about.pop("risk_bound"),
        **about,
        "decisions": [] if randomised else members[0]["decisions"],
        "randomised": randomised,
        "members": members if randomised else [],
        "left_out": len(policy) - sum(len(member["decisions"]) for member in members),
    }


def _describe_decisions(policy: Policy, depth: int | None) -> list[Document]:
    """Return the decisions of the first levels, each at its first step, with their outcomes."""
    from vulcan.numerics import END, FAILED, UNPLANNED

    ends = {END: "end", FAILED: "failed", UNPLANNED: "unplanned"}
    names = ("label", "probability", "reward", "child")
    label, probability, reward, child = (getattr(policy, name).tolist() for name in names)
    claims: dict[int, Document] = {}
    if policy.beyond is not None:
        rows = (policy.child == UNPLANNED).nonzero()[0].tolist()
        bounds = (policy.beyond.risk.tolist(), policy.beyond.reward.tolist())
        for row, risk, least in zip(rows, *bounds, strict=True):
            claims[row] = {"largest_risk": risk, "least_reward": least}
    decisions: list[Document] = []
    steps = {0: 1} if len(policy) and depth != 0 else {}
    nodes = list(steps)
    for node in nodes:  # it grows meanwhile, level by level
        outcomes = [
            {
                "label": policy.labels[label[row]],
                "probability": probability[row],
                "reward": reward[row],
                "next": ends.get(child[row], child[row]),
                **claims.get(row, {}),
            }
            for row in policy.outcomes(node)
        ]
        action = policy.labels[policy.action[node]]
        decisions.append(
            {"node": node, "step": steps[node], "action": action, "outcomes": outcomes}
        )
        if depth is None or steps[node] < depth:
            later = [child[row] for row in policy.outcomes(node) if child[row] >= 0]
            nodes += [place for place in dict.fromkeys(later) if place not in steps]
            steps.update(dict.fromkeys((n for n in later if n not in steps), steps[node] + 1))
    return decisions


def describe_table(table: PolicyTable) -> Document:
    """Return all rows and columns of a table of decisions."""
    columns = {name: list(map(_describe_value, table[name].tolist())) for name in table.columns}
    cells = zip(*columns.values(), strict=True)
    return {
        "model": table.points.policy.about.model,
        "rows": [dict(zip(columns, row, strict=True)) for row in cells],
        "left_out": table.whole - len(table),
    }
