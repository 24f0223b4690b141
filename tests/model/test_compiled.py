"""Compiled models: which parts they have."""

from __future__ import annotations

import dataclasses
from typing import Any

import numba
import numpy as np
import pytest

import vulcan
from tests.helpers.charts import (
    HONEST,
    STATE,
    Chart,
    look_ahead,
    look_up,
    solve,
)
from vulcan import ModelError, OptionError

LIED_TO = [vulcan.Vulcan(), vulcan.LocalVulcan(), vulcan.ForwardSearch(), vulcan.UCT()]


@pytest.mark.parametrize("solver", LIED_TO, ids=str)
def test_what_is_no_compiled_model(solver: Any) -> None:
    chart = Chart(HONEST, 3)
    chart.compiled = look_up
    with pytest.raises(ModelError, match=r"compiled must be a vulcan.CompiledModel, not a CFunc"):
        solve(chart, solver)


WHOLE = Chart(HONEST, 3).compiled


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"initial": (0,)}, "initial of a compiled model must be a numpy array"),
        ({"parameters": None}, "parameters of a compiled model must be a numpy array"),
        ({"initial": np.zeros(2, STATE)}, "one initial state"),
        ({"initial": np.zeros(0, STATE)}, "one initial state"),
        ({"initial": np.zeros(1, object)}, "no Python objects"),
        ({"parameters": np.zeros(1, object)}, "no Python objects"),
        ({"actions": ()}, "actions of a compiled model must be labels"),
        ({"actions": ("left", "left")}, "each of them once"),
        ({"most_outcomes": 0}, "most_outcomes of a compiled model must be at least 1"),
        ({"most_outcomes": 2.0}, "most_outcomes of a compiled model must be at least 1"),
        ({"outcomes": None}, "outcomes of a compiled model must be made with numba.cfunc"),
        ({"outcomes": look_up.__wrapped__}, "outcomes .* must be made with numba.cfunc"),
        ({"bound": numba.njit(lambda x: x)}, "bound .* must be made with numba.cfunc"),
        ({"value_bound": look_ahead}, "value_bound .* made with numba.cfunc.value_bound_signature"),
    ],
)
def test_parts_that_are_refused(part: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        dataclasses.replace(WHOLE, **part)


def test_function_of_other_types_is_refused() -> None:
    for part in ({"outcomes": look_ahead}, {"initial": np.zeros(1, "f4")}):
        with pytest.raises(OptionError, match="outcomes"):
            dataclasses.replace(WHOLE, **part)
