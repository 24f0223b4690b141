"""What is done in which state at which step: a matrix with a colour for each action.

A cell has the actions that are taken in a state at a step, the likeliest first; there are several
where a policy remembers more than the state, or is randomised. It is pale where the policy hardly
ever comes. The colours are Okabe and Ito's, which the colour-blind tell apart; each cell has the
letters of its action as well.
"""

from __future__ import annotations

import os
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

from vulcan.errors import OptionError
from vulcan.policies.table import PolicyTable
from vulcan.runtime.files import write_atomically
from vulcan.runtime.formatting import UNLIMITED, show_percent, show_probability
from vulcan.runtime.markup import build_card, build_page

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

__all__ = ["ActionMatrix", "Cell", "build_matrix"]

MOST_STATES: Final = 200
"""More rows are no picture any more."""

RARE: Final = 0.01
"""The probability of being there below which a cell is pale."""

COLOURS: Final = ("#56b4e9", "#e69f00", "#29b893", "#f0e442", "#d893b8", "#b3b3b3", "#e8835a")
"""Those of actions, in their order, on which black is easy to read."""

LONGEST: Final = 3
"""Letters of an action in a narrow cell."""


@dataclass(frozen=True)
class Cell:
    """What is done in a state at a step.

    Attributes
    ----------
    actions
        The actions with the probability of taking each, given that the policy is there.
    reach
        How likely it is that the policy is there.
    risk
        What is risked there at once: a part of the risk of the whole.
    """

    actions: Mapping[str, float]
    reach: float
    risk: float


