"""The state graph of a compiled model: kernels evaluate the model and fill the rows themselves.

States are records instead of Python objects, and nothing merges. Rows have no labels. To write out
a policy, the plain model is evaluated along its decisions: its labels and its numbers are those of
the policy, and must agree with the compiled form. Proofs need a sample of others (`compare_forms`).

Threads. Several threads may evaluate the model at once and add rows to one graph (`Evaluator`).
Each reserves a range of rows and has its own copy of the model's parameters, in which the model may
keep scratch data, and its own place for answers. Kernels see rows up to the end of the range, and
request more room where it is full.

Checkpoints. Rows from a file are compared with what the model answers now, from the first state on,
which creates the records of the next states again (`vulcan.kernels.expand`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import CheckpointError, ModelError
from vulcan.graph.states import (
    ACTION,
    LARGE_GROWTH,
    OUTCOME,
    STATE,
    Graph,
    Numbers,
    Rows,
    Rowset,
    find_growth,
)
from vulcan.model.answers import Answers, label_answers
from vulcan.model.compiled import ANSWER, CompiledModel
from vulcan.model.interface import FAILURE, Start
from vulcan.model.reader import SAMPLE_SIZE, ModelReader
from vulcan.model.rules import Rule, Violation, refuse_small
from vulcan.numerics import (
    AGREEMENT,
    FAILED,
    LARGEST_REWARD,
    NONE,
    RELEASED,
    SMALLEST_PROBABILITY,
    UNEVALUATED,
)
from vulcan.parameters import shorten
from vulcan.policy.policy import About, Policy
from vulcan.runtime.arrays import (
    keep_rows,
    pack_array,
    ranges,
    require,
    require_names,
    set_apart,
    starts,
    unpack_array,
)

KINDS: Final = ("states", "actions", "outcome_rows")
"""Fields of `SOURCE` that count the rows of states, actions and outcomes."""

PACKED: Final = ("states", "actions", "outcomes")
"""The names of these rows in a checkpoint, and in the arrays of kernels."""


def find_compiled(reader: ModelReader) -> CompiledModel | None:
    """Return the compiled form of a model; None if it has none, or begins with a `Start`."""
    compiled = getattr(reader.model, "compiled", None)
    if compiled is None or isinstance(reader.root, Start):
        return None
    if not isinstance(compiled, CompiledModel):
        message = f"compiled must be a vulcan.model.CompiledModel, not a {type(compiled).__name__}"
        raise ModelError(Violation(Rule.COMPILED, message))
    return compiled


class CompiledGraph(Graph):
    """The part of a compiled model that was evaluated so far; its reader has the plain model."""

    def __init__(self, reader: ModelReader, compiled: CompiledModel) -> None:
        super().__init__(reader)
        self.compiled = compiled
        self.states = Rows(STATE, self.source["states"])
        self.actions = Rows(ACTION, self.source["actions"])
        self.outcomes = Rows(OUTCOME, self.source["outcome_rows"])
        self.answers = np.zeros(compiled.most_outcomes, ANSWER)
        self._records = Rows(compiled.initial.dtype, self.source["states"])
        self.parameters = compiled.parameters.copy()
        self._following = np.zeros(compiled.most_outcomes, compiled.initial.dtype)
        self.states.append([(0, UNEVALUATED)])
        self._records.array[0] = compiled.initial.reshape(1)[0]
        self.source["outcomes"] = compiled.outcomes.address
        for name in ("bound", "value_bound", "last_value"):
            function = getattr(compiled, name)
            self.source[name] = 0 if function is None else function.address
        self.source["state_size"] = compiled.initial.dtype.itemsize
        self.source["numbers"] = len(compiled.actions)
        self.source["most_outcomes"] = compiled.most_outcomes
        self.source["last_steps"] = compiled.last_steps
        self.make_room()
        reader.compiled = compiled

    @property
    def merges(self) -> bool:
        return False

    @property
    def evaluations(self) -> int:
        return int(self.source["evaluations"][0])

    @property
    def memory(self) -> int:
        return sum(rows.count * rows.array.itemsize for rows in (*self.kinds(), self._records))

    @property
    def capacity(self) -> int:
        return sum(rows.array.nbytes for rows in (*self.kinds(), self._records))

    def action_labels(self, state: int) -> list[str]:
        first, count = self.states.array[state].item()
        numbers = self.actions.array["number"][first : first + max(0, count)]
        return [self.compiled.actions[number] for number in numbers.tolist()]

    def pack_state(self, state: int) -> Any:
        """Return the record of a state, which another graph of the same model can add."""
        return self._records.array[state : state + 1].copy()

    def add_state(self, packed: Any) -> int:
        """Add a state, and return its number."""
        self.make_room(wanted=1)
        number = self.states.count
        self.states.append([(0, UNEVALUATED)])
        self._records.array[number] = packed[0]
        return number

    def make_room(self, most: float = math.inf, wanted: int = 0) -> bool:
        """Lengthen rows that are more than half full, within some bytes; False if they can't grow.

        There is room for as many more rows of each kind as are wanted.
        """
        wanted = max(wanted, self.largest_answer)
        every = (*self.kinds(), self._records)
        short = [rows for rows in every if 2 * (rows.count + wanted) > len(rows.array)]
        share = find_growth([rows.array for rows in short], most - self.capacity, LARGE_GROWTH)
        if short and not share:
            return False
        for rows in short:
            length = int((1 + share) * len(rows.array))
            rows.lengthen(max(length, rows.count + wanted))
        self.source["parameters"] = self.parameters.ctypes.data
        self.source["records"] = self._records.array.ctypes.data
        self.source["answers"] = self.answers.ctypes.data
        self.source["following"] = self._following.ctypes.data
        return True

    def find_record(self, state: int) -> int:
        """Return the address of the record of a state."""
        return int(self.source["records"][0]) + state * self._records.array.itemsize

    @property
    def largest_answer(self) -> int:
        """Largest number of rows of a kind that a kernel adds at a time."""
        return max(self.compiled.most_outcomes, len(self.compiled.actions))

    def pack(self) -> dict[str, bytes]:
        """Return the rows without the records, which the model creates again."""
        kept = zip(PACKED, self.kinds(), strict=True)
        rows = {name: pack_array(rows.array[: rows.count]) for name, rows in kept}
        return rows | {"evaluations": pack_array(self.source["evaluations"])}

    def unpack(self, data: Mapping[str, bytes]) -> None:
        """Restore packed rows; the model is evaluated again."""
        require_names(data, (*PACKED, "evaluations"))
        first = self._records.array[self.ROOT].copy()
        for name, rows in zip(PACKED, self.kinds(), strict=True):
            filled = unpack_array(data, name, rows.array)
            rows.array = np.concatenate([filled, np.zeros(64, rows.array.dtype)])
            rows.count = len(filled)
        evaluations = unpack_array(data, "evaluations", self.source["evaluations"], 1)
        require(evaluations[0] >= 0, "the number of evaluations is negative")
        self.source["evaluations"] = evaluations
        self._records.array = np.zeros(len(self.states.array), self._records.array.dtype)
        self._records.array[self.ROOT] = first
        self.make_room()
        self._replay()

    def _replay(self) -> None:
        """Create all records but the first, or raise a `CheckpointError`."""
        from vulcan.kernels.expand import ProblemArrays, replay_states

        none, length = np.zeros(0), len(self.states.array)
        rows = self.states.array, self.actions.array, self.outcomes.array
        problem = ProblemArrays(*rows, none, none, none, self.source, self.answers)
        records, following = (
            array.view(np.uint8).reshape(len(array), array.itemsize)
            for array in (self._records.array, self._following)
        )
        queue, levels = np.zeros(length, np.int64), np.full(length, -1, np.int64)
        scratch = np.zeros(1, ACTION)
        if not replay_states(problem, records, following, queue, levels, scratch):
            raise CheckpointError("the model no longer answers as it did before the checkpoint")
        # Nothing has checked the rows that the first state does not lead to.
        self.states.array["action_count"][levels < 0] = UNEVALUATED

    def recycle(self, states: Rowset, taken: NDArray[np.int32]) -> NDArray[np.int32]:
        """Forget all rows but some states with their actions, and actions that a policy takes.

        The numbers of the latter are replaced by new ones. It returns the new numbers of states.
        """
        first, count = (
            self.states.array[name][states] for name in ("first_action", "action_count")
        )
        kept = np.zeros(self.actions.count, bool)
        kept[ranges(first, np.maximum(count, 0))] = True
        # A policy is written out by its actions alone.
        self.actions.array["first_outcome"][taken[~kept[taken]]] = NONE
        state_map, action_map, _ = self.release(states, taken.astype(np.intp))
        counts = self.states.array["action_count"][: self.states.count]
        counts[counts == RELEASED] = UNEVALUATED
        taken[:] = action_map[taken]
        return state_map.astype(np.int32)

    def describe_fault(self) -> Violation:
        """Return the violation of the answer that a kernel refused."""
        number = int(self.source["action"][0])
        record = self._records.array[int(self.source["state"][0])]
        if number < 0:
            return Violation(Rule.COMPILED, "the compiled bound must be a number, not nan", record)
        label = self.compiled.actions[number]
        # Entries that are left over from other answers are valid.
        for k, chance in enumerate(self.answers["probability"].tolist()):
            if 0 < chance < SMALLEST_PROBABILITY:
                message = refuse_small(f"compiled outcome {k}", repr(chance))
                return Violation(Rule.PROBABILITIES, message, record, label, chance)
        message = (
            "the compiled outcomes break a rule; there must be at most "
            f"{self.compiled.most_outcomes} outcomes, safe ones first, with probabilities of at "
            f"least {SMALLEST_PROBABILITY:g} that sum to 1, and rewards that are numbers of at "
            f"most {LARGEST_REWARD:g}"
        )
        return Violation(Rule.COMPILED, message, record, label)

    def evaluate_unstored(self) -> Iterator[tuple[int, NDArray[Any]]]:
        # Kernels do not store the outcomes of the last step.
        states, actions = (rows.array[: rows.count] for rows in (self.states, self.actions))
        opened = np.flatnonzero(states["action_count"] > 0)
        counts = states["action_count"][opened]
        rows = ranges(states["first_action"][opened], counts)
        unstored = actions["first_outcome"][rows] == NONE
        owners = np.repeat(opened, counts)[unstored].tolist()
        for row, state in zip(rows[unstored].tolist(), owners, strict=True):
            yield row, self.answers[: self._evaluate(state, int(actions["number"][row]))]

    def _evaluate(self, state: int, number: int) -> int:
        """Write the outcomes of an action into the arrays for answers, and return their number."""
        written = self.answers.ctypes.data, self._following.ctypes.data
        given = self.parameters.ctypes.data, self.find_record(state)
        return int(self.compiled.outcomes.ctypes(*given, number, *written))

    def compare_forms(self, may_go_on: Callable[[], bool]) -> None:
        """Raise a `ModelError` if both forms differ in a sample of states, early and late ones.

        `may_go_on` says whether there is time for another answer. The first record is overwritten.
        """
        numbers = {label: number for number, label in enumerate(self.compiled.actions)}
        random, compared = Random(0), 0  # noqa: S311 - no secrets
        waiting: list[tuple[int, Any, Any]] = [(1, self.reader.root, self._records.array[0].copy())]
        while waiting and compared < SAMPLE_SIZE:
            level, state, self._records.array[0] = waiting.pop(random.choice((0, -1)))
            reached: list[tuple[int, Any, Any]] = []
            actions = self.reader.actions(state)
            for label in dict.fromkeys([*actions, *numbers]):
                if not may_go_on():
                    return
                plain = self.reader.outcomes(state, actions[label]) if label in actions else []
                count = self._evaluate(0, numbers[label]) if label in numbers else 0
                given = self.answers[:count].tolist()
                wanted = [(float(o.probability), float(o.reward), int(o.fails)) for o in plain]
                same = count == len(given) == len(wanted)
                if not same or not np.allclose(given, wanted, AGREEMENT, AGREEMENT):
                    message = f"compiled and plain answers differ: {shorten((given, wanted))}"
                    raise ModelError(Violation(Rule.COMPILED, message, state, label))
                pairs = zip(plain, self._following, strict=False)
                reached += [(level + 1, o.state, r.copy()) for o, r in pairs if not o.fails]
                compared += bool(plain)
            waiting += random.sample(reached, len(reached)) if level < self.reader.levels else []

    def policy(self, action_rows: Numbers, children: Numbers, about: About) -> Policy:
        rows = np.fromiter(action_rows, np.intp, len(action_rows))
        return self.write_policy(self.actions.array[rows], children, about)

    def write_policy(self, answers: NDArray[Any], children: Numbers, about: About) -> Policy:
        """Return the policy of action rows, of this graph or of another one.

        The plain model is evaluated level by level; it must agree with the rows.
        """
        labels = [self.compiled.actions[number] for number in answers["number"].tolist()]
        counts, safe = answers["outcome_count"].astype(np.intp), answers["safe_count"]
        first = starts(counts)
        child = np.full(counts.sum(), FAILED, np.int32)
        child[ranges(first, safe)] = children
        numbers, names = np.zeros((2, len(child))), np.empty(len(child), object)
        nodes, states = np.arange(min(1, len(answers))), [self.reader.root]
        while len(nodes):
            taken = [labels[node] for node in nodes.tolist()]
            given = self._evaluate_plain(states, taken, answers[nodes])
            rows = ranges(first[nodes], counts[nodes])
            goes_on = child[rows] >= 0
            numbers[:, rows] = given.probability, given.reward
            names[rows] = label_answers(given)
            states = [given.state[k] for k in np.flatnonzero(goes_on).tolist()]
            nodes = child[rows[goes_on]].astype(np.intp)
        texts = np.insert(names, first, labels).tolist()
        known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([known[text] for text in texts], np.int32)
        own = first + np.arange(len(first))
        ends, label = np.append(first, len(child)), np.delete(codes, own)
        probability, reward = numbers
        return Policy(about, tuple(known), codes[own], ends, label, probability, reward, child)

    def _evaluate_plain(
        self, states: Sequence[Any], labels: Sequence[str], rows: NDArray[Any]
    ) -> Answers:
        """Return the plain model's outcomes of actions, which must agree with the compiled rows."""
        available = self.reader.list_actions(states)
        for state, label, actions in zip(states, labels, available, strict=True):
            if label not in actions:
                message = f"the compiled form has an action {label!r} that the plain model has not"
                raise ModelError(Violation(Rule.COMPILED, message, state))
        pairs = zip(available, labels, strict=True)
        answers = self.reader.read(states, [actions[label] for actions, label in pairs])
        counts = np.array(answers.counts)
        first = starts(counts)
        chance, paid = (np.array(column, float) for column in (answers.probability, answers.reward))
        fails = np.array([state is FAILURE for state in answers.state])
        # Large rewards that cancel leave their rounding errors in the mean.
        unit = np.maximum(1.0, np.maximum.reduceat(np.abs(chance * paid), first))
        sums = (np.add.reduceat(part, first) for part in (chance * paid, chance * fails))
        plain = np.stack([*sums, counts], axis=1)
        names = ("expected_reward", "immediate_risk", "outcome_count")
        compiled = np.stack([rows[name] for name in names], axis=1)
        apart = np.abs(plain - compiled)
        apart[:, 0] /= unit
        apart = apart.max(axis=1)
        # Rows of the last step have no outcomes.
        known = np.flatnonzero((apart <= AGREEMENT) & (rows["first_outcome"] >= 0))
        mine = ranges(first[known], counts[known])
        stored = self.outcomes.array[ranges(rows["first_outcome"][known], counts[known])]
        far = np.abs(stored["reward"] - paid[mine]) / np.repeat(unit[known], counts[known])
        far = np.maximum(far, np.abs(stored["probability"] - chance[mine]))
        np.maximum.at(apart, np.repeat(known, counts[known]), far)
        wrong = np.flatnonzero(~(apart <= AGREEMENT))
        if len(wrong):
            k = int(wrong[0])
            what = f"probabilities or rewards of outcomes are up to {apart[k]:.3g} apart"
            if k not in known:
                what = f"({', '.join(names)}) are {tuple(compiled[k])} and {tuple(plain[k])}"
                if compiled[k, 2] > plain[k, 2]:
                    what += "; unlabelled outcomes that agree in state and reward are to be one"
            message = f"compiled and plain answers differ: {what}"
            raise ModelError(Violation(Rule.COMPILED, message, states[k], labels[k]))
        return answers

    def _keep_objects(self, states: Rowset, actions: Rowset, outcomes: Rowset) -> None:
        keep_rows(self._records.array, states)


