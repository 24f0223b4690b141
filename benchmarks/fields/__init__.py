"""Models of many fields, as users might bring them along: for `test_fields.py`.

None is made for a solver. They differ in size, from a hundred to a million state–step pairs,
and in what makes problems hard: costs, late rewards, many actions or outcomes,
indistinguishable outcomes, drawn and chosen starts, discounts, tight bounds and bounds that
nothing meets.
"""

from benchmarks.fields import machines, medicine, money, nature, vehicles
from benchmarks.fields.field import Field
from examples.drone import Drone
from examples.treatment import Treatment

FIELDS: list[Field] = [
    Field("drone", Drone(), "0.004*x", "see docs/examples/drone.md"),
    Field("small drone", Drone(size=7, minutes=6), "0.004*x", "the same with a short shift"),
    Field("treatment", Treatment(), "0.0115", "outcomes that look the same"),
    *machines.FIELDS,
    *medicine.FIELDS,
    *money.FIELDS,
    *nature.FIELDS,
    *vehicles.FIELDS,
]

__all__ = ["FIELDS", "Field"]
