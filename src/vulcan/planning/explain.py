"""Explaining a policy: where it takes its risk, and what was rejected there.

With reach the probability of being at a decision point (`vulcan.policy.walk`), an action there
takes reach · r of the risk and earns γ^t reach · R̄ of the reward. These are summed over all points
of the same state and action.

Which decision accepted a risk is another question. A step that surely fails may have no
alternative: the risk was accepted by the decision that led there. With m the least risk of any
policy from a point on, an action accepts

    reach · (r + Σ p m' - m),

by how much it raises the risk that can't be avoided any more. Summed over all decisions this is er
less the m of the start, the risk that no policy avoids. Where states merge and are few, m is exact.
Elsewhere another action counts as if nothing after it failed, so that m may be too small, and some
blame stays with later decisions.

An action that surely fails where another would not is a deliberate failure. So is, less plainly, a
risk taken where failing pays more than going on: F > G, with F the mean reward of the failing
outcomes and G that of the safe ones, including what follows them. Both are nearly always mistakes
of the model: failing costs less there than going on.

At the points that take the most risk, each other action is substituted for the one that is taken,
and the rest of the plan is kept. With (ΔR, Δx) the gain in reward and in risk from there on, the
whole plan would have

    E g' = E g + γ^t reach ΔR,    er' = er + reach Δx,

and is worth less if E g' < E g, or else too risky if er' > Δ(E g'); if it is neither, the plan is
not the best one, unless both are as good.

A further constraint is spent on an action by reach · (its expected charge) at all points of the
same state and action. For an event, reach is that of the histories in which it has not happened.

The continuation after another action is not in the plan. Where states merge and are few, dynamic
programs over all state–step pairs (`vulcan.exact.sweeps`) give the best one at the price at which
the bound binds, and the safest. Elsewhere only the step itself is compared, as if what follows were
worth what follows the action that is taken; an action that would seem better is then "not known" to
be, as a plan may take the other for what it leads to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.constraints import Constraint, Risk, RiskAhead, charge
from vulcan.errors import BoundError
from vulcan.exact.acceptance import BoundTest
from vulcan.exact.dual import Dual
from vulcan.exact.sweeps import Sweeps
from vulcan.graph.levels import build_levels
from vulcan.graph.states import open_graph
from vulcan.model.interface import stable_text
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, TOLERANCE
from vulcan.policy.policy import AnyPolicy, open_own_model, require_policy
from vulcan.policy.walk import DecisionPoints, find_decision_points, find_values, number_labels
from vulcan.problem import Problem, require_problem
from vulcan.runtime.formatting import show_percent
from vulcan.runtime.limits import pause_collection
from vulcan.solvers.finding import Worth

BEYOND: Final = "claimed beyond the frontier"  # in place of an action

WORTH_TELLING: Final = 1e-9  # relative difference of rewards above which it is not rounding
LONGEST_STATE: Final = 80  # longest text of a state, in characters
MOST_SPENT: Final = 10  # choices that are named for a constraint
MOST_EVALUATIONS: Final = 50_000  # (state, action) pairs evaluated beside those of the plan

BETTER: Final = ("better", "better by the risk bound alone")  # without, with other constraints

EXACTLY: Final = (
    "the other action, then the best continuation at the price of risk, computed exactly over all "
    "states; the rest of the plan is unchanged"
)
ASSUMED: Final = (
    "the step alone, with the values that follow the action taken: states do not merge, or are too "
    "many to evaluate all continuations"
)


@dataclass(frozen=True)
class Choice:
    """Total effects of an action, over all histories in which it is taken."""

    action: str
    state: str  # in which it is taken; "" for all states together
    times: float = 0.0  # expected number of times it is taken
    reward: float = 0.0  # expected and discounted
    risk: float = 0.0  # probability that the mission fails by it
    accepted: float = 0.0  # by how much its decisions raise the risk that can't be avoided any more
    tempting: float = 0.0  # the part of it taken where failing pays more than going on
    # Of an action that surely fails in a state: the action there with the least immediate risk.
    # None if all others surely fail as well, and for all other actions.
    instead: str | None = None
    instead_risk: float | None = None


@dataclass(frozen=True)
class Alternative:
    """Another action at a place, with the rest of the plan unchanged.

    The verdict is "worth less", "as good" up to rounding, "too risky" for the bound, or "better":
    the plan is not optimal. It is "not known" instead if only the step itself could be compared,
    and "better by the risk bound alone" where there are further constraints.
    """

    action: str
    reward_change: float  # of the whole plan's expected reward
    risk_change: float
    allowed: float  # the risk that the bound would then accept for the whole plan
    verdict: str
    # If it is too risky: the change of the whole plan's reward (nearly always negative) if it went
    # on as safely as possible. None if that is too risky as well, or not known.
    safest_change: float | None = None


@dataclass(frozen=True)
class RiskyPlace:
    """A place of the plan that accepts risk."""

    action: str  # taken there
    state: str
    step: int  # number of decisions before it
    history: tuple[tuple[str, str], ...]  # their actions and outcomes, in the likeliest history
    reach: float  # probability of reaching the place
    fails: float  # immediate risk of the action
    risk: float  # the product of both: the probability that the mission fails there
    accepted: float  # by how much the decision raises the risk that can't be avoided any more
    alike: int  # number of places with the same action in the same state
    alike_accepted: float  # what they accept together
    alternative: Alternative | None = None  # the best of the other actions, if there is one


@dataclass(frozen=True)
class Spending:
    """On which choices a further constraint is spent, up to the frontier."""

    quantity: str  # such as "fuel"
    total: float
    # Action, state, and what they are charged in all; those that are charged most first. Of the
    # risk ahead: where it is largest.
    choices: tuple[tuple[str, str, float], ...]
    history: tuple[tuple[str, str], ...] = ()  # that leads there, as in `RiskyPlace`


@dataclass(frozen=True)
class Explanation:
    """Where a policy earns its reward and takes its risk.

    Attributes
    ----------
    reward, risk
        Expected reward and risk of the policy.
    failures
        Actions that surely fail, the most likely first.
    choices
        All pairs of an action and a state; those that accept most risk first. Of a plan that is
        bounded beyond its frontier, one (`BEYOND`) has what is claimed there.
    actions
        The same, summed over states.
    places
        For each action in each state, the place that accepts most risk; sorted by all they accept.
    steps
        The risk of each step, up to the frontier.
    unavoidable
        The part of the risk that no policy avoids, as far as known.
    compared
        How alternatives were compared, in a sentence; None if none were searched for.
    price
        Gain of the optimal reward per unit of allowed risk; None if not known.
    spent
        For each further constraint of the problem, the choices that it is spent on.
    """

    reward: float
    risk: float
    failures: tuple[Choice, ...]
    choices: tuple[Choice, ...]
    actions: tuple[Choice, ...]
    places: tuple[RiskyPlace, ...] = ()
    steps: tuple[float, ...] = ()
    unavoidable: float = 0.0
    compared: str | None = None
    price: float | None = None
    spent: tuple[Spending, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Explanation: reward {self.reward:.6g}, risk {self.risk:.4g}, "
            f"{len(self.choices):,} choices, {len(self.places):,} places>"
        )

    @property
    def deliberate(self) -> float:
        """Probability of an action that surely fails where another would not."""
        found = (failure for failure in self.failures if failure.instead is not None)
        return math.fsum(failure.times for failure in found)

    @property
    def claimed(self) -> float:
        """The part of the risk that is claimed beyond the frontier."""
        return math.fsum(choice.risk for choice in self.actions if choice.action == BEYOND)

    @property
    def tempting(self) -> float:
        """The part of the risk taken where failing pays more than going on."""
        return math.fsum(choice.tempting for choice in self.actions)


def explain(problem: Problem, policy: AnyPolicy, *, places: int = 10) -> Explanation:
    """Say where a policy takes its risk, what was rejected there, and whether it fails on purpose.

    Parameters
    ----------
    problem
        The model that the policy was made for, and the bound that it is judged by.
    policy
        Any policy, deterministic or randomised.
    places
        At how many places, those that take the most risk, other actions are looked at. Where states
        merge, up to 50,000 more (state, action) pairs are evaluated for that.

    Returns
    -------
    Explanation
        What each action does in each state, and the riskiest places with the best alternative at
        each. `deliberate` is how likely a failure on purpose is, and `failures` says where.

    Raises
    ------
    ModelError
        If an answer of the model breaks a rule.
    MismatchError
        If the model is not the one that the policy was made for, or has changed.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    >>> explanation = vulcan.explain(problem, vulcan.solve(problem).policy)
    >>> [(choice.action, round(choice.risk, 5)) for choice in explanation.actions][:1]
    [('play 1', 0.002)]
    >>> explanation.deliberate
    0.0
    >>> explanation.places[0].alternative.verdict
    'worth less'
    """
    require_problem(problem)
    require_policy(policy)
    reader = open_own_model(policy.about, problem.model)
    with pause_collection():
        plan = _Plan(problem, find_decision_points(policy, reader), reader)
    if places:
        plan.compute_continuations()
    plan.attribute_risk()
    riskiest = list(islice(plan.list_riskiest(), places))
    return Explanation(
        reward=plan.reward,
        risk=plan.risk,
        failures=plan.list_sure_failures(),
        choices=plan.list_choices(),
        actions=plan.list_choices(by_state=False),
        places=tuple(map(plan.describe_place, riskiest)),
        steps=tuple(np.bincount(plan.rows["level"], plan.point_risk).tolist()),
        unavoidable=plan.unavoidable,
        compared=None if not riskiest else ASSUMED if plan.best is None else EXACTLY,
        price=plan.price,
        spent=tuple(map(plan.list_spending, problem.constraints if len(plan.rows) else ())),
    )


Values = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Rewards and risks from each state–step pair on."""


