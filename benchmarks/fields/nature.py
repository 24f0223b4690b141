"""Fields outdoors: fire, water, snow, ice, fish, crops and gas."""

from __future__ import annotations

import itertools
import math

from benchmarks.fields.field import Field, combine
from vulcan import Outcome


class Wildfire:
    """Nine patches of forest, a fire in one corner, and a town beyond the other one."""

    horizon = 12
    near = (
        (1, 3),
        (0, 2, 4),
        (1, 5),
        (0, 4, 6),
        (1, 3, 5, 7),
        (2, 4, 8),
        (3, 7),
        (4, 6, 8),
        (5, 7),
    )

    def initial_state(self):
        return "FTTTTTTTT"  # F is on fire, T are trees, - is bare

    def actions(self, forest):
        return ["watch", *(number for number, patch in enumerate(forest) if patch == "T")]

    def outcomes(self, forest, action):
        if action != "watch":
            forest = forest[:action] + "-" + forest[action + 1 :]
        ways = []
        for patch, near in zip(forest, self.near, strict=True):
            fires = sum(forest[other] == "F" for other in near)
            if patch == "T" and fires:
                ways.append((("T", 0.7**fires), ("F", 1 - 0.7**fires)))
            elif patch == "F":
                ways.append((("F", 0.6), ("-", 0.4)))
            else:
                ways.append(((patch, 1.0),))
        falls = 0.3 if forest[-1] == "F" else 0.01 if forest[5] == "F" or forest[7] == "F" else 0.0
        chances = {}
        for way in itertools.product(*ways):
            after = "".join(patch for patch, _ in way)
            chances[after] = (1 - falls) * math.prod(chance for _, chance in way)
        return combine(chances, falls, 0.1 * forest.count("T"))


class Fishery:
    """Cod and herring, one of which eats the other, under 25 quotas; a stock may collapse."""

    horizon = 30
    discount = 0.95
    most = 30

    def initial_state(self):
        return 15, 15

    def actions(self, stocks):
        return [(cod, herring) for cod in range(5) for herring in range(5)]

    def outcomes(self, stocks, quota):
        caught = [min(stock, 2 * share) for stock, share in zip(stocks, quota, strict=True)]
        cod, herring = (stock - catch for stock, catch in zip(stocks, caught, strict=True))
        reward = 3 * caught[0] + caught[1]
        grown = (
            cod + cod * (self.most - cod) / 60 + herring / 15 - 1,
            herring + herring * (self.most - herring) / 40 - cod / 10,
        )
        chances, falls = {}, 0.0
        for first, second in itertools.product(((-5, 0.15), (0, 0.7), (4, 0.15)), repeat=2):
            after = [min(self.most, math.floor(grown[0] + first[0]))]
            after.append(min(self.most, math.floor(grown[1] + second[0])))
            chance = first[1] * second[1]
            if min(after) < 2:
                falls += chance
            else:
                chances[tuple(after)] = chances.get(tuple(after), 0.0) + chance
        return combine(chances, falls, reward)


class Dam:
    """A year of a reservoir: power from what is released, floods below, and a dam that may go."""

    horizon = 52
    top = 89

    def initial_state(self):
        return 0, 75, 1  # week, level, inflow

    def actions(self, state):
        return range(0, 20, 2)

    def outcomes(self, state, released):
        week, level, inflow = state
        released = min(released, level)
        reward = 0.1 * min(released, 12) * (level + 20) / 100 - 0.3 * max(0, released - 14)
        wet = 0.5 + 0.4 * math.sin(week * math.pi / 26)
        outcomes, falls = [], 0.0
        for change, chance in ((1, 0.5 * wet), (0, 0.5), (-1, 0.5 * (1 - wet))):
            following = min(3, max(0, inflow + change))
            for rain, share in ((0, 0.3), (3, 0.5), (12, 0.2)):
                after = level - released + 3 * following + rain
                if after > self.top:
                    falls += chance * share
                else:
                    outcomes.append(Outcome(chance * share, reward, (week + 1, after, following)))
        return [*outcomes, Outcome.failure(falls, reward - 50)]


