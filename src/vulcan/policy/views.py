"""Policies for people: the first levels as a tree, a card for notebooks, and a table of decisions.

A row of the table is a decision that can be told apart. Where a model gives states, and these
merge, it is a step, a state and an action, and joins all decisions of the policy that agree in
them: its reach is the sum of theirs, and its values are their means weighted by reach,

    reach = Σ reach_k,    ahead = Σ reach_k · ahead_k / reach.

Elsewhere a row is one decision, named by the likeliest history that leads to it. Decision points
and their values come from `vulcan.policy.walk`.

Text and HTML have rounded numbers, fewer rows and shorter cells; CSV has all rows and all digits.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.numerics import END, FAILED, NONE, UNPLANNED
from vulcan.parameters import require_whole, shorten, suggest
from vulcan.policy.policy import AnyPolicy, Policy
from vulcan.policy.walk import (
    DecisionPoints,
    find_decision_points,
    find_values,
    name_state,
    number_labels,
)
from vulcan.runtime.files import write_atomically
from vulcan.runtime.formatting import (
    MISSING,
    TextTable,
    build_card,
    build_table,
    clip,
    show_percent,
    show_probability,
    show_reward,
)

DEEPEST: Final = 200  # deepest level that is drawn: Python's own stack is limited

ENDINGS: Final = {END: "end", UNPLANNED: "not planned"}

MOST_ROWS: Final = 60  # default number of rows to show
MOST_CHARACTERS: Final = 60  # length of the longest text that is shown
LONGEST_HISTORY: Final = 20  # number of last steps that are shown of a longer history
HIDDEN: Final = ("node",)  # columns that only programs need
NAMING: Final = ("step", "member", "state", "history", "action")  # they identify a row
ASCENDING: Final = ("step", "member", "node")  # numbers that are sorted from the smallest on

SHOWN: Final[Mapping[str, Callable[[Any], str]]] = {
    "reach": show_percent,
    "fails": show_percent,
    "risk": show_probability,
    "risk_ahead": show_probability,
    "reward_ahead": show_reward,
}


def draw_policy(policy: AnyPolicy, depth: int, most_lines: int) -> str:
    """Return the first levels of a policy, a line per safe outcome, with failure probabilities."""
    count = len(policy.members)
    if count == 1:
        return "\n".join(_draw_member(policy.members[0], depth, most_lines))
    drawn = []
    for k, (weight, member) in enumerate(zip(policy.weights, policy.members, strict=True), 1):
        heading = f"member {k} of {count}, drawn with probability {show_percent(weight)}"
        # Members share the lines; two more are the heading and an empty line after it.
        lines = _draw_member(member, depth, max(1, most_lines // count - 2))
        drawn.append("\n".join([heading, *lines]))
    return "\n\n".join(drawn)


def _draw_member(policy: Policy, depth: int, most_lines: int) -> list[str]:
    if not len(policy):
        return ["nothing to decide: the initial state has no actions"]
    lines = [_describe_action(policy, 0)]
    for line in _draw_below(policy, 0, min(depth, DEEPEST) - 1, ""):
        if len(lines) >= most_lines:
            return [*lines, f"… (the policy has {len(policy):,} decision nodes)"]
        lines.append(line)
    return lines


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


def write_policy(policy: AnyPolicy) -> str:
    """Return a policy as HTML: its first levels."""
    tree = f"<pre>{escape(policy.draw(3, 30))}</pre>"
    below = "<p>policy.table() has a row for each decision, policy.draw(depth) more of the tree</p>"
    words = [f"{len(policy):,} decision{'s' if len(policy) != 1 else ''}"]
    if len(policy.members) > 1:
        words.append(f"{len(policy.members)} members, of which one is drawn")
    if not policy.complete:
        words.append("not complete")
    title = f"Policy for {clip(policy.about.model, 80)}"
    return build_card(title, tree + below, remark=", ".join(words))


class PolicyTable:
    """The decisions of a policy, as columns of equal length; made by `Policy.table`.

    Columns are

    - `step`: the number of the decision, 1 for the first (an initial action included);
    - `member`, of randomised policies only: the number of the member, 1 for the first;
    - `state`, or where states are not known or don't merge `history`: the actions and outcomes of
      the likeliest history that leads there, of which the last 20 are shown;
    - `action`: the action that is taken;
    - `reach`: the probability that the policy comes there;
    - `fails`: the probability that the action fails at once;
    - `risk`: the product of both, the row's share of the risk of the policy;
    - `risk_ahead`, `reward_ahead`: probability of failure and expected reward from there on, this
      action included; rewards are discounted from there. nan for a first decision where only the
      model knows whether it is discounted;
    - `decisions`: the number of decisions of the policy that the row joins;
    - `node`: the number of the decision in the policy; of several, that of the likeliest.

    Tables don't change: `where`, `sort`, `top` and `head` return new ones.
    """

    def __init__(
        self,
        points: DecisionPoints,
        columns: Mapping[str, NDArray[Any] | None],
        point: NDArray[Any],
        whole: int,
    ) -> None:
        self.points, self.point = points, point  # the decision point of each row, or the likeliest
        self.whole = whole  # number of rows before any were left out
        self._columns = dict(columns)  # None for histories, which are described on first use

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.point)

    def __repr__(self) -> str:
        left_out = f" of {self.whole:,}" if len(self) < self.whole else ""
        return (
            f"<PolicyTable for {self.points.policy.about.model}: "
            f"{len(self):,}{left_out} rows of {', '.join(self.columns)}>"
        )

    def __str__(self) -> str:
        return f"{build_text_table(self)}\n{describe_left_out(self)}".rstrip("\n")

    def _repr_html_(self) -> str:
        text = build_text_table(self, MOST_ROWS, 2 * MOST_CHARACTERS)
        body = build_table(text.header[:-1], [row[:-1] for row in text.rows], text.left)
        left_out = describe_left_out(self)
        notes = f"<p>{escape(left_out)}</p>" if left_out else ""
        rows = f"{len(self):,} of {self.whole:,}" if len(self) < self.whole else f"{len(self):,}"
        return build_card(self.points.policy.about.model, body + notes, remark=f"{rows} rows")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the cells of a column."""
        if name not in self._columns:
            meant = suggest(name, self._columns) or "."
            listed = ", ".join(self._columns)
            raise OptionError(f"there is no column {shorten(name)}{meant} The columns: {listed}")
        cells = self._columns[name]
        if cells is None:
            cells = self._columns[name] = _describe_histories(self.points, self.point)
        return cells

    def where(self, wanted: NDArray[np.bool_]) -> PolicyTable:
        """Return the rows that are wanted, such as ``table.where(table["step"] == 3)``."""
        return self._take(np.flatnonzero(wanted))

    def sort(self, by: str = "risk") -> PolicyTable:
        """Return the rows in the order of a column; the sort is stable.

        Words and steps ascend, and other numbers descend.
        """
        cells = self[by]
        if cells.dtype == object:
            _, cells = np.unique(cells.astype(str), return_inverse=True)
        elif by not in ASCENDING:
            cells = -cells
        return self._take(np.argsort(cells, kind="stable"))

    def top(self, count: int, by: str = "risk") -> PolicyTable:
        """Return at most `count` first rows in the order of a column; see `sort`."""
        return self.sort(by).head(count)

    def head(self, count: int) -> PolicyTable:
        """Return at most `count` first rows."""
        require_whole("the number of rows", count, 0, 10**9)
        return self._take(np.arange(min(count, len(self))))

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return all columns as arrays, such as `pandas.DataFrame` takes; words are strings."""
        return {name: self[name] for name in self.columns}

    def to_csv(self) -> str:
        """Return the table as CSV, numbers with all their digits.

        A label that begins with `=`, `+`, `-` or `@`, a tab or a line break, and is not a number,
        gets a `'` in front, so that spreadsheets don't take it for a formula.
        """
        stream = io.StringIO()
        # All words in quotes: without, a lone carriage return in a label would begin a new row.
        writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        stream.write(",".join(self.columns) + "\n")
        cells = ([_neutralise(cell) for cell in self[name].tolist()] for name in self.columns)
        writer.writerows(zip(*cells, strict=True))
        return stream.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a .csv file, atomically."""
        check_table_file(path)
        write_atomically(path, self.to_csv().encode())

    def _take(self, rows: NDArray[np.intp]) -> PolicyTable:
        columns = {
            name: None if cells is None else cells[rows] for name, cells in self._columns.items()
        }
        return PolicyTable(self.points, columns, self.point[rows], self.whole)


