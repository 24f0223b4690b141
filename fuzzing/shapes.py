"""Shapes of problems: which models and bounds the campaign draws.

Problem n of campaign seed s comes from `random.Random("s:n")` alone. A shape is a combination of

- structure: one step, trees, layers, cycles and corridors, most of 2 to 40 histories; safe
  terminals, actions that surely fail, outcomes of probability 0;
- probabilities: plain, dyadic, decimal, skewed, tiny, down to the smallest allowed and below, and
  with sums that are 1 only within the tolerance;
- rewards: small, decimal, signed, huge, tiny, zeros of both signs, large ones that cancel, and of
  any size up to the largest allowed and beyond;
- discounts from 0 to 1; starts that are given, drawn or chosen, with rewards and failures;
- what is observable: labels for all, some or no outcomes, and outcomes that can't be told apart;
- a risk bound of any kind, drawn where it matters: through a point that some policy reaches,
  beside it, or a rounding away; level, steep, and nothing allowed below some reward.

What was drawn is in the tags of a problem, by which the statistics count.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from random import Random

from fuzzing.bound_shapes import draw_bound
from fuzzing.oracle import Oracle, TooLargeError
from fuzzing.problems import LARGEST_REWARD, SMALLEST_PROBABILITY, Bound, PlainProblem, Way

__all__ = ["draw_problem", "seed_random"]

MOST_PAIRS = 200
"""Fronts that need more sums of points than this are drawn again: they take too long."""

LEVEL = Bound("constant", "class", (0.1,))
"""In the place of a bound that is drawn last."""

Draw = Callable[[Random], float]
Skeleton = tuple[int, list[list[list[int | None]]]]
"""A horizon, and for each state the targets of each action."""


def seed_random(seed: int, number: int) -> Random:
    """Return the random numbers of one problem of a campaign."""
    return Random(f"{seed}:{number}")  # noqa: S311 - problems, not secrets


def draw_problem(random: Random) -> tuple[PlainProblem, Oracle]:
    """Return a problem and what is true of it."""
    while True:
        model = _draw_model(random)
        oracle = Oracle(model, MOST_PAIRS)
        try:
            bound, tag = draw_bound(random, oracle.front)
        except TooLargeError:
            continue
        except OverflowError:  # policies earn more than floats can say
            bound, tag = LEVEL, LEVEL.kind
        tags = (*model.tags, f"bound {tag}")
        return (
            PlainProblem(model.horizon, model.discount, model.states, model.start, bound, tags),
            oracle,
        )


def _draw_model(random: Random) -> PlainProblem:
    structure = random.choice(list(STRUCTURES))
    chances = random.choice(list(PROBABILITIES))
    pay = random.choice(list(REWARDS))
    naming = random.choice(("states", "states", "labels", "some labels", "duplicates"))
    horizon, skeleton = STRUCTURES[structure](random)
    tempting = random.random() < 0.7
    states = {
        state: _draw_actions(random, actions, (chances, pay, naming), tempting)
        for state, actions in enumerate(skeleton)
    }
    start, opening = _draw_start(random, len(skeleton), PROBABILITIES[chances], REWARDS[pay])
    discount = random.choice((1.0, 1.0, 1.0, 0.9, 0.5, 0.95, 0.0, 1e-3, 1 - 2.0**-30, 1 / 3))
    tags = (structure, f"probabilities {chances}", f"rewards {pay}", naming, opening)
    return PlainProblem(horizon, discount, states, start, LEVEL, tags)


# Structures.


def _draw_targets(random: Random, choices: Sequence[int]) -> list[int | None]:
    """Return where the outcomes of one action lead."""
    safe = random.choice((1, 1, 2, 2, 3))
    failing = random.choice((0, 1, 1, 1, 2))
    if random.random() < 0.04:
        safe, failing = 0, random.choice((1, 2))  # it surely fails
    targets: list[int | None] = [random.choice(choices) for _ in range(safe)]
    return targets + [None] * failing


def _draw_one(random: Random) -> Skeleton:
    """Draw a single decision."""
    count = random.choice((1, 2, 3, 3, 4, 4))
    return 1, [[_draw_targets(random, (1, 2, 3)) for _ in range(count)], [], [], []]


def _draw_tree(random: Random) -> Skeleton:
    """Draw states that are reached one way only."""
    horizon = random.choice((2, 2, 3))
    states: list[list[list[int | None]]] = [[]]
    level = [0]
    for _ in range(horizon):
        following: list[int] = []
        for state in level:
            for _ in range(random.choice((1, 2, 2, 3) if state == 0 else (1, 1, 2))):
                drawn = _draw_targets(random, (0,))
                safe = len(drawn) - drawn.count(None)
                targets = range(len(states), len(states) + safe)
                states[state].append([*targets, *[None] * drawn.count(None)])
                states += [[] for _ in targets]
                following += targets
        # Some end early, and wide trees end.
        level = [state for state in following if random.random() < 0.8][:6]
    return horizon, states


def _draw_layers(random: Random) -> Skeleton:
    """Draw states of one step that lead to those of the next."""
    horizon, width = random.choice((2, 2, 3, 4)), random.choice((1, 2, 2, 3))
    states: list[list[list[int | None]]] = []
    for layer in range(horizon):
        following = range((layer + 1) * width, (layer + 2) * width)
        for _ in range(width):
            count = 0 if layer and random.random() < 0.1 else random.choice((1, 2, 2, 3))
            states.append([_draw_targets(random, following) for _ in range(count)])
    return horizon, states


def _draw_cycles(random: Random) -> Skeleton:
    """Draw states that lead to any state, themselves included."""
    count = random.choice((1, 2, 2, 3, 4))
    states = []
    for state in range(count):
        actions = 0 if state and random.random() < 0.15 else random.choice((1, 2, 2, 3))
        states.append([_draw_targets(random, range(count)) for _ in range(actions)])
    return random.choice((1, 2, 2, 3, 3, 4)), states


def _draw_corridor(random: Random) -> Skeleton:
    """Draw a long way with one decision at a time."""
    horizon = random.choice((5, 8, 12))
    loop: list[int | None] = [0, *[None] * random.choice((1, 1, 2))]
    ends: list[list[int | None]] = [[1], [1, None], [None]]
    leave = random.choice(ends)
    return horizon, [[loop, leave] if random.random() < 0.7 else [loop], []]


STRUCTURES: dict[str, Callable[[Random], Skeleton]] = {
    "one step": _draw_one,
    "tree": _draw_tree,
    "layers": _draw_layers,
    "cycles": _draw_cycles,
    "corridor": _draw_corridor,
}


# Numbers.


def _share(weights: Sequence[float]) -> list[float]:
    """Return probabilities in the ratio of weights, the largest taking what roundings leave."""
    total = sum(weights)
    shares = [weight / total for weight in weights]
    largest = shares.index(max(shares))
    rest = sum(share for k, share in enumerate(shares) if k != largest)
    shares[largest] = 1.0 - rest
    return shares


def _plain(random: Random, failing: Sequence[bool]) -> list[float]:
    scale = random.choice((1.0, 0.1, 0.01))
    return _share([random.random() * (scale if fails else 1.0) + 1e-9 for fails in failing])


def _dyadic(random: Random, failing: Sequence[bool]) -> list[float]:
    shares, left = [], 1.0
    for _ in failing[1:]:
        left /= random.choice((2.0, 2.0, 4.0, 1024.0))
        shares.append(left)
    return [1.0 - sum(shares), *shares]


def _decimal(random: Random, failing: Sequence[bool]) -> list[float]:
    return _share([random.randint(1, 9) * (0.01 if fails else 1.0) for fails in failing])


def _skewed(random: Random, failing: Sequence[bool]) -> list[float]:
    return _share([10.0 ** -random.choice((0, 1, 3, 6, 9, 13, 15)) for _ in failing])


def _tiny(random: Random, failing: Sequence[bool]) -> list[float]:
    powers = (8, 12, 16, 20, 100, 290)
    return _share([10.0 ** -random.choice(powers) if f else random.random() for f in failing])


BELOW = (math.nextafter(SMALLEST_PROBABILITY, 0.0), 1e-306, 2.0**-1022, 1e-310, 5e-324)
OFF = (-9e-13, -1e-13, 1e-13, 9e-13)
"""Distances of sums of probabilities from 1: Vulcan accepts 1e-12."""
LARGEST = sys.float_info.max
BEYOND = (math.nextafter(LARGEST_REWARD, math.inf), 1e154, -1e200, LARGEST, -LARGEST)
REFUSED = 0.01
"""How often a number of an extreme shape is one that is refused."""


def _smallest(random: Random, failing: Sequence[bool]) -> list[float]:
    sizes = (0.2, 1e-9, 1e-17, 1e-100, 1e-154, 1e-200, 1e-290, 3e-300, SMALLEST_PROBABILITY)
    shares = [random.choice(BELOW if random.random() < REFUSED else sizes) for _ in failing]
    main = random.randrange(len(failing))
    shares[main] = 1.0 - sum(share for k, share in enumerate(shares) if k != main)
    return shares


def _inexact(random: Random, failing: Sequence[bool]) -> list[float]:
    shares = random.choice((_plain, _decimal, _smallest))(random, failing)
    largest = shares.index(max(shares))
    shares[largest] = min(1.0, shares[largest] + random.choice(OFF))
    return shares


def _extreme(random: Random) -> float:
    if random.random() < REFUSED:
        return random.choice(BEYOND)
    sizes = (0.0, 5e-324, 2.0**-1022, 1e-300, 1e-154, 1.0, 1.0, 1e22, 1e77, 1e99, LARGEST_REWARD)
    return random.choice(sizes) * random.choice((1, 1, -1))


PROBABILITIES: dict[str, Callable[[Random, Sequence[bool]], list[float]]] = {
    "plain": _plain,
    "dyadic": _dyadic,
    "decimal": _decimal,
    "skewed": _skewed,
    "tiny": _tiny,
    "smallest": _smallest,
    "inexact": _inexact,
}

REWARDS: dict[str, Draw] = {
    "small": lambda random: float(random.randint(0, 5)),
    "decimal": lambda random: random.randint(0, 40) / 10,
    "real": lambda random: random.random() * 3,
    "signed": lambda random: random.choice((-2.0, -1.0, -0.3, 0.0, 0.1, 0.5, 1.0, 3.0)),
    "huge": lambda random: random.choice((1.0, 1e8, -3e8, 1e12, 7e17, 1e100)),
    "cancelling": lambda random: random.choice((1e8, -1e8, 0.1, 1e8 + 1 / 3)),
    "minute": lambda random: random.choice((0.0, 1e-9, -1e-9, 3e-12, 5e-324, 1e-300)),
    "zeros": lambda random: random.choice((0.0, -0.0, -0.0, 1.0)),
    "extreme": _extreme,
}


def _draw_actions(
    random: Random,
    actions: Sequence[Sequence[int | None]],
    style: tuple[str, str, str],
    tempting: bool,
) -> dict[str, tuple[Way, ...]]:
    """Return the actions of a state; in tempting ones, what is riskier tends to pay more."""
    chances, pay, naming = style
    shares = [PROBABILITIES[chances](random, [t is None for t in targets]) for targets in actions]
    risks = [
        sum(p for p, target in zip(parts, targets, strict=True) if target is None)
        for parts, targets in zip(shares, actions, strict=True)
    ]
    drawn = {}
    for action, targets, parts, risk in zip("abcd", actions, shares, risks, strict=False):
        pays = REWARDS[pay]
        if tempting and risk == max(risks):
            pays = _choose_extreme(max, pays)
        elif tempting and risk == min(risks):
            pays = _choose_extreme(min, pays)
        drawn[action] = _draw_ways(random, targets, parts, pays, naming)
    return drawn


def _choose_extreme(choose: Callable[[Sequence[float]], float], pay: Draw) -> Draw:
    return lambda random: choose([pay(random), pay(random), pay(random)])


def _draw_ways(
    random: Random,
    targets: Sequence[int | None],
    chances: Sequence[float],
    pay: Draw,
    naming: str,
) -> tuple[Way, ...]:
    """Return the outcomes of an action."""
    ways = []
    for k, (target, chance) in enumerate(zip(targets, chances, strict=True)):
        reward = 0.0 if target is None and random.random() < 0.6 else pay(random)
        named = naming == "labels" or (naming == "some labels" and random.random() < 0.5)
        ways.append(Way(chance, reward, target, f"{k}" if named else None))
    if naming == "duplicates":
        ways = _split(random, ways)
    if random.random() < 0.03:
        ways.append(Way(0.0, pay(random), random.choice((0, None)), "never"))
    if random.random() < 0.3:
        random.shuffle(ways)
    return tuple(ways)


def _split(random: Random, ways: list[Way]) -> list[Way]:
    """Return the same with an outcome in parts that nobody can tell apart."""
    parts: list[Way] = []
    for way in ways:
        if random.random() < 0.5:
            share = random.choice((0.5, 0.5, 0.25, 0.3))
            first = way.probability * share
            parts += [
                way._replace(probability=first),
                way._replace(probability=way.probability - first),
            ]
        else:
            parts.append(way)
    return parts


def _draw_start(
    random: Random, states: int, share: Callable[[Random, Sequence[bool]], list[float]], pay: Draw
) -> tuple[int | dict[str, tuple[Way, ...]], str]:
    """Return where a mission begins, and what kind of start that is."""
    kind = random.random()
    if kind < 0.8 or states < 2:
        return 0, "given start"
    others = random.sample(range(1, states), min(random.choice((1, 2)), states - 1))
    places = [0, *others]
    if kind < 0.88:
        shares = share(random, [False] * len(places))
        ways = [Way(p, 0.0, s) for p, s in zip(shares, places, strict=True)]
        return {"start": tuple(ways)}, "drawn start"
    if kind < 0.94:
        return {f"to {s}": (Way(1.0, 0.0, s),) for s in places}, "chosen start"
    choices = {}
    for name in ("x", "y"):
        targets: list[int | None] = [random.choice(places), *random.choice(([], [None]))]
        shares = share(random, [target is None for target in targets])
        choices[name] = _draw_ways(random, targets, shares, pay, "states")
    return choices, "risky start"
