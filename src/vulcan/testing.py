"""Checks that users run their own models and solvers through, in tests of their own.

`check_model` walks a model and reports every rule that it breaks (`vulcan.model.check`).

`check_compiled` walks both forms of a model side by side and compares their actions, outcomes and
bounds. Each compiled action is evaluated twice, with parameters as earlier calls left them and with
fresh ones, into buffers that hold something else: values that functions keep between calls must
change no outcome, and every field of a next state must be written. The walk alternates between the
earliest and the latest step with states left to compare: a small model is compared completely, a
large one near the start as well as near the horizon.

`check_solver` runs a solver through `vulcan.solve` on small problems with known optima, and reports
every promise that it breaks:

    declarations     limits that exist, and descriptions
    certificates     a policy comes with a certificate, and one that is called solved is safe
    soundness        no safe policy is above the optimum, or found where there is none
    upper bounds     no policy of the kind that the bound covers is above it
    repetition       the same seed and limits give the same policy
    limits           a time limit of 0 gives a result, not an error
    shared graphs    a graph that is shared between searches changes nothing

`vulcan.solve` itself compares the search's own reward and risk with the certificate's.
May import: everything but the command line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import RiskBound
from vulcan.bounds.forms import Constant, Linear
from vulcan.domains import Bandit, ThreeActions
from vulcan.errors import ModelError, OptionError
from vulcan.exact.pipeline import Pareto
from vulcan.graph.compiled import find_compiled
from vulcan.graph.states import open_graph
from vulcan.model.check import ModelReport, check_model
from vulcan.model.compiled import ANSWER, CompiledModel
from vulcan.model.interface import Outcome, describe_model
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.numerics import AGREEMENT, EXACT_GAP
from vulcan.planning.result import Result
from vulcan.planning.solve import plan_and_certify
from vulcan.policy.policy import RandomisedPolicy
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits
from vulcan.solvers.base import Coverage, Options, Solver
from vulcan.solvers.finding import Status

__all__ = ["CompiledReport", "ModelReport", "check_compiled", "check_model", "check_solver"]

SPARE: Final = 64  # extra outcomes in the buffers, for forms that write more than they declare
PRICES: Final = (0.0, 25.0)  # prices of failure at which `value_bound` is compared
MOST_VIOLATIONS: Final = 100  # the walk ends after this many

Answer = tuple[list[tuple[float, float, int]], NDArray[Any]]
"""(probability, reward, fails) of each outcome, and the records of the next states."""


@dataclass
class CompiledReport:
    """The findings of `check_compiled`.

    Attributes
    ----------
    violations
        Where the forms differ; the walk ends after 100.
    states, evaluations
        Number of states, and of (state, action) pairs, compared.
    finished
        False if the walk stopped at `most_states` or at 100 violations.
    """

    violations: list[Violation] = field(default_factory=list)
    states: int = 0
    evaluations: int = 0
    finished: bool = False

    @property
    def ok(self) -> bool:
        """Whether both forms agree, as far as the walk went."""
        return not self.violations

    def __str__(self) -> str:
        verdict = "ok" if self.ok else f"NOT OK: {len(self.violations)} differences"
        walked = "" if self.finished else ", but not all states were visited"
        lines = [f"compiled form {verdict}, in {self.states:,} states{walked}"]
        return "\n".join([*lines, *map(str, self.violations)])


class CompiledAnswers:
    """A compiled model, called from Python.

    `filling` is the initial value of every byte of the buffer for next states.
    """

    def __init__(self, form: CompiledModel, filling: int = 0) -> None:
        self.form, self.filling = form, filling
        self.parameters = form.parameters.copy()

    def outcomes(self, record: NDArray[Any], number: int) -> Answer:
        """Return (probability, reward, fails) of each outcome, and the records of the next states.

        The state is an array of one element. A count outside 0 to `most_outcomes` is an error.
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
        """Return the upper bound on the reward ahead of a state at a step."""
        return float(self.form.bound.ctypes(self.parameters.ctypes.data, record.ctypes.data, step))

    def value_bound(self, record: NDArray[Any], step: int, price: float) -> float:
        """Return the upper bound on reward ahead minus price times risk ahead."""
        places = (self.parameters.ctypes.data, record.ctypes.data)
        return float(self.form.value_bound.ctypes(*places, step, price))

    def last_value(self, record: NDArray[Any], step: int, price: float) -> float:
        """Return the largest reward ahead minus price times risk ahead, near the end."""
        places = (self.parameters.ctypes.data, record.ctypes.data)
        return float(self.form.last_value.ctypes(*places, step, price))