@dataclass(frozen=True)
class ActionMatrix:
    """What a policy does in which state at which step; made by `PolicyTable.matrix`.

    Attributes
    ----------
    model
        Text of the model.
    states, steps
        The rows and the columns.
    actions
        All actions, the most frequent first.
    cells
        By state and step; a pair that the policy never comes to has none.
    """

    model: str
    states: tuple[str, ...]
    steps: tuple[int, ...]
    actions: tuple[str, ...]
    cells: Mapping[tuple[str, int], Cell]

    def __repr__(self) -> str:
        return (
            f"<ActionMatrix for {self.model}: {len(self.states)} states, {len(self.steps)} steps>"
        )

    @property
    def letters(self) -> dict[str, str]:
        """A few letters for each action: its first ones where those tell it from all others."""
        for length in range(1, LONGEST + 1):
            short = [action[:length] for action in self.actions]
            if len(set(short)) == len(short) and all(map(str.strip, short)):
                return dict(zip(self.actions, short, strict=True))
        names = string.ascii_uppercase if len(self.actions) <= 26 else None
        return {a: names[k] if names else str(k + 1) for k, a in enumerate(self.actions)}

    def build(self, width: int) -> Group:
        """Return the matrix as rich draws it, in parts below each other where it is too wide."""
        from rich.console import Group
        from rich.text import Text

        letters = self.letters
        most = 2 + max((len(self._write(cell, letters)) for cell in self.cells.values()), default=1)
        beside = max(map(len, self.states), default=0) + 2
        most = max(most, len(str(self.steps[-1])) + 2 if self.steps else 1)
        columns = max(1, (width - beside) // most)
        parts: list[Table | Text] = []
        for k in range(0, len(self.steps), columns):
            parts += [self._build_part(self.steps[k : k + columns], most, letters), Text()]
        legend = Text("  ").join(
            Text.assemble((f" {letters[action]} ", _style(k)), f" {action}")
            for k, action in enumerate(self.actions)
        )
        signs = self._explain_signs()
        return Group(*parts, legend, *([Text(signs, style="dim")] if signs else []))

    def _explain_signs(self) -> str:
        """Return what is to be known of the signs in the cells besides letters of actions."""
        signs = []
        if len(self.cells) < len(self.states) * len(self.steps):
            signs.append("·: the policy never comes there")
        if any(len(cell.actions) > 1 for cell in self.cells.values()):
            signs.append("several letters: it depends on what came before")
        return "; ".join(signs)

    def _build_part(self, steps: Sequence[int], width: int, letters: Mapping[str, str]) -> Table:
        from rich.table import Table
        from rich.text import Text

        part = Table(box=None, padding=0, pad_edge=False, header_style="dim")
        part.add_column("step", no_wrap=True)
        for step in steps:
            part.add_column(str(step), justify="center", width=width, no_wrap=True)
        for state in self.states:
            found = [self.cells.get((state, step)) for step in steps]
            texts = [
                Text("·", style="dim")
                if cell is None
                else Text(
                    self._write(cell, letters).center(width - 1),
                    style=_style(self._likeliest(cell), cell.reach < RARE),
                )
                for cell in found
            ]
            part.add_row(Text(f"{state}  "), *texts)
        return part

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=StringIO(), width=UNLIMITED, color_system=None)
        with console.capture() as capture:
            console.print(self.build(100))
        return "\n".join(line.rstrip() for line in capture.get().splitlines())

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{step}</th>" for step in self.steps)
        rows = "".join(
            f'<tr><td class="word">{escape(state)}</td>'
            + "".join(self._write_cell(self.cells.get((state, step))) for step in self.steps)
            + "</tr>"
            for state in self.states
        )
        legend = " ".join(
            f'<span style="{_paint(k)}; padding: 0 .5em; border-radius: 3px">'
            f"{escape(letter)}: {escape(action)}</span>"
            for k, (action, letter) in enumerate(self.letters.items())
        )
        pale = f"pale: the policy comes there with less than {show_percent(RARE)}"
        signs = "; ".join(filter(None, (pale, self._explain_signs())))
        style = (
            "<style>.vulcan .cells td, .vulcan .cells th { text-align: center !important; "
            "padding: .1em .35em; white-space: nowrap } .vulcan .cells .word "
            "{ text-align: left !important; padding-right: 1em }</style>"
        )
        table = (
            f'{style}<table class="cells"><thead><tr><th class="word">state, step</th>{head}</tr>'
            f"</thead><tbody>{rows}</tbody></table><p style='opacity: 1'>{legend}</p>"
            f"<p>{signs}</p>"
        )
        return build_card(self.model, table, remark="what is done in which state at which step")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the matrix to an .html file, at once or not at all."""
        from vulcan.policies.table_text import check_table_file

        check_table_file(path, (".html",))
        write_atomically(path, build_page(self.model, self._repr_html_()).encode())

    def _write_cell(self, cell: Cell | None) -> str:
        if cell is None:
            return '<td style="opacity: .4">·</td>'
        shares = "; ".join(
            f"{action} {show_percent(share)}" if len(cell.actions) > 1 else action
            for action, share in cell.actions.items()
        )
        title = f"{shares}\nreached with {show_percent(cell.reach)}"
        if cell.risk:
            title += f"\nrisk taken there {show_probability(cell.risk)}"
        paint = _paint(self._likeliest(cell), cell.reach < RARE)
        text = escape(self._write(cell, self.letters))
        return f'<td style="{paint}" title="{escape(title)}">{text}</td>'

    def _write(self, cell: Cell, letters: Mapping[str, str]) -> str:
        return "/".join(letters[action] for action in cell.actions)

    def _likeliest(self, cell: Cell) -> int:
        return self.actions.index(next(iter(cell.actions)))


def build_matrix(table: PolicyTable) -> ActionMatrix:
    """Return what is done in which state at which step, by the rows of a table."""
    if "state" not in table.columns:
        reader = table.places.policy.members[0].reader
        why = "bind the policy to its model (policy.bind(model), or MODEL behind PLAN)"
        if reader is not None:
            why = "this model says that every history is a state of its own; see the table"
        raise OptionError(f"a matrix needs states, which are not known here: {why}")
    texts = _sort_states(table)
    if len(texts) > MOST_STATES:
        raise OptionError(
            f"a matrix has at most {MOST_STATES} states, and here are {len(texts):,}: choose some, "
            "such as where('reach>=0.01'), or see the table"
        )
    found: dict[tuple[str, int], dict[str, float]] = {}
    risks: dict[tuple[str, int], float] = {}
    often: dict[str, float] = {}
    names = ("state", "step", "action", "reach", "risk")
    for state, step, action, reach, risk in zip(
        *(table[name].tolist() for name in names), strict=True
    ):
        cell = found.setdefault((state, step), {})
        cell[action] = cell.get(action, 0.0) + reach
        risks[state, step] = risks.get((state, step), 0.0) + risk
        often[action] = often.get(action, 0.0) + reach
    return ActionMatrix(
        model=table.places.policy.about.model,
        states=texts,
        steps=tuple(range(min(table["step"], default=1), max(table["step"], default=0) + 1)),
        actions=tuple(sorted(often, key=lambda action: -often[action])),
        cells={where: _make_cell(cell, risks[where]) for where, cell in found.items()},
    )


def _make_cell(taken: Mapping[str, float], risk: float) -> Cell:
    reach = sum(taken.values())
    ordered = sorted(taken.items(), key=lambda pair: -pair[1])
    return Cell({action: share / reach for action, share in ordered if reach}, reach, risk)


def _sort_states(table: PolicyTable) -> tuple[str, ...]:
    """Return the states by their own order, if they have one; else by that of their texts."""
    numbers = table.places.rows["state"][table.place].tolist()
    named = dict(zip(numbers, table["state"].tolist(), strict=True))
    objects: list[Any] = table.places.states
    try:
        order = sorted(named, key=lambda number: objects[number])
    except TypeError:
        order = sorted(named, key=lambda number: named[number])
    return tuple(dict.fromkeys(named[number] for number in order))


def _style(action: int, pale: bool = False) -> str:
    return _colour(action) if pale else f"bold black on {_colour(action)}"


def _paint(action: int, pale: bool = False) -> str:
    return f"background: {_mix(action) if pale else _colour(action)}; color: #000"


def _colour(action: int) -> str:
    return COLOURS[action % len(COLOURS)]


def _mix(action: int) -> str:
    """Return the colour of an action half way to white."""
    colour = _colour(action)
    parts = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 255) // 3:02x}" for part in parts)
