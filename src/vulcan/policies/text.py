"""Policies as text: the first levels of the tree."""

from __future__ import annotations

from collections.abc import Iterator

from vulcan.policies.policy import Policy
from vulcan.policies.randomised import RandomisedPolicy
from vulcan.runtime.formatting import show_percent
from vulcan.sentinels import END, FAILED, UNPLANNED

__all__ = ["describe_members", "draw_policy", "draw_randomised"]

DEEPEST = 200  # nobody reads further, and Python's own stack has an end

ENDINGS = {END: "end", UNPLANNED: "not planned"}


def draw_policy(policy: Policy, depth: int, most_lines: int) -> str:
    """Return the first levels of a policy, one line per safe outcome.

    The chance that an action fails stands behind it.
    """
    if not len(policy):
        return "nothing to decide: the initial state has no actions"
    lines = [_describe_action(policy, 0)]
    for line in _draw_below(policy, 0, min(depth, DEEPEST) - 1, ""):
        if len(lines) >= most_lines:
            lines.append(f"… (the policy has {len(policy):,} decision nodes)")
            break
        lines.append(line)
    return "\n".join(lines)


def draw_randomised(policy: RandomisedPolicy, depth: int, most_lines: int) -> str:
    """Return the first levels of each member under its weight.

    The members share the lines; what one does not need is left to those after it.
    """
    count = len(policy.members)
    lines: list[str] = []
    for k, (weight, member) in enumerate(zip(policy.weights, policy.members, strict=True)):
        if k and len(lines) >= most_lines:
            lines.append(f"… (and {count - k} more of {count} members)")
            break
        share = (most_lines - len(lines)) // (count - k)
        gap = [""] if k else []
        heading = f"member {k + 1} of {count}, drawn with probability {show_percent(weight)}"
        # A line each for the heading, and for what is said when a tree is cut.
        drawn = draw_policy(member, depth, max(1, share - len(gap) - 2))
        lines += [*gap, heading, *drawn.split("\n")]
    return "\n".join(lines)


def describe_members(policy: RandomisedPolicy) -> str:
    """Return in a line what is drawn, and how likely each member is."""
    weights = ", ".join(map(show_percent, policy.weights))
    return f"{len(policy.members)}, of which one is drawn at the start: {weights}"


def _draw_below(policy: Policy, node: int, depth: int, indent: str) -> Iterator[str]:
    rows = [row for row in policy.outcomes(node) if policy.child[row] != FAILED]
    chances = [show_percent(policy.probability[row]) for row in rows]
    width = max(map(len, chances), default=0)
    for row, chance in zip(rows, chances, strict=True):
        last = row == rows[-1]
        child = int(policy.child[row])
        target = ENDINGS[child] if child < 0 else _describe_action(policy, child)
        hidden = " …" if child >= 0 and depth <= 0 else ""
        label = policy.labels[policy.label[row]]
        yield f"{indent}{'└─' if last else '├─'} {chance:>{width}}  {label} → {target}{hidden}"
        if child >= 0 and depth > 0:
            yield from _draw_below(policy, child, depth - 1, indent + ("   " if last else "│  "))


def _describe_action(policy: Policy, node: int) -> str:
    rows = policy.outcomes(node)
    risk = sum(policy.probability[row] for row in rows if policy.child[row] == FAILED)
    fails = f"  (fails {show_percent(risk)})" if risk else ""
    return f"{policy.labels[policy.action[node]]}{fails}"