def check_compiled(model: Any, *, most_states: int = 1000) -> CompiledReport:
    """Compare the compiled form of a model with the plain one.

    Parameters
    ----------
    model
        A model with an attribute `compiled`, whose plain form passes `check_model`.
    most_states
        Stop when this many states have been compared; at least 1.

    Returns
    -------
    CompiledReport
        `ok` is whether both agree; its text lists the differences.

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
        return CompiledReport([error.violation])
    if form is None:
        raise OptionError(f"{describe_model(model)} has no compiled form, or begins with a Start")
    used, random = CompiledAnswers(form), np.random.default_rng(0)
    waiting = {0: [(reader.root, form.initial.reshape(1))]}  # by step
    report = CompiledReport()
    while waiting and report.states < most_states and len(report.violations) < MOST_VIOLATIONS:
        step = max(waiting) if report.states % 2 else min(waiting)
        state, record = waiting[step].pop()
        if not waiting[step]:
            del waiting[step]
        report.states += 1
        actions = reader.actions(state)
        texts = [*_compare_bounds(reader, used, step, state, record)]
        if reader.horizon - step <= form.last_steps and reader.discount > 0:
            texts += _compare_last_values(reader, used, step, record)
        texts += _compare_labels(list(actions), form.actions)
        differences: list[tuple[str, str | None]] = [(text, None) for text in texts]
        reached: list[tuple[Any, NDArray[Any]]] = []
        for number, label in enumerate(form.actions):
            plain = reader.outcomes(state, actions[label]) if label in actions else []
            report.evaluations += bool(plain)
            following, found = _compare_outcomes(used, record, number, plain)
            differences += [(text, label) for text in found]
            reached += following
        report.violations += [Violation(Rule.COMPILED, text, state, a) for text, a in differences]
        if reached and step + 1 < reader.horizon:
            chosen = random.permutation(len(reached))
            waiting.setdefault(step + 1, []).extend(reached[k] for k in chosen)
    report.finished = not waiting
    return report


def _compare_bounds(
    reader: ModelReader, used: CompiledAnswers, step: int, state: Any, record: NDArray[Any]
) -> Iterator[str]:
    bounds = []
    if used.form.bound is not None:
        known = hasattr(reader.model, "reward_to_go_bound")
        plain = reader.bound_reward(state, step) if known else None
        bounds.append((f"at step {step}", used.bound(record, step), plain))
    for price in PRICES if used.form.value_bound is not None else ():
        known = hasattr(reader.model, "value_to_go_bound")
        plain = reader.bound_value(state, step, price) if known else None
        where = f"at step {step} and price {price:g}"
        bounds.append((where, used.value_bound(record, step, price), plain))
    for where, bound, plain in bounds:
        if math.isnan(bound):
            yield f"the compiled bound {where} is nan"
        elif plain is not None and not _agree(bound, plain):
            yield f"bounds {where} differ: {bound!r}, plain {plain!r}"


def _compare_last_values(
    reader: ModelReader, used: CompiledAnswers, step: int, record: NDArray[Any]
) -> Iterator[str]:
    """Compare the value of a state with those of the states that its actions lead to."""
    discount, last = reader.discount, step + 1 == reader.horizon
    for price in PRICES:
        worths = []
        for number in range(len(used.form.actions)):
            answers, following = used.outcomes(record, number)
            worth = 0.0
            for (chance, reward, fails), after in zip(answers, following, strict=True):
                worth += chance * (reward - price * fails)
                if not (fails or last):
                    given = after.reshape(1), step + 1, price / discount
                    worth += chance * discount * used.last_value(*given)
            worths += [worth] if answers else []
        value, best = used.last_value(record, step, price), max(worths, default=0.0)
        if not _agree(value, best):
            where = f"at step {step} and price {price:g}"
            yield f"last_value {where} is {value!r}, but the best action is worth {best!r}"


def _compare_labels(plain: list[str], compiled: Sequence[str]) -> Iterator[str]:
    missing = [label for label in plain if label not in compiled]
    yield from (f"the compiled form has no action {label!r}" for label in missing)
    listed = [label for label in compiled if label in plain]
    if not missing and listed != plain:
        yield f"actions are in another order than in the plain model, {listed}"


def _compare_outcomes(
    used: CompiledAnswers, record: NDArray[Any], number: int, plain: list[Outcome]
) -> tuple[list[tuple[Any, NDArray[Any]]], list[str]]:
    """Return the next states of an action with their records, or else the differences."""
    try:
        answers, following = used.outcomes(record, number)
        again, after = CompiledAnswers(used.form, filling=85).outcomes(record, number)
    except ModelError as error:
        return [], [error.violation.message]
    if repr(answers) != repr(again):  # to the last bit; NaN is as it was
        return [], ["with fresh parameters, the compiled form returns other outcomes"]
    safe = [k for k, (_, _, fails) in enumerate(answers) if not fails]
    if not _same(following[safe], after[safe]):
        return [], ["not every field of the following states is written"]
    if len(plain) != len(answers):
        more = plain and len(answers) > len(plain)
        hint = "; indistinguishable outcomes count as one" if more else ""
        count = f"{len(answers)} outcomes, the plain one {len(plain)}{hint}"
        return [], [f"the compiled form has {count}"]
    said = [(float(o.probability), float(o.reward), int(o.fails)) for o in plain]
    differences = [
        f"(probability, reward, fails) of outcome {k} are {answer}, in the plain form {one}"
        for k, (answer, one) in enumerate(zip(answers, said, strict=True))
        if not all(map(_agree, answer, one))
    ]
    pairs = zip(plain, following, strict=True)
    reached = [(o.state, r.reshape(1)) for o, r in pairs if not o.fails]
    return ([], differences) if differences else (reached, [])


def _agree(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= AGREEMENT * max(1.0, abs(other))


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays have the same bits, padding between fields excepted."""
    if one.dtype.names is None:
        return one.tobytes() == other.tobytes()
    return len(one) == len(other) and all(_same(one[k], other[k]) for k in one.dtype.names)


