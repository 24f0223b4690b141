"""Models of model checkers: PRISM, JANI and DRN files, built by Storm.

    path/to/model.prism (.pm, .nm)    the PRISM language
    path/to/model.jani                JANI, which many tools write
    path/to/model.drn                 explicit states, as Storm writes them

A file defines the transitions; failure and reward are given as parameters (see `from_prism`). A
step earns the reward of the state that it leaves and that of its choice, as in `C<=horizon`: a
failed state and the last state earn nothing; costs likewise. An absorbing state without reward or
cost is a safe terminal.
Choices keep the names of their actions; those without one have that of their module. Choices of one
state that share a name get numbers.

A `pomdp` becomes a `BeliefModel`: what a state shows are its observables, and an observation leads
on to the actions of its states. Reaching a goal or failing is noticed.

Storm parses the file and builds the states. Its errors are reported with the file, and with the
line if Storm names one.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.certificate.verify import quiet_storm
from vulcan.errors import OptionError, VulcanError
from vulcan.formats.pomdp import END, HiddenTable
from vulcan.formats.registry import Maker
from vulcan.model.arrays import FAILURE_TARGET, ArrayModel, Names
from vulcan.model.belief import BeliefModel, Transition
from vulcan.parameters import suggest

FORMS: Final = {
    "path/to/model.prism, .jani, .drn": "a model of model checkers, read by Storm",
}

KINDS: Final = ("DTMC", "MDP", "POMDP")

OUT_OF_BOUNDS: Final = "out_of_bounds"  # Storm's label of the state for all variables out of range
UNNAMED: Final = "step"  # name of a choice without any other
NO_ORIGIN: Final = "No origin"  # what Storm calls the origin of a choice that it has added itself
ORIGIN: Final = re.compile(r"(?P<action>\w+)|\((?P<module>\w+):")  # its action, or else its module

PLACE: Final = re.compile(r"(?:Parsing|parse) error at (?:line )?(\d+)(?::|, column )(\d+):\s*")
"""A place in Storm's errors: line and column."""


def from_prism(
    path: str | os.PathLike[str],
    *,
    horizon: int,
    failure: str = "failed",
    reward: str | Mapping[str, float] | float | None = None,
    goal: str | None = None,
    costs: str = "",
    events: str | Mapping[str, str] = "",
    discount: float = 1.0,
    **constants: bool | float,
) -> ArrayModel | BeliefModel:
    """Read a model in the PRISM language, in JANI or in DRN.

    States are texts, the values of the variables: `x=3, gold=1`; Storm's numbers in a file without
    variables. Actions are the names of the choices.

    Parameters
    ----------
    path
        The file; its suffix selects the format.
    horizon
        Largest number of steps of a history.
    failure
        A label of the file, or an expression over its variables such as ``"x=3 & !carrying"``: a
        step into such a state is a failure.
    reward
        The name of a reward structure; by default the only one there is. Or weights of several,
        ``{"gold": 1, "time": -0.1}``. Or a number, the reward of reaching the goal.
    goal
        A label or an expression for the states in which the mission ends safely.
    costs
        The reward structures that are costs of the same names, with commas between them.
    events
        Labels, with commas between them: a step into such a state has the event of that name. Or
        names with labels or expressions, ``{"late": "late & x < 3"}``.
    discount
        As in every model.
    constants
        Values of the undefined constants of the file; one with the name of a parameter is given as
        `const_horizon`.
    """
    path = os.fspath(path)
    if not Path(path).is_file():
        raise OptionError(f"there is no file {path}")
    places = {"failure": str(failure)} | ({} if goal is None else {"goal": str(goal)})
    spent = re.findall(r"[^,\s]+", str(costs))
    if not isinstance(events, Mapping):
        events = {name: name for name in re.findall(r"[^,\s]+", str(events))}
    places |= {f"event {name}": str(text) for name, text in events.items()}
    with _name_file(path) as stormpy:
        program, built = _parse(stormpy, path)
        program = _instantiate(stormpy, program, constants)
        formulas = {
            name: _parse_place(stormpy, program, built, name.split()[0], text)
            for name, text in places.items()
        }
        built = built or _build(stormpy, program, list(formulas.values()))
        kind, count = built.model_type.name, len(built.initial_states)
        if kind not in KINDS:
            listed = ", ".join(KINDS)
            raise OptionError(f"this is a {kind}; a model for planning is one of {listed}")
        if count != 1:
            raise OptionError(f"there are {count} initial states; exactly one is allowed")
        found = {name: np.zeros(built.nr_states, bool) for name in ("failure", "goal", *places)}
        for name, formula in formulas.items():
            answer = stormpy.model_checking(built, formula, force_fully_observable=True)
            if not answer.is_qualitative:
                allowed = "labels or Boolean expressions, not numbers"
                raise OptionError(f"failure and goal must be {allowed}")
            found[name][list(answer.get_truth_values_vector())] = True
            if name in ("failure", "goal") and found[name][built.initial_states[0]]:
                message = f"starts in a state of {name} {places[name]!r}: nothing is left to decide"
                raise OptionError(message)
        fails, ends = found["failure"], found["goal"] & ~found["failure"]
        step, bonus = _choose_rewards(built, reward, goal, spent)
        entered = np.full(built.nr_states, "", object)
        for name in events:
            if (both := np.flatnonzero(found[f"event {name}"] & (entered != ""))).size:
                pair = f"{entered[both[0]]!r} and {name!r}"
                raise OptionError(f"an outcome has one event; {pair} are labels of one state")
            entered[found[f"event {name}"]] = name
        rows = [_read_rows(stormpy, program, built)]
        start, hidden = int(built.initial_states[0]), kind == "POMDP"
        if not hidden:
            del built, answer
            _return_memory()
        kinds = fails, ends, entered
        model = _make(rows.pop(), kinds, step, bonus, spent, hidden, start, horizon, discount)
        model.source = Path(path).name
        _return_memory()
        return model if not hidden else BeliefModel(_hide(model, built, program))


