"""Ten models of different fields with two or three limits each, as a user might bring them along.

Limits are chosen so that they bind: without any one of them more could be earned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import vulcan
from vulcan import Outcome

__all__ = ["FIELDS", "Field"]


@dataclass(frozen=True)
class Field:
    """A model with its limits, as on the command line."""

    name: str
    model: Any
    constraints: tuple[str, ...]

    @property
    def problem(self) -> vulcan.Problem:
        """Model and limits together."""
        return vulcan.Problem(self.model, constraints=list(self.constraints))


class Rover:
    """A rover between six sites: samples, slopes that tip it over, dust, and radio windows."""

    horizon = 14
    slopes = (0.0, 0.001, 0.004, 0.002, 0.01, 0.02)
    worth = (0.0, 1.0, 2.0, 1.5, 4.0, 6.0)

    def initial_state(self):
        return 0, 0, 0  # site, sites that were sampled, hours since the last contact

    def actions(self, state):
        site, sampled, _ = state
        roads = [f"drive {other}" for other in range(6) if abs(other - site) in (1, 2)]
        fresh = ["sample"] if site and not sampled >> site & 1 else []
        return [*roads, *fresh, "call"]

    def outcomes(self, state, action):
        site, sampled, hours = state
        late = hours >= 4
        event = "silent" if late and action != "call" else None
        hours = 0 if action == "call" else min(hours + 1, 5)
        if action == "call":
            return [Outcome(1, 0, (site, sampled, 0), costs={"energy": 1})]
        if action == "sample":
            after = (site, sampled | 1 << site, hours)
            return [
                Outcome(0.8, self.worth[site], after, costs={"energy": 2}, event=event),
                Outcome(0.2, 0, (site, sampled, hours), costs={"energy": 3}, event=event),
            ]
        there = int(action.split()[1])
        far = abs(there - site)
        tips = self.slopes[there] * far
        energy = {"energy": 1.5 * far}
        return [
            Outcome((1 - tips) * 0.9, 0, (there, sampled, hours), costs=energy, event=event),
            Outcome((1 - tips) * 0.1, 0, (site, sampled, hours), costs=energy, event=event),
            Outcome.failure(tips, costs=energy, event="tipped"),
        ]


class Chemotherapy:
    """Doses against a tumour: blood counts fall, fever is an event, and both may kill."""

    horizon = 20

    def initial_state(self):
        return 5, 0  # tumour, damage

    def actions(self, state):
        return ["rest", "mild", "strong"] if state[0] else []

    def outcomes(self, state, action):
        tumour, damage = state
        dose = ("rest", "mild", "strong").index(action)
        shrinks = (0.05, 0.35, 0.6)[dose]
        grows = (0.3, 0.1, 0.05)[dose]
        dies = 0.0005 * tumour**2 + (0.01 if damage == 6 else 0.0)
        fever = 0.02 * damage if dose else 0.0
        outcomes = []
        for change, chance in ((-1, shrinks), (1, grows), (0, 1 - shrinks - grows)):
            after = (min(8, tumour + change), min(6, max(0, damage + (-1, 1, 2)[dose])))
            paid = (8 - after[0]) * 0.1 + (5.0 if after[0] == 0 else 0.0)
            for ill, share in (("fever", fever), (None, 1 - fever)):
                if share:
                    outcomes.append(
                        Outcome(
                            (1 - dies) * chance * share,
                            paid,
                            after,
                            f"{change:+d} {ill}",
                            costs={"dose": dose},
                            event=ill,
                        )
                    )
        return [*outcomes, Outcome.failure(dies, event="dead")]


class Courier:
    """A drone with parcels: wind, noise over houses, late parcels, and a battery."""

    horizon = 30

    def initial_state(self):
        return 0, 9, 0, 0  # place on the route, battery, wind, minutes behind

    def actions(self, state):
        return ["fast", "quiet", "detour"] + (["charge"] if state[0] % 3 == 0 else [])

    def outcomes(self, state, action):
        place, battery, wind, behind = state
        outcomes = []
        for blows, chance in enumerate(((0.8, 0.2, 0.0), (0.3, 0.5, 0.2), (0.0, 0.3, 0.7))[wind]):
            if action == "charge":
                after = (place, min(9, battery + 3), blows, min(3, behind + 1))
                outcomes.append(Outcome(chance, 0, after, f"wind {blows}", event=_late(after)))
                continue
            drain = {"fast": 2, "quiet": 1, "detour": 2}[action]
            noise = {"fast": 2.0, "quiet": 0.7, "detour": 0.1}[action]
            falls = {"fast": 0.001, "quiet": 0.002, "detour": 0.0005}[action] * (1 + 2 * blows)
            if battery < drain:
                falls = min(1.0, falls + 0.05)
            there = (place + 1) % 12
            slower = {"fast": -1, "quiet": 0, "detour": 1}[action]
            after = (there, max(0, battery - drain), blows, min(3, max(0, behind + slower)))
            paid = 2.0 if there % 4 == 0 else 0.2
            cost = {"noise": noise}
            outcomes += [
                Outcome(
                    chance * (1 - falls),
                    paid,
                    after,
                    f"wind {blows}",
                    costs=cost,
                    event=_late(after),
                ),
                Outcome.failure(chance * falls, 0, f"crash in {blows}", costs=cost),
            ]
        return outcomes


def _late(state):
    return "late" if state[-1] == 3 else None


class Reservoir:
    """A year of a reservoir: power, floods and dry rivers below, and a dam that may go."""

    horizon = 26
    top = 39

    def initial_state(self):
        return 20, 1  # level, inflow

    def actions(self, state):
        return range(0, min(state[0], 12) + 1, 2)

    def outcomes(self, state, released):
        level, inflow = state
        outcomes = []
        for change, chance in ((1, 0.25), (0, 0.5), (-1, 0.25)):
            following = min(3, max(0, inflow + change))
            for rain, often in ((0, 0.5), (3, 0.4), (9, 0.1)):
                share = often
                after = level - released + 2 * following + rain
                spilled = max(0, after - self.top)
                event = "flood" if released + spilled >= 12 else "dry" if released == 0 else None
                paid = 0.1 * min(released, 8) * (level + 20) / 40
                label, costs = f"{change:+d} {rain}", {"spilled": spilled}
                if spilled > 3:
                    breaks = 0.05 * (spilled - 3)
                    outcomes.append(
                        Outcome.failure(
                            chance * share * breaks,
                            0,
                            f"breaks {label}",
                            costs=costs,
                            event="flood",
                        )
                    )
                    share *= 1 - breaks
                kept = (min(after, self.top), following)
                outcomes.append(
                    Outcome(chance * share, paid, kept, label, costs=costs, event=event)
                )
        return outcomes


class Servers:
    """Requests that queue before up to four servers: power, lost requests, and heat."""

    horizon = 40

    def initial_state(self):
        return 0, 1, 0  # queue, servers that run, heat

    def actions(self, state):
        running = state[1]
        return [n for n in range(5) if abs(n - running) <= 1]

    def outcomes(self, state, running):
        queue, before, heat = state
        served = min(queue, 2 * running)
        hot = min(4, max(0, heat + (1 if running >= 3 else -1)))
        fails = 0.0004 * hot**2
        power = {"power": running + 0.5 * (running != before)}
        outcomes = []
        for arrive, chance in ((0, 0.2), (2, 0.35), (4, 0.25), (7, 0.2)):
            waiting = queue - served + arrive
            event = "lost" if waiting > 12 else None
            after = (min(waiting, 12), running, hot)
            outcomes.append(
                Outcome(
                    chance * (1 - fails),
                    0.5 * served,
                    after,
                    f"{arrive} new",
                    costs=power,
                    event=event,
                )
            )
        return [*outcomes, Outcome.failure(fails, 0, costs=power)] if fails else outcomes


class Fishing:
    """Two stocks and a fleet: what is caught besides, and stocks that run low or collapse."""

    horizon = 25
    most = 14

    def initial_state(self):
        return 8, 8

    def actions(self, state):
        return list(product(range(3), range(3)))

    def outcomes(self, state, fleet):
        caught = [min(stock, 2 * boats) for stock, boats in zip(state, fleet, strict=True)]
        left = [stock - catch for stock, catch in zip(state, caught, strict=True)]
        paid = 2.0 * caught[0] + caught[1]
        costs = {"bycatch": 0.15 * fleet[0] + 0.4 * fleet[1], "fuel": sum(fleet)}
        outcomes, falls = [], 0.0
        for (first, p), (second, q) in product(
            ((0, 0.4), (2, 0.6)), ((-1, 0.2), (1, 0.5), (3, 0.3))
        ):
            after = (min(self.most, left[0] + first), min(self.most, left[1] + second))
            if min(after) < 1:
                falls += p * q
                continue
            event = "low" if min(after) <= 3 else None
            outcomes.append(
                Outcome(p * q, paid, after, f"{first} {second}", costs=costs, event=event)
            )
        return [*outcomes, Outcome.failure(falls, paid, costs=costs)] if falls else outcomes


class Pharmacy:
    """A pharmacy orders a drug that spoils: empty shelves, and money bound in stock."""

    horizon = 30

    def initial_state(self):
        return 5, 3, 0  # fresh, old, on order

    def actions(self, state):
        return (0, 4, 8)

    def outcomes(self, state, ordered):
        fresh, old, coming = state
        outcomes = []
        for asked, chance in ((0, 0.1), (2, 0.3), (4, 0.35), (6, 0.2), (9, 0.05)):
            from_old = min(old, asked)
            from_fresh = min(fresh, asked - from_old)
            short = asked - from_old - from_fresh
            spoiled = old - from_old
            after = (min(12, coming), min(12, fresh - from_fresh), ordered)
            costs = {"spoiled": spoiled, "bound": 0.1 * (fresh + old)}
            paid = 1.0 * (from_old + from_fresh) - 0.4 * ordered - (0.3 if ordered else 0.0)
            event = "empty" if short else None
            dies = 0.002 * short
            outcomes.append(
                Outcome(
                    chance * (1 - dies), paid, after, f"{asked} asked", costs=costs, event=event
                )
            )
            if dies:
                outcomes.append(
                    Outcome.failure(
                        chance * dies, paid, f"{asked} in vain", costs=costs, event=event
                    )
                )
        return outcomes


class Savings:
    """Money in three kinds of assets: fees, drawdowns on the way, and ruin."""

    horizon = 30

    def initial_state(self):
        return 10, 0  # wealth, mix

    def actions(self, state):
        return (0, 1, 2) if state[0] else ()

    def outcomes(self, state, mix):
        wealth, before = state
        moves = (
            ((0, 0.8), (1, 0.2)),
            ((-1, 0.25), (0, 0.3), (1, 0.45)),
            ((-3, 0.1), (-1, 0.25), (1, 0.35), (3, 0.3)),
        )[mix]
        fee = {"fees": 0.1 * mix + 0.3 * (mix != before)}
        outcomes = []
        for change, chance in moves:
            after = min(40, wealth + change)
            if after <= 0:
                outcomes.append(
                    Outcome.failure(chance, 0, f"ruin {change}", costs=fee, event="ruin")
                )
                continue
            event = "drawdown" if after <= 6 and change < 0 else None
            outcomes.append(
                Outcome(
                    chance, after - wealth, (after, mix), f"{change:+d}", costs=fee, event=event
                )
            )
        return outcomes


class Satellite:
    """A satellite among debris: pictures, fuel for avoiding, radiation, and a camera that heats."""

    horizon = 48

    def initial_state(self):
        return 0, 0, 2, 0  # orbit phase, debris warning, altitude, heat

    def actions(self, state):
        return ["picture", "idle", "avoid", "climb", "sink"] if state[3] < 4 else ["idle", "avoid"]

    def outcomes(self, state, action):
        phase, warning, altitude, heat = state
        hits = (0.0, 0.001, 0.01)[warning] * (3.0, 1.5, 1.0, 0.8)[altitude]
        hits *= 0.1 if action == "avoid" else 1.0
        fuel = {"avoid": 1.0, "climb": 1.5, "sink": 0.3}.get(action, 0.0)
        dose = (0.02, 0.06, 0.15, 0.4)[altitude] * (3 if phase in (4, 5) else 1)
        dose *= 0.5 if action == "idle" else 1.0
        clear = (0.9, 0.5, 0.7, 0.3, 0.9, 0.2, 0.6, 0.8)[phase]
        paid = clear * (1.5, 2.2, 2.6, 3.0)[altitude] if action == "picture" else 0.0
        heat = min(4, heat + 1) if action == "picture" else max(0, heat - 2)
        lower = altitude + {"climb": 1, "sink": -1}.get(action, 0)
        outcomes = []
        for drag, p in ((0, 1.0),) if action == "climb" else ((1, 0.08), (0, 0.92)):
            height = min(3, max(0, lower - drag))
            for warned, q in ((0, 0.7), (1, 0.2), (2, 0.1)):
                outcomes.append(
                    Outcome(
                        (1 - hits) * p * q,
                        paid,
                        ((phase + 1) % 8, warned, height, heat),
                        f"{drag} {warned}",
                        costs={"fuel": fuel, "dose": dose},
                        event="low" if height == 0 and altitude else None,
                    )
                )
        return [*outcomes, Outcome.failure(hits, 0, costs={"fuel": fuel})] if hits else outcomes


class Epidemic:
    """Contact rules in a town of 20: cases, full hospitals, and what rules cost."""

    horizon = 20
    people = 20

    def initial_state(self):
        return 17, 3  # not yet ill, ill

    def actions(self, state):
        return ["open", "masks", "closed"] if state[1] else []

    def outcomes(self, state, rule):
        healthy, ill = state
        level = ("open", "masks", "closed").index(rule)
        catch = 1 - math.exp(-(0.09, 0.045, 0.015)[level] * ill)
        recover = min(ill, max(1, round(0.35 * ill)))
        costs = {"burden": (0.0, 0.4, 2.0)[level]}
        paid = (1.0, 0.85, 0.3)[level]
        outcomes = []
        collapse = 0.01 * max(0, ill - 7)
        for new in range(healthy + 1):
            chance = math.comb(healthy, new) * catch**new * (1 - catch) ** (healthy - new)
            if chance < 1e-9:
                continue
            now = ill - recover + new
            event = "full" if now > 6 else None
            after = (healthy - new, now)
            outcomes.append((chance, after, {**costs, "cases": new}, event, f"{new} new"))
        total = math.fsum(chance for chance, *_ in outcomes)
        found = [
            Outcome((1 - collapse) * chance / total, paid, after, label, costs=cost, event=event)
            for chance, after, cost, event, label in outcomes
        ]
        if collapse:
            found.append(Outcome.failure(collapse, 0, costs=costs, event="collapse"))
        return found


FIELDS = (
    Field("rover", Rover(), ("risk <= 0.02", "energy <= 20", "risk(silent) <= 0.1")),
    Field("chemotherapy", Chemotherapy(), ("risk <= 0.15", "dose <= 14", "risk(fever) <= 0.3")),
    Field("courier", Courier(), ("risk <= 0.004*x", "noise <= 25", "risk(late) <= 0.3")),
    Field("reservoir", Reservoir(), ("risk <= 0.001", "risk(flood) <= 0.05", "risk(dry) <= 0.1")),
    Field("servers", Servers(), ("risk <= 0.02", "power <= 65", "risk(lost) <= 0.1")),
    Field("fishing", Fishing(), ("risk <= 0.01", "bycatch <= 12", "risk(low) <= 0.2")),
    Field("pharmacy", Pharmacy(), ("risk <= 0.018", "spoiled <= 17", "risk(empty) <= 0.9")),
    Field("savings", Savings(), ("risk <= 0.005", "fees <= 4", "risk(drawdown) <= 0.08")),
    Field(
        "satellite",
        Satellite(),
        ("risk <= 0.0004*x", "fuel <= 8", "dose <= 12", "risk(low) <= 0.2"),
    ),
    Field("epidemic", Epidemic(), ("risk <= 0.02", "burden <= 6", "risk(full) <= 0.2")),
)
