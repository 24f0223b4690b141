"""Fields about machines: what runs, wears, fills up and breaks."""

from __future__ import annotations

import math

from benchmarks.fields.field import Field, combine
from vulcan import Outcome, Start


class Maintenance:
    """A machine that wears: run it fully or gently, service it, or buy another one."""

    horizon = 50
    worn = 9

    def initial_state(self):
        return 0

    def actions(self, wear):
        return ["run", "run gently", "service", "replace"]

    def outcomes(self, wear, action):
        if action == "service":
            return [Outcome(0.8, -1, max(0, wear - 3)), Outcome(0.2, -1, wear)]
        if action == "replace":
            return [Outcome(1, -6, 0)]
        gently = action == "run gently"
        breaks = (0.0001 if gently else 0.0004) * wear**2
        earned, wears = (1.5, (0.7, 0.25, 0.05)) if gently else (3.0, (0.3, 0.5, 0.2))
        # At the end of the scale different wear leads to the same state, without a label.
        outcomes = [
            Outcome((1 - breaks) * chance, earned, min(self.worn, wear + more))
            for more, chance in enumerate(wears)
        ]
        return [*outcomes, Outcome.failure(breaks, -20)]


class Backups:
    """When to back up, and when to buy a new disk: everything costs, nothing is earned."""

    horizon = 30
    crashes = (0.002, 0.008, 0.03)

    def initial_state(self):
        return 0, 0  # days since the backup, age of the disk

    def actions(self, state):
        return ["work", "back up", "new disk"]

    def outcomes(self, state, action):
        days, age = state
        if action == "new disk":
            return [Outcome(1, -8, (0, 0))]
        cost = -1 if action == "back up" else 0
        crash, days = self.crashes[age], 0 if action == "back up" else min(days + 1, 10)
        older = min(age + 1, len(self.crashes) - 1)
        outcomes = [
            Outcome((1 - crash) * 0.9, cost, (days, age)),
            Outcome((1 - crash) * 0.1, cost, (days, older), label="clicks"),
        ]
        if days <= 2:  # what was lost can be written again
            return [*outcomes, Outcome(crash, cost - 3, (0, 0), label="crash")]
        return [*outcomes, Outcome.failure(crash, cost)]


class Bridge:
    """A bridge whose condition is known when it was inspected, and drifts until the next time."""

    horizon = 30
    collapses = (0.00001, 0.0002, 0.002, 0.02, 0.1)

    def __init__(self):
        self.beliefs = {}  # probabilities of the conditions after some years
        for seen in range(5):
            belief = [float(condition == seen) for condition in range(5)]
            for years in range(7):
                self.beliefs[seen, years] = belief
                kept = [0.85 * chance for chance in belief[:-1]] + [belief[-1]]
                belief = [
                    stays + (0.15 * belief[condition - 1] if condition else 0.0)
                    for condition, stays in enumerate(kept)
                ]

    def initial_state(self):
        return Start.draw(
            [Outcome(0.3, 0, (0, 0)), Outcome(0.5, 0, (1, 0)), Outcome(0.2, 0, (2, 0))]
        )

    def actions(self, state):
        return ["inspect", "strengthen"] if state[1] == 5 else ["wait", "inspect", "strengthen"]

    def outcomes(self, state, action):
        seen, years = state
        belief = self.beliefs[state]
        falls = sum(chance * risk for chance, risk in zip(belief, self.collapses, strict=True))
        if action == "wait":
            return combine({(seen, years + 1): 1 - falls}, falls, 1.0)
        if action == "strengthen":
            return combine({(max(0, seen - 1), 0): 1 - falls / 2}, falls / 2, -3.0)
        found = {(condition, 0): (1 - falls) * chance for condition, chance in enumerate(belief)}
        return combine(found, falls, 0.8)