def check_table_file(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is not a CSV file."""
    if Path(path).suffix.lower() != ".csv":
        raise OptionError(f"{os.fspath(path)}: the file must end in .csv")


def tabulate(policy: AnyPolicy) -> PolicyTable:
    """Return the decisions of a policy as a table; see `PolicyTable`."""
    reader = policy.reader
    named = reader is not None and reader.merges
    points = find_decision_points(policy, reader if named else None)
    values = find_values(points, reader)
    action = values.pop("action")
    where = points.rows["state" if named else "node"]
    keys = np.stack([points.rows["member"], points.rows["level"], where, action])
    _, group = np.unique(keys, axis=1, return_inverse=True)
    group, count = group.ravel(), np.bincount(group.ravel())
    order = np.lexsort((-points.rows["likeliest"], group))
    point = order[np.cumsum(count) - count]  # the likeliest of each row
    reach = np.bincount(group, points.rows["reach"])
    means = {}
    for name, cells in values.items():
        means[name] = cells[point]
        total = np.bincount(group, points.rows["reach"] * cells)
        several = (count > 1) & (reach > 0)  # a single value stays exact
        np.divide(total, reach, out=means[name], where=several)
    chosen = points.rows[point]
    columns: dict[str, NDArray[Any] | None] = {"step": chosen["level"] + 1}
    if len(policy.members) > 1:
        columns["member"] = chosen["member"] + 1
    if named:
        columns["state"] = to_words(map(name_state, points.states))[chosen["state"]]
    else:
        columns["history"] = None
    columns |= {
        "action": to_words(number_labels(policy))[action[point]],
        "reach": reach,
        "fails": means["fails"],
        "risk": reach * means["fails"],
        "risk_ahead": means["risk_ahead"],
        "reward_ahead": means["reward_ahead"],
        "decisions": count,
        "node": chosen["node"],
    }
    order = np.lexsort((-reach, chosen["member"], chosen["level"]))
    return PolicyTable(points, columns, point, len(point))._take(order)


def _describe_histories(points: DecisionPoints, wanted: NDArray[Any]) -> NDArray[Any]:
    """Return the likeliest history that leads to each decision point, as text."""
    before = points.rows["before"].tolist()
    known: dict[int, str] = {}
    texts = []
    for point in wanted.tolist():
        here, steps = point, list[str]()
        while before[here] != NONE and len(steps) <= LONGEST_HISTORY:
            if here not in known:
                known[here] = " → ".join(points.last_step(here))
            steps.append(known[here])
            here = before[here]
        dropped = "… " if len(steps) > LONGEST_HISTORY else ""
        texts.append(dropped + "; ".join(steps[:LONGEST_HISTORY][::-1]))
    return to_words(texts)


def to_words(texts: Iterable[str]) -> NDArray[Any]:
    """Return texts as an array of Python strings."""
    return np.array([*texts, None], object)[:-1]  # also of no texts at all


def build_text_table(
    table: PolicyTable, most: int | None = MOST_ROWS, width: int = MOST_CHARACTERS
) -> TextTable:
    """Return the first rows of a table for people; `most` is None for all of them."""
    shown = table if most is None else table.head(most)
    names = [name for name in shown.columns if name not in HIDDEN]
    if not np.any(shown["decisions"] > 1):
        names.remove("decisions")
    naming = [name for name in names if name in NAMING]
    names = naming + [name for name in names if name not in NAMING]
    cells = [[_show(name, cell, width) for cell in shown[name]] for name in names]
    header = [name.replace("_", " ") for name in names]  # the last, without a name, has remarks
    return TextTable(
        [*header, ""], [[*row, ""] for row in zip(*cells, strict=True)], left=len(naming)
    )


def describe_left_out(table: PolicyTable, most: int | None = MOST_ROWS) -> str:
    """Return a line on the number of rows that are not shown; empty if all are."""
    if not len(table):
        return f"no matching rows among {table.whole:,}" if table.whole else "nothing to decide"
    shown = len(table) if most is None else min(most, len(table))
    return f"… and {len(table) - shown:,} more rows of {len(table):,}" if shown < len(table) else ""


def _show(name: str, cell: Any, width: int) -> str:
    if isinstance(cell, str):
        if name == "history" and len(cell) > width:
            return f"…{cell[1 - width :]}"  # its end is of interest
        return clip(cell, width)
    if isinstance(cell, float | np.floating):
        if np.isnan(cell):
            return MISSING
        return SHOWN[name](float(cell))
    return f"{cell:,}"


def _neutralise(cell: Any) -> Any:
    """Return a cell, escaped if a spreadsheet would read it as a formula; not if a number."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