class Evaluator:
    """Evaluates a compiled model in one of several threads, and adds rows to its graph."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._graph = graph
        compiled = graph.compiled
        self.source = set_apart(1, graph.source.dtype)
        self.source[:] = graph.source
        self.answers = set_apart(len(graph.answers), graph.answers.dtype)
        self._parameters = compiled.parameters.copy()
        self._following = set_apart(compiled.most_outcomes, compiled.initial.dtype)
        self.source["evaluations"] = 0
        self.forget_rows()

    def forget_rows(self) -> None:
        """Give up the reserved rows."""
        self._ends = dict.fromkeys(KINDS, 0)
        for name in KINDS:
            self.source[name] = 0

    def is_short(self, least: int) -> bool:
        """Return whether fewer than this many rows of some kind are left."""
        return any(int(self.source[kind][0]) + least > self._ends[kind] for kind in KINDS)

    def reserve_rows(self, length: int, most: float) -> bool:
        """Reserve the next rows of the graph; return False if they take too many bytes."""
        graph = self._graph
        while any(
            int(graph.source[kind][0]) + length > len(rows.array)
            for kind, rows in zip(KINDS, graph.kinds(), strict=True)
        ):
            if not graph.make_room(most, length):
                return False
        for kind in KINDS:
            begin = int(graph.source[kind][0])
            self.source[kind], self._ends[kind] = begin, begin + length
            graph.source[kind] = begin + length
        return True

    def lend(self, problem: Any, adds_rows: bool = False) -> Any:
        """Return the arrays of a problem for one thread; what it adds goes into reserved rows."""
        self.source["parameters"] = self._parameters.ctypes.data
        self.source["records"] = self._graph.source["records"]
        self.source["answers"] = self.answers.ctypes.data
        self.source["following"] = self._following.ctypes.data
        mine = problem._replace(source=self.source, answers=self.answers)
        if not adds_rows:
            return mine
        ends = zip(PACKED, self._ends.values(), strict=True)
        return mine._replace(**{name: getattr(mine, name)[:end] for name, end in ends})

    def report(self) -> None:
        """Add the number of evaluations to the graph, and the place of an invalid answer."""
        self._graph.source["evaluations"] += self.source["evaluations"]
        self.source["evaluations"] = 0
        for name in ("state", "action"):
            self._graph.source[name] = self.source[name]