class Spraying:
    """A season of a field: pests that grow, residues that the rain may wash into the river."""

    horizon = 200

    def initial_state(self):
        return 0, 4, 0, 1  # day, pests, residue, weather

    def actions(self, state):
        return ["nothing", "weed by hand", "spray", "spray much"]

    def outcomes(self, state, action):
        day, pests, residue, weather = state
        killed, left, cost = {
            "nothing": (0, 0, 0.0),
            "weed by hand": (1, 0, 0.3),
            "spray": (5, 3, 0.2),
            "spray much": (12, 6, 0.4),
        }[action]
        pests, residue = max(0, pests - killed), min(14, residue + left)
        reward = 0.4 * (1 - pests / 20) - cost
        falls = (0.0, 0.0, 0.0001)[weather] * residue**2 / 4
        chances = {}
        growth = ((0, 0.5), (1, 0.3), (2, 0.2)) if day % 30 > 10 else ((0, 0.8), (1, 0.2))
        for more, chance in growth:
            for sky, share in enumerate(
                ((0.6, 0.3, 0.1), (0.3, 0.4, 0.3), (0.2, 0.4, 0.4))[weather]
            ):
                after = (day + 1, min(19, pests + more), max(0, residue - 1 - weather // 2), sky)
                chances[after] = chances.get(after, 0.0) + (1 - falls) * chance * share
        return combine(chances, falls, reward)


class Avalanche:
    """A ridge of twelve pitches with snow that settles and falls: one summit, once, and home."""

    horizon = 60

    def initial_state(self):
        return 0, 3, False  # pitch, instability, whether the summit was reached

    def actions(self, state):
        pitch, _, reached = state
        if pitch == 0 and reached:
            return []
        return ["climb", "wait", "descend"] if pitch < 11 else ["wait", "descend"]

    def outcomes(self, state, action):
        pitch, snow, reached = state
        pitch = max(0, pitch + {"climb": 1, "wait": 0, "descend": -1}[action])
        exposed = pitch in (3, 4, 7, 8, 9, 10)
        falls = (0.0, 0.0005, 0.002, 0.008, 0.03, 0.08)[snow] if exposed else 0.0
        reward = 0.0
        if pitch == 11 and not reached:
            reward, reached = 10.0, True
        chances = {}
        for change, chance in ((-1, 0.35), (0, 0.5), (2, 0.15)):
            after = (pitch, min(5, max(0, snow + change)), reached)
            chances[after] = chances.get(after, 0.0) + (1 - falls) * chance
        return combine(chances, falls, reward)


class Glacier:
    """Forty by forty fields of ice with hidden crevasses, and a hut on the far side."""

    horizon = 120
    size = 40

    def crevasse(self, row, column):
        bands = math.sin(row * 0.7 + 2 * math.sin(column * 0.3)) * math.sin(column * 0.5 + 1)
        return 0.02 * max(0.0, bands - 0.2)

    def initial_state(self):
        return 0, 0

    def actions(self, place):
        if place == (self.size - 1, self.size - 1):
            return []
        ways = itertools.product((-1, 0, 1), repeat=2)
        inside = range(self.size)
        return [way for way in ways if place[0] + way[0] in inside and place[1] + way[1] in inside]

    def outcomes(self, place, way):
        row, column = place[0] + way[0], place[1] + way[1]
        falls = self.crevasse(row, column) if any(way) else 0.0
        arrived = row == column == self.size - 1
        reward = (
            100.0
            if arrived
            else -0.05 - 0.2 * max(0.0, math.sin(row * 0.2) * math.cos(column * 0.2))
        )
        outcomes = [Outcome(0.9 * (1 - falls), reward, (row, column))]
        outcomes.append(Outcome(0.1 * (1 - falls), -0.05, place, "fog"))
        return [*outcomes, Outcome.failure(falls)]


class Mine:
    """Three drifts that fill with gas for 300 hours, one fan, and a crew that works in one."""

    horizon = 300

    def initial_state(self):
        return 2, 2, 2, 0  # gas of the drifts, place of the crew; 3 is outside

    def actions(self, state):
        return [(fan, crew) for fan in range(3) for crew in range(4)]

    def outcomes(self, state, action):
        fan, crew = action
        reward = (1.0, 1.2, 1.5, 0.0)[crew] - (0.3 if crew != state[3] else 0.0)
        outcomes, falls = [], 0.0
        for rises in itertools.product((0, 1), repeat=3):
            chance, gas = 1.0, []
            for drift, rise in enumerate(rises):
                chance *= (0.3, 0.4, 0.5)[drift] if rise else (0.7, 0.6, 0.5)[drift]
                gas.append(
                    min(7, max(0, state[drift] + rise * (1 + (drift == crew)) - (drift == fan)))
                )
            explodes = (0, 0, 0, 0, 0.0001, 0.001, 0.01, 0.1)[gas[crew]] if crew < 3 else 0.0
            falls += chance * explodes
            outcomes.append(Outcome(chance * (1 - explodes), reward, (*gas, crew)))
        return [*outcomes, Outcome.failure(falls, -10)]


FIELDS = [
    Field("wildfire", Wildfire(), "0.002 - exp(-x)", "hundreds of outcomes of one action"),
    Field("fishery", Fishery(), "0.00002*x", "25 actions, discounted"),
    Field("dam", Dam(), "0.002", "the step in the state; rain that looks the same"),
    Field("spraying", Spraying(), "0.0008", "more than 250,000 questions"),
    Field("avalanche", Avalanche(), "0.0003*x", "nothing is earned for a long time"),
    Field("glacier", Glacier(), "0.01", "one risky way: part of the luck must be used as a coin"),
    Field("mine", Mine(), "0.00005*x", "300 steps; outcomes that look the same"),
]
