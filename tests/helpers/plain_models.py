"""Models without their compiled form, or without its bound."""

from __future__ import annotations

import dataclasses
from functools import cached_property

from vulcan.domains import Bandit
from vulcan.domains.exploration.field import Field
from vulcan.domains.exploration.maps import Map, Obstacle, Vehicle
from vulcan.domains.exploration.model import Exploration
from vulcan.model.compiled import CompiledModel


class PlainBandit(Bandit):
    """A subclass, which has no compiled form."""


class PlainExploration(Exploration):
    """A subclass, which has no compiled form."""


class WithoutBound(Exploration):
    """The compiled form without its bound, so that the search is that of the plain one."""

    @cached_property
    def compiled(self) -> CompiledModel | None:
        whole = Exploration(**{f.name: getattr(self, f.name) for f in dataclasses.fields(self)})
        return dataclasses.replace(whole.compiled, bound=None)


# Crooked enough that no two plans are worth the same.
CROOKED = {
    "field": Field(1.0, (0.0713, 0.0429), 0.16, 2.0),
    "map": Map(9, 8, (3, 4), [Obstacle.rectangle(4.3, 5.7, 4.4, 9.0)]),
    "vehicle": Vehicle(0.02, 0.011),
}
