"""Fields about vehicles: on roads and rails, on water, in the air, and beyond."""

from __future__ import annotations

import math

from benchmarks.fields.field import Field, combine
from vulcan import Outcome, Start


class LaneChange:
    """A car in the left lane that must take an exit, with a gap ahead of it and one beside it."""

    horizon = 25

    def initial_state(self):
        return 25, 0, 3, 2  # distance, lane (2 is the exit lane), gap ahead, gap beside

    def actions(self, state):
        return [] if state[0] == 0 else ["keep", "brake", "change"]

    def outcomes(self, state, action):
        distance, lane, ahead, beside = state
        crash = (0.02, 0.004, 0.001, 0.0, 0.0, 0.0)[ahead]
        reward = -0.05 if action == "brake" else 0.0
        if action == "brake":
            ahead, crash = min(5, ahead + 1), 0.0005
        elif action == "change" and lane < 2:
            crash = (0.3, 0.06, 0.01, 0.002, 0.0005, 0.0)[beside]
            lane, ahead = lane + 1, beside
        if distance == 1:
            reward += 10.0 if lane == 2 else -5.0
        chances = {}
        for first, chance in ((-1, 0.3), (0, 0.4), (1, 0.3)):
            for second, share in ((-1, 0.25), (0, 0.5), (1, 0.25)):
                gaps = min(5, max(0, ahead + first)), min(5, max(0, beside + second))
                after = (distance - 1, lane, *gaps)
                chances[after] = chances.get(after, 0.0) + (1 - crash) * chance * share
        return combine(chances, crash, reward)


class MarsRover:
    """Twenty stations, a battery charged by the sun, and samples that count at the lander only."""

    horizon = 50

    def initial_state(self):
        return 0, 12, 0, False  # station, charge, samples, dust

    def actions(self, state):
        return ["sleep", "out", "back", "drill"]

    def outcomes(self, state, action):
        station, charge, samples, dusty = state
        reward, charge = 0.0, charge - {"sleep": 1, "out": 2, "back": 2, "drill": 4}[action]
        if action == "out":
            station = min(19, station + 1)
        elif action == "back":
            station = max(0, station - 1)
        elif action == "drill":
            samples = min(9, samples + station // 5)
        if station == 0:
            reward, samples = samples**1.5, 0
        outcomes, falls = [], 0.0
        for sun, chance in ((1, 0.4), (2, 0.4), (4, 0.2)):
            after = min(15, charge + (sun + 1) // 2 if dusty else charge + sun)
            if after < 0:
                falls += chance
                continue
            for dust, share in ((dusty, 0.9), (not dusty, 0.1)):
                outcomes.append(Outcome(chance * share, reward, (station, after, samples, dust)))
        return [*outcomes, Outcome.failure(falls, reward)]


class Satellite:
    """Debris comes near: to burn fuel costs next to nothing, and hardly less may be enough."""

    horizon = 20

    def initial_state(self):
        return 20, 3, 6, 6  # steps left, distance, uncertainty, fuel

    def actions(self, state):
        return ["coast", "up", "down", "track"] if state[3] else ["coast", "track"]

    def outcomes(self, state, action):
        left, distance, unsure, fuel = state
        reward = {"coast": 0.0, "up": -0.001, "down": -0.001, "track": -0.0002}[action]
        moved = {"coast": 0, "up": 2, "down": -2, "track": 0}[action]
        fuel -= moved != 0
        if left == 1:
            hits = math.exp(-(((distance + moved) / (1 + unsure)) ** 2)) * 0.5 / (1 + unsure)
            return combine({"passed": 1 - hits}, hits, reward)
        sharper = 0.7 if action == "track" else 0.25
        chances = {}
        for drift, chance in ((-2, 0.1), (-1, 0.2), (0, 0.4), (1, 0.2), (2, 0.1)):
            for better, share in ((0, 1 - sharper), (1, sharper)):
                where = min(20, max(-20, distance + moved + (drift if unsure else 0)))
                after = (left - 1, where, max(0, unsure - better), fuel)
                chances[after] = chances.get(after, 0.0) + chance * share
        return combine(chances, 0.0, reward)


class Warehouse:
    """A robot carries boxes across an aisle in which a person walks up and down."""

    horizon = 40
    discount = 0.95
    size = 10

    def initial_state(self):
        return 0, 0, False, 5  # row, column, whether it carries, place of the person

    def actions(self, state):
        return ["north", "east", "south", "west", "wait"]

    def outcomes(self, state, action):
        row, column, carries, person = state
        south, east = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}.get(
            action, (0, 0)
        )
        row, column = (min(self.size - 1, max(0, p)) for p in (row + south, column + east))
        reward = 0.0
        if (row, column) == (9, 9) and not carries:
            carries = True
        elif (row, column) == (0, 0) and carries:
            carries, reward = False, 1.0
        chances, falls = {}, 0.0
        for step, chance in ((-1, 0.3), (0, 0.4), (1, 0.3)):
            walks = min(self.size - 1, max(0, person + step))
            near = abs(row - 5) + abs(column - walks)
            hits = 0.2 if near == 0 else 0.02 if near == 1 else 0.0
            after = (row, column, carries, walks)
            chances[after] = chances.get(after, 0.0) + chance * (1 - hits)
            falls += chance * hits
        return combine(chances, falls, reward)


class Sailing:
    """A lake with rocks, eight headings and eight winds, of which one can't be sailed against."""

    horizon = 40
    size = 14
    headings = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))
    rocks = frozenset({(3, 4), (4, 4), (5, 9), (6, 9), (7, 9), (9, 3), (9, 4), (10, 11), (11, 11)})

    def initial_state(self):
        return Start.draw([Outcome(1 / 8, 0, (0, 0, wind)) for wind in range(8)])

    def actions(self, state):
        row, column, wind = state
        if (row, column) == (13, 13):
            return []
        return ["drift", *(heading for heading in range(8) if heading != (wind + 4) % 8)]

    def outcomes(self, state, heading):
        row, column, wind = state
        if heading == "drift":
            ways = ((self.headings[wind], 0.3), ((0, 0), 0.7))
        else:
            angle = min((heading - wind) % 8, (wind - heading) % 8)
            slips = 0.05 * angle
            ways = ((self.headings[heading], 1 - slips), (self.headings[wind], slips))
        chances, falls = {}, 0.0
        for (south, east), chance in ways:
            place = tuple(min(self.size - 1, max(0, p)) for p in (row + south, column + east))
            falls += chance * (0.5 if place in self.rocks else 0.0)
            safe = chance * (0.5 if place in self.rocks else 1.0)
            for turn, share in ((-1, 0.2), (0, 0.6), (1, 0.2)):
                after = (*place, (wind + turn) % 8)
                chances[after] = chances.get(after, 0.0) + safe * share
        return combine(chances, falls, -1.0)


