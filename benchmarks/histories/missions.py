"""Seven missions whose state is the whole history, in plain Python, each with a merged twin.

A mission is written once, over a sufficient statistic. `History` presents it as a newcomer would
write it: the state is the tuple of actions and readings so far, and every answer goes through all
of them again. `Merged` presents the statistic itself, so that the exact solvers find the optimum.

| mission | ends safely by | rewards | bound | readings | horizon |
|---|---|---|---|---|---|
| spacecraft | "stop" | with each reading | does not bind | 7 | 10 |
| lander | "stop" | with each reading | does not bind | 7 | 10 |
| reactor | "shut down" | with each reading | binds | 5 | 12 |
| prospector | "deliver" | late: on delivery | does not bind | 6 | 9 |
| greenhouse | "sell" | late: invest first | binds | 5 | 10 |
| clinic | nothing; default "standard" | some negative | binds | 5 | 8 |
| patrol | nothing; default "loiter" | with each reading | does not bind | 9 | 8 |

The last two state `default_bounds`: the largest risk and the least reward of the default action
until the horizon. Plans are closed by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from vulcan import Outcome

Step = list[tuple[float, float, Any, str]]
"""Outcomes: probability, reward, next statistic (None for failure), label."""


class Mission:
    """A mission over a sufficient statistic."""

    name: str
    bound: str
    horizon: int
    initial: Any
    end: str | None = None
    default_action: str | None = None

    def actions(self, statistic: Any) -> Sequence[str]:
        """Return the actions; none once the mission has ended."""
        raise NotImplementedError

    def outcomes(self, statistic: Any, action: str) -> Step:
        """Return the outcomes of an action."""
        raise NotImplementedError

    def default_bounds(self, statistic: Any, step: int) -> tuple[float, float]:
        """Return the largest risk and the least reward of the default action until the horizon."""
        raise NotImplementedError


class Merged:
    """The mission with its statistic as the state."""

    def __init__(self, mission: Mission) -> None:
        self.mission, self.horizon = mission, mission.horizon

    def initial_state(self) -> Any:
        return self.mission.initial

    def actions(self, state: Any) -> Sequence[str]:
        return self.mission.actions(state)

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        return [
            Outcome.failure(p, r, label) if then is None else Outcome(p, r, then, label)
            for p, r, then, label in self.mission.outcomes(state, action)
        ]


class History:
    """The mission with the history as the state: pairs of an action and a reading."""

    def __init__(self, mission: Mission) -> None:
        self.mission, self.horizon = mission, mission.horizon
        if mission.default_action is not None:
            self.default_action: Callable[[Any], str] = lambda state: mission.default_action or ""
            self.default_bounds = lambda state, step: mission.default_bounds(
                self._fold(state), step
            )

    def initial_state(self) -> tuple[tuple[str, str], ...]:
        return ()

    def actions(self, state: Any) -> Sequence[str]:
        return self.mission.actions(self._fold(state))

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        return [
            Outcome.failure(p, r, label)
            if then is None
            else Outcome(p, r, (*state, (action, label)), label)
            for p, r, then, label in self.mission.outcomes(self._fold(state), action)
        ]

    def _fold(self, state: Any) -> Any:
        """Return the statistic of a history."""
        statistic = self.mission.initial
        for action, label in state:
            statistic = self.mission.update(statistic, action, label)
        return statistic


class Telemetry(Mission):
    """A hidden condition in {-1, 0, 1} that readings tell of, and that failures depend on.

    A reading k of an action with strength w has probability proportional to
    base(k) · exp(θ w (k - middle) / 4). The statistic is (score, uses of each action): the score is
    the sum of w (k - middle).
    """

    prior = (0.3, 0.4, 0.3)
    readings = 7
    strengths: ClassVar[dict[str, int]]
    pay: ClassVar[dict[str, float]]
    risks: ClassVar[dict[str, tuple[float, float, float]]]
    end = "stop"

    def __init__(self) -> None:
        self.working = tuple(self.strengths)
        self.initial = (0, *(0 for _ in self.working))
        self.middle = self.readings // 2
        self._likelihood = {
            a: [self._spread(w, t) for t in (-1, 0, 1)] for a, w in self.strengths.items()
        }
        self._norms = {a: [self._norm(w, t) for t in (-1, 0, 1)] for a, w in self.strengths.items()}

    def _weight(self, k: int, w: int, theta: int) -> float:
        spread = k - self.middle
        return math.exp(-0.15 * spread * spread + theta * w * spread / 4)

    def _norm(self, w: int, theta: int) -> float:
        return sum(self._weight(k, w, theta) for k in range(self.readings))

    def _spread(self, w: int, theta: int) -> list[float]:
        norm = self._norm(w, theta)
        return [self._weight(k, w, theta) / norm for k in range(self.readings)]

    def belief(self, statistic: Any) -> list[float]:
        """Return the posterior of the hidden condition."""
        score, *uses = statistic
        weights = []
        for place, theta in enumerate((-1, 0, 1)):
            log = theta * score / 4 - sum(
                n * math.log(self._norms[a][place]) for a, n in zip(self.working, uses, strict=True)
            )
            weights.append(self.prior[place] * math.exp(log))
        total = sum(weights)
        return [weight / total for weight in weights]

    def actions(self, statistic: Any) -> Sequence[str]:
        return () if statistic == "ended" else (*self.working, self.end)

    def update(self, statistic: Any, action: str, label: str) -> Any:
        if action == self.end:
            return "ended"
        score, *uses = statistic
        uses[self.working.index(action)] += 1
        return (score + self.strengths[action] * (int(label) - self.middle), *uses)

    def outcomes(self, statistic: Any, action: str) -> Step:
        if action == self.end:
            return [(1.0, self.value_of_ending(statistic), "ended", "ended")]
        belief = self.belief(statistic)
        risk = sum(b * r for b, r in zip(belief, self.risks[action], strict=True))
        likelihood = self._likelihood[action]
        found: Step = []
        for k in range(self.readings):
            p = (1 - risk) * sum(b * row[k] for b, row in zip(belief, likelihood, strict=True))
            found.append(
                (p, self.reward(action, k), self.update(statistic, action, str(k)), str(k))
            )
        rest = 1.0 - math.fsum(p for p, *_ in found)
        found.append((max(rest, 0.0), 0.0, None, "lost"))
        return found

    def reward(self, action: str, k: int) -> float:
        """Return the reward of a reading."""
        return self.pay[action] * (1.0 + 0.5 * (k - self.middle))

    def value_of_ending(self, statistic: Any) -> float:
        """Return the reward of the action that ends the mission."""
        return 0.0


class Spacecraft(Telemetry):
    name, bound, horizon = "spacecraft", "0.004*x", 10
    readings = 7
    strengths: ClassVar = {"coast": 1, "scan": 2, "dive": 2}
    pay: ClassVar = {"coast": 0.6, "scan": 1.6, "dive": 2.6}
    risks: ClassVar = {
        "coast": (0.0005, 0.0002, 0.0001),
        "scan": (0.002, 0.001, 0.0005),
        "dive": (0.01, 0.004, 0.001),
    }


class Lander(Spacecraft):
    """Readings tell less, and every step earns about 2: the mission that this began with."""

    name = "lander"
    prior = (0.2, 0.6, 0.2)
    strengths: ClassVar = {"coast": 1, "scan": 1, "dive": 1}
    pay: ClassVar = {"coast": 0.6, "scan": 1.4, "dive": 2.07}
    risks: ClassVar = {
        "coast": (0.0005, 0.0002, 0.0001),
        "scan": (0.002, 0.001, 0.0005),
        "dive": (0.006, 0.003, 0.001),
    }


class Reactor(Telemetry):
    name, bound, horizon = "reactor", "0.002*x", 12
    readings, end = 5, "shut down"
    prior = (0.25, 0.5, 0.25)
    strengths: ClassVar = {"idle": 1, "run": 2, "boost": 1}
    pay: ClassVar = {"idle": 0.3, "run": 1.2, "boost": 2.2}
    risks: ClassVar = {
        "idle": (0.0004, 0.0002, 0.0001),
        "run": (0.006, 0.002, 0.0005),
        "boost": (0.02, 0.008, 0.002),
    }


class Prospector(Mission):
    """Dig for ore in a vein of unknown quality; only what is delivered counts.

    The statistic is (ore, digs, wear). Readings of a dig tell how good the vein is.
    """

    name, bound, horizon = "prospector", "0.03*x", 9
    end = "deliver"
    initial = (0, 0, 0)

    def actions(self, statistic: Any) -> Sequence[str]:
        return () if statistic == "ended" else ("dig", "blast", "repair", "deliver")

    def update(self, statistic: Any, action: str, label: str) -> Any:
        if action == "deliver":
            return "ended"
        ore, digs, wear = statistic
        if action == "repair":
            return (ore, digs, max(0, wear - int(label)))
        return (ore + int(label), digs + 1, min(6, wear + (1 if action == "dig" else 2)))

    def outcomes(self, statistic: Any, action: str) -> Step:
        if action == "deliver":
            return [(1.0, 0.5 * statistic[0], "ended", "delivered")]
        ore, digs, wear = statistic
        if action == "repair":
            chances = [0.05, 0.2, 0.35, 0.25, 0.1, 0.05]
            return [
                (p, -0.1, self.update(statistic, action, str(k)), str(k))
                for k, p in enumerate(chances)
            ]
        quality = (1 + ore) / (2 + 3 * digs)
        mean = min(4.5, quality * (1.5 if action == "dig" else 3.0))
        risk = 0.001 * (1 + wear) * (1 if action == "dig" else 3)
        weights = [mean**k / math.factorial(k) for k in range(6)]
        total = sum(weights)
        found: Step = [
            ((1 - risk) * w / total, 0.0, self.update(statistic, action, str(k)), str(k))
            for k, w in enumerate(weights)
        ]
        found.append((1.0 - math.fsum(p for p, *_ in found), 0.0, None, "collapse"))
        return found


class Greenhouse(Mission):
    """Invest in the beds, then harvest; what is invested pays later.

    The statistic is (level of the beds, moisture, season). Readings tell the moisture.
    """

    name, bound, horizon = "greenhouse", "0.02 + 0.004*x", 10
    end = "sell"
    initial = (1, 2, 0)

    def actions(self, statistic: Any) -> Sequence[str]:
        return () if statistic == "ended" else ("plant", "water", "harvest", "sell")

    def update(self, statistic: Any, action: str, label: str) -> Any:
        if action == "sell":
            return "ended"
        level, _, season = statistic
        if action == "plant":
            level = min(6, level + 1)
        if action == "harvest":
            level = max(1, level - (season % 2))
        return (level, int(label), season + 1)

    def outcomes(self, statistic: Any, action: str) -> Step:
        if action == "sell":
            return [(1.0, 0.1 * statistic[0], "ended", "sold")]
        level, moisture, _ = statistic
        shift = {"plant": -0.5, "water": 1.2, "harvest": -0.3}[action]
        weights = [math.exp(-((k - moisture - shift) ** 2) / 2.5) for k in range(5)]
        total = sum(weights)
        risk = {"plant": 0.002, "water": 0.0005, "harvest": 0.004}[action] * (1 + abs(moisture - 2))
        paid = {"plant": -0.6, "water": -0.05, "harvest": 0.0}[action]
        found: Step = []
        for k, w in enumerate(weights):
            reward = paid + (
                0.45 * level * (1.4 - 0.35 * abs(k - 2)) if action == "harvest" else 0.0
            )
            found.append(
                ((1 - risk) * w / total, reward, self.update(statistic, action, str(k)), str(k))
            )
        found.append((1.0 - math.fsum(p for p, *_ in found), 0.0, None, "blight"))
        return found


class Clinic(Mission):
    """Treatments of a patient: standard care costs a little each week, others help or harm.

    The statistic is (condition, toxicity). There is no end before the horizon.
    """

    name, bound, horizon = "clinic", "0.012 + 0.001*x", 8
    initial = (3, 0)
    default_action = "standard"

    def actions(self, statistic: Any) -> Sequence[str]:
        return ("standard", "low dose", "high dose")

    def update(self, statistic: Any, action: str, label: str) -> Any:
        condition, toxicity = statistic
        extra = {"standard": -1, "low dose": 1, "high dose": 2}[action]
        return (max(0, min(8, condition + int(label))), max(0, min(6, toxicity + extra)))

    def outcomes(self, statistic: Any, action: str) -> Step:
        _, toxicity = statistic
        drift = {"standard": -0.15, "low dose": 0.5, "high dose": 1.1}[action]
        weights = [math.exp(-((k - drift) ** 2) / 1.6) for k in range(-2, 3)]
        total = sum(weights)
        risk = {"standard": 0.0003, "low dose": 0.001, "high dose": 0.003}[action]
        risk *= 1.0 if action == "standard" else 1.0 + toxicity
        cost = {"standard": -0.1, "low dose": -0.35, "high dose": -0.6}[action]
        found: Step = []
        for k, w in zip(range(-2, 3), weights, strict=True):
            after = self.update(statistic, action, str(k))
            reward = cost + 0.3 * (after[0] - 3)
            found.append(((1 - risk) * w / total, reward, after, str(k)))
        found.append((1.0 - math.fsum(p for p, *_ in found), -1.0, None, "harm"))
        return found

    def default_bounds(self, statistic: Any, step: int) -> tuple[float, float]:
        left = self.horizon - step
        condition, _ = statistic
        least = sum(-0.1 + 0.3 * (max(0, condition - 2 * (k + 1)) - 3) for k in range(left))
        return 1 - (1 - 0.0003) ** left, least - 1.0 * 0.0003 * left


class Patrol(Mission):
    """A vehicle watches a strait; contacts come in clusters.

    The statistic is (activity, hull). There is no end before the horizon.
    """

    name, bound, horizon = "patrol", "0.01*x", 8
    initial = (2, 0)
    default_action = "loiter"

    def actions(self, statistic: Any) -> Sequence[str]:
        return ("loiter", "sweep", "chase")

    def update(self, statistic: Any, action: str, label: str) -> Any:
        activity, hull = statistic
        worn = {"loiter": 0, "sweep": 0, "chase": 1}[action]
        seen = (activity + int(label) + 1) // 2
        return (max(0, min(8, seen)), min(3, hull + worn))

    def outcomes(self, statistic: Any, action: str) -> Step:
        activity, hull = statistic
        factor = {"loiter": 0.3, "sweep": 1.0, "chase": 1.3}[action]
        mean = factor * (0.5 + activity)
        weights = [mean**k / math.factorial(k) for k in range(9)]
        total = sum(weights)
        risk = {"loiter": 0.0001, "sweep": 0.0015, "chase": 0.004}[action] * (1 + hull)
        risk = 0.0001 if action == "loiter" else risk
        found: Step = []
        for k, w in enumerate(weights):
            reward = {"loiter": 0.02, "sweep": 0.25, "chase": 0.45}[action] * k
            found.append(
                ((1 - risk) * w / total, reward, self.update(statistic, action, str(k)), str(k))
            )
        found.append((1.0 - math.fsum(p for p, *_ in found), 0.0, None, "lost"))
        return found

    def default_bounds(self, statistic: Any, step: int) -> tuple[float, float]:
        return 1 - (1 - 0.0001) ** (self.horizon - step), 0.0


MISSIONS: dict[str, type[Mission]] = {
    mission.name: mission
    for mission in (Spacecraft, Lander, Reactor, Prospector, Greenhouse, Clinic, Patrol)
}
