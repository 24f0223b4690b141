"""Models for other tools: any model that can be enumerated, as DRN or in the PRISM language.

All states that can be reached within the horizon are written, by their numbers. Three labels say
what Vulcan means by them:

    init     the initial state
    failed   the one state that all failures lead to
    ended    safe terminals, and states that are met after the last step only

States of the last two stay as they are for ever, and earn nothing. The reward structure "reward"
has the expected reward of each choice. Neither format knows a horizon: it is part of what is asked,

    multi(R{"reward"}max=? [C<=horizon], P<=0.1 [F<=horizon "failed"])

and stands at the head of the file. Neither knows a discount, so that models with one are refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from vulcan.errors import OptionError
from vulcan.graphs.array_graph import open_graph
from vulcan.graphs.state_graph import StateGraph
from vulcan.model.interface import describe_model
from vulcan.model.reader import ModelReader
from vulcan.model.text import stable_text
from vulcan.runtime.files import write_atomically
from vulcan.sentinels import FAILURE_STATE, UNASKED

__all__ = ["Export", "check_export", "export_model"]

MOST_STATES: Final = 1_000_000
"""More than this is hardly meant to be read as text."""

LONGEST: Final = 200
"""Characters of a comment."""

KEYWORDS: Final = (
    "A bool clock const ctmc C double dtmc E endinit endinvariant endmodule endobservables "
    "endrewards endsystem F false formula filter func G global I init invariant int label max mdp "
    "min module nondeterministic observable observables of P Pmax Pmin pomdp popta pta "
    "probabilistic prob R rate rewards Rmax Rmin S stochastic system true U W X"
)
"""Words that PRISM keeps for itself."""


@dataclass(frozen=True)
class Export:
    """What was written.

    Attributes
    ----------
    path
        The file.
    states, choices, transitions
        Its size.
    query
        A question to ask of it, in the language of PRISM and Storm.
    """

    path: str
    states: int
    choices: int
    transitions: int
    query: str


@dataclass(frozen=True)
class _Choice:
    """An action of a state: its name, what it earns on average, and where it leads."""

    name: str
    reward: float
    targets: Mapping[int, float]


@dataclass(frozen=True)
class _Listing:
    """A model with all of its states: their texts, their labels, and their choices."""

    title: str
    query: str
    texts: Sequence[str]
    labels: Mapping[str, Sequence[int]]
    choices: Sequence[Sequence[_Choice]]


def export_model(model: Any, path: str | os.PathLike[str]) -> Export:
    """Write a model to a file that other tools read.

    Parameters
    ----------
    model
        Any model whose states within the horizon can be enumerated.
    path
        The file; its suffix says how it is written: `.drn`, or `.prism`, `.pm`, `.nm`.

    Raises
    ------
    OptionError
        If the suffix is another, the model has a discount, or too many states.
    """
    write = check_export(path)
    listing = _enumerate(ModelReader(model))
    write_atomically(path, "".join(f"{line}\n" for line in write(listing)).encode())
    choices = [choice for group in listing.choices for choice in group]
    return Export(
        os.fspath(path),
        states=len(listing.choices),
        choices=len(choices),
        transitions=sum(len(choice.targets) for choice in choices),
        query=listing.query,
    )


def check_export(path: str | os.PathLike[str]) -> Callable[[_Listing], Iterator[str]]:
    """Return what writes such a file, or refuse its suffix."""
    suffix = Path(path).suffix
    if suffix not in WRITERS:
        raise OptionError(
            f"models are written as {', '.join(WRITERS)}, not as {suffix or os.fspath(path)!r}"
        )
    return WRITERS[suffix]


def _enumerate(reader: ModelReader) -> _Listing:
    """Ask a model for all that can happen within the horizon."""
    if reader.discount != 1:
        raise OptionError(
            f"other tools know no discount, and this model has {reader.discount!r}; without it, "
            "the model can be written"
        )
    graph = open_graph(reader)
    for _ in range(reader.levels):
        unasked = graph.states.array["action_count"][: graph.states.count] == UNASKED
        if not unasked.any():
            break
        graph.expand_all(np.flatnonzero(unasked).tolist())
        if graph.states.count > MOST_STATES:
            raise OptionError(
                f"the model has more than {MOST_STATES:,} states within its horizon of "
                f"{reader.horizon}; try a shorter one"
            )
    return _list_states(reader, graph)


def _list_states(reader: ModelReader, graph: StateGraph) -> _Listing:
    failed = graph.states.count
    choices = [_list_choices(graph, state, failed) for state in range(failed)]
    ended = [state for state, group in enumerate(choices) if not group]
    stay = [[_Choice("stay", 0.0, {state: 1.0})] for state in range(failed + 1)]
    steps = reader.levels
    return _Listing(
        title=f"{describe_model(reader.model)}, {steps} steps",
        query=f'multi(R{{"reward"}}max=? [C<={steps}], P<=0.1 [F<={steps} "failed"])',
        texts=[*(stable_text(graph.state_object(s)) for s in range(failed)), "failed"],
        labels={"init": [0], "failed": [failed], "ended": ended},
        choices=[group or stay[state] for state, group in enumerate(choices)] + [stay[failed]],
    )


def _list_choices(graph: StateGraph, state: int, failed: int) -> list[_Choice]:
    first, count = graph.states.array[state].item()
    if count <= 0:
        return []
    choices: list[_Choice] = []
    names: set[str] = set()
    for row, label in enumerate(graph.action_labels(state), start=first):
        action = graph.actions.array[row]
        begin, rows = int(action["first_outcome"]), int(action["outcome_count"])
        targets: dict[int, float] = {}
        for outcome in graph.outcomes.array[begin : begin + rows]:
            reached = int(outcome["state"])
            place = failed if reached == FAILURE_STATE else reached
            targets[place] = targets.get(place, 0.0) + float(outcome["probability"])
        name = _name(label, names)
        names.add(name)
        choices.append(_Choice(name, float(action["expected_reward"]), targets))
    return choices


def _name(label: str, taken: set[str]) -> str:
    """Return a label as a word that both formats take, unlike those that are taken."""
    word = re.sub(r"\W+", "_", label, flags=re.ASCII).strip("_") or "action"
    if word[0].isdigit() or word in KEYWORDS.split():
        word = f"a_{word}"
    name, again = word, 1
    while name in taken:
        again += 1
        name = f"{word}_{again}"
    return name


def _write_drn(listing: _Listing) -> Iterator[str]:
    yield f"// {_in_line(listing.title)}"
    yield f"// {listing.query}"
    yield "@type: MDP"
    yield "@parameters"
    yield ""
    yield "@reward_models"
    yield "reward"
    yield "@nr_states"
    yield str(len(listing.choices))
    yield "@nr_choices"
    yield str(sum(map(len, listing.choices)))
    yield "@model"
    named: dict[int, str] = {}
    for label, states in listing.labels.items():
        for state in states:
            named[state] = f"{named.get(state, '')} {label}"
    for state, group in enumerate(listing.choices):
        yield f"state {state} [0]{named.get(state, '')}"
        yield f"//{_in_line(listing.texts[state])}"
        for choice in group:
            yield f"\taction {choice.name} [{choice.reward!r}]"
            for target, probability in sorted(choice.targets.items()):
                yield f"\t\t{target} : {probability!r}"


def _write_prism(listing: _Listing) -> Iterator[str]:
    yield f"// {_in_line(listing.title)}"
    yield f"// {listing.query}"
    yield "mdp"
    yield ""
    yield "module model"
    yield f"    state : [0..{len(listing.choices) - 1}] init 0;"
    yield ""
    rewards = []
    for state, group in enumerate(listing.choices):
        yield f"    // {state}: {_in_line(listing.texts[state])}"
        for choice in group:
            ways = [f"{chance!r} : (state'={to})" for to, chance in sorted(choice.targets.items())]
            yield f"    [{choice.name}] state={state} -> {' + '.join(ways)};"
            if choice.reward:
                rewards.append(f"    [{choice.name}] state={state} : {choice.reward!r};")
    yield "endmodule"
    for label, states in listing.labels.items():
        if label != "init":  # which is there already
            places = " | ".join(f"state={state}" for state in states) or "false"
            yield f'label "{label}" = {places};'
    yield 'rewards "reward"'
    yield from rewards or ["    false : 0;"]
    yield "endrewards"


def _in_line(text: str) -> str:
    """Return a text that fits into a comment."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


WRITERS: Final = {
    ".drn": _write_drn,
    ".prism": _write_prism,
    ".pm": _write_prism,
    ".nm": _write_prism,
}
