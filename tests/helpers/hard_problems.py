"""Problems in which roundings decide: steep bounds beside policies, rewards that cancel."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import vulcan
from tests.helpers.tables import Table, random_table
from tests.oracles.exact_policies import Worth, enumerate_exactly

SIZES = {
    "usual": [-2.0, -1.0, -0.3, 0.0, 0.1, 0.5, 1.0, 3.0],
    "tiny": [0.0, 1e-9, 2e-9, -1e-9, 1e-12, 3e-10],
    "huge": [1e8, -1e8, 1e8 + 1, 0.1, -3.0, 1e6],
    "cancelling": [1e17, -1e17, 1.0, 3.0, 1e16, -1e16],
    "mixed": [1e-9, 1.0, 0.1, 1e8, -1e8, 0.3],
}


def random_hard_problem(random: Random) -> tuple[Table, vulcan.RiskBound, set[Worth]] | None:
    """Return a model, a bound beside one of its policies, and all policies; None if too many."""
    table = random_table(random, SIZES[random.choice(list(SIZES))], random.random() < 0.3)
    worths = enumerate_exactly(table)
    if worths is None or not table.table[table.start]:
        return None
    return table, random_steep_bound(random, sorted(worths)), worths


def random_steep_bound(random: Random, worths: list[Worth]) -> vulcan.RiskBound:
    """Return a bound that is steep where some policy earns what it does, or -inf before that."""
    reward, risk = random.choice(worths)
    slope = 10.0 ** random.uniform(5, 17)
    at = float(reward)
    for _ in range(random.choice([0, 0, 1, 2, 10])):
        at = math.nextafter(at, random.choice([-math.inf, math.inf]))
    level = float(risk) * random.choice([1.0, 1.0, 1.1, 0.9]) + random.choice([0.0, 0.0, 1e-12])
    match random.choice(["linear", "pieces", "narrow", "edge", "kink", "mild"]):
        case "linear":
            return vulcan.Linear(slope, level - slope * at)
        case "pieces":
            width = max(random.choice([0.1, 1.0]) / slope, 2 * math.ulp(at))
            return vulcan.PiecewiseLinear([(at - width, level - slope * width), (at, level)])
        case "narrow":
            width = max(random.uniform(1e-10, 9e-10), 4 * math.ulp(at))
            return vulcan.PiecewiseLinear([(at - width, level - 0.3), (at, level)])
        case "edge":
            return vulcan.Concave(lambda x: level if x >= at else -math.inf)
        case "kink":
            return vulcan.Concave(lambda x: min(level + slope * (x - at), level))
    mild = random.choice([1.0, 0.007])
    return vulcan.Linear(mild, float(risk - Fraction(mild) * reward))
