"""`vulcan show`: what a policy file holds."""

from __future__ import annotations

from vulcan.cli.options import AsJson, Depth, PlanFile

__all__ = ["EXAMPLES", "show"]

EXAMPLES = """
\b
Examples:
  vulcan show plan.vulcan
  vulcan show plan.vulcan --depth 9 | less
  vulcan show plan.vulcan --depth 9 --json
"""


def show(plan: PlanFile, depth: Depth = None, as_json: AsJson = False) -> None:
    """Show what a policy file holds.

    No model is needed and nothing in the file is run. Whether the policy is safe is for
    `vulcan certify` to say.
    """
    from vulcan.cli import documents, screen
    from vulcan.policies.policy import Policy
    from vulcan.policies.randomised import RandomisedPolicy
    from vulcan.policies.text import describe_members

    policy = Policy.load(plan)
    if as_json:
        levels = screen.DEPTH if depth is None else depth
        documents.print_document({"policy": documents.describe_policy(policy, levels)})
        return
    about = policy.about
    outcomes = sum(len(member.label) for member in policy.members)
    members = []
    if isinstance(policy, RandomisedPolicy):
        members = [("members", screen.clip(describe_members(policy)))]
    console = screen.open_console()
    rows = [
        ("model", screen.clip(about.model)),
        ("fingerprint", about.fingerprint),
        ("horizon", f"{about.horizon:,} steps" + _discounted(about.discount)),
        ("risk bound", about.risk_bound or "a function that can't be written down"),
        ("solver", screen.clip(about.solver)),
        *members,
        ("decisions", f"{len(policy):,}, with {outcomes:,} outcomes"),
        ("complete", "yes" if policy.complete else "no: some histories are not planned"),
    ]
    styles = {"model": "bold", "complete": "" if policy.complete else screen.BAD}
    screen.show_rows(console, rows, styles)
    screen.show_policy(console, policy, depth)


def _discounted(discount: float) -> str:
    return "" if discount == 1 else f", discount {discount!r}"
