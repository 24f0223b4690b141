"""The arrays of a model that Storm built, taken over at once.

Asking Storm for a matrix entry by entry takes microseconds each. It writes a whole model into a UMB
archive ("unified Markov binary") instead: a tar file whose members are the arrays themselves.

    state-to-choices [S + 1], choice-to-branches [C + 1]    where the rows of each begin
    branch-to-target, branch-to-probability [B]             the transitions
    actions/choices/values [C]                              the number of each choice's name
    actions/choices/string-mapping, strings                 the names, one after the other
"""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["StormArrays", "read_arrays"]

UNNAMED: Final = "step"
"""What a choice without any name is called."""

ORIGIN: Final = re.compile(r"(?P<action>\w+)|\((?P<module>\w+):")
"""A choice in words: its action, or else its module with the command."""


@dataclass(frozen=True)
class StormArrays:
    """A model as Storm built it.

    Attributes
    ----------
    start
        The initial state.
    state, action
        Of each choice, its state and the number of its name.
    choice, target, probability
        Of each branch.
    rewards
        Of each reward structure, what the choices earn, with their states.
    action_labels
        The names.
    variables
        The value of each variable in each state.
    comments
        What the file itself calls each state, where it has no variables; None if it does not.
    """

    start: int
    state: NDArray[np.int64]
    action: NDArray[np.int64]
    choice: NDArray[np.int64]
    target: NDArray[np.int64]
    probability: NDArray[np.float64]
    rewards: Mapping[str, NDArray[np.float64]]
    action_labels: list[str]
    variables: Mapping[str, NDArray[Any]]
    comments: list[str] | None = None

    @cached_property
    def state_names(self) -> list[str] | None:
        """The values of the variables in each state, `x=3, gold=1`.

        Without variables, what the file calls the states. None if that does not tell them apart.
        """
        form = ", ".join(f"{name}=%s" for name in self.variables)
        columns = [
            column.tolist() if column.dtype != bool else np.where(column, "true", "false").tolist()
            for column in self.variables.values()
        ]
        names = [form % values for values in zip(*columns, strict=True)] or self.comments
        return names if names and len(set(names)) == len(names) else None


def read_arrays(stormpy: Any, built: Any, program: Any) -> StormArrays:
    """Return the arrays of a model.

    Parameters
    ----------
    stormpy
        The library.
    built
        Its sparse model.
    program
        What it was built from: a PRISM program, a JANI model, or None.
    """
    # Choices of PRISM without a name have that of their module; JANI's origins are hard to read.
    files = _write_out(stormpy, built, modules=hasattr(program, "modules"))
    first_choice = _read(files, "state-to-choices", "u8")
    first_branch = _read(files, "choice-to-branches", "u8")
    if first_choice is None:  # a Markov chain: one choice for each state
        first_choice = np.arange(built.nr_states + 1)
    state = np.repeat(np.arange(len(first_choice) - 1), np.diff(first_choice))
    choice = np.repeat(np.arange(len(first_branch) - 1), np.diff(first_branch))
    target = _read(files, "branch-to-target", "u8")
    probability = _read(files, "branch-to-probability", "f8", float)
    action, labels = _number_actions(state, *_read_names(files, len(state)))
    return StormArrays(
        start=int(built.initial_states[0]),
        state=state,
        action=action,
        choice=choice,
        target=target,
        probability=probability,
        rewards={
            name: _read_rewards(model, state) for name, model in sorted(built.reward_models.items())
        },
        action_labels=labels,
        variables=_read_variables(built, program),
    )


def _write_out(stormpy: Any, built: Any, modules: bool) -> dict[str, bytes]:
    """Return the members of the archive that Storm writes."""
    options = stormpy.io.UmbExportOptions()
    options.compression = stormpy.io.CompressionMode.NO_COMPRESSION
    options.allow_choice_origins_as_actions = modules and built.has_choice_origins()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.umb"
        stormpy.io.export_to_umb(built, path, options=options)
        with tarfile.open(path) as archive:
            return {
                member.name: content.read()
                for member in archive
                if (content := archive.extractfile(member)) is not None
            }


def _read(files: Mapping[str, bytes], name: str, kind: str, to: Any = np.int64) -> Any:
    content = files.get(f"{name}.bin")
    return None if content is None else np.frombuffer(content, f"<{kind}").astype(to)


def _read_names(files: Mapping[str, bytes], count: int) -> tuple[NDArray[np.int64], list[str]]:
    """Return the number of each choice's name, and the names."""
    numbers = _read(files, "actions/choices/values", "u4")
    if numbers is None:
        return np.zeros(count, np.int64), [UNNAMED]
    ends = _read(files, "actions/choices/string-mapping", "u8").tolist()
    words = files["actions/choices/strings.bin"]
    texts = [words[a:b].decode() for a, b in pairwise(ends)]
    named = [match and (match["action"] or match["module"]) for match in map(ORIGIN.match, texts)]
    return numbers, [name or UNNAMED for name in named]


def _number_actions(
    state: NDArray[np.int64], name: NDArray[np.int64], names: list[str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the number of each choice's label, and the labels: in one state all are different."""
    known = {text: k for k, text in enumerate(dict.fromkeys(names))}
    name = np.array([known[text] for text in names])[name]
    order = np.lexsort((name, state))  # stable: choices of one name stay in their order
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(state[order]) != 0) | (np.diff(name[order]) != 0)
    place = np.arange(len(order))
    turn = np.empty(len(order), np.int64)
    turn[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    pairs, action = np.unique(turn * len(known) + name, return_inverse=True)
    texts = list(known)
    labels = [
        texts[which] if again == 0 else f"{texts[which]} {again + 1}"
        for again, which in zip(
            *(part.tolist() for part in np.divmod(pairs, len(known))), strict=True
        )
    ]
    return action, labels


def _read_rewards(model: Any, state: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what the choices earn: their own rewards, and those of their states."""
    total = np.zeros(len(state))
    if model.has_state_rewards:
        total += np.array(model.state_rewards)[state]
    if model.has_state_action_rewards:
        total += np.array(model.state_action_rewards)
    return total


def _read_variables(built: Any, program: Any) -> dict[str, NDArray[Any]]:
    """Return the values of the variables that make a state.

    Storm has more: a bit for states out of bounds, the location of each automaton of JANI, of which
    most have only one, and the transient variables of JANI, which are its labels and rewards.
    """
    if not built.has_state_valuations():
        return {}
    values = built.state_valuations
    transient = {
        variable.name
        for variable in getattr(program, "global_variables", ())
        if variable.is_transient
    }
    columns = {
        variable.name: np.array(values.get_values_states(variable))
        for variable in values.get_all_variables()
        if variable.name not in transient
    }
    return {name: column for name, column in columns.items() if name[0] != "_" or column.any()}
