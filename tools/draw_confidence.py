"""Draw docs/images/confidence.png: what a certificate at a confidence promises, and what not.

    python tools/draw_confidence.py [FILE]

On the left, the same policy is certified again and again: each certificate is right or wrong, and
at most 5 % of them are wrong. On the right, failures are counted until the answer is known.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from vulcan.certificate.confidence import bet_on_risk, limit_risk
from vulcan.plotting.style import BLUE, GREY, INK, ORANGE, STYLE

RISK, BOUND, LEVEL = 0.04, 0.05, 0.05
EPISODES, CERTIFICATES, MOST = 1000, 60, 1200


def draw(path: Path) -> None:
    """Draw the figure into a file."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: Any = STYLE
    with mpl.rc_context(style):
        figure = Figure(figsize=(8.2, 3.3), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_repetitions(left)
        draw_decision(right)
        figure.savefig(path, dpi=160)


def draw_repetitions(axes: Any) -> None:
    """Draw the limits of many certificates of one policy."""
    rng = np.random.default_rng(5)
    failures = rng.binomial(EPISODES, RISK, CERTIFICATES)
    limits = np.array([limit_risk(k, EPISODES, LEVEL)[1] for k in failures])
    number = np.arange(1, CERTIFICATES + 1)
    right = limits >= RISK
    for chosen, colour, marker, name in (
        (right, BLUE, "o", f"upper limit is right ({right.sum()})"),
        (~right, ORANGE, "X", f"wrong ({(~right).sum()}), at most 5 % in the long run"),
    ):
        axes.vlines(number[chosen], 0, 100 * limits[chosen], color=colour, lw=0.7, alpha=0.4)
        axes.plot(
            number[chosen], 100 * limits[chosen], marker, color=colour, label=name, markersize=4
        )
    axes.axhline(100 * RISK, color=INK, lw=1)
    axes.text(CERTIFICATES, 100 * RISK - 0.12, "true risk, never seen", ha="right", va="top")
    axes.set(ylim=(2, 8.4), xlabel=f"certificate, each of {EPISODES:,} fresh episodes")
    axes.set_ylabel("upper limit of the risk (%)")
    axes.set_title("Promised: 95 % of all certificates are right.\nNot promised: that this one is.")
    axes.legend(loc="upper left")


def draw_decision(axes: Any) -> None:
    """Draw runs of episodes between the counts that decide."""
    rng = np.random.default_rng(3)
    n = np.arange(1, MOST + 1)
    counts = np.arange(0, MOST // 4)
    grid = np.broadcast_to(counts, (MOST, len(counts)))
    lengths = np.broadcast_to(n[:, None], grid.shape)
    risks = np.full(grid.shape, BOUND)
    safe = bet_on_risk(grid, lengths, risks, above=False) >= -np.log(LEVEL)
    unsafe = bet_on_risk(grid, lengths, risks, above=True) >= -np.log(LEVEL)
    few = np.where(safe.any(1), safe.sum(1) - 1.0, np.nan)
    many = np.where(unsafe.any(1), unsafe.argmax(1), np.nan)
    axes.fill_between(n, 0, few, color=BLUE, alpha=0.15, lw=0)
    axes.fill_between(n, many, 120, color=ORANGE, alpha=0.18, lw=0)
    for risk, colour, where in ((0.025, BLUE, safe), (0.1, ORANGE, unsafe), (0.05, GREY, safe)):
        k = np.cumsum(rng.random(MOST) < risk)
        decided = where[n - 1, k]
        ends = int(decided.argmax()) + 1 if decided.any() else MOST
        axes.plot(n[:ends], k[:ends], color=colour, drawstyle="steps-post")
        if ends < MOST:
            axes.plot(ends, k[ends - 1], "o", color=colour)
            text = f"  decided after {ends}"
            above = 12 if colour == ORANGE else 0  # beside the other ways
            axes.text(ends - 2 * above, k[ends - 1] + above, text, va="center", color=colour)
    axes.text(1000, 9, "safe", color=BLUE, fontweight="bold")
    axes.text(60, 68, "not safe", color=ORANGE, fontweight="bold")
    axes.text(1180, 50, "risk = bound:\nmay never end", color=GREY, ha="right", va="top")
    axes.set(ylim=(0, 90), xlim=(0, MOST), xlabel="episodes", ylabel="failures")
    axes.set_title(f'until="decided", bound {100 * BOUND:g} %: one may look\nafter every episode.')


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/confidence.png"))