PROBLEMS: Final[tuple[tuple[Any, RiskBound], ...]] = (
    (ThreeActions(), Linear(0.004)),
    (ThreeActions(), Constant(-0.1)),
    (Bandit(1), Constant(0.0)),
    (Bandit(3), Linear(0.002)),
    (Bandit(4), Constant(0.003)),
    (Bandit(3, merges=False), Linear(0.002)),
)
"""Models and bounds; the second has no admissible policy."""

SAMPLES: Final = 3000  # for solvers that take this limit


def check_solver(solver: Solver) -> list[str]:
    """Run a solver on small problems and report every promise that it breaks.

    Parameters
    ----------
    solver
        Any solver: an instance of a class derived from `vulcan.solvers.Solver`.

    Returns
    -------
    list of str
        The broken promises, each with the problem on which it was broken; empty if all are kept.
    """
    if not isinstance(solver, Solver):
        raise OptionError(
            f"a solver must be an instance derived from vulcan.solvers.Solver, not {solver!r}"
        )
    violations = list(_check_declarations(solver))
    for model, bound in PROBLEMS:
        problem = Problem(model, bound)
        if solver.constant_bounds and not isinstance(bound, Constant):
            continue
        try:
            violations += [f"{problem}: {text}" for text in _check_problem(solver, problem)]
        except Exception as error:  # a user's own solver may raise anything
            violations.append(f"{problem}: {type(error).__name__}: {error}")
    return violations


def _check_declarations(solver: Solver) -> Iterator[str]:
    kind = type(solver)
    known = [field.name for field in fields(Limits)]
    for name in solver.limits:
        if name not in known:
            yield f"limits: there is no limit {name!r}; there are {', '.join(known)}"
    for name in ("finds", "method"):
        if not isinstance(getattr(kind, name, None), str):
            yield f"declarations: {name} must describe the solver in a few words"
    try:
        hash(solver)
    except TypeError:
        yield "declarations: a solver must be a frozen dataclass with hashable parameters"


def _check_problem(solver: Solver, problem: Problem) -> Iterator[str]:
    limits = Limits(samples=SAMPLES) if "samples" in solver.limits else Limits()
    result = plan_and_certify(problem, solver, limits, Options())
    best = plan_and_certify(problem, Pareto(), Limits(), Options()).certificate
    optimum = None if best is None else float(best.reward)
    yield from _check_result(solver, result, optimum)
    again = plan_and_certify(problem, solver, limits, Options())
    if again.policy != result.policy:
        yield "repetition: the same seed and limits gave another policy"
    reader = ModelReader(problem.model)
    if reader.merges:
        graph = open_graph(reader)
        known = plan_and_certify(problem, solver, limits, Options(graph=graph))
        if known.policy != result.policy:
            yield "shared graphs: a graph that is shared between searches gave another policy"
    if "time_limit" in solver.limits:
        stopped = plan_and_certify(problem, solver, Limits(time_limit=0.0), Options())
        if stopped.policy is not None and stopped.certificate is None:
            yield "limits: with a time limit of 0, a policy has no certificate"


def _check_result(solver: Solver, result: Result, optimum: float | None) -> Iterator[str]:
    """Compare a result with the reward of the best safe policy; None if there is none."""
    certificate, bound = result.certificate, result.upper_bound
    if (result.policy is None) != (certificate is None):
        yield "certificates: a policy without a certificate, or a certificate without a policy"
    if result.status is Status.SOLVED and bound is not None and not result.safe:
        yield "certificates: a policy that is called solved is not safe"
    exact, slack = solver.covers is not Coverage.NOTHING, EXACT_GAP * abs(optimum or 0.0)
    if exact and result.status is Status.INFEASIBLE and optimum is not None:
        yield f"soundness: it reports no admissible policy; one has reward {optimum!r}"
    if certificate is not None and result.safe and not isinstance(result.policy, RandomisedPolicy):
        reward = float(certificate.reward)
        if optimum is None:
            yield "soundness: a safe policy was found where there is none"
        elif reward > optimum + slack:
            yield f"soundness: {reward!r} is above the optimum, {optimum!r}"
    if bound is not None and not exact:
        yield "upper bounds: there is one, but `covers` is NOTHING"
    if bound is not None and optimum is not None and bound < optimum - slack:
        yield f"upper bounds: {bound!r} is below the optimum, {optimum!r}"
