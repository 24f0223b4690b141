"""The checker of compiled forms: that a compiled model says what the plain one says.

`check_compiled` walks both forms of a model side by side and compares every answer: which actions a
state has and in which order, their outcomes with probabilities and rewards, and the bound. Each
compiled answer is asked for twice, with parameters as earlier questions left them and with new
ones, and into room that holds something else: notes that functions keep must change no answer, and
no field of a following state may be forgotten.

Of the pairs of a plain state and its record that wait, one of the earliest step and one of the
latest are taken in turn: so a small model is compared as a whole, and a large one near the start as
well as near the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError, OptionError
from vulcan.graphs.compiled_graph import find_compiled
from vulcan.model.compiled import ANSWER, CompiledModel
from vulcan.model.interface import Outcome, describe_model
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.tolerance import AGREEMENT

__all__ = ["CompiledAnswers", "CompiledReport", "check_compiled"]

SPARE: Final = 64
"""Room for this many outcomes more than a form says that it writes: it may write too many."""

PRICES: Final = (0.0, 25.0)
"""Bounds that depend on the price of failure are compared at these."""

MOST_VIOLATIONS: Final = 100
"""After this many violations the walk ends."""

Answer = tuple[list[tuple[float, float, int]], NDArray[Any]]
"""Probability, reward and whether it fails, of each outcome, and the records after them."""


@dataclass(frozen=True)
class CompiledReport:
    """What `check_compiled` found.

    Attributes
    ----------
    violations
        Where the forms differ; a hundred at the most.
    states, evaluations
        How many states, and actions of them, were compared.
    finished
        Whether that were all; False if the walk stopped at `most_states`, or at 100 violations.
    """

    violations: tuple[Violation, ...]
    states: int
    evaluations: int
    finished: bool

    @property
    def ok(self) -> bool:
        """Whether both forms say the same, as far as the walk went."""
        return not self.violations

    def __str__(self) -> str:
        verdict = "ok" if self.ok else f"NOT OK: {len(self.violations)} differences"
        walked = "" if self.finished else ", but not all states were walked"
        lines = [f"compiled form {verdict}, in {self.states:,} states{walked}"]
        return "\n".join([*lines, *map(str, self.violations)])


class CompiledAnswers:
    """A compiled model, asked from Python.

    Parameters
    ----------
    form
        The compiled form.
    filling
        What every byte of the room for following states holds before an answer.
    """

    def __init__(self, form: CompiledModel, filling: int = 0) -> None:
        self.form, self.filling = form, filling
        self.parameters = form.parameters.copy()

    def outcomes(self, record: NDArray[Any], number: int) -> Answer:
        """Return (probability, reward, fails) of each outcome, and the records after them.

        Parameters
        ----------
        record
            The state: an array of one element.
        number
            The number of the action.

        Raises
        ------
        ModelError
            If the form says that it wrote more than it may.
        """
        room = self.form.most_outcomes + SPARE
        answers, following = np.zeros(room, ANSWER), np.zeros(room, self.form.initial.dtype)
        following.view(np.uint8)[...] = self.filling
        arrays = (self.parameters, record, answers, following)
        parameters, state, *written = (array.ctypes.data for array in arrays)
        count = self.form.outcomes.ctypes(parameters, state, number, *written)
        if not 0 <= count <= self.form.most_outcomes:
            message = f"the compiled form has {count} outcomes; most_outcomes is {room - SPARE}"
            raise ModelError(Violation(Rule.COMPILED, message))
        return answers[:count].tolist(), following[:count]

    def bound(self, record: NDArray[Any], step: int) -> float:
        """Return the bound on what can still be earned in a state at a step."""
        return float(self.form.bound.ctypes(self.parameters.ctypes.data, record.ctypes.data, step))

    def value_bound(self, record: NDArray[Any], step: int, price: float) -> float:
        """Return the bound on reward less price times risk in a state at a step."""
        places = (self.parameters.ctypes.data, record.ctypes.data)
        return float(self.form.value_bound.ctypes(*places, step, price))


def check_compiled(model: Any, *, most_states: int = 1000) -> CompiledReport:
    """Compare the compiled form of a model with the plain one.

    Parameters
    ----------
    model
        A model with an attribute `compiled`.
    most_states
        Stop when this many states have been compared.

    Returns
    -------
    CompiledReport
        Its `ok` says whether both say the same; printed, it says where they differ.

    Raises
    ------
    OptionError
        If the model has no compiled form, or `most_states` is not a whole number of at least 1.
    ModelError
        If the plain form breaks a rule; run `check_model` first.

    Examples
    --------
    >>> from vulcan.domains import Bandit
    >>> report = check_compiled(Bandit(horizon=3, merges=False))
    >>> assert report.ok, report
    """
    if type(most_states) is not int or most_states < 1:
        raise OptionError(f"most_states must be a whole number of at least 1, not {most_states!r}")
    reader = ModelReader(model)
    try:
        form = find_compiled(reader)
    except ModelError as error:
        return CompiledReport((error.violation,), states=0, evaluations=0, finished=False)
    if form is None:
        raise OptionError(f"{describe_model(model)} has no compiled form, or begins with a Start")
    walk = _Comparison(reader, form)
    violations: list[Violation] = []
    while walk.waiting and walk.states < most_states and len(violations) < MOST_VIOLATIONS:
        violations += walk.compare_next()
    return CompiledReport(
        tuple(violations[:MOST_VIOLATIONS]), walk.states, walk.evaluations, not walk.waiting
    )


class _Comparison:
    """Both forms, and the pairs of a state and its record that are still to compare, by step."""

    def __init__(self, reader: ModelReader, form: CompiledModel) -> None:
        self.reader, self.form = reader, form
        self.states = self.evaluations = 0
        self.waiting: dict[int, list[tuple[Any, NDArray[Any]]]] = {}
        self.waiting[0] = [(reader.root, form.initial.reshape(1))]
        self._used = CompiledAnswers(form)
        self._random = np.random.default_rng(0)

    def compare_next(self) -> Iterator[Violation]:
        """Yield where the forms differ in a state, and have the states after it wait."""
        step = max(self.waiting) if self.states % 2 else min(self.waiting)
        state, record = self.waiting[step].pop()
        if not self.waiting[step]:
            del self.waiting[step]
        self.states += 1
        yield from self._compare_bounds(step, state, record)
        actions = self.reader.actions(state)
        for label in actions:
            if label not in self.form.actions:
                yield _differ(f"the compiled form has no action {label!r}", state)
        listed = [label for label in self.form.actions if label in actions]
        if len(listed) == len(actions) and listed != list(actions):
            yield _differ(f"actions are in another order than in the plain model, {listed}", state)
        reached = []
        for number, label in enumerate(self.form.actions):
            plain = self.reader.outcomes(state, actions[label]) if label in actions else []
            self.evaluations += bool(plain)
            try:
                answers, following = self._ask(record, number)
            except ModelError as error:
                yield _differ(error.violation.message, state, label)
                continue
            differences = list(_compare_outcomes(plain, answers))
            yield from (_differ(text, state, label) for text in differences)
            if not differences and step + 1 < self.reader.horizon:
                pairs = zip(plain, following, strict=True)
                reached += [(o.state, r.reshape(1)) for o, r in pairs if not o.fails]
        if reached:
            chosen = self._random.permutation(len(reached))
            self.waiting.setdefault(step + 1, []).extend(reached[k] for k in chosen)

    def _compare_bounds(self, step: int, state: Any, record: NDArray[Any]) -> Iterator[Violation]:
        if self.form.bound is not None:
            bound = self._used.bound(record, step)
            known = hasattr(self.reader.model, "reward_to_go_bound")
            plain = self.reader.bound_reward(state, step) if known else bound
            yield from _compare_bounds(f"at step {step}", bound, plain, state)
        for price in PRICES if self.form.value_bound is not None else ():
            bound = self._used.value_bound(record, step, price)
            known = hasattr(self.reader.model, "value_to_go_bound")
            plain = self.reader.bound_value(state, step, price) if known else bound
            yield from _compare_bounds(f"at step {step} and price {price:g}", bound, plain, state)

    def _ask(self, record: NDArray[Any], number: int) -> Answer:
        """Return the answer of functions that were asked before; refuse it if new ones differ."""
        answers, following = self._used.outcomes(record, number)
        again, after = CompiledAnswers(self.form, filling=85).outcomes(record, number)
        if repr(answers) != repr(again):  # to the last bit; NaN is as it was
            message = "asked with new parameters, the compiled form answers otherwise"
            raise ModelError(Violation(Rule.COMPILED, message))
        safe = [k for k, (_, _, fails) in enumerate(answers) if not fails]
        if not _same(following[safe], after[safe]):
            message = "not every field of the following states is written"
            raise ModelError(Violation(Rule.COMPILED, message))
        return answers, following


def _compare_bounds(where: str, bound: float, plain: float, state: Any) -> Iterator[Violation]:
    if math.isnan(bound):
        yield _differ(f"the compiled bound {where} is nan", state)
    elif not _agree(bound, plain):
        yield _differ(f"bounds {where} differ: {bound!r}, plain {plain!r}", state)


def _compare_outcomes(
    plain: list[Outcome], answers: list[tuple[float, float, int]]
) -> Iterator[str]:
    if len(plain) != len(answers):
        hint = (
            "; what nobody can tell apart is one outcome"
            if plain and len(answers) > len(plain)
            else ""
        )
        yield f"the compiled form has {len(answers)} outcomes, the plain one {len(plain)}{hint}"
        return
    for number, (outcome, answer) in enumerate(zip(plain, answers, strict=True)):
        said = (float(outcome.probability), float(outcome.reward), int(outcome.fails))
        if not all(map(_agree, answer, said)):
            yield (
                f"(probability, reward, fails) of outcome {number} are {answer}, in the plain "
                f"form {said}"
            )


def _agree(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= AGREEMENT * max(1.0, abs(other))


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays have the same bits, but for what lies between fields."""
    if one.dtype.names is None:
        return one.tobytes() == other.tobytes()
    return len(one) == len(other) and all(_same(one[k], other[k]) for k in one.dtype.names)


def _differ(message: str, state: Any, action: Any = None) -> Violation:
    return Violation(Rule.COMPILED, message, state, action)
