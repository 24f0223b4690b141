"""The state graph of a compiled model: rows that kernels fill themselves.

States are records instead of Python objects, and nothing merges. Labels are not in the rows. To
write a policy out, the plain model is followed along its decisions: its labels and its numbers are
those of the policy, and a compiled form that says something else is found out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import ModelError
from vulcan.graphs.base import Graph, Numbers
from vulcan.graphs.rows import ACTION, LARGE_GROWTH, OUTCOME, STATE, Rows, find_growth
from vulcan.model.compiled import ANSWER, CompiledModel
from vulcan.model.interface import Outcome, Start
from vulcan.model.observations import label_outcomes
from vulcan.model.reader import ModelReader
from vulcan.model.rules import Rule, Violation
from vulcan.policies.policy import About, Policy, PolicyBuilder
from vulcan.runtime.packing import pack_array, require, require_names, unpack_array
from vulcan.runtime.ranges import ranges
from vulcan.sentinels import FAILED, NONE, UNASKED
from vulcan.tolerance import AGREEMENT

__all__ = ["CompiledGraph", "find_compiled"]


def find_compiled(reader: ModelReader) -> CompiledModel | None:
    """Return the compiled form of a model; None if it has none, or begins with a `Start`."""
    compiled = getattr(reader.model, "compiled", None)
    if compiled is None or isinstance(reader.root, Start):
        return None
    if not isinstance(compiled, CompiledModel):
        message = f"compiled must be a vulcan.CompiledModel, not a {type(compiled).__name__}"
        raise ModelError(Violation(Rule.COMPILED, message))
    return compiled


class _FilledRows(Rows):
    """Rows of which a kernel counts how many are filled."""

    def __init__(self, dtype: np.dtype[Any], source: NDArray[Any], name: str) -> None:
        self._source, self._name = source, name
        super().__init__(dtype)

    @property
    def count(self) -> int:
        """How many rows are filled."""
        return int(self._source[self._name][0])

    @count.setter
    def count(self, count: int) -> None:
        self._source[self._name] = count


class _Answer(NamedTuple):
    """What a compiled form said of an action: the fields of its row that a policy is held to."""

    number: int
    safe_count: int
    outcome_count: int
    first_outcome: int
    expected_reward: float
    immediate_risk: float


class CompiledGraph(Graph):
    """The part of a compiled model that was asked so far.

    Parameters
    ----------
    reader
        The plain model, asked with care.
    compiled
        Its compiled form.
    """

    def __init__(self, reader: ModelReader, compiled: CompiledModel) -> None:
        super().__init__(reader)
        self.compiled = compiled
        self.states = _FilledRows(STATE, self.source, "states")
        self.actions = _FilledRows(ACTION, self.source, "actions")
        self.outcomes = _FilledRows(OUTCOME, self.source, "outcome_rows")
        self.answers = np.zeros(compiled.most_outcomes, ANSWER)
        self._records = _FilledRows(compiled.initial.dtype, self.source, "states")
        self._parameters = compiled.parameters.copy()
        self._following = np.zeros(compiled.most_outcomes, compiled.initial.dtype)
        self.states.append([(0, UNASKED)])
        self._records.array[0] = compiled.initial.reshape(1)[0]
        self.source["outcomes"] = compiled.outcomes.address
        for name in ("bound", "value_bound"):
            function = getattr(compiled, name)
            self.source[name] = 0 if function is None else function.address
        self.source["state_size"] = compiled.initial.dtype.itemsize
        self.source["numbers"] = len(compiled.actions)
        self.source["most_outcomes"] = compiled.most_outcomes
        self.make_room()

    @property
    def merges(self) -> bool:
        return False

    @property
    def evaluations(self) -> int:
        return int(self.source["evaluations"][0])

    @property
    def memory(self) -> int:
        return sum(rows.count * rows.array.itemsize for rows in self._rows().values())

    @property
    def capacity(self) -> int:
        return sum(rows.array.nbytes for rows in self._rows().values())

    def action_labels(self, state: int) -> list[str]:
        first, count = self.states.array[state].item()
        numbers = self.actions.array["number"][first : first + max(0, count)]
        return [self.compiled.actions[number] for number in numbers.tolist()]

    @property
    def labels(self) -> Sequence[str]:
        return self.compiled.actions

    def pack_state(self, state: int) -> Any:
        return self._records.array[state : state + 1].copy()

    def add_state(self, packed: Any) -> int:
        self.make_room(wanted=1)
        number = self.states.count
        self.states.append([(0, UNASKED)])
        self._records.array[number] = packed[0]
        return number

    def make_room(self, most: float = math.inf, wanted: int = 0) -> bool:
        """Lengthen rows that are more than half full, to four times that if it takes no more bytes.

        Parameters
        ----------
        most
            Bytes that all rows may take.
        wanted
            How many more rows of each kind there must be room for.

        Returns
        -------
        bool
            False if they can't grow.
        """
        wanted = max(wanted, self.largest_answer)
        short = [
            rows for rows in self._rows().values() if 2 * (rows.count + wanted) > len(rows.array)
        ]
        share = find_growth([rows.array for rows in short], most - self.capacity, LARGE_GROWTH)
        if short and not share:
            return False
        for rows in short:
            length = int((1 + share) * len(rows.array))
            rows.lengthen(max(length, rows.count + wanted))
        self.source["parameters"] = self._parameters.ctypes.data
        self.source["records"] = self._records.array.ctypes.data
        self.source["answers"] = self.answers.ctypes.data
        self.source["following"] = self._following.ctypes.data
        return True

    def open_part(self, record: Any = None) -> CompiledGraph:
        """Return an empty graph of the same model, which may begin with another state."""
        other = CompiledGraph(self.reader, self.compiled)
        if record is not None:
            other._records.array[0] = record
        return other

    def read_record(self, state: int) -> Any:
        """Return the record of a state."""
        return self._records.array[state].copy()

    def find_record(self, state: int) -> int:
        """Return the address of the record of a state."""
        return int(self.source["records"][0]) + state * self._records.array.itemsize

    def _rows(self) -> dict[str, Rows]:
        return self._kept() | {"records": self._records}

    @property
    def largest_answer(self) -> int:
        """The most rows of a kind that a kernel adds at a time."""
        return max(self.compiled.most_outcomes, len(self.compiled.actions))

    def pack(self) -> dict[str, bytes]:
        """Return the rows, but no records: these are what the model makes of them."""
        rows = {name: pack_array(rows.array[: rows.count]) for name, rows in self._kept().items()}
        return rows | {"evaluations": pack_array(self.source["evaluations"])}

    def pack_records(self) -> bytes:
        """Return the records of all states, for whoever trusts them."""
        return pack_array(self._records.array[: self._records.count])

    def unpack(
        self, data: Mapping[str, bytes], level: int = 0, records: bytes | None = None
    ) -> None:
        """Have the rows again that were packed.

        Parameters
        ----------
        data
            What was packed.
        level
            How many decisions come before the first state.
        records
            The records of all states, if they can be trusted; else the model is asked again.
        """
        from vulcan.graphs.recollection import recollect

        require_names(data, (*self._kept(), "evaluations"))
        first = self.read_record(self.ROOT)
        for name, rows in self._kept().items():
            filled = unpack_array(data, name, rows.array)
            rows.array = np.concatenate([filled, np.zeros(64, rows.array.dtype)])
            rows.count = len(filled)
        asked = unpack_array(data, "evaluations", self.source["evaluations"], 1)
        require(asked[0] >= 0, "the model was asked less than never")
        self.source["evaluations"] = asked
        self._records.array = np.zeros(len(self.states.array), self._records.array.dtype)
        self._records.array[self.ROOT] = first
        if records is not None:
            filled = np.frombuffer(records, self._records.array.dtype)
            self._records.array[: len(filled)] = filled
        self.make_room()
        if records is None:
            recollect(self, self._records.array, self._following, level)

    def _kept(self) -> dict[str, Rows]:
        return {"states": self.states, "actions": self.actions, "outcomes": self.outcomes}

    def describe_fault(self) -> Violation:
        """Return what is wrong with the answer that a kernel refused."""
        number = int(self.source["action"][0])
        record = self._records.array[int(self.source["state"][0])]
        if number < 0:
            message = "the compiled bound must be a number, not nan"
            return Violation(Rule.COMPILED, message, record)
        rule = (
            f"at most {self.compiled.most_outcomes} outcomes, safe ones first, with probabilities "
            "above 0 that sum to 1 and rewards that are numbers"
        )
        message = f"the compiled outcomes break a rule; there must be {rule}"
        return Violation(Rule.COMPILED, message, record, self.compiled.actions[number])

    def ask_unstored(self) -> Iterator[tuple[int, NDArray[Any]]]:
        # After the last step nothing comes, so that no kernel stores what leads there.
        states, actions = (rows.array[: rows.count] for rows in (self.states, self.actions))
        opened = np.flatnonzero(states["action_count"] > 0)
        counts = states["action_count"][opened]
        rows = ranges(states["first_action"][opened], counts)
        unstored = actions["first_outcome"][rows] == NONE
        ask, answers = self.compiled.outcomes.ctypes, np.zeros_like(self.answers)
        following = np.zeros_like(self._following)
        given, written = self._parameters.ctypes.data, (answers.ctypes.data, following.ctypes.data)
        owners = np.repeat(opened, counts)[unstored].tolist()
        for row, state in zip(rows[unstored].tolist(), owners, strict=True):
            count = ask(given, self.find_record(state), int(actions["number"][row]), *written)
            yield row, answers[:count]

    def policy(self, action_rows: Numbers, children: Numbers, about: About) -> Policy:
        rows = np.fromiter(action_rows, np.intp, len(action_rows))
        return self.write_policy(self.actions.array[rows], children, about)

    def write_policy(self, answers: NDArray[Any], children: Numbers, about: About) -> Policy:
        """Return a policy that takes given actions: their rows, of this graph or of another one."""
        builder = PolicyBuilder(about)
        states: dict[int, Any] = {0: self.reader.root}
        following = iter(children)
        columns = [answers[name].tolist() for name in _Answer._fields]
        for node, action in enumerate(zip(*columns, strict=True)):
            answer, state = _Answer(*action), states.pop(node)
            label = self.compiled.actions[answer.number]
            outcomes = self._ask_plain(state, label, answer)
            below = list(islice(following, answer.safe_count))
            builder.add(
                label,
                label_outcomes(outcomes),
                [float(outcome.probability) for outcome in outcomes],
                [float(outcome.reward) for outcome in outcomes],
                [*below, *[FAILED] * (len(outcomes) - answer.safe_count)],
            )
            for child, outcome in zip(below, outcomes, strict=False):
                if child >= 0:
                    states[child] = outcome.state
        return builder.build()

    def _ask_plain(self, state: Any, label: str, answer: _Answer) -> list[Outcome]:
        """Return the plain model's outcomes, which must be those of the compiled one."""
        actions = self.reader.actions(state)
        if label not in actions:
            message = f"the compiled form has an action {label!r} that the plain model has not"
            raise ModelError(Violation(Rule.COMPILED, message, state))
        outcomes = self.reader.outcomes(state, actions[label])
        said = [(float(outcome.probability), float(outcome.reward)) for outcome in outcomes]
        mean = math.fsum(probability * reward for probability, reward in said)
        risk = math.fsum(said[k][0] for k, outcome in enumerate(outcomes) if outcome.fails)
        plain = (mean, risk, len(outcomes))
        compiled = (answer.expected_reward, answer.immediate_risk, answer.outcome_count)
        # Rewards that cancel leave the roundings of the large ones in their mean.
        most = AGREEMENT * max(1.0, *(probability * abs(reward) for probability, reward in said))
        apart = max(abs(a - b) for a, b in zip(plain, compiled, strict=True))
        if apart <= most:
            apart = self._compare_outcomes(answer.first_outcome, said)
            what = f"probabilities or rewards of outcomes are up to {apart:.3g} apart"
        else:
            what = f"(expected reward, risk, outcomes) are {compiled} and {plain}"
            if compiled[2] > plain[2]:
                what += (
                    "; outcomes without labels that agree in state and reward are to be one outcome"
                )
        if not apart <= most:
            message = f"compiled and plain answers differ: {what}"
            raise ModelError(Violation(Rule.COMPILED, message, state, label))
        return outcomes

    def _compare_outcomes(self, first: int, said: list[tuple[float, float]]) -> float:
        """Return how far outcomes are apart; at the last step, only sums were used and kept."""
        if first < 0:
            return 0.0
        rows = self.outcomes.array[first : first + len(said)]
        stored: Any = zip(rows["probability"].tolist(), rows["reward"].tolist(), strict=True)
        apart = (
            max(abs(one[0] - other[0]), abs(one[1] - other[1]))
            for one, other in zip(said, stored, strict=True)
        )
        return max(apart, default=0.0)

    def _keep_objects(
        self,
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
    ) -> None:
        self._records.array[: len(kept_states)] = self._records.array[kept_states]

    def _open_other(self, state: int, reader: ModelReader) -> CompiledGraph | None:
        form, record = find_compiled(reader), self._records.array[state]
        if form is None or form.initial.dtype != record.dtype:
            return None
        if form.actions != self.compiled.actions or form.initial.reshape(1)[0] != record:
            return None  # records mean something else there
        return CompiledGraph(reader, form)

    def _take_objects(
        self,
        other: CompiledGraph,
        kept_states: NDArray[np.intp],
        kept_actions: NDArray[np.intp],
        kept_outcomes: NDArray[np.intp],
    ) -> None:
        self._records.array = other._records.array[kept_states]
        self.make_room()
