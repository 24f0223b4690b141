"""How models are described."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest

from vulcan.domains import Bandit
from vulcan.model.interface import describe_model


class Maintenance:
    horizon = 3

    def __init__(self, **parameters: Any) -> None:
        vars(self).update(parameters)

    @cached_property
    def rate(self) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({}, "Maintenance()"),
        ({"horizon": 12, "wear": 0.1}, "Maintenance(horizon=12, wear=0.1)"),
        ({"site": "north", "spare": True}, "Maintenance(site='north', spare=True)"),
        ({"_cache": 1, "table": {1: 2}, "wear": 0.1}, "Maintenance(wear=0.1)"),
    ],
)
def test_parameters_are_shown(parameters: dict[str, Any], text: str) -> None:
    model = Maintenance(**parameters)
    assert describe_model(model) == text
    assert model.rate == 0.5
    assert describe_model(model) == text  # what was computed is no parameter


def test_descriptions_stay_short() -> None:
    model = Maintenance(**{f"parameter_{k}": k for k in range(50)})
    assert describe_model(model).startswith("Maintenance(parameter_0=0, parameter_1=1")
    assert describe_model(model).endswith(", …)")
    assert len(describe_model(model)) < 130
    assert len(describe_model(Maintenance(name="x" * 1000))) < 100


def test_models_describe_themselves_if_they_can() -> None:
    class Slotted:
        __slots__ = ("horizon",)

    assert describe_model(Bandit(3)) == "Bandit(horizon=3)"
    assert describe_model(Slotted()) == "Slotted()"