class Elevator:
    """A lift in the evening: who calls wants to go down, and a full cabin is dangerous."""

    horizon = 12
    floors = 6

    def initial_state(self):
        return 0, 0, 0  # floor, floors that call, riders

    def actions(self, state):
        return ["up", "down", "open"]

    def outcomes(self, state, action):
        floor, calls, riders = state
        reward, boarding = -0.01, {0: 1.0}
        if action == "up":
            floor = min(floor + 1, self.floors - 1)
        elif action == "down":
            floor = max(floor - 1, 0)
        elif floor == 0:
            reward, riders = float(riders), 0
        elif calls >> floor & 1:
            calls ^= 1 << floor
            boarding = {1: 0.5, 2: 0.3, 3: 0.2}
        outcomes = []
        for people, chance in boarding.items():
            crowd = riders + people
            falls = 0.02 * 2 ** (crowd - 5) if crowd > 4 and people else 0.0
            outcomes += [
                Outcome(chance * (1 - falls) * 0.6, reward, (floor, calls, min(crowd, 6))),
                Outcome.failure(chance * falls, label=f"{crowd} people"),
            ]
            for caller in range(1, self.floors):
                after = (floor, calls | 1 << caller, min(crowd, 6))
                outcomes.append(
                    Outcome(chance * (1 - falls) * 0.4 / (self.floors - 1), reward, after)
                )
        return outcomes


class Patching:
    """Servers that become vulnerable one by one; a patch takes one of them down for a day."""

    horizon = 60
    worth = (1, 1, 2, 2, 3, 5)  # what an attacker gives for each

    def initial_state(self):
        return 0b000111

    def actions(self, vulnerable):
        return ["wait", *(server for server in range(6) if vulnerable >> server & 1)]

    def outcomes(self, vulnerable, action):
        earned = 1.0
        if action != "wait":
            vulnerable ^= 1 << action
            earned -= 0.15 * self.worth[action]
        attacked = sum(worth for server, worth in enumerate(self.worth) if vulnerable >> server & 1)
        falls = 1 - (1 - 0.0004) ** attacked
        outcomes = [Outcome(0.5 * (1 - falls), earned, vulnerable)]
        for server in range(6):  # one that is vulnerable already stays so
            outcomes.append(Outcome(0.5 / 6 * (1 - falls), earned, vulnerable | 1 << server))
        return [*outcomes, Outcome.failure(falls)]


class Battery:
    """A clinic with panels and a battery sells power when it is dear, and must not run out."""

    horizon = 72

    def initial_state(self):
        return 6, 12, True  # hour, charge, sunny

    def actions(self, state):
        return [-2, -1, 0, 1, 2, 3]  # sold; what is negative is bought

    def outcomes(self, state, sold):
        hour, charge, sunny = state
        price = 1.0 + 0.6 * math.sin((hour - 12) * math.pi / 12)
        made = max(0, round(4 * math.sin((hour - 6) * math.pi / 12))) // (1 if sunny else 2)
        outcomes = []
        for used, chance in ((0, 0.25), (1, 0.5), (2, 0.2), (4, 0.05)):
            left = charge + made - sold - used
            if left < 0:
                outcomes.append(Outcome.failure(chance, price * sold, label=f"{used} used"))
                continue
            for weather, share in ((sunny, 0.8), (not sunny, 0.2)):
                after = ((hour + 1) % 24, min(left, 20), weather)
                outcomes.append(Outcome(chance * share, price * sold, after))
        return outcomes


