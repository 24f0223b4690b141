"""The policy space: what each solver's policy earns and risks, and what is acceptable.

The figure of the paper in which policies are points of lifetime reward and probability of failure,
and the acceptable ones lie below the line Δ, with the numbers of a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vulcan.bounds.base import RiskBound
from vulcan.errors import BoundError
from vulcan.model.interface import describe_model
from vulcan.planning.comparison import Comparison, ComparisonRow
from vulcan.plotting.labels import place_labels
from vulcan.plotting.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    make_axes,
    put_legend_below,
    put_title,
    use_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Mark", "group_rows", "plot_comparison"]

CLOSENESS: Final = 0.004
"""Policies that are no further apart than this share of the figure are one mark."""

GRID: Final = 400

KINDS: Final[dict[str, dict[str, Any]]] = {
    "safe, deterministic": {"marker": "o", "markersize": 6.0, "color": BLUE},
    # Larger and hollow: it is seen around a deterministic policy that is almost as good.
    "safe, randomised": {"marker": "D", "markersize": 8.5, "color": BLUE, "fillstyle": "none"},
    "incomplete": {"marker": "s", "markersize": 6.0, "color": GREY, "fillstyle": "none"},
    "not acceptable": {"marker": "X", "markersize": 6.5, "color": ORANGE},
}
"""How policies are marked, by what they are."""


@dataclass(frozen=True)
class Mark:
    """Policies that are in the same place of the figure.

    Attributes
    ----------
    reward, risk
        Where.
    kind
        What they are: one of `KINDS`.
    names
        The solvers that found them.
    """

    reward: float
    risk: float
    kind: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Frame:
    """What a figure shows: from the least to the most reward and risk."""

    rewards: tuple[float, float]
    risks: tuple[float, float]


def find_frame(comparison: Comparison) -> Frame:
    """Return a frame around all policies, what they are allowed, and the upper bounds."""
    found = [row.certificate for row in comparison if row.certificate is not None]
    uppers = [upper for upper in _find_upper_bounds(comparison) if upper is not None]
    rewards = [float(certificate.reward) for certificate in found]
    risks = [float(certificate.risk) for certificate in found]
    risks += [float(certificate.allowed) for certificate in found if certificate.allowed > 0]
    low, high = _widen([*rewards, *uppers], 0.15)
    least, most = _widen(risks, 0.4)
    return Frame((low, high), (max(0.0, least), most))


def _widen(values: Sequence[float], share: float) -> tuple[float, float]:
    """Return the least and the largest value, with some room around them."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    room = share * (high - low) or 0.1 * abs(high) or 0.1
    return low - room, high + room


def group_rows(rows: Sequence[ComparisonRow], frame: Frame) -> list[Mark]:
    """Return the marks of a figure: policies of a kind that are too close to tell apart are one."""
    width, height = (high - low for low, high in (frame.rewards, frame.risks))
    marks: list[Mark] = []
    for row in rows:
        if row.reward is None or row.risk is None:
            continue
        for k, mark in enumerate(marks):
            near = abs(row.reward - mark.reward) <= CLOSENESS * width
            if near and abs(row.risk - mark.risk) <= CLOSENESS * height and mark.kind == _kind(row):
                marks[k] = Mark(mark.reward, mark.risk, mark.kind, (*mark.names, row.name))
                break
        else:
            marks.append(Mark(row.reward, row.risk, _kind(row), (row.name,)))
    return marks


def _kind(row: ComparisonRow) -> str:
    if row.certificate is not None and not row.certificate.passes:
        return "not acceptable"
    if not row.complete:
        return "incomplete"
    return "safe, deterministic" if row.deterministic else "safe, randomised"


def trace_bound(bound: RiskBound, frame: Frame) -> list[tuple[float, float]]:
    """Return points of the bound over the rewards of a frame; NaN where it has no value."""
    points = []
    for reward in np.linspace(*frame.rewards, GRID).tolist():
        try:
            risk = bound(reward)
        except BoundError:
            risk = math.nan
        points.append((reward, risk if math.isfinite(risk) else math.nan))
    return points


