"""Policies as text: the first levels of the tree."""

from __future__ import annotations

from collections.abc import Iterator

from vulcan.policy import END, FAILED, UNPLANNED, Policy

__all__ = ["draw_policy"]

ENDINGS = {END: "end", FAILED: "✗", UNPLANNED: "not planned"}


def draw_policy(policy: Policy, depth: int, most_lines: int) -> str:
    """Return the first levels of a policy, one line per outcome."""
    if not len(policy):
        return "nothing to decide: the initial state has no actions"
    lines = [policy.labels[policy.action[0]]]
    for line in _draw_below(policy, 0, depth - 1, ""):
        if len(lines) >= most_lines:
            lines.append(f"… (the policy has {len(policy):,} decision nodes)")
            break
        lines.append(line)
    return "\n".join(lines)


def _draw_below(policy: Policy, node: int, depth: int, indent: str) -> Iterator[str]:
    rows = policy.outcomes(node)
    for row in rows:
        last = row == rows[-1]
        child = int(policy.child[row])
        chance = f"{_percent(policy.probability[row])}  {policy.labels[policy.label[row]]}"
        if child < 0:
            target = ENDINGS[child]
        else:
            target = policy.labels[policy.action[child]] + (" …" if depth <= 0 else "")
        yield f"{indent}{'└─' if last else '├─'} {chance} → {target}"
        if child >= 0 and depth > 0:
            yield from _draw_below(policy, child, depth - 1, indent + ("   " if last else "│  "))


def _percent(probability: float) -> str:
    text = f"{100 * probability:.1f}" if probability >= 0.0095 else f"{100 * probability:.2g}"
    return f"{text} %"
