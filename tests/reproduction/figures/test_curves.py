"""Curves of a user's own data, and penalties."""

from __future__ import annotations

from reproduction.figures.curves import find_envelope, plot_curves, plot_penalties


def test_envelope() -> None:
    three = {"a1": (5.0, 0.01), "a2": (6.0, 0.02), "a3": (10.0, 0.05)}
    assert find_envelope(three, 100) == [("a3", 0, 100)]
    assert [name for name, *_ in find_envelope(three, 1e9)] == ["a3", "a1"]
    better = {**three, "a2": (8.0, 0.02)}
    assert [name for name, *_ in find_envelope(better, 1e9)] == ["a3", "a2", "a1"]
    assert find_envelope({"a": (1.0, 0.1), "b": (1.0, 0.0)}, 5) == [("b", 0, 5)]
    assert plot_penalties(three, 250.0).get_xlim() == (0, 250)


def test_curves_of_ones_own() -> None:
    ax = plot_curves(
        {"one": [(1, 0.1), (2, 1.0)], "two": [(1, 0.3)], "none": []},
        x_label="size",
        y_label="time (s)",
        logarithmic=True,
        stopped={"two": (2, 10.0), "none": (1, 10.0)},
        levels={"an hour": 3600.0},
        span=("usual", 1, 2),
    )
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["one", "two", "an hour", "usual"]
    assert list(ax.get_xticks()) == [1, 2]
    assert plot_curves({}, x_label="x", y_label="y", ax=ax) is ax
