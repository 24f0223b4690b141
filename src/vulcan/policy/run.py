"""Following a policy step by step.

A run is on its plan or has left it. On the plan it takes the policy's actions, and knows the risk
and the reward that still lie ahead (`Policy.node_values`; an outcome without a plan counts as an
end, as it does in certificates). If the policy is bound to a model, the model evaluates each action
before it is taken, and must agree with the policy's record (`vulcan.policy.walk.ModelCheck`).
An observation that is impossible by plan and model is refused and changes nothing; if it happened
all the same, `leave` says so.

Beyond the frontier of a plan that is bounded by the model's default action, a run takes that action
until the mission ends, and knows what the model claims of it. If these claims agree with each
other, so that the claim for a history allows for those of all that may follow, `vulcan.replan` may
replace what is left.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vulcan.constraints import charge
from vulcan.errors import ModelError, PolicyError
from vulcan.model.answers import label_outcomes
from vulcan.model.belief import Belief
from vulcan.model.interface import Start, stable_text
from vulcan.model.reader import ModelReader
from vulcan.model.rules import check_state, is_equal
from vulcan.numerics import DEFAULT, END, FAILED, TOLERANCE, UNPLANNED, Number
from vulcan.parameters import require_number, shorten
from vulcan.policy.policy import Policy
from vulcan.policy.walk import ModelCheck, list_charged

if TYPE_CHECKING:
    from vulcan.policy.policy import AnyPolicy

SAME_REWARD: Final = 1e-9  # relative difference at which an observed reward is that of an outcome
SAME_CLAIM: Final = TOLERANCE / 1000  # difference of claims that rounding may explain


class ExpectedOutcome(NamedTuple):
    """An outcome that can be observed now, and what follows it."""

    label: str
    probability: float
    reward: float
    state: Any
    child: int
    event: str | None = None  # known with a model


def match_observation(
    observed: Any,
    state: Any,
    reward: float | None,
    action: str,
    expected: Sequence[ExpectedOutcome],
) -> ExpectedOutcome:
    """Return the expected outcome of an action that an observation means; see `Run.observe`."""
    if (observed is None) == (state is None):
        raise PolicyError("tell either an outcome or the state that it leads to")
    told = observed if state is None else state
    found = [
        outcome
        for position, outcome in enumerate(expected)
        if _leads_to(outcome, told) or (state is None and _is_named(outcome, position, told))
    ]
    if reward is not None:
        paid = require_number("reward", reward, error=PolicyError)
        same = partial(math.isclose, paid, rel_tol=SAME_REWARD, abs_tol=SAME_REWARD)
        found = [outcome for outcome in found if same(outcome.reward)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{k}: {outcome.label!r}" for k, outcome in enumerate(expected))
    if not found:
        which = "" if reward is None else f" that pays {reward!r}"
        raise PolicyError(
            f"{action!r} has no outcome {shorten(told)}{which}; its outcomes are {listed}"
        )
    several = ", ".join(repr(outcome.label) for outcome in found)
    raise PolicyError(
        f"{shorten(told)} fits {len(found)} outcomes of {action!r}, {several}: give a label, "
        f"state=... or reward=...; its outcomes are {listed}"
    )


def _is_named(outcome: ExpectedOutcome, position: int, told: Any) -> bool:
    """Return whether an outcome has this label or position."""
    if isinstance(told, Integral) and not isinstance(told, bool):
        return told == position or str(told) == outcome.label
    return isinstance(told, str) and told == outcome.label


def _leads_to(outcome: ExpectedOutcome, state: Any) -> bool:
    """Return whether an outcome leads to a state; 1 and True are different states."""
    if outcome.state is None or not isinstance(state, Hashable):
        return False  # such as an array, which can't be compared as a whole
    alike = isinstance(outcome.state, bool) == isinstance(state, bool)
    return alike and is_equal(outcome.state, state)


Decision = tuple[str, Any, list[ExpectedOutcome], bool]
"""The action to take now, by its label and as the model has it, its outcomes, and whether they
agree with what the model claims of what follows."""


class Run:
    """One mission under a policy.

    Get one from `Policy.start`. Take the `action`, report the outcome with `observe`, and stop when
    `finished`. A model that begins with a `Start` has an action before the first step: with
    `Start.draw` it is called "start", nothing is to be done, and the first observation is the start
    state that was drawn; with `Start.choose` it is the choice.

    If the policy is bound to a model, actions and outcomes raise a `MismatchError` where the model
    differs from the one that the policy was made with.

    A copy (`copy.copy`) is an independent run from the same point on.

    Attributes
    ----------
    policy
        The policy that is followed: of a randomised one, the member that was drawn, and after
        `vulcan.replan` the plan from there on.
    place
        The decision node of `policy` where the run is, or END, FAILED or UNPLANNED.
    whole
        The policy that was started, to which the certificate applies.
    left_plan
        Whether something happened that plan and model did not foresee; see `leave`.
    risk_left
        The plan's remaining risk when it was left; nan before.
    account
        The risk that `vulcan.replan` may still add; None before the first replan.
    replaceable
        Whether the plan from here on may be replaced: not once claims of the model contradict each
        other.
    events
        The events that have happened so far (`Outcome.event`); empty without a model.
    """

    def __init__(self, policy: Policy, reader: ModelReader | None) -> None:
        self.policy = policy
        self.whole: AnyPolicy = policy
        self.place = 0 if len(policy) else END
        self.left_plan, self.risk_left = False, math.nan
        self.account: Any = None
        self.replaceable = True
        self.events: frozenset[str | None] = frozenset()
        self._reader = reader
        self._begun = 0  # the level at which the policy began
        self._state: Any = None if reader is None else reader.root
        self._history: tuple[tuple[str, str], ...] = ()
        self._reward = 0.0
        self._decision: Decision | None = None  # computed on first use

    def __repr__(self) -> str:
        names = {FAILED: "failed", UNPLANNED: "without a plan"}
        now = self._planned if self.place >= 0 else names.get(self.place, "finished")
        return f"Run(decisions={self.level}, now={now!r})"

    @property
    def history(self) -> list[tuple[str, str]]:
        """Pairs (action label, outcome label) so far."""
        return list(self._history)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do: the history ended, failed, or is unplanned."""
        if self.follows_default or (self.left_plan and self.unplanned):  # without a plan
            return self.level >= self.reader.levels or not self.reader.actions(self._state)
        return self.place < 0

    @property
    def failed(self) -> bool:
        """Whether the mission failed."""
        return self.place == FAILED

    @property
    def unplanned(self) -> bool:
        """Whether there is no plan here: beyond what was planned, or after leaving the plan."""
        return self.place == UNPLANNED

    @property
    def follows_default(self) -> bool:
        """Whether the run is beyond its plan, where the model's default action is taken."""
        beyond = self.policy.beyond if self._reader is not None and not self.left_plan else None
        return self.unplanned and beyond is not None and beyond.claim == DEFAULT

    @property
    def _claims(self) -> tuple[float, float] | None:
        """The largest risk and the least reward beyond the plan's frontier, if they are known."""
        beyond = self.policy.beyond
        if not self.unplanned or self.left_plan or beyond is None or self._reader is None:
            return None
        risk, reward = self._reader.bound_continuation(beyond.claim, self._state, self.level)
        return float(risk), float(reward)

    @property
    def reader(self) -> ModelReader:
        """The model."""
        if self._reader is None:
            raise PolicyError("needs the model: use policy.bind(model).start()")
        return self._reader

    @property
    def state(self) -> Any:
        """The model's state: `FAILURE` after a failure, the `Start` before an initial action."""
        _ = self.reader  # required
        return self._state

    @property
    def belief(self) -> dict[Any, Number]:
        """The probability of each hidden state, the likeliest first; empty if none is hidden."""
        return self.state.probabilities if isinstance(self.state, Belief) else {}

    @property
    def level(self) -> int:
        """Number of decisions so far, an initial action included."""
        return len(self._history)

    @property
    def step(self) -> int:
        """Number of steps of the horizon so far."""
        return max(0, self.level - isinstance(self.reader.root, Start))

    @property
    def reward(self) -> float:
        """The reward of the outcomes so far, discounted from the start."""
        _ = self.reader  # required
        return self._reward

    @property
    def risk(self) -> float:
        """The plan's probability of failure from here on; nan without a plan.

        That of an incomplete plan counts up to its frontier, unless what follows is bounded.
        """
        if (claims := self._claims) is not None:
            return claims[0]
        if self.place < 0:
            return math.nan if self.unplanned else 0.0
        return float(self._ahead["risk"])

    @property
    def reward_ahead(self) -> float:
        """The plan's expected reward from here on; nan without a plan.

        It is discounted from the start, so that `reward + reward_ahead` is the expected reward of
        the whole mission.
        """
        reader = self.reader
        if (claims := self._claims) is not None:
            return float(reader.weights[self.level]) * claims[1]
        if self.place < 0:
            return math.nan if self.unplanned else 0.0
        return float(reader.weights[self.level] * self._ahead["mean"])

    @property
    def _ahead(self) -> Any:
        """The values of the current node, discounted from here on."""
        first = None if self._reader is None else float(self._reader.discounts[self._begun])
        return self.policy.node_values(first)[self.place]

    def list_risks(self) -> list[float]:
        """Return the risk ahead at each history since the current plan began, as it was then."""
        policy, place, risks = self.policy, 0, []
        for _, observed in self._history[self._begun :]:
            risks.append(float(policy.node_values()["risk"][place]))
            rows = policy.outcomes(place)
            place = next(
                int(policy.child[k]) for k in rows if policy.labels[policy.label[k]] == observed
            )
        if self.place >= 0:
            risks.append(float(policy.node_values()["risk"][place]))
        return risks

    @property
    def action_label(self) -> str:
        """The label of the action to take now."""
        label, *_ = self._decide()
        return label

    @property
    def action(self) -> Any:
        """The action to take now: the model's own when bound to a model, else its label.

        A model that differs on this action from the one that the policy was made with raises a
        `MismatchError`; the run is unchanged, and may `leave` its plan.
        """
        _, action, *_ = self._decide()
        return action

    @property
    def expected(self) -> dict[str, float]:
        """The labels that can be observed now, with their probabilities; empty without a plan."""
        if self.place < 0 and (self.finished or not self.follows_default):
            return {}
        _, _, expected, _ = self._decide()
        return {outcome.label: outcome.probability for outcome in expected}

    def observe(
        self, outcome: Any = None, *, state: Any = None, reward: float | None = None
    ) -> None:
        """Report the outcome of the action.

        Parameters
        ----------
        outcome
            The label of the outcome, its position in `expected`, or the state that it leads to.
            Outcomes to which the model gave no label are called by the state that they lead to,
            and by the reward as well where two lead to the same state with different rewards
            ("harbour, reward 2"). With hidden states: the observation.
        state
            The state that it leads to, where a number may also be a position, or a string a label.
        reward
            Its reward, to distinguish outcomes that lead to the same state.

        Raises
        ------
        PolicyError
            If it is no outcome of the action, or could be several; the message lists the outcomes.
            The run is unchanged.
        """
        label, _, expected, _ = self._decide()
        if isinstance(self._state, Belief) and stable_text(outcome) in self.expected:
            outcome = stable_text(outcome)  # an observation, also where it is a number
        if state is not None and self.reader is not None:
            state = self.reader.represent(state)
        observed = match_observation(outcome, state, reward, label, expected)
        if observed.child == END and self._reader is not None:
            self._check.require_end(observed.state, self.level + 1)
        self._advance(label, observed)

    def measure(self, measurement: Any) -> None:
        """Report a measurement, from which the model derives the outcome.

        The model's `locate(state, action, measurement)` returns the label or the next state of the
        outcome that a measurement stands for, or None if it is impossible; that raises a
        `PolicyError`, and the run is unchanged. The plan continues as after that outcome.
        """
        if not hasattr(self.reader.model, "locate"):
            raise PolicyError("the model has no locate(state, action, measurement)")
        found = self.reader.locate(self._state, self.action, measurement)
        if found is None:
            raise PolicyError(
                f"the model calls the measurement {shorten(measurement)} impossible after "
                f"{self.action_label!r} in state {shorten(self._state)}"
            )
        self.observe(**{"outcome" if isinstance(found, str) else "state": found})

    def leave(self, state: Any = None, reward: float = 0.0) -> None:
        """Leave the plan: something happened that the model calls impossible.

        There is no `action` from now on until `vulcan.replan` finds a plan. The certificate does
        not cover this mission any more.

        Parameters
        ----------
        state
            The state that the action led to. Without one the run stays where it is.
        reward
            The reward of the action.

        Raises
        ------
        PolicyError
            If the run can't leave its plan, or the state is unknown: the model raises an error or
            breaks a rule for one of its actions. The run is unchanged. A model that treats unknown
            states as states without actions is believed.
        """
        if self._reader is None or self.failed or self.level >= self.reader.levels:
            raise PolicyError("leave() needs an unfinished run of a policy bound to its model")
        risk = self.risk_left if self.left_plan and self.unplanned else self.risk
        if state is not None:
            # The plan is left, so the model need not agree with it.
            label = self._planned if self.place >= 0 else "not planned"
            paid = require_number("reward", reward, error=PolicyError)
            for violation in check_state(state, "the state"):
                raise PolicyError(str(violation))
            try:
                if self.level + 1 < self.reader.levels:
                    self.reader.evaluate(state)
            except ModelError as error:
                problem = f"the model does not know the state {shorten(state)}: {error}"
                raise PolicyError(problem) from error
            self._advance(label, ExpectedOutcome("not foreseen", 0.0, paid, state, UNPLANNED))
        self.place, self.left_plan, self.risk_left = UNPLANNED, True, risk
        self._decision = None

    def follow(self, policy: Policy) -> None:
        """Continue with a plan from this state on; `vulcan.replan` decides which may be followed.

        A model that has another discount, or differs on the plan's first action, raises a
        `MismatchError`, and the run is unchanged. Later actions are compared when it reaches them.
        """
        before = self.policy, self.place, self._begun, self._decision
        self.policy, self.place = policy, 0 if len(policy) else END
        self._begun, self._decision = self.level, None
        try:
            self.compare()
        except BaseException:
            self.policy, self.place, self._begun, self._decision = before
            raise
        self.replaceable = True

    def compare(self) -> None:
        """Raise a `MismatchError` if the model differs from the plan on the next step."""
        if self.place >= 0:
            self._decide()
        elif self.place == END and self._reader is not None:
            self._check.require_end(self._state, self.level)

    def _advance(self, label: str, observed: ExpectedOutcome) -> None:
        if self._reader is not None:
            self._reward += float(self._reader.weights[self.level]) * observed.reward
            self._state = observed.state
        self._history += ((label, observed.label),)
        self.events |= {observed.event} - {None}
        if self._decision is not None:
            *_, agrees = self._decision
            self.replaceable = self.replaceable and agrees
        self.place, self._decision = observed.child, None

    @property
    def _planned(self) -> str:
        """The label of the action that the plan takes here."""
        return self.policy.labels[int(self.policy.action[self.place])]

    @property
    def _check(self) -> ModelCheck:
        return ModelCheck(self.policy.about, self.reader)

    def _decide(self) -> Decision:
        """Return the current decision; the model evaluates it once."""
        if self.finished:
            raise PolicyError("the run is finished: there is no action to take")
        if self.place < 0 and not self.follows_default:
            raise PolicyError("the run left its plan: vulcan.replan(run) finds another")
        if self._decision is None:
            self._decision = self._find_planned() if self.place >= 0 else self._find_default()
        return self._decision

    def _find_planned(self) -> Decision:
        """Return the plan's decision, with states if there is a model."""
        label, planned = self._planned, self._list_planned()
        if self._reader is None:
            return label, label, planned, True
        check, state, level = self._check, self._state, self.level
        check.require_step(state, level)
        numbers = [(o.probability, o.reward, o.child == FAILED) for o in planned]
        action, outcomes, labels = check.evaluate(state, label, level)
        recorded = label, [o.label for o in planned], numbers
        check.compare(outcomes, labels, recorded, state, level)
        rows = self.policy.outcomes(self.place)
        for quantity, constraint in list_charged(self.policy).items():
            now = [float(charge(constraint, outcome)) for outcome in outcomes]
            before = self.policy.charges[quantity][rows.start : rows.stop].tolist()
            check.compare_charges(quantity, now, before, state, level)
        pairs = zip(planned, outcomes, strict=True)
        known = [p._replace(state=o.state, event=o.event) for p, o in pairs]
        return label, action, known, True

    def _find_default(self) -> Decision:
        """Return the model's default action, taken beyond the frontier of the plan."""
        reader, state, level = self.reader, self._state, self.level
        actions = reader.actions(state)
        label = reader.default_label(state, actions)
        outcomes = reader.outcomes(state, actions[label])
        discount, (most, least) = float(reader.discounts[level]), self._claims or (1.0, 0.0)
        risk = reward = 0.0
        expected = []
        for outcome, name in zip(outcomes, label_outcomes(outcomes), strict=True):
            chance, paid, child = float(outcome.probability), float(outcome.reward), FAILED
            reward += chance * paid
            if outcome.fails:
                risk += chance
            elif level + 1 < reader.levels and reader.actions(outcome.state):
                child = UNPLANNED
                later = reader.bound_continuation(DEFAULT, outcome.state, level + 1)
                risk += chance * float(later[0])
                reward += chance * discount * float(later[1])
            else:
                child = END
            expected.append(ExpectedOutcome(name, chance, paid, outcome.state, child))
        size = SAME_CLAIM * max(1.0, abs(least))
        agrees = risk <= most + SAME_CLAIM and reward >= least - size
        return label, actions[label], expected, agrees

    def _list_planned(self) -> list[ExpectedOutcome]:
        """Return the outcomes that the plan expects here, without states."""
        policy, rows = self.policy, self.policy.outcomes(self.place)
        labels = [policy.labels[number] for number in policy.label[rows.start : rows.stop]]
        if len(set(labels)) < len(labels):
            raise PolicyError(
                f"the policy can't be followed: outcomes of {self._planned!r} have the same label, "
                f"{', '.join(map(repr, labels))}"
            )
        columns = (policy.probability, policy.reward, policy.child)
        chances, rewards, children = (c[rows.start : rows.stop].tolist() for c in columns)
        nowhere = [None] * len(labels)
        return list(map(ExpectedOutcome, labels, chances, rewards, nowhere, children))
