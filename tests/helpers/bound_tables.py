"""Tables of risk bounds, asked as a search asks them."""

import math

import numpy as np

from vulcan.bounds.table import BoundTable
from vulcan.kernels import constraints as local
from vulcan.tolerance import TOLERANCE

HUGE = 1e9


def decide(table: BoundTable, risk: float, credit: float) -> tuple[bool, int]:
    """Ask as a search does; return the verdict and how often the table had to be made finer."""
    test = np.zeros(1, local.TEST)
    test["least"], test["largest"] = math.inf, -math.inf
    for rounds in range(10):
        test["low"], test["high"] = table.low, table.high
        verdict = local.compare(test[0], table.pieces, risk, credit)
        if verdict != local.UNDECIDED:
            return verdict == local.ADMITTED, rounds
        assert test["asked"][0] == credit
        table.cover(credit)
    raise AssertionError(f"still undecided at {credit!r} with risk {risk!r}")


def piece_at(table, credit):
    starts = table.pieces["start"]
    return table.pieces[max(0, int(np.searchsorted(starts, credit, side="right")) - 1)]


def line_at(table, credit: float) -> float:
    piece = piece_at(table, credit)
    return float(piece["value"] + piece["slope"] * (credit - piece["start"]))


def risks_near(value: float) -> list[float]:
    """Risks at which rounding decides, and others."""
    risks = [0.0, 0.01, 0.5]
    if value > -math.inf:
        for near in (value, value + TOLERANCE, value - TOLERANCE):
            risks += [math.nextafter(near, -math.inf), near, math.nextafter(near, math.inf)]
        risks += [value + shift for shift in (2e-12, 1e-9, 1e-7, 1e-3, -1e-9, -1e-7, -1e-3)]
    return risks


def check_decisions(bound, table, credits_asked):
    for credit in credits_asked:
        value = bound(credit)
        for risk in risks_near(value):
            admitted, rounds = decide(table, risk, credit)
            assert admitted == (risk <= value + TOLERANCE), (credit, risk, value)
            assert rounds <= 1