class Grid:
    """Two lines that heat up over two days; to shed load costs, and a line that trips is worse."""

    horizon = 48

    def initial_state(self):
        return 0, 2, 2, 2  # hour, heat of both lines, demand

    def actions(self, state):
        return [(first, second) for first in range(3) for second in range(3)]

    def outcomes(self, state, shed):
        hour, first, second, demand = state
        cost = -0.2 * shed[0] - 0.3 * shed[1]
        first = max(0, first + (demand - shed[0]) // 2 - 1)
        second = max(0, second + (demand + 1 - shed[1]) // 2 - 1)
        trips = sum(0.004 * 3 ** (heat - 7) for heat in (first, second) if heat > 6)
        if trips >= 1 or first > 9 or second > 9:
            return [Outcome.failure(1, cost)]
        usual = 2.5 - 2 * math.cos((hour - 4) * math.pi / 12)
        drift = 0.3 if demand < usual else 0.1
        chances = {-1: 0.4 - drift, 0: 0.6, 1: drift}
        outcomes = [
            Outcome((1 - trips) * chance, cost, ((hour + 1) % 24, first, second, after))
            for change, chance in chances.items()
            for after in [min(5, max(0, demand + change))]
        ]
        return [*outcomes, Outcome.failure(trips, cost)]


class Reactor:
    """Heat and pressure of a reactor for 200 hours, with a pump that may fail and be mended."""

    horizon = 200

    def initial_state(self):
        return 20, 15, True  # heat, pressure, second pump

    def actions(self, state):
        return ["low", "medium", "high"]

    def outcomes(self, state, power):
        heat, pressure, pump = state
        output = {"low": 0, "medium": 1, "high": 2}[power]
        cooled = (3 if pump else 2) + pressure // 20
        outcomes, falls = [], 0.0
        for surge, chance in ((0, 0.3), (2, 0.5), (5, 0.2)):
            hotter = max(0, heat + output + surge - cooled)
            for change, share in ((-1, 0.5), (1, 0.5)):
                rises = min(39, max(0, pressure + change + (hotter - 30) // 10))
                melts = 1.0 if hotter >= 60 else 0.002 * max(0, hotter - 50)
                falls += chance * share * melts
                safe = chance * share * (1 - melts)
                works = 0.97 if pump else 0.1
                outcomes.append(Outcome(safe * works, 0.5 * output, (hotter, rises, True)))
                outcomes.append(Outcome(safe * (1 - works), 0.5 * output, (hotter, rises, False)))
        return [*outcomes, Outcome.failure(falls, -1)]


class Queue:
    """Jobs for two servers, the fast one and the steady one; a queue that overflows ends it all."""

    horizon = 200
    discount = 0.999
    longest = 45

    def initial_state(self):
        return 0, 0

    def actions(self, state):
        return ["fast", "steady", "reject"]

    def outcomes(self, state, action):
        lengths = [state[0] + 3 * (action == "fast"), state[1] + 3 * (action == "steady")]
        reward = (action != "reject") - 0.004 * sum(lengths)
        if max(lengths) > self.longest:
            return [Outcome.failure(1, reward)]
        outcomes = []
        for fast, chance in ((0, 0.3), (1, 0.4), (3, 0.3)):
            for steady, share in ((0, 0.2), (1, 0.8)):
                after = (max(0, lengths[0] - fast), max(0, lengths[1] - steady))
                served, crashes = f"{fast} and {steady} served", 1e-7 * max(after) ** 3
                outcomes += [
                    Outcome(chance * share * (1 - crashes), reward, after, served),
                    Outcome.failure(chance * share * crashes, reward, f"{served}, crash"),
                ]
        return outcomes


FIELDS = [
    Field("maintenance", Maintenance(), "0.0003*x", "stationary; outcomes that look the same"),
    Field("backups", Backups(), "0.06 + 0.002*x", "costs only; a bound that falls with them"),
    Field("bridge", Bridge(), "0.25", "a drawn start; the best policy is acceptable anyway"),
    Field("elevator", Elevator(), "0.001*x", "up to 21 outcomes, most of them of no concern"),
    Field("patching", Patching(), "0.0018", "just below the least risk", feasible=False),
    Field("battery", Battery(), "0.0002*x", "the hour of the day in the state"),
    Field("grid", Grid(), "0.09 + 0.001*x", "costs, failures that are certain", feasible=False),
    Field(
        "reactor",
        Reactor(),
        "piecewise((0, 0), (100, 0.006), (200, 0.008))",
        "large and stationary",
    ),
    Field("queue", Queue(), "0.01", "large, stationary, discounted"),
]
