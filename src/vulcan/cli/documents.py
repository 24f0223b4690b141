"""What programs read: the same answers as JSON documents.

Strict JSON: numbers have all their digits, and those that JSON lacks are the strings "inf", "-inf"
and "nan", which `float` reads in most languages. Keys are only ever added. A document has all that
the fields of an object hold (but for models, bounds and policies, which are described), so that
nothing can be forgotten here.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vulcan.rounding import to_float

if TYPE_CHECKING:
    from vulcan.certificates.certificate import Certificate
    from vulcan.certificates.explanation import Explanation
    from vulcan.certificates.problem import Problem
    from vulcan.execution.estimates import Simulation
    from vulcan.model.reader import ModelReader
    from vulcan.planning.comparison import Comparison, ComparisonRow
    from vulcan.planning.frontier import Frontier, FrontierPoint
    from vulcan.planning.result import Result
    from vulcan.policies.policy import Policy
    from vulcan.policies.randomised import AnyPolicy
    from vulcan.policies.table import PolicyTable

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
    "describe_table",
    "print_document",
]

Document = dict[str, Any]

UNKNOWN_STATES: Final = "only a model knows them (vulcan show PLAN MODEL)"
NO_STATES: Final = "every history is a state of its own in this model"


def print_document(document: Document) -> None:
    """Print a document, and nothing else, on standard output."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    # Labels may hold anything, and a terminal acts on some characters that JSON allows.
    print(re.sub(r"[^\n -~]", _escape, text), flush=True)


def _escape(character: re.Match[str]) -> str:
    """Return a character as JSON writes it in ASCII: by its one or two UTF-16 units."""
    units = character[0].encode("utf-16-be").hex()
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
    number = to_float(value)
    return number if math.isfinite(number) else str(number)


def describe_problem(problem: Problem) -> Document:
    """Return a model and a risk bound, as their texts."""
    from vulcan.model.interface import describe_model

    return {"model": describe_model(problem.model), "bound": str(problem.risk_bound)}


def describe_result(result: Result, depth: int) -> Document:
    """Return everything about a result, with the first levels of its policy."""
    omit = ("problem", "policy", "certificate", "lines", "knowledge", "spread")
    spread, shown = result.spread, ("best", "worst", "mean", "deviation")
    return {
        **describe_fields(result, "safe", "gap", omit=omit),
        **describe_problem(result.problem),
        "spread": None if spread is None else describe_fields(spread, *shown),
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
    document = describe_fields(certificate, "slack", "passes", "undecided")
    if certificate.exact:
        names = ("reward", "risk", "allowed", "slack", "frontier")
        with _allow_long_integers():
            document["fractions"] = {name: str(getattr(certificate, name)) for name in names}
    return document


@contextmanager
def _allow_long_integers() -> Iterator[None]:
    """Let Python write very long integers; others, which it reads, it goes on to refuse."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


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


def describe_policy(
    policy: AnyPolicy | None, depth: int | None, *, states: bool = False
) -> Document | None:
    """Return what a policy holds: where it comes from, its size, and its decisions.

    The decisions of a randomised policy are those of its members, each with its own nodes; a
    deterministic policy has no members. What is not there is listed in `left_out`.

    Parameters
    ----------
    policy
        The policy.
    depth
        How many decisions deep; None for all.
    states
        Ask the model that the policy is bound to for the states of decisions, if they merge.
    """
    from vulcan.policies.randomised import RandomisedPolicy

    if policy is None:
        return None
    about = msgspec.structs.asdict(policy.about)
    randomised = isinstance(policy, RandomisedPolicy)
    reader = policy.members[0].reader
    named = states and reader is not None and reader.merges
    decisions = _describe_decisions(policy, depth, reader if named else None)
    members: list[Document] = [
        {
            "weight": weight,
            "nodes": len(member),
            "outcomes": len(member.label),
            "complete": member.complete,
            "decisions": decisions[number],
        }
        for number, (weight, member) in enumerate(zip(policy.weights, policy.members, strict=True))
    ]
    hidden = len(policy) - sum(map(len, decisions))
    left_out = [f"{hidden:,} decisions that are more than {depth} deep"] if hidden else []
    if not named:
        alone = reader is not None and not reader.merges
        left_out.append(f"states: {NO_STATES if alone else UNKNOWN_STATES}")
    return {
        "nodes": len(policy),
        "outcomes": sum(member["outcomes"] for member in members),
        "complete": policy.complete,
        "bound": about.pop("risk_bound"),
        **about,
        "decisions": [] if randomised else members[0]["decisions"],
        "randomised": randomised,
        "members": members if randomised else [],
        "left_out": left_out,
    }


def _describe_decisions(
    policy: AnyPolicy, depth: int | None, reader: ModelReader | None
) -> list[list[Document]]:
    """Return the decisions of each member, each once, where it is taken first.

    With a model they have states.
    """
    from vulcan.policies.places import find_places, find_values
    from vulcan.policies.table import name_state

    places = find_places(policy, reader)
    rows, values = places.rows, find_values(places, policy.members[0].reader)
    found: list[dict[int, Document]] = [{} for _ in policy.members]
    texts = [name_state(state) for state in places.states]
    shown = rows["level"] < (sys.maxsize if depth is None else depth)
    for place in shown.nonzero()[0].tolist():
        row = rows[place]
        known, node = found[row["member"]], int(row["node"])
        if node in known:
            known[node]["reach"] += float(row["reach"])
            continue
        named = {"state": texts[row["state"]]} if texts else {}
        known[node] = {
            "node": node,
            "step": int(row["level"]) + 1,
            **named,
            "action": "",
            "reach": float(row["reach"]),
            **{
                name: _describe_value(values[name][place])
                for name in ("fails", "risk_ahead", "reward_ahead")
            },
        }
    for member, decisions in zip(policy.members, found, strict=True):
        _describe_outcomes(member, decisions)
    return [list(decisions.values()) for decisions in found]


def _describe_outcomes(policy: Policy, decisions: dict[int, Document]) -> None:
    """Add to decisions what is done, and what it leads to."""
    from vulcan.sentinels import END, FAILED, UNPLANNED

    ends = {END: "end", FAILED: "failed", UNPLANNED: "unplanned"}
    names = ("label", "probability", "reward", "child")
    label, probability, reward, child = (getattr(policy, name).tolist() for name in names)
    for node, decision in decisions.items():
        decision["action"] = policy.labels[policy.action[node]]
        decision["outcomes"] = [
            {
                "label": policy.labels[label[row]],
                "probability": probability[row],
                "reward": reward[row],
                "next": ends.get(child[row], child[row]),
            }
            for row in policy.outcomes(node)
        ]


def describe_table(table: PolicyTable) -> Document:
    """Return all rows and columns of a table of decisions."""
    columns = {name: list(map(_describe_value, table[name].tolist())) for name in table.columns}
    cells = zip(*columns.values(), strict=True)
    return {
        "model": table.places.policy.about.model,
        "note": table.note,
        "rows": [dict(zip(columns, row, strict=True)) for row in cells],
        "left_out": table.whole - len(table),
    }
