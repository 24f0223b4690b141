"""Following a policy step by step.

A run is on its plan or has left it. On the plan it does what the policy says, and knows what that
still risks and earns (`vulcan.policies.prospects`). Its model, if it has one, is asked about each
action before that is taken, and must answer as it did when the policy was made
(`vulcan.policies.comparison`): a plan says nothing about another world. What cannot happen by the
plan and the model is refused, and changes nothing. If it happened all the same, `leave` says so:
from then on the run takes the least risky action that it can find (`vulcan.policies.lookahead`),
until it has a new plan (`vulcan.replan`). Nothing that was certified speaks of such a mission any
more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from vulcan.errors import PolicyError
from vulcan.model.interface import FAILURE, Start
from vulcan.model.reader import ModelReader
from vulcan.parameters import require_number, shorten
from vulcan.policies.comparison import Comparison, Record
from vulcan.policies.lookahead import find_safest
from vulcan.policies.policy import Policy
from vulcan.policies.ways import Way, ask_ways, find_way, plan_ways
from vulcan.sentinels import END, FAILED, UNPLANNED

if TYPE_CHECKING:
    from vulcan.policies.randomised import AnyPolicy

__all__ = ["Run"]


class _Decision(NamedTuple):
    """What is done now, and what can be observed then."""

    label: str
    action: Any
    ways: list[Way]


class Run:
    """One mission under a policy.

    Get one from `Policy.start`. Act on `action`, tell what happened with `observe`, and stop when
    `finished`. A model that begins with a `Start` has an action before the first step: after
    `Start.draw` it is called "start", nothing is to be done, and the first observation is the start
    state that was drawn; after `Start.choose` it is the choice.

    Of a policy that is bound to a model, what there is to do and to observe is a `MismatchError`
    where the model does not answer as it did when the policy was made.

    A copy (`copy.copy`) is a run of its own, from where this one is.

    Attributes
    ----------
    policy
        The policy that is followed: of a randomised one, the member that was drawn, and after
        `vulcan.replan` the plan from there on.
    whole
        The policy that was started: what was certified and promised.
    left_plan
        Whether something happened that plan and model did not foresee; see `leave`.
    risk_left
        What the plan still risked when it was left; nan before.
    account
        What `vulcan.replan` may still spend; None before it.
    knowledge
        What searches know of what is ahead, for the next one; None if that was not kept.
    """

    def __init__(
        self, policy: Policy, reader: ModelReader | None, whole: AnyPolicy | None = None
    ) -> None:
        self.policy = policy
        self.whole: AnyPolicy = policy if whole is None else whole
        self.left_plan, self.risk_left = False, math.nan
        self.account: Any = None
        self.knowledge: Any = policy.knowledge
        self._reader = reader
        self._place, self._begun = 0 if len(policy) else END, 0  # where the policy begins
        self._state: Any = None if reader is None else reader.root
        self._history: tuple[tuple[str, str], ...] = ()
        self._measurements: tuple[Any, ...] = ()
        self._positions: tuple[int, ...] = ()
        self._reward = 0.0
        self._decision: _Decision | None = None  # known once somebody wants to know

    def __repr__(self) -> str:
        names = {FAILED: "failed", UNPLANNED: "without a plan"}
        now = self._planned if self._place >= 0 else names.get(self._place, "finished")
        return f"Run(decisions={self.level}, now={now!r})"

    @property
    def history(self) -> list[tuple[str, str]]:
        """Pairs (action label, outcome label) so far."""
        return list(self._history)

    @property
    def path(self) -> list[tuple[str, int]]:
        """Pairs (action label, position of the outcome) so far; -1 for what was not foreseen."""
        labels = [label for label, _ in self._history]
        return list(zip(labels, self._positions, strict=True))

    @property
    def measurements(self) -> tuple[Any, ...]:
        """What was measured after each action so far, None where an outcome was told."""
        return self._measurements

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do: the history ended, failed, or is unplanned."""
        if self.left_plan and self._place == UNPLANNED:
            return not self._actions()
        return self._place < 0

    @property
    def failed(self) -> bool:
        """Whether the mission failed."""
        return self._place == FAILED

    @property
    def unplanned(self) -> bool:
        """Whether there is no plan here: beyond what was planned, or after leaving the plan."""
        return self._place == UNPLANNED

    @property
    def reader(self) -> ModelReader:
        """The model, asked with care."""
        return self._require_model()

    @property
    def place(self) -> int:
        """The decision node of `policy` where the run is, or what is there instead of one."""
        return self._place

    @property
    def state(self) -> Any:
        """The model's state: `FAILURE` after a failure, the `Start` before an initial action."""
        self._require_model()
        return self._state

    @property
    def level(self) -> int:
        """How many decisions were taken, an initial action included."""
        return len(self._history)

    @property
    def step(self) -> int:
        """How many steps of the horizon were taken."""
        return max(0, self.level - isinstance(self.reader.root, Start))

    @property
    def reward(self) -> float:
        """What was earned so far by the outcomes that were told, discounted from the start."""
        self._require_model()
        return self._reward

    @property
    def risk(self) -> float:
        """The probability of failing from here on, by the plan; nan where there is none.

        That of an incomplete plan counts up to its frontier.
        """
        if self._place < 0:
            return math.nan if self.unplanned else 0.0
        return float(self._ahead["risk"])

    @property
    def reward_ahead(self) -> float:
        """The expected reward from here on, by the plan; nan where there is none.

        It is discounted from the start, so that `reward + reward_ahead` is what the whole mission
        is expected to earn by now.
        """
        reader = self.reader
        if self._place < 0:
            return math.nan if self.unplanned else 0.0
        return float(reader.weights[self.level] * self._ahead["mean"])

    @property
    def _ahead(self) -> Any:
        """What the plan comes to from here on, discounted from here."""
        first = None if self._reader is None else float(self._reader.discounts[self._begun])
        return self.policy.prospects(first)[self._place]

    @property
    def action_label(self) -> str:
        """The label of the action to take now."""
        return self._decide().label

    @property
    def action(self) -> Any:
        """The action to take now: the model's own when bound to a model, else its label.

        Raises
        ------
        PolicyError
            If the run is finished.
        MismatchError
            If the model does not say of this action what the policy was made with. The run is as
            it was before, and may `leave` its plan.
        """
        return self._decide().action

    @property
    def safest_action(self) -> Any:
        """The action of least risk here, looking two steps ahead, whatever the plan says.

        Of actions of the same risk, it is the one that pays best at once.
        """
        actions = self._actions()
        if not actions:
            raise PolicyError("the run is finished: there is no action to take")
        return actions[find_safest(self.reader, self._state, self.level)]

    @property
    def expected(self) -> dict[str, float]:
        """The labels that can be observed now, with their probabilities."""
        if self.finished:
            return {}
        return {way.label: way.probability for way in self._decide().ways}

    def observe(
        self, outcome: Any = None, *, state: Any = None, reward: float | None = None
    ) -> None:
        """Tell what happened.

        Parameters
        ----------
        outcome
            The label of the outcome, its position in `expected`, or the state that it leads to.
            Outcomes to which the model gave no label are called by the state that they lead to,
            and by the reward as well where two lead to the same state with different rewards
            ("harbour, reward 2").
        state
            The state that it leads to, where a number may also be a position, or a string a label.
        reward
            What it paid, to tell outcomes apart that lead to the same state.

        Raises
        ------
        PolicyError
            If that cannot happen, or may be several outcomes; the message lists those that there
            are. The run is as it was before.
        """
        label, _, ways = self._decide()
        way = find_way(outcome, state, reward, label, ways)
        if way.child == END and self._reader is not None:
            self._comparison.require_end(way.state, self.level + 1)
        self._advance(label, way, ways.index(way))

    def measure(self, measurement: Any) -> None:
        """Tell what was measured, if the model says which outcome that is.

        The model's `locate(state, action, measurement)` returns the label or the next state of the
        outcome that a measurement stands for, or None if it is impossible. The plan goes on as
        after that outcome. `vulcan.replan` takes the measurement itself as evidence, if the model
        says what follows from it (`given`).

        Parameters
        ----------
        measurement
            Whatever the model's `locate` takes.

        Raises
        ------
        PolicyError
            If the model calls it impossible, or has no `locate`; the run is as it was before.
        """
        if not hasattr(self.reader.model, "locate"):
            raise PolicyError("the model has no locate(state, action, measurement) to ask")
        found = self.reader.locate(self._state, self.action, measurement)
        if found is None:
            raise PolicyError(
                f"the model calls the measurement {shorten(measurement)} impossible after "
                f"{self.action_label!r} in state {shorten(self._state)}"
            )
        self.observe(**{"outcome" if isinstance(found, str) else "state": found})
        self._measurements = (*self._measurements[:-1], measurement)

    def leave(self, state: Any = None, reward: float = 0.0) -> None:
        """Leave the plan: something happened that the model calls impossible.

        From now on `action` is the least risky one, until `vulcan.replan` finds a plan. What was
        certified says nothing of this mission any more.

        Parameters
        ----------
        state
            Where the action led to, a state of the model. Without one the run stays where it is.
        reward
            What the action paid.
        """
        if self._reader is None or self.failed or self.level >= self.reader.levels:
            raise PolicyError("only a run that goes on, of a policy with its model, can leave it")
        risk = self.risk_left if self.unplanned else self.risk
        if state is not None:
            # The plan is left, so that the model need not answer as it did for the plan.
            label = self._planned if self._place >= 0 else self.action_label
            paid = require_number("reward", reward, error=PolicyError)
            self._reader.actions(state)  # an error of the model comes before any change
            self._advance(label, Way("not foreseen", 0.0, paid, state, UNPLANNED), -1)
        self._place, self.left_plan, self.risk_left = UNPLANNED, True, risk
        self._decision = None

    def follow(self, policy: Policy) -> None:
        """Go on with another plan from here; `vulcan.replan` knows which may be followed.

        Parameters
        ----------
        policy
            A policy that begins in the state in which the run is.
        """
        self.policy, self._place = policy, 0 if len(policy) else END
        self._begun, self._decision = self.level, None

    def learn(self, reader: ModelReader) -> None:
        """Go on in a model that knows more; `vulcan.replan` knows which, and the plan for it.

        Parameters
        ----------
        reader
            A model with the same states.
        """
        self._reader, self.knowledge = reader, None
        self._decision = None

    def compare(self) -> None:
        """Refuse a model that does not say of the next action what the plan was made with.

        Raises
        ------
        MismatchError
            If it does not.
        """
        if self._place >= 0:
            self._decide()

    def _require_model(self) -> ModelReader:
        if self._reader is None:
            raise PolicyError("only the model knows that: policy.bind(model).start()")
        return self._reader

    def _advance(self, label: str, way: Way, position: int) -> None:
        """Take what happened for a fact."""
        if self._reader is not None:
            self._reward += float(self._reader.weights[self.level]) * way.reward
            self._state = way.state
        self._history += ((label, way.label),)
        self._measurements += (None,)
        self._positions += (position,)
        self._place, self._decision = way.child, None

    @property
    def _planned(self) -> str:
        """The label of the action that the plan takes here."""
        return self.policy.labels[int(self.policy.action[self._place])]

    @property
    def _comparison(self) -> Comparison:
        return Comparison(self.policy.about, self.reader)

    def _decide(self) -> _Decision:
        """Return what is done now; the model is asked once."""
        if self.finished:
            raise PolicyError("the run is finished: there is no action to take")
        if self._decision is None:
            self._decision = self._find_planned() if self._place >= 0 else self._find_cautious()
        return self._decision

    def _find_planned(self) -> _Decision:
        """Return what the plan does here, with states if there is a model."""
        label, ways = self._planned, plan_ways(self.policy, self._place)
        if self._reader is None:
            return _Decision(label, label, ways)
        comparison, state, level = self._comparison, self._state, self.level
        comparison.require_step(state, level)
        said = [(way.probability, way.reward, way.child == FAILED) for way in ways]
        answer = comparison.ask(state, label, level)
        comparison.compare(answer, Record(label, [way.label for way in ways], said), state, level)
        pairs = zip(ways, answer.outcomes, strict=True)
        return _Decision(label, answer.action, [w._replace(state=o.state) for w, o in pairs])

    def _find_cautious(self) -> _Decision:
        """Return what is done without a plan."""
        label = find_safest(self.reader, self._state, self.level)
        action = self._actions()[label]
        return _Decision(label, action, ask_ways(self.reader, self._state, action))

    def _actions(self) -> dict[str, Any]:
        """Return the model's actions here, by their labels."""
        ended = self._state is FAILURE or self.level >= self.reader.levels
        return {} if ended else self.reader.actions(self._state)