def _return_memory() -> None:
    """Give memory that was freed back to the system, where the C library can."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def find_maker(text: str) -> Maker:
    """Return the maker of the model of a file; its undefined constants are parameters."""
    return Path(text).name, partial(from_prism, text), None


@contextmanager
def _name_file(path: str) -> Iterator[Any]:
    """Yield stormpy; add the name of the file, and the line if known, to errors."""
    with quiet_storm() as stormpy:
        try:
            yield stormpy
        except VulcanError as error:
            raise OptionError(f"{path}: {error}") from None
        except (RuntimeError, stormpy.exceptions.StormError) as error:
            raise OptionError(_describe(path, str(error))) from None


def _parse(stormpy: Any, path: str) -> tuple[Any, Any]:
    """Return the program of a file, or the model if the file has explicit states."""
    suffix = Path(path).suffix
    if suffix == ".drn":
        options = stormpy.io.DirectEncodingParserOptions()
        options.build_choice_labeling = True
        return None, stormpy.build_model_from_drn(path, options=options)
    if suffix == ".jani":
        return stormpy.parse_jani_model(path)[0], None
    return stormpy.parse_prism_program(path), None


def _instantiate(stormpy: Any, program: Any, given: Mapping[str, Any]) -> Any:
    """Return the program with its constants defined."""
    constants = program.constants if program else ()
    kinds = {constant.name: constant.type for constant in constants if not constant.defined}
    values = {}
    for key, value in given.items():
        name = key if key in kinds else key.removeprefix("const_")
        if name not in kinds:
            known = ", ".join(kinds) or "none"
            hint = f"{suggest(name, kinds)}; open constants are {known}"
            raise OptionError(f"there is no open constant {name!r}{hint}")
        values[name] = _fit(name, value, kinds[name])
    if missing := [name for name in kinds if name not in values]:
        raise OptionError(f"this file needs {' '.join(f'--set {name}=...' for name in missing)}")
    return stormpy.instantiate_constants(program, values)[0] if values else program


def _fit(name: str, value: Any, kind: Any) -> Any:
    """Return the value of a constant in its type, or raise an error."""
    if kind.is_boolean:
        fits, wanted = isinstance(value, bool), "True or False"
    elif kind.is_integer:
        fits, wanted = type(value) is int, "a whole number"
    else:
        fits, wanted = kind.is_rational and type(value) in (int, float), "a number"
    if not fits:
        raise OptionError(f"constant {name} is {wanted}, not {value!r}")
    return float(value) if kind.is_rational else value


def _parse_place(stormpy: Any, program: Any, built: Any, name: str, text: str) -> Any:
    """Return a label or an expression as a formula of Storm."""
    labels: set[str] | None = None  # those of JANI are known only after building
    if built is not None:
        labels = set(built.labeling.get_labels())
    elif hasattr(program, "labels"):
        labels = {label.name for label in program.labels} | {"init", "deadlock"}
    if labels is not None and text in labels:
        return stormpy.parse_property(f'"{text}"', program)
    if program is not None and (labels is None or labels.issuperset(re.findall('"([^"]*)"', text))):
        with suppress(RuntimeError, stormpy.exceptions.StormError):
            return stormpy.parse_property(text, program)
    variables = [] if program is None else sorted(_list_variables(program))
    listed = [
        f"\nits {kind} are {', '.join(known)}"
        for kind, known in (("labels", sorted(labels or ())), ("variables", variables))
        if known
    ]
    hint = suggest(text, [*(labels or ()), *variables]) + "".join(listed)
    kinds = "a label" if program is None else "a label or an expression over the variables"
    raise OptionError(f"{name} {text!r} is not {kinds}{hint}")


def _list_variables(program: Any) -> list[str]:
    """Return the names of the variables of a program, without its constants."""
    if hasattr(program, "global_variables"):
        return [variable.name for variable in program.global_variables]
    constants = {constant.name for constant in program.constants}
    return [variable.name for variable in program.variables if variable.name not in constants]


def _build(stormpy: Any, program: Any, formulas: list[Any]) -> Any:
    """Return the model of a program."""
    arguments = (formulas, stormpy.io.SymbolicModelDescription(program))
    options = stormpy.BuilderOptions(*arguments, build_full=True)
    options.set_add_out_of_bounds_state()
    options.set_build_observation_valuations(True)
    built = stormpy.build_model(program, options=options)
    if OUT_OF_BOUNDS in built.labeling.get_labels():
        options = stormpy.BuilderOptions(*arguments, build_full=True)
        options.set_exploration_checks()  # names the update, but refuses rounding too
        stormpy.build_model(program, options=options)
        raise OptionError("a variable leaves its range")
    return built


def _describe(path: str, message: str) -> str:
    """Return an error of Storm about a file, with the line if it names one."""
    message = re.sub(r"^\w+Exception: |^\[json\.exception\.[\w.]+\] ", "", message.strip())
    place = PLACE.search(message)
    if place is None:
        return f"{path}: {message}"
    line, column = place.groups()
    what, _, shown = message[place.end() :].partition(", here:")
    text = shown.strip("\n").split("\n")[0].strip()
    return f"{path}, line {line}, column {column}: {what.strip()}" + (f"\n  {text}" if text else "")


def _choose_rewards(
    built: Any, reward: Any, goal: str | None, costs: Sequence[str]
) -> tuple[Mapping[str, float], float]:
    """Return the weights of reward structures, and the reward of reaching the goal."""
    known, bonus = sorted(built.reward_models), 0.0
    listed = f"reward structures are {', '.join(map(repr, known)) or 'none'}"
    if isinstance(reward, int | float) and not isinstance(reward, bool):
        if goal is None:
            raise OptionError(f"reward {reward!r} is for reaching a goal: give goal")
        reward, bonus = {}, float(reward)
    if reward is None:
        if len(known) != 1:
            raise OptionError(f"give reward; {listed}")
        reward = known[0]
    weights = reward if isinstance(reward, Mapping) else {str(reward): 1.0}
    for name in (*weights, *costs):
        if name not in known:
            hint = suggest(name, known)
            raise OptionError(f"there is no reward structure {name!r}{hint}; {listed}")
    return weights, bonus


def _make(
    rows: _Rows,
    places: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    weights: Mapping[str, float],
    bonus: float,
    costs: Sequence[str],
    hidden: bool,
    start: int,
    horizon: int,
    discount: float,
) -> ArrayModel:
    """Return the model; failures, goals and idle absorbing states have no actions.

    `places` says which states fail and which end the mission, and the event of each.
    """
    fails, ends, entered = places
    choice_state = np.repeat(np.arange(len(fails), dtype=np.int32), np.diff(rows.first_choice))
    action, labels = _number_actions(choice_state, rows.action, rows.names, rows.in_order)
    earned, spent = np.zeros(len(choice_state)), dict.fromkeys(costs, np.zeros(0))
    for name in dict.fromkeys((*weights, *costs)):
        of_states, of_choices = rows.rewards[name]
        total = of_choices + (of_states[choice_state] if of_states.ndim else of_states)
        total = np.broadcast_to(total, len(choice_state))
        earned += weights.get(name, 0.0) * total
        if name in spent:
            spent[name] = total
    choice = np.repeat(np.arange(len(choice_state), dtype=np.int32), np.diff(rows.first_branch))
    state = choice_state[choice]
    paid = np.any([earned, *spent.values()], axis=0)
    moves = (rows.target != state) | paid[choice]
    stuck = np.ones(len(fails), np.bool_)
    stuck[state[moves]] = hidden  # that a state is absorbing is not seen there
    kept = ~(fails | ends | (stuck & (not hidden)))[state]
    if not kept.any():
        raise OptionError("the model has no decisions: its initial state is absorbing")
    choice, state = choice[kept], state[kept]
    target, probability, names = rows.target[kept], rows.probability[kept], rows.states
    del rows, moves, kept, choice_state
    reward, action = earned[choice], action[choice]
    if bonus:
        reward += bonus * ends[target]
    charged = {name: total[choice] for name, total in spent.items()}
    events = entered[target] if any(entered) else None
    target[fails[target]] = FAILURE_TARGET
    del choice
    return ArrayModel(
        state,
        action,
        target,
        probability,
        reward,
        horizon=horizon,
        start=start,
        discount=discount,
        action_names=labels,
        state_names=names,
        costs=charged,
        events=events,
    )


class _Rows(NamedTuple):
    """What Storm has built, as arrays."""

    first_choice: NDArray[Any]  # of each state, and the number of choices
    first_branch: NDArray[Any]  # of each choice, and the number of branches
    target: NDArray[np.int32]  # of each branch
    probability: NDArray[np.float64]
    rewards: dict[str, tuple[NDArray[Any], NDArray[Any]]]  # of states and of choices, or 0
    action: NDArray[Any]  # the number of each choice's name
    names: list[str]
    in_order: bool  # whether actions are in the order of the file
    states: Names | None


def _read_rows(stormpy: Any, program: Any, built: Any) -> _Rows:
    """Return the arrays of a model, from the binary format that Storm writes."""
    options = stormpy.io.UmbExportOptions()
    options.compression = stormpy.io.CompressionMode.NO_COMPRESSION
    options.allow_choice_origins_as_actions, options.canonicize_pomdp = True, False
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.umb")
        stormpy.io.export_to_umb(built, path, options=options)
        with tarfile.open(path) as archive:
            files = {member.name: member for member in archive}

            def read(name: str, kind: str, otherwise: NDArray[Any]) -> NDArray[Any]:
                if name not in files:
                    return otherwise
                content: Any = archive.extractfile(files[name])
                return np.frombuffer(content.read(), kind)

            index = json.loads(read("index.json", "u1", np.zeros(0)).tobytes())
            every, zero = np.arange(built.nr_states + 1), np.zeros(())
            first = [
                read(f"{name}.bin", "<u8", every).astype(np.int32)
                for name in ("state-to-choices", "choice-to-branches")
            ]
            target = read("branch-to-target.bin", "<u8", every).astype(np.int32)
            rewards = {
                reward.get("alias", key): tuple(
                    read(f"annotations/rewards/{key}/{kind}/values.bin", "<f8", zero)
                    for kind in ("states", "choices")
                )
                for key, reward in index.get("annotations", {}).get("rewards", {}).items()
            }
            own = "actions/choices"
            action = read(f"{own}/values.bin", "<u4", np.zeros(len(first[1]) - 1, np.int32))
            ends = read(f"{own}/string-mapping.bin", "<u8", np.zeros(2, int)).tolist()
            text = read(f"{own}/strings.bin", "u1", np.zeros(0, "u1")).tobytes()
            names = [text[begin:end].decode() for begin, end in pairwise(ends)]
            chance = read("branch-to-probability.bin", "<f8", np.ones(len(target)))
    number, names = _name_choices(program, built, action, names)
    states = _name_values(built.has_state_valuations() and built.state_valuations, program)
    in_order = hasattr(program, "modules")
    return _Rows(*first, target, chance, rewards, number, names, in_order, states)  # type: ignore[call-arg,arg-type]


def _name_choices(
    program: Any, built: Any, action: NDArray[Any], names: Sequence[str]
) -> tuple[NDArray[Any], list[str]]:
    """Return a number for each choice, and names: of its action, or else of its module."""
    if hasattr(program, "modules") and built.has_choice_origins():  # JANI's are hard to read
        found = [ORIGIN.match(text) for text in names]  # its action, or what Storm calls its origin
        own = [match["action"] or match["module"] if match else UNNAMED for match in found]
        own = [
            UNNAMED if text == NO_ORIGIN else name for text, name in zip(names, own, strict=True)
        ]
        known: dict[str, int] = {}
        return np.array([known.setdefault(name, len(known)) for name in own])[action], list(known)
    if built.has_choice_labeling():
        labels = [built.choice_labeling.get_labels_of_choice(k) for k in range(built.nr_choices)]
        own, known = [", ".join(sorted(some)) or UNNAMED for some in labels], {}
        return np.array([known.setdefault(name, len(known)) for name in own]), list(known)
    return np.zeros(built.nr_choices, np.int32), [UNNAMED]


def _number_actions(
    states: NDArray[Any], number: NDArray[Any], names: Sequence[str], in_order: bool
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the number of each choice's label, and the labels, unique within a state.

    They are in the order of the file, or else of the alphabet.
    """
    _, first = np.unique(number, return_index=True)
    used = [names[k] for k in number[np.sort(first)].tolist()]
    texts = list(dict.fromkeys([UNNAMED, *(used if in_order else sorted(used))]))
    known = {text: k for k, text in enumerate(texts)}
    number = np.array([known.get(name, 0) for name in names])[number]
    # How many choices of the same state and name come before.
    key = states.astype(np.int64) * len(texts) + number
    order = np.argsort(key, kind="stable")
    begins = np.append(True, np.diff(key[order]) != 0)
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    pairs, action = np.unique(turn * len(texts) + number, return_inverse=True)
    turns, kinds = np.divmod(pairs, len(texts))
    labels = [
        texts[kind] + (f" {turn + 1}" if turn else "")
        for turn, kind in zip(turns.tolist(), kinds.tolist(), strict=True)
    ]
    return action.astype(np.int32), labels


