"""Conditions on the rows of a table, as people write them: `step=3`, `reach >= 0.01`, `state~ill`.

A condition is the name of a column, a comparison, and a value. `~` means that the text contains the
value, whatever the case of its letters. Numbers may have a percent sign.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError
from vulcan.parameters import shorten

__all__ = ["Condition", "read_condition"]

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
WORDS: Final = ("=", "==", "!=", "~")
CONDITION: Final = re.compile(r"\s*([a-z_]+)\s*(==|!=|<=|>=|=|<|>|~)\s*(.*?)\s*", re.DOTALL)


class Condition(NamedTuple):
    """The name of a column, a comparison, and a value as it was written."""

    column: str
    sign: str
    value: str

    def meet(self, cells: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which cells of the column meet the condition.

        Raises
        ------
        OptionError
            If the comparison or the value is not one for such cells.
        """
        name, sign, value = self
        if cells.dtype != object:
            if sign == "~":
                raise OptionError(f"{name} holds numbers, which contain nothing: ~ is for words")
            return np.asarray(COMPARISONS[sign](cells, _read_number(name, value)), bool)
        if sign not in WORDS:
            raise OptionError(f"{name} holds words, compared by {', '.join(WORDS)}, not by {sign}")
        if sign == "~":
            return np.array([value.casefold() in cell.casefold() for cell in cells], bool)
        return np.asarray(COMPARISONS[sign](cells, value), bool)


def read_condition(text: object) -> Condition:
    """Return a condition that was written as a string.

    Raises
    ------
    OptionError
        If it is none.
    """
    found = CONDITION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise OptionError(
            "a condition is a column, a comparison (=, !=, <, <=, >, >=, ~) and a value, such as "
            f"'step=3' or 'reach>=0.01', not {shorten(text)}"
        )
    return Condition(*found.groups())


def _read_number(name: str, value: str) -> float:
    text, scale = (value[:-1].strip(), 0.01) if value.endswith("%") else (value, 1.0)
    try:
        return float(text) * scale
    except ValueError:
        raise OptionError(f"{name} is compared with a number, not with {value!r}") from None
