"""A policy as a table: one row for each decision that can be told apart.

Where a model says the states, and these merge, a row is a step, a state and an action, and joins
all decisions of the policy that agree in them: its reach is the sum of theirs, and what lies ahead
is the mean of what lies ahead of each, weighted by reach,

    reach = Σ reach_k,    ahead = Σ reach_k · ahead_k / reach.

Elsewhere a row is one decision, known by the likeliest history that leads to it. Where places come
from is `vulcan.policies.places`, what lies ahead `vulcan.policies.prospects`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.model.interface import Start
from vulcan.model.text import stable_text
from vulcan.parameters import require_whole, shorten, suggest
from vulcan.policies.conditions import read_condition
from vulcan.policies.places import Places, find_places, find_values, number_labels
from vulcan.policies.randomised import AnyPolicy
from vulcan.sentinels import NONE

if TYPE_CHECKING:
    from vulcan.policies.matrix import ActionMatrix

__all__ = ["PolicyTable", "name_state", "tabulate", "to_words"]

Column = NDArray[Any] | Callable[[], NDArray[Any]]
"""The cells of a column, or what makes them when somebody looks."""

STEPS: Final = 20
"""Of a longer history the last steps are told."""

FIRST_IS_FIRST: Final = ("step", "member", "node")
"""Numbers that are sorted from the smallest on."""


class PolicyTable:
    """The decisions of a policy, as columns of equal length; made by `Policy.table`.

    Columns are

    - `step`: which decision it is, 1 for the first (an initial action included);
    - `member`, of randomised policies only: which member takes it, 1 for the first;
    - `state`, or where states are not known or don't merge `history`: the actions and outcomes of
      the likeliest history that leads there, of which the last 20 are told;
    - `action`: what is done;
    - `reach`: how likely it is that the policy comes there;
    - `fails`: how likely the action is to fail at once;
    - `risk`: the product of both, what the row adds to the risk of the whole;
    - `risk_ahead`, `reward_ahead`: probability of failing and expected reward from there on, this
      action included; rewards are discounted from there. nan for a first decision of which only
      the model would say whether it is discounted;
    - `decisions`: how many decisions of the policy the row joins;
    - `node`: the number of the decision in the policy; of several, that of the likeliest.

    `vulcan.find_alternatives` adds what else could be done. Tables don't change: `where`, `sort`
    and `top` return new ones.

    Parameters
    ----------
    places
        The places of the policy.
    columns
        The columns by their names.
    place
        The place of each row; of several, the likeliest.
    whole
        How many rows the table had before any were left out.
    note
        What else must be known to read it.
    """

    def __init__(
        self,
        places: Places,
        columns: Mapping[str, Column],
        place: NDArray[Any],
        whole: int,
        note: str = "",
    ) -> None:
        self.places, self.place, self.whole, self.note = places, place, whole, note
        self._columns = dict(columns)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.place)

    def __repr__(self) -> str:
        left_out = f" of {self.whole:,}" if len(self) < self.whole else ""
        return (
            f"<PolicyTable for {self.places.policy.about.model}: "
            f"{len(self):,}{left_out} rows of {', '.join(self.columns)}>"
        )

    def __str__(self) -> str:
        from vulcan.policies.table_text import write_text

        return write_text(self)

    def _repr_html_(self) -> str:
        from vulcan.policies.table_text import write_html

        return write_html(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the cells of a column.

        Raises
        ------
        OptionError
            If there is no such column.
        """
        if name not in self._columns:
            meant = suggest(name, self._columns) or "."
            listed = ", ".join(self._columns)
            raise OptionError(f"there is no column {shorten(name)}{meant} The columns: {listed}")
        cells = self._columns[name]
        if callable(cells):
            cells = self._columns[name] = cells()
        return cells

    def where(self, *conditions: str) -> PolicyTable:
        """Return the rows that meet all conditions.

        Parameters
        ----------
        conditions
            Each a column, a comparison and a value: "step=3", "reach >= 0.01", "action != rest".
            "state ~ severe" is for texts that contain something.

        Raises
        ------
        OptionError
            If a condition can't be read, or there is no such column.
        """
        wanted = np.ones(len(self), bool)
        for text in conditions:
            condition = read_condition(text)
            wanted &= condition.meet(self[condition.column])
        return self._take(np.flatnonzero(wanted))

    def sort(self, by: str = "risk", *, descending: bool | None = None) -> PolicyTable:
        """Return the rows in the order of a column; rows that are equal there stay as they are.

        Parameters
        ----------
        by
            The column.
        descending
            Begin with the largest. Without it, words and steps begin with the first, and other
            numbers with the largest.
        """
        cells = self[by]
        if descending is None:
            descending = cells.dtype != object and by not in FIRST_IS_FIRST
        if cells.dtype == object:
            _, cells = np.unique(cells.astype(str), return_inverse=True)
        return self._take(np.argsort(-cells if descending else cells, kind="stable"))

    def top(self, count: int, by: str = "risk") -> PolicyTable:
        """Return the first rows in the order of a column.

        Parameters
        ----------
        count
            How many at the most.
        by
            The column; see `sort`.
        """
        return self.sort(by).head(count)

    def head(self, count: int) -> PolicyTable:
        """Return the first rows as they are, at most so many."""
        require_whole("the number of rows", count, 0, 10**9)
        return self._take(np.arange(min(count, len(self))))

    def add(self, columns: Mapping[str, NDArray[Any]], note: str) -> PolicyTable:
        """Return the same rows with more columns, and a note about them."""
        together = {**self._columns, **columns}
        return PolicyTable(self.places, together, self.place, self.whole, note)

    def matrix(self) -> ActionMatrix:
        """Return what is done in which state at which step, for people to see at a glance.

        Raises
        ------
        OptionError
            If the states are not known, or are too many.
        """
        from vulcan.policies.matrix import build_matrix

        return build_matrix(self)

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return all columns by their names, as arrays; words are Python strings.

        `pyarrow.table`, `pandas.DataFrame` and `polars.DataFrame` take it as it is.
        """
        return {name: self[name] for name in self.columns}

    def to_frame(self) -> Any:
        """Return a frame of pandas, or else of polars.

        Raises
        ------
        OptionError
            If neither is installed.
        """
        from vulcan.policies.table_text import make_frame

        return make_frame(self)

    def to_csv(self) -> str:
        """Return the table as CSV, numbers with all their digits."""
        from vulcan.policies.table_text import write_csv

        return write_csv(self)

    def to_markdown(self) -> str:
        """Return the table as Markdown, numbers as people read them."""
        from vulcan.policies.table_text import write_markdown

        return write_markdown(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file, at once or not at all.

        Parameters
        ----------
        path
            Its suffix says how: .csv, .md, .html, or .parquet, which needs pandas or polars.
        """
        from vulcan.policies.table_text import save_table

        save_table(self, path)

    def _take(self, rows: NDArray[np.intp]) -> PolicyTable:
        """Return some rows."""
        columns: dict[str, Column] = {
            name: _take_lazily(self, name, rows) if callable(cells) else cells[rows]
            for name, cells in self._columns.items()
        }
        if callable(self._columns.get("history")):  # nobody needs those of the other rows
            place = self.place[rows]
            columns["history"] = lambda: tell_histories(self.places, place)
        return PolicyTable(self.places, columns, self.place[rows], self.whole, self.note)