def plot_comparison(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the policies of a comparison in the plane of reward and risk.

    Parameters
    ----------
    comparison
        What to draw. Solvers without a policy are left out.
    ax
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes
        Where it was drawn.
    """
    frame = find_frame(comparison)
    with use_style():
        if ax is None:
            (ax,) = make_axes(4.4)
        ax.set_xlim(*frame.rewards)
        ax.set_ylim(*frame.risks)
        _draw_bound(ax, comparison.problem.risk_bound, frame)
        _draw_upper_bounds(ax, comparison, frame)
        marks = group_rows(comparison.rows, frame)
        _draw_marks(ax, marks)
        ax.set_xlabel("expected reward")
        ax.set_ylabel("probability of failure")
        put_title(ax, describe_model(comparison.problem.model))
        put_legend_below(ax, 3)
        labels = [((mark.reward, mark.risk), _join(mark.names)) for mark in marks]
        place_labels(ax, labels, _list_lines(comparison, frame), INK)
    return ax


def _draw_bound(ax: Axes, bound: RiskBound, frame: Frame) -> None:
    rewards, risks = zip(*trace_bound(bound, frame), strict=True)
    label = f"Δ(x) = {bound}"
    accepted = [risk > 0 for risk in risks]
    floor = frame.risks[0]
    ax.fill_between(rewards, floor, risks, accepted, color=PALE, linewidth=0, label="acceptable")
    ax.plot(rewards, risks, "-", color=INK, label=label if len(label) <= 40 else "risk bound Δ")


def _draw_upper_bounds(ax: Axes, comparison: Comparison, frame: Frame) -> None:
    upper, of_all = choose_upper_bounds(comparison, frame)
    if upper is not None:
        label = "upper bound, deterministic policies"
        ax.axvline(upper, linestyle="--", linewidth=1.0, color=ORANGE, label=label)
    if of_all is not None:
        label = "upper bound" if upper is None else "upper bound, all policies"
        ax.axvline(of_all, linestyle=":", linewidth=1.6, color=ORANGE, label=label)


def choose_upper_bounds(comparison: Comparison, frame: Frame) -> tuple[float | None, float | None]:
    """Return the upper bounds to draw, on deterministic policies and on all; one if they are near.

    Of two that could not be told apart, the one on all policies is left.
    """
    upper, of_all = _find_upper_bounds(comparison)
    if upper is None or of_all is None:
        return None, upper if of_all is None else of_all
    apart = of_all - upper > CLOSENESS * (frame.rewards[1] - frame.rewards[0])
    return (upper if apart else None), of_all


def _find_upper_bounds(comparison: Comparison) -> list[float | None]:
    return [
        None if bound is None or not math.isfinite(bound) else bound
        for bound in (comparison.upper_bound, comparison.randomised_upper_bound)
    ]


def _list_lines(comparison: Comparison, frame: Frame) -> list[list[tuple[float, float]]]:
    """Return the lines of the figure as dense points."""
    bound = trace_bound(comparison.problem.risk_bound, frame)
    heights = np.linspace(*frame.risks, GRID).tolist()
    uppers = [upper for upper in choose_upper_bounds(comparison, frame) if upper is not None]
    return [bound, *([(upper, height) for height in heights] for upper in uppers)]


def _draw_marks(ax: Axes, marks: Sequence[Mark]) -> None:
    for kind, style in KINDS.items():
        places = [(mark.reward, mark.risk) for mark in marks if mark.kind == kind]
        if places:
            rewards, risks = zip(*places, strict=True)
            line: dict[str, Any] = {"linestyle": "", "zorder": 5, "clip_on": False}
            ax.plot(rewards, risks, label=kind, **line, **style)


def _join(names: Sequence[str], most: int = 34) -> str:
    """Return names with commas between them, in lines that are not too long."""
    lines = [""]
    for k, name in enumerate(names):
        word = name if k + 1 == len(names) else f"{name},"
        if lines[-1] and len(lines[-1]) + len(word) >= most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
