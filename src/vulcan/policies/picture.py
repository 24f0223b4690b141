"""A policy as a card: its first decisions, and at which steps it takes its risk."""

from __future__ import annotations

from html import escape
from typing import Final

import numpy as np

from vulcan.policies.places import find_places, find_values
from vulcan.policies.policy import About
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.markup import build_card
from vulcan.runtime.sketch import Sketch

__all__ = ["write_policy"]

LINES: Final = 30
"""Lines of the tree that are shown."""


def write_policy(policy: AnyPolicy) -> str:
    """Return a card of a policy."""
    tree = f"<pre>{escape(policy.draw(3, LINES))}</pre>"
    below = "<p>policy.table() has a row for each decision, policy.draw(depth) more of the tree</p>"
    return build_card(
        _shorten(policy.about),
        tree + below,
        _draw_risks(policy),
        remark=_describe(policy),
    )


def _draw_risks(policy: AnyPolicy) -> str:
    """Return bars of the risk that is taken at each step."""
    places = find_places(policy)
    if not len(places.rows):
        return ""
    fails = find_values(places, policy.members[0].reader)["fails"]
    risks = np.bincount(places.rows["level"], places.rows["reach"] * fails)
    if not risks.any():
        return ""
    sketch = Sketch("step", "risk taken there")
    sketch.add_bars(risks.tolist())
    return sketch.build()


def _describe(policy: AnyPolicy) -> str:
    words = [f"{len(policy):,} decision{'s' if len(policy) != 1 else ''}"]
    if len(policy.members) > 1:
        words.append(f"{len(policy.members)} members, of which one is drawn")
    if not policy.complete:
        words.append("not complete")
    return ", ".join(words)


def _shorten(about: About) -> str:
    return (
        f"Policy for {about.model}" if len(about.model) <= 80 else f"Policy for {about.model[:79]}…"
    )
