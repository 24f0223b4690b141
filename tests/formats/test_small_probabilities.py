"""However a model is given, probabilities below 1e-300 are refused by name, never rounded to 0."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vulcan
from fuzzing.compiled import make_compiled
from fuzzing.problems import Bound, PlainProblem, Way
from tests.helpers.tables import Table
from vulcan import Outcome, Start
from vulcan.errors import ModelError, OptionError
from vulcan.formats import from_table, open_model
from vulcan.model import ArrayModel
from vulcan.testing import check_model

SMALLEST = 1e-300
TOO_SMALL = [5e-324, 1e-310, float(np.nextafter(SMALLEST, 0.0))]


def plan(model: Any) -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(model, 0.5))


def refuse(plan_it: Any, *texts: str, error: type[Exception] = ModelError) -> None:
    """Check that a model is refused, and that the message has all that is needed to find it."""
    with pytest.raises(error) as caught:
        plan_it()
    for text in ("must be 0 or at least 1e-300", *texts):
        assert text in str(caught.value)


def make_table(chance: Any) -> Table:
    outcomes = [Outcome(1.0, 1.0, "sea"), Outcome.failure(chance)]
    return Table({"dock": {"sail": outcomes}}, start="dock")


@pytest.mark.parametrize("chance", [*TOO_SMALL, Fraction(1, 10**301), Fraction(1, 10**400)])
def test_python_models(chance: Any) -> None:
    start = [Outcome(1.0, 0.0, "dock"), Outcome(chance, 0.0, "sea")]
    for model, where in (
        (make_table(chance), "failure"),
        (Table({}, start=Start.draw(start)), "sea"),
    ):
        refuse(lambda model=model: plan(model), where, repr(chance)[:30])
        report = check_model(model)
        assert not report.ok
    refuse(lambda: plan(make_table(chance)), "state 'dock'", "action 'sail'")


@pytest.mark.parametrize("chance", [SMALLEST, Fraction(1, 10**300), 0.0, Fraction(0)])
def test_what_is_allowed_is_used_as_it_is(chance: Any) -> None:
    result = plan(make_table(chance))
    assert result.certificate is not None
    assert result.certificate.risk == float(chance)


def test_outcomes_are_named_by_their_labels() -> None:
    outcomes = [Outcome(1.0, 1.0, 1, "calm"), Outcome(5e-324, 1.0, 2, "storm")]
    refuse(lambda: plan(Table({0: {"sail": outcomes}}, 1)), "outcome 'storm'", "5e-324")


@pytest.mark.parametrize("chance", [*TOO_SMALL, np.longdouble("1e-400")])
def test_arrays(chance: Any) -> None:
    rows = ([0, 0, 0], [0, 0, 0], [1, 1, -1], np.array([0.5, 0.5, chance], np.longdouble))
    names = {"state_names": ["dock", "sea"], "action_names": ["sail"]}
    refuse(lambda: ArrayModel(*rows, horizon=1, **names), "'dock'", "'sail'", "failure")
    start = np.array([1.0, chance], np.longdouble)
    refuse(lambda: ArrayModel([0], [0], [1], [1.0], horizon=1, start=start), "start in state 1")


@pytest.mark.parametrize("chance", [*TOO_SMALL, Fraction(1, 10**400)])
def test_tables(chance: Any) -> None:
    table = {"dock": {"sail": [(1.0, "sea", 1.0), (chance, "FAILURE")]}, "sea": {}}
    where = ("'dock'", "'sail'", "failure", str(chance))
    refuse(lambda: from_table(table, horizon=1), *where)
    start = {"dock": 1.0, "sea": chance}
    sure = {"dock": {"sail": [(1.0, "sea", 1.0)]}, "sea": {}}
    refuse(lambda: from_table(sure, horizon=1, start=start), "start in state 1", str(chance))


@pytest.mark.parametrize("text", ["5e-324", "1e-310", "1e-400", "1e-999999999", "0.1e-400"])
def test_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sail.json"
    table = {"dock": {"sail": [[1.0, "sea", 1.0], [0.0, "FAILURE"]]}, "sea": {}}
    path.write_text(json.dumps({"horizon": 1, "states": table}).replace("[0.0,", f"[{text},"))
    where = ("sail.json", "'dock'", "'sail'", "failure")
    refuse(lambda: open_model(str(path)), *where, error=OptionError)
    path.write_text(json.dumps({"horizon": 1, "states": table}).replace("[0.0,", "[0.0e-400,"))
    assert open_model(str(path)).model.outcomes("dock", "sail") == [Outcome(1.0, 1.0, "sea")]


@pytest.mark.parametrize("chance", TOO_SMALL)
def test_compiled_models(chance: float) -> None:
    ways = (Way(1.0, 1.0, 1), Way(chance, 0.0, None))
    problem = PlainProblem(1, 1.0, {0: {"a": ways}}, 0, Bound("constant", "class", (0.5,)))
    model = make_compiled(problem)
    for solver in (vulcan.baselines.UCT(), vulcan.ForwardSearch()):
        refuse(
            lambda solver=solver: vulcan.solve(vulcan.Problem(model, 0.5), solver),
            *("outcome 1", "action 'a'", "state", str(chance)),
        )