class _Plan:
    """The decision points of a policy in arrays, and groups of them: of one action in one state."""

    def __init__(self, problem: Problem, points: DecisionPoints, reader: ModelReader) -> None:
        self._bound, self._points, self._reader = problem.risk_bound, points, reader
        self._limited = bool(problem.constraints)  # which nothing is compared by
        self.rows, values = points.rows, find_values(points, reader)
        self._labels = list(number_labels(points.policy))
        self._action, self._fails = values["action"], values["fails"]
        self._reward_ahead, self._risk_ahead = values["reward_ahead"], values["risk_ahead"]
        self._failing_reward, self._safe_reward = values["failing_reward"], values["safe_reward"]
        reach, weight = self.rows["reach"], np.asarray(reader.weights)[self.rows["level"]]
        self._point_reward = weight * reach * (self._failing_reward + self._safe_reward)
        self.point_risk = reach * self._fails
        # Tempting is where failing pays more than going on.
        uncertain = (self._fails > 0) & (self._fails < 1 - TOLERANCE)
        fails = np.where(uncertain, self._fails, 0.5)
        pays = self._failing_reward / fails
        brings = (self._reward_ahead - self._failing_reward) / (1 - fails)
        rounding = WORTH_TELLING * np.maximum(np.abs(pays), np.abs(brings))
        self._tempting = np.where(uncertain & (pays > brings + rounding), self.point_risk, 0.0)
        self._beyond = self._find_claims()
        self.reward = math.fsum((*self._point_reward, *(part.reward for part in self._beyond)))
        self.risk = math.fsum((*self.point_risk, *(part.risk for part in self._beyond)))
        self._first, self._group = _group_equal(np.stack((self._action, self.rows["state"])))
        self._accepted = self.point_risk
        self.unavoidable = 0.0
        self.price: float | None = None
        self.safest: Values | None = None
        self.best: Values | None = None

    def _find_claims(self) -> list[Choice]:
        """Return what is claimed beyond the frontier of the plan, if it is bounded."""
        plan, first = self._points.policy.members[0], float(self._reader.discount_after(0))
        if plan.beyond is None:  # as all members of randomised plans
            return []
        whole, inside = (plan.node_values(first, claimed=flag)[0] for flag in (True, False))
        reward, risk = (float(whole[name] - inside[name]) for name in ("mean", "risk"))
        return [Choice(BEYOND, "", float(whole["frontier"]), reward, risk, accepted=risk)]

    def compute_continuations(self) -> None:
        """Find the safest continuation, and the best at the price of risk, from every pair on.

        There is none where the model is too large, and no best one if no policy is acceptable.
        """
        if not self._reader.merges:
            return
        graph = open_graph(self._reader)
        levels = build_levels(graph, may_go_on=lambda *_: graph.evaluations <= MOST_EVALUATIONS)
        if levels is None or not len(levels):
            return
        sweeps = Sweeps(levels)
        self._levels, self._graph = levels, graph
        self._numbers = {graph.state_object(k): k for k in range(graph.states.count)}
        self.safest = sweeps.follow(0.0, 1.0)
        dual = Dual(BoundTest(self._bound), sweeps.find_best).search()
        if not math.isinf(dual.upper_bound) and math.isfinite(dual.multiplier):
            self._multiplier = dual.multiplier
            self.price = None if self._limited else dual.price
            self.best = sweeps.follow(1.0, dual.multiplier)

    def _find_pair(self, point: int) -> tuple[int, int]:
        """Return the state–step pair of a point, and the number of its state."""
        arrays, level = self._levels.arrays, int(self.rows["level"][point])
        number = self._numbers[self._find_state(point)]
        first, end = (int(n) for n in arrays.first[level : level + 2])
        return first + int(arrays.state[first:end].searchsorted(number)), number

    def list_riskiest(self) -> Iterator[int]:
        """Yield the groups that accept risk, then others that take some where they need not fail.

        Those that accept or take most come first.
        """
        accepted = np.bincount(self._group, self._accepted)
        taken = np.bincount(self._group, self.point_risk)
        for group in np.lexsort((-taken, -accepted)).tolist():
            point = self._first[group]
            others = self._weigh_others(point) if accepted[group] <= 0 < taken[group] else {}
            if accepted[group] > 0 or any(o.risk < 1 - TOLERANCE for o in others.values()):
                yield group

    def attribute_risk(self) -> None:
        """Find out how much risk each decision accepts; see the head of this module."""
        if not len(self.rows):
            return
        edges, reach = self._points.edges, self.rows["reach"]
        member = self.rows["member"][edges["source"]]
        chance = np.zeros(len(edges))
        for number, policy in enumerate(self._points.policy.members):
            mine = member == number
            chance[mine] = policy.probability[edges["outcome"][mine]]
        least = np.zeros(len(self.rows))
        # Safest continuations count what follows the frontier, which nothing does here.
        safest = self.safest if self._points.policy.complete else None
        if safest is not None:
            least[:] = [safest[1][self._find_pair(k)[0]] for k in range(len(least))]
        after, left = self._fails.copy(), MOST_EVALUATIONS
        for level in range(int(self.rows["level"].max()), -1, -1):
            here = np.flatnonzero(self.rows["level"] == level)
            leaving = np.flatnonzero(self.rows["level"][edges["source"]] == level)
            ahead = chance[leaving] * least[edges["target"][leaving]]
            after += np.bincount(edges["source"][leaving], ahead, len(after))
            for point in here[after[here] > 0].tolist() if safest is None else ():
                others = self._weigh_others(point) if left > 0 else {"unknown": Worth(0.0, 0.0)}
                left -= len(others)
                least[point] = min([float(after[point]), *(o.risk for o in others.values())])
        raised = after - least
        self._accepted = reach * np.where(raised > TOLERANCE * after, raised, 0.0)
        starts = self.rows["level"] == 0
        self.unavoidable = float(reach[starts] @ least[starts])

    def list_choices(self, by_state: bool = True) -> tuple[Choice, ...]:
        """Return the totals of each action, in each state or in all of them; the riskiest first."""
        first, group = (self._first, self._group) if by_state else _group_equal(self._action[None])
        amounts = (self._point_reward, self.point_risk, self._accepted, self._tempting)
        totals = [np.bincount(group, amount).tolist() for amount in (self.rows["reach"], *amounts)]
        choices = []
        for point, *numbers in zip(first.tolist(), *totals, strict=True):
            state = self._name_state(point) if by_state else ""
            choices.append(Choice(self._labels[self._action[point]], state, *numbers))
        choices += self._beyond
        return tuple(sorted(choices, key=lambda choice: (-choice.accepted, -abs(choice.reward))))

    def list_spending(self, constraint: Constraint) -> Spending:
        """Return the choices that a further constraint is spent on."""
        if isinstance(constraint, RiskAhead):
            worst = int(self._risk_ahead.argmax())
            most, action = float(self._risk_ahead[worst]), self._labels[self._action[worst]]
            history = tuple(map(self._points.last_step, self._points.list_path(worst)[1:]))
            choices = ((action, self._name_state(worst), most),)
            return Spending(constraint.quantity, most, choices, history)
        charges = []
        for point, action in enumerate(self._action.tolist()):
            state = self._find_state(point)
            own = self._reader.actions(state)[self._labels[action]]
            outcomes = self._reader.outcomes(state, own)
            charges.append([(float(o.probability), float(charge(constraint, o))) for o in outcomes])
        reach, members = self.rows["reach"].tolist(), self._points.policy.members
        if isinstance(constraint, Risk):
            reach = np.where(self.rows["level"] == 0, reach, 0.0).tolist()
            for source, outcome, target in self._points.edges.tolist():  # level by level
                row = self.rows[source]
                first = members[row["member"]].first_outcome[row["node"]]
                probability, happens = charges[source][outcome - first]
                reach[target] += 0.0 if happens else reach[source] * probability
        spent = np.array(reach) * [math.fsum(p * x for p, x in pairs) for pairs in charges]
        totals = np.bincount(self._group, spent)
        largest = [k for k in np.argsort(-np.abs(totals))[:MOST_SPENT].tolist() if totals[k]]
        named = tuple(
            (self._labels[self._action[k]], self._name_state(k), float(totals[group]))
            for group, k in zip(largest, self._first[largest].tolist(), strict=True)
        )
        return Spending(constraint.quantity, math.fsum(spent), named)

    def list_sure_failures(self) -> tuple[Choice, ...]:
        """Return the actions that surely fail, each with the safest other action."""
        reach = np.bincount(self._group, self.rows["reach"])
        fails = self._fails[self._first]
        failures = []
        for k in np.flatnonzero((fails > 0) & (fails >= 1 - TOLERANCE)).tolist():
            point = self._first[k]
            others = {label: other.risk for label, other in self._weigh_others(point).items()}
            safest = min(others, key=others.__getitem__, default=None)
            if safest is not None and others[safest] >= 1 - TOLERANCE:
                safest = None
            failures.append(
                Choice(
                    self._labels[self._action[point]],
                    self._name_state(point),
                    times=float(reach[k]),
                    risk=float(reach[k] * fails[k]),
                    instead=safest,
                    instead_risk=None if safest is None else others[safest],
                )
            )
        return tuple(sorted(failures, key=lambda failure: -failure.times))

    def describe_place(self, group: int) -> RiskyPlace:
        """Return the riskiest point of a group, with the best other action there."""
        alike = np.flatnonzero(self._group == group)
        point = int(alike[self._accepted[alike].argmax()])
        path = self._points.list_path(point)
        return RiskyPlace(
            action=self._labels[self._action[point]],
            state=self._name_state(point),
            step=int(self.rows["level"][point]),
            history=tuple(self._points.last_step(there) for there in path[1:]),
            reach=float(self.rows["reach"][point]),
            fails=float(self._fails[point]),
            risk=float(self.point_risk[point]),
            accepted=float(self._accepted[point]),
            alike=len(alike),
            alike_accepted=float(self._accepted[alike].sum()),
            alternative=self._compare(point),
        )

    def _compare(self, point: int) -> Alternative | None:
        """Return the best other action at the price of risk, with its best continuation."""
        if self.best is None or self.safest is None:
            return self._compare_step(point)
        _, number = self._find_pair(point)
        first = int(self._levels.arrays.first_action[number])
        rows = {label: first + k for k, label in enumerate(self._graph.action_labels(number))}
        rows.pop(self._labels[self._action[point]], None)
        if not rows:
            return None
        worths = {label: self._add_ahead(point, row, self.best) for label, row in rows.items()}
        price = self._multiplier
        label = max(worths, key=lambda name: worths[name].reward - price * worths[name].risk)
        judged = self._judge(point, label, worths[label])
        if judged.verdict != "too risky":
            return judged
        safest_change = self._judge(point, label, self._add_ahead(point, rows[label], self.safest))
        if safest_change.verdict in BETTER:
            return safest_change
        acceptable = self.risk + safest_change.risk_change <= safest_change.allowed + TOLERANCE
        return replace(judged, safest_change=safest_change.reward_change if acceptable else None)

    def _add_ahead(self, point: int, row: int, ahead: Values) -> Worth:
        """Return the worth of an action at a point with one of the continuations."""
        arrays, level = self._levels.arrays, int(self.rows["level"][point])
        pair, _ = self._find_pair(point)
        reward = float(arrays.weights[level] * arrays.expected_reward[row])
        risk = float(arrays.immediate_risk[row])
        for probability, target in self._levels.list_targets(pair, row):
            if target != END:
                reward += probability * float(ahead[0][target])
                risk += probability * float(ahead[1][target])
        return Worth(reward, risk)

    def _compare_step(self, point: int) -> Alternative | None:
        """Return the other action of largest reward, if it is followed like the one taken."""
        fails, level = self._fails[point], int(self.rows["level"][point])
        survives = 1 - fails
        earned = self._failing_reward[point] + self._safe_reward[point]
        ahead = self._reward_ahead[point] - earned, self._risk_ahead[point] - fails
        reward, risk = (float(x / survives) if survives > 0 else 0.0 for x in ahead)
        found = []
        for label, step in self._weigh_others(point).items():
            goes_on = 1 - step.risk
            mean = float(self._reader.weights[level]) * (step.reward + goes_on * reward)
            found.append(self._judge(point, label, Worth(mean, step.risk + goes_on * risk)))
        most = max(found, key=lambda other: other.reward_change, default=None)
        if most is not None and most.verdict in BETTER:
            return replace(most, verdict="not known")
        return most

    def _judge(self, point: int, action: str, instead: Worth) -> Alternative:
        """Return the effect of another action, of some discounted worth, on the whole plan."""
        row = self.rows[point]
        reach, weight = float(row["reach"]), float(self._reader.weights[row["level"]])
        more_reward = reach * (instead.reward - weight * float(self._reward_ahead[point]))
        more_risk = reach * (instead.risk - float(self._risk_ahead[point]))
        try:
            allowed = self._bound(self.reward + more_reward)
        except BoundError:
            allowed = -math.inf
        least = TOLERANCE * max(1.0, abs(self.reward))
        if more_reward <= least:
            verdict = "worth less" if more_reward < -least else "as good"
        else:
            too_risky = self.risk + more_risk > allowed + TOLERANCE
            verdict = "too risky" if too_risky else BETTER[self._limited]
        return Alternative(action, more_reward, more_risk, allowed, verdict)

    def _weigh_others(self, point: int) -> dict[str, Worth]:
        """Return mean reward and probability of failure of the actions not taken at a point."""
        state, worths = self._find_state(point), {}
        for label, action in self._reader.actions(state).items():
            if label != self._labels[self._action[point]]:
                outcomes = self._reader.outcomes(state, action)
                worths[label] = Worth(
                    math.fsum(float(o.probability) * float(o.reward) for o in outcomes),
                    math.fsum(float(o.probability) for o in outcomes if o.fails),
                )
        return worths

    def _find_state(self, point: int) -> Any:
        return self._points.states[self.rows["state"][point]]

    def _name_state(self, point: int) -> str:
        """Return the text of a state; of a long one only begin and end, where histories differ."""
        text = stable_text(self._find_state(point))
        if len(text) <= LONGEST_STATE:
            return text
        half = (LONGEST_STATE - 3) // 2
        return f"{text[:half]} … {text[-half:]}"


def _group_equal(keys: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first column of each kind, and the kind of each column."""
    _, first, kind = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[kind.ravel()]


def describe_sure_failures(policy: AnyPolicy, explanation: Explanation | None = None) -> str | None:
    """Return a sentence on decisions of a policy that surely fail; None if none does.

    Only an explanation knows whether anything else was possible there.
    """
    count = sum(
        int(np.logical_and.reduceat(member.child == FAILED, member.first_outcome[:-1]).sum())
        for member in policy.members
        if len(member)
    )
    if not count:
        return None
    text = f"{count:,} of {len(policy):,} decisions surely fail"
    if explanation is None:
        return f"{text}: where nothing else is possible, or on purpose; vulcan explain says which"
    if not explanation.deliberate:
        return f"{text}, but only where every action fails"
    chance = show_percent(explanation.deliberate)
    return (
        f"with probability {chance}, where there is another action ({text}). That is nearly always "
        "a mistake in the model: failing costs no more than going on"
    )