def _take_lazily(table: PolicyTable, name: str, rows: NDArray[np.intp]) -> Column:
    return lambda: table[name][rows]


def tabulate(policy: AnyPolicy) -> PolicyTable:
    """Return the decisions of a policy as a table; see `PolicyTable`."""
    reader = policy.members[0].reader
    named = reader is not None and reader.merges
    places = find_places(policy, reader if named else None)
    values = find_values(places, reader)
    rows = _Rows(places.rows, places.rows["state" if named else "node"], values.pop("action"))
    means = {name: rows.average(cells) for name, cells in values.items()}
    chosen = places.rows[rows.place]
    columns: dict[str, Column] = {"step": chosen["level"] + 1}
    if len(policy.members) > 1:
        columns["member"] = chosen["member"] + 1
    if named:
        columns["state"] = to_words(map(name_state, places.states))[chosen["state"]]
    else:
        columns["history"] = lambda: tell_histories(places, rows.place)
    columns |= {
        "action": to_words(number_labels(policy))[rows.action],
        "reach": rows.reach,
        "fails": means["fails"],
        "risk": rows.reach * means["fails"],
        "risk_ahead": means["risk_ahead"],
        "reward_ahead": means["reward_ahead"],
        "decisions": rows.count,
        "node": chosen["node"],
    }
    order = np.lexsort((-rows.reach, chosen["member"], chosen["level"]))
    return PolicyTable(places, columns, rows.place, len(rows.place))._take(order)


def tell_histories(places: Places, wanted: NDArray[Any]) -> NDArray[Any]:
    """Return the likeliest history that leads to each place, as text."""
    before = places.rows["before"].tolist()
    known: dict[int, str] = {}
    texts = []
    for place in wanted.tolist():
        here, steps = place, list[str]()
        while before[here] != NONE and len(steps) <= STEPS:
            if here not in known:
                known[here] = " → ".join(places.tell_arrival(here))
            steps.append(known[here])
            here = before[here]
        dropped = "… " if len(steps) > STEPS else ""
        texts.append(dropped + "; ".join(steps[:STEPS][::-1]))
    return to_words(texts)


class _Rows:
    """The rows of a table, each of one or more places that agree in what tells rows apart.

    Attributes
    ----------
    place
        The likeliest place of each row.
    action, count, reach
        Its action, how many places it has, and the probability of being at any of them.
    """

    def __init__(self, places: NDArray[Any], where: NDArray[Any], action: NDArray[Any]) -> None:
        keys = np.stack([places["member"], places["level"], where, action])
        _, group = np.unique(keys, axis=1, return_inverse=True)
        self._group, self._reach = group.ravel(), places["reach"]
        order = np.lexsort((-places["likeliest"], self._group))
        self.count = np.bincount(self._group)
        self.place = order[np.cumsum(self.count) - self.count]
        self.reach = np.bincount(self._group, self._reach)
        self.action = action[self.place]

    def average(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of what places have, weighted by reach."""
        total = np.bincount(self._group, self._reach * cells)
        several = (self.count > 1) & (self.reach > 0)  # a single one is what it is
        means: NDArray[np.float64] = cells[self.place]
        np.divide(total, self.reach, out=means, where=several)
        return means


def name_state(state: Any) -> str:
    """Return the text of a state, as labels have it."""
    return "start" if isinstance(state, Start) else stable_text(state)


def to_words(texts: Iterable[str]) -> NDArray[Any]:
    """Return texts as an array of Python's own strings."""
    listed = list(texts)
    words = np.empty(len(listed), object)
    words[:] = listed
    return words