class Trains:
    """Two trains meet on a single track with one loop; who goes first is chosen at the start."""

    horizon = 14
    loop = 4

    def initial_state(self):
        return Start.choose({"east first": (1, 8, "east"), "west first": (0, 7, "west")})

    def actions(self, state):
        return [] if state[:2] == (8, 0) else ["both", "eastbound", "westbound", "none"]

    def outcomes(self, state, moving):
        east, west, first = state
        after_east = min(8, east + (moving in ("both", "eastbound")))
        after_west = max(0, west - (moving in ("both", "westbound")))
        reward = -0.1
        if after_east == 8 and east < 8:
            reward += 2.0
        if after_west == 0 and west > 0:
            reward += 2.0
        in_loop = after_east == after_west == self.loop
        if east < west and after_east >= after_west and not in_loop:
            return [Outcome.failure(1)]
        facing = 0 < after_west - after_east <= 2
        risk = 0.02 if facing and moving == "both" else 0.004 if facing else 0.0
        after = (after_east, after_west, first)
        return [Outcome(1 - risk, reward, after), Outcome.failure(risk)]


class Rescue:
    """A helicopter looks for three climbers, over mountains, in weather that turns."""

    horizon = 75
    size = 11
    climbers = (((2, 8), 0.5), ((8, 3), 0.35), ((9, 9), 0.2))  # places, and how visible

    def initial_state(self):
        return 0, 5, 5, 0, False  # minute, row, column, who was found, storm

    def actions(self, state):
        return ["search", "north", "east", "south", "west"]

    def outcomes(self, state, action):
        minute, row, column, found, storm = state
        ways = {"north": (-1, 0), "south": (1, 0), "east": (0, 1), "west": (0, -1)}
        south, east = ways.get(action, (0, 0))
        row, column = (min(self.size - 1, max(0, p)) for p in (row + south, column + east))
        seen, finds = 0.0, found
        for climber, (place, visible) in enumerate(self.climbers):
            if action == "search" and place == (row, column) and not found >> climber & 1:
                seen, finds = visible / (2 if storm else 1), found | 1 << climber
        height = abs(math.sin(row) * math.cos(column))
        falls = 0.0004 * height + (0.003 * height if storm else 0.0)
        turns = 0.15 if storm else 0.05 + 0.001 * minute
        outcomes = []
        for rescued, chance in ((finds, seen), (found, 1 - seen)):
            reward = 1.0 if rescued != found else 0.0
            for weather, share in ((storm, 1 - turns), (not storm, turns)):
                after = (minute + 1, row, column, rescued, weather)
                outcomes.append(Outcome(chance * share * (1 - falls), reward, after))
        return [*outcomes, Outcome.failure(falls)]


FIELDS = [
    Field("lane change", LaneChange(), "0.0013", "a bound just above the least risk"),
    Field("mars rover", MarsRover(), "0", "no risk at all; earns only after a long way back"),
    Field("satellite", Satellite(), "0.00003", "rewards near 0, a tight bound"),
    Field("warehouse", Warehouse(), "0.0002", "five moves on a floor, a tight bound"),
    Field("sailing", Sailing(), "0.03 + 0.001*x", "costs until the goal, a drawn start"),
    Field("trains", Trains(), "0.0015*x", "a chosen start; the least risk is not acceptable"),
    Field("rescue", Rescue(), "0.003*x", "more than 250,000 questions"),
]