def _hide(model: ArrayModel, built: Any, program: Any) -> HiddenTable:
    """Return the hidden model of a POMDP."""
    if model.costs:
        raise OptionError("hidden states have no costs: leave costs out")
    valued = built.has_observation_valuations() and built.observation_valuations
    names = _name_values(valued, program) or list(map(str, range(built.nr_observations)))
    shown = {model.state_name(k): names[seen] for k, seen in enumerate(built.observations)}
    start, horizon, discount = model.initial_state(), model.horizon, model.discount
    menus: dict[str | None, list[str]] = {None: model.actions(start), END: []}
    moves: dict[tuple[str, str], list[Transition]] = {}
    looks: dict[tuple[str, str], dict[str, float]] = {}
    waiting, found = [start], {start}
    for state in waiting:
        actions = model.actions(state)
        if sorted(menus.setdefault(shown[state], actions)) != sorted(actions):
            known = ", ".join(menus[shown[state]])
            raise OptionError(
                f"state {state} has the actions {', '.join(actions)}; another state with the same "
                f"observation {shown[state]!r} has {known}"
            )
        for action in actions:
            for outcome in model.outcomes(state, action):
                after = state if outcome.fails else outcome.state
                given = outcome.probability, after, outcome.reward, outcome.fails, outcome.event
                moves.setdefault((state, action), []).append(Transition(*given))
                if outcome.fails:
                    continue
                goes_on = bool(model.actions(after))
                looks[after, action] = {shown[after] if goes_on else END: 1.0}
                if goes_on and after not in found:
                    found.add(after)
                    waiting.append(after)
    return HiddenTable(str(model.source), horizon, discount, {start: 1.0}, menus, moves, looks)


def _name_values(values: Any, program: Any) -> Names | None:
    """Return the values of the variables in each state, `x=3, gold=1`; None without variables.

    Storm adds others: a bit for states out of bounds, the location of each automaton of JANI, and
    the transient variables of JANI, which are its labels and rewards.
    """
    if not values:
        return None
    known = getattr(program, "global_variables", ())
    transient = {variable.name for variable in known if variable.is_transient}
    columns = {}
    for variable in values.get_all_variables():
        if variable.name in transient:
            continue
        column = np.array(values.get_values_states(variable))
        if variable.name[0] != "_" or column.any():
            if column.dtype.kind == "i":  # as few bytes as its values need
                column = column.astype(
                    np.result_type(*map(np.min_scalar_type, (column.min(), column.max())))
                )
            columns[variable.name] = column
    names = Names(columns)
    return names if columns and names.are_different() else None
