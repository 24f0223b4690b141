"""Small trees: histories as circles, actions as fans of lines, failures in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from vulcan.plotting.style import BLUE, GREY, INK, ORANGE, make_figure, put_title, use_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_cleanup", "plot_collapse", "plot_credits"]

Place = tuple[float, float]
PALE: Final = "#b8b8b8"
SIZE: Final = 11.0
"""Points across a circle."""


def plot_collapse(
    first: Sequence[float], second: Sequence[float], measured: Mapping[str, float]
) -> Axes:
    """Draw a policy with one history marked, and the model in which all else is collapsed.

    Parameters
    ----------
    first, second
        Probabilities of both safe outcomes and of failure, of the first action and of the second.
    measured
        The "numerator" and the "ser" of the history, the "collapsed risk", the "mean ser" and the
        "risk" of the policy.
    """
    with use_style():
        shares = {"width_ratios": [1.4, 1.0]}
        panels: Sequence[Axes] = make_figure(3.0).subplots(1, 2, gridspec_kw=shares)
        left, right = panels
        root, rare, way = (1.5, 2.0), (0.0, 1.0), (2.0, 1.0)
        _draw_edge(left, root, rare, f"p₁ = {first[0]:g}")
        _draw_edge(left, root, way, f"p₂ = {first[1]:g}", marked=True)
        _draw_edge(left, root, (4.0, 1.0), f"p₃ = {first[2]:g}")
        _draw_edge(left, rare, (0.0, 0.0), "1")
        for k, (place, name) in enumerate((((0.9, 0.0), "p₄"), ((2.1, 0.0), "p₅"))):
            _draw_edge(left, way, place, f"{name} = {second[k]:g}", marked=k == 0, at=0.68)
            _draw_node(left, place, marked=k == 0)
        _draw_edge(left, way, (3.4, 0.0), f"p₆ = {second[2]:g}", at=0.68)
        for place in (root, way):
            _draw_node(left, place, marked=True)
        for place in (rare, (0.0, 0.0)):
            _draw_node(left, place)
        for place in ((4.0, 1.0), (3.4, 0.0)):
            _draw_node(left, place, fails=True)
        _finish(left, f"(a) risk {measured['risk']:.4g} = mean ser {measured['mean ser']:.4g}")

        top, middle, end = (1.0, 2.0), (0.5, 1.0), (0.0, 0.0)
        _draw_edge(right, top, middle, f"p₁ + p₂ = {first[0] + first[1]:g}")
        _draw_edge(right, top, (2.0, 1.0), f"p₃ = {first[2]:g}")
        _draw_edge(right, middle, end, f"p₄ + p₅ = {second[0] + second[1]:g}")
        _draw_edge(right, middle, (1.5, 0.0), f"p₆ = {second[2]:g}")
        for place in (top, middle, end):
            _draw_node(right, place)
        for place in ((2.0, 1.0), (1.5, 0.0)):
            _draw_node(right, place, fails=True)
        risk, share = measured["collapsed risk"], measured["ser"]
        _finish(right, f"(b) risk {risk:.4g}, ser = {share:.4g}")
        left.set_xlabel("thick: the history; grey: failure")
    return left


def plot_credits(outcomes: Sequence[tuple[float, float]], slope: float) -> Axes:
    """Draw an action, and what its outcomes may claim with either credit against what they risk.

    Parameters
    ----------
    outcomes
        Probability and reward of each safe outcome; what is left is the probability of failure.
    slope
        Of the bound.
    """
    survival = sum(p for p, _ in outcomes)
    ser = (1 - survival) / survival
    mean = sum(p * reward for p, reward in outcomes)
    with use_style():
        panels: Sequence[Axes] = make_figure(2.7).subplots(1, 2)
        left, right = panels
        root, places = (1.5, 1.0), [(float(k), 0.0) for k in range(len(outcomes))]
        for place, (p, reward) in zip(places, outcomes, strict=True):
            _draw_edge(left, root, place, f"p = {p:g}\ng = {reward:g}", at=0.72)
        _draw_edge(left, root, (3.2, 0.0), f"p = {1 - survival:.2g}", at=0.72)
        _draw_node(left, root)
        for place in places:
            _draw_node(left, place)
        _draw_node(left, (3.2, 0.0), fails=True)
        _finish(left, "(a) one action")

        names = [f"outcome {k + 1}" for k in range(len(outcomes))]
        received = [slope * reward for _, reward in outcomes]
        across = range(len(names))
        right.bar([x - 0.2 for x in across], received, 0.36, color=ORANGE, label="Δ(g)")
        averaged = [slope * mean] * len(names)
        right.bar([x + 0.2 for x in across], averaged, 0.36, color=BLUE, label="Δ(f₁)")
        right.axhline(ser, color=INK, linestyle="--", linewidth=1.0, label="ser")
        right.set_xticks(list(across), names)
        right.set_ylabel("allowed risk")
        right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)
        put_title(right, "(b) refused where a bar ends below ser")
        left.set_xlabel("grey: failure")
    return left


PHASES: Final = {
    "a": "before Cleanup",
    "b": "refused: its action is deleted",
    "c": "refused again: none is left",
    "d": "after: the other action of the root",
}
"""What the panels of the figure of Cleanup show."""


def plot_cleanup(pictures: Sequence[Mapping[str, Any]]) -> Axes:
    """Draw a partly sampled tree before Cleanup, at each refusal, and after it.

    Parameters
    ----------
    pictures
        Each with its "actions" (history, label, whether it is the policy's) and its "nodes"
        (history, visits, whether it is refused). A history is written as the first letter of an
        action and the number of its outcome, and so on.
    """
    places = _place([name for name, *_ in pictures[0]["nodes"]])
    with use_style():
        panels: Sequence[Axes] = make_figure(4.4).subplots(2, 2).flatten()
        for ax, picture, letter in zip(panels, pictures, "abcd", strict=True):
            _draw_picture(ax, picture, places)
            refused = [name for name, _, is_refused in picture["nodes"] if is_refused]
            _finish(ax, f"({letter}) {PHASES[letter]}")
            assert bool(refused) == (letter in "bc")
    return panels[2]


def _place(names: Sequence[str]) -> dict[str, Place]:
    """Return where histories are drawn: leaves side by side, others over what comes after them."""
    leaves = sorted(name for name in names if len(name) == 4)
    places = {name: (k + 0.6 * (k // 4), 0.0) for k, name in enumerate(leaves)}
    for name in sorted(names, key=len, reverse=True):
        if name not in places:
            below = [x for other, (x, _) in places.items() if other.startswith(name) and x >= 0]
            places[name] = (sum(below) / len(below), 2.0 - len(name) / 2)
    return places


def _draw_picture(ax: Axes, picture: Mapping[str, Any], places: Mapping[str, Place]) -> None:
    """Draw a tree; what the policy reaches is black."""
    chosen = {(name, label) for name, label, is_chosen in picture["actions"] if is_chosen}
    nodes = {name: (visits, refused) for name, visits, refused in picture["nodes"]}

    def is_reached(name: str) -> bool:
        if not name:
            return True
        parent, letter = name[:-2], name[-2]
        here = any(place == parent and label[0] == letter for place, label in chosen)
        return here and is_reached(parent)

    for name, (visits, refused) in nodes.items():
        if len(name) == 4 and nodes[name[:2]][0] == 0:
            continue  # nothing is known yet of what comes after it
        reached = is_reached(name)
        if name:
            colour = INK if reached else PALE
            line = ":" if visits == 0 and not reached else "-"
            ends = zip(places[name[:-2]], places[name], strict=True)
            ax.plot(*ends, color=colour, linewidth=1.2 if reached else 0.8, linestyle=line)
        _draw_node(ax, places[name], pale=not reached, empty=visits == 0, refused=refused)
    ax.set_xlim(-0.8, max(x for x, _ in places.values()) + 0.8)
    ax.set_ylim(-0.35, 2.35)


def _draw_edge(
    ax: Axes, begin: Place, end: Place, text: str, marked: bool = False, at: float = 0.5
) -> None:
    ends = zip(begin, end, strict=True)
    ax.plot(*ends, color=INK, linewidth=2.6 if marked else 0.9, zorder=1)
    x, y = (b + at * (e - b) for b, e in zip(begin, end, strict=True))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    ax.text(x, y, text, fontsize=7.0, ha="center", va="center", bbox=box, zorder=2)


def _draw_node(
    ax: Axes,
    place: Place,
    *,
    fails: bool = False,
    marked: bool = False,
    pale: bool = False,
    empty: bool = False,
    refused: bool = False,
) -> None:
    if refused:
        ax.plot(*place, marker="x", markersize=SIZE, color=ORANGE, markeredgewidth=2.4, zorder=4)
        return
    look: dict[str, Any] = {
        "markersize": SIZE,
        "markerfacecolor": GREY if fails else "white",
        "markeredgecolor": PALE if pale else INK,
        "markeredgewidth": 2.4 if marked else 1.0,
    }
    if empty:
        ax.scatter(
            *place,
            s=SIZE**2,
            facecolor="white",
            zorder=3,
            linestyle=":",
            edgecolor=PALE if pale else INK,
        )
        return
    ax.plot(*place, marker="o", zorder=3, linestyle="", **look)


def _finish(ax: Axes, title: str) -> None:
    """Leave nothing of the axes but the drawing and its title."""
    put_title(ax, title)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.margins(0.12, 0.16)
