"""Values of the exploration mission from a GPU: how they are found, and what they do to proofs.

Without a GPU, the processor makes the tables.
"""

from __future__ import annotations

import numpy as np
import pytest

import vulcan
from tests.helpers.histories import value_first_moves
from vulcan.domains import Exploration
from vulcan.domains.exploration import compiled as machine_code
from vulcan.domains.exploration import cuda
from vulcan.model.reader import ModelReader
from vulcan.runtime import devices
from vulcan.sampling import proof as proofs
from vulcan.sampling.proof import Proof

BOUND = "0.01*x"


@pytest.fixture
def tables(monkeypatch):
    """Let the processor make the tables, and return the prices that it made them for."""
    made = []

    def tabulate(arrays, parameters, price):
        if not cuda.count_moves(parameters) or price is None:
            return None
        made.append(price)
        horizon = int(parameters[0]["horizon"])
        return value_first_moves(Exploration(horizon=horizon, map="narrow"), price)

    monkeypatch.setattr(machine_code, "tabulate", tabulate)
    monkeypatch.setattr(proofs, "open_arrays", lambda: np)
    monkeypatch.setattr(devices, "open_arrays", lambda: np)
    return made


def test_a_table_makes_proofs_short_and_changes_no_bound(tables):
    problem = vulcan.Problem(Exploration(horizon=6, map="narrow"), BOUND)
    found = {}
    for device in ("cpu", "cuda"):
        proof = Proof(problem, ModelReader(problem.model), device=device)
        found[device] = proof.advance(20.0), proof.evaluations
        assert proof.is_final(20.0)
        exact = value_first_moves(problem.model, 20.0)[0]
        assert found[device][0] == pytest.approx(exact, rel=1e-9)
    assert tables == [20.0]
    # Only what the best policy reaches: the root, and the histories after its first move.
    assert found["cuda"][1] < found["cpu"][1]


def test_cases_use_a_table_for_each_price(tables):
    problem = vulcan.Problem(Exploration(horizon=5, map="narrow"), "0.0005*x")
    uppers = {}
    for device in ("cpu", "cuda"):
        proof = Proof(problem, ModelReader(problem.model), device=device)
        for _ in range(40):
            proof.improve(20.0, 500)
        uppers[device] = proof.upper
    assert len(tables) > 1
    assert uppers["cuda"] == pytest.approx(uppers["cpu"], rel=3e-4)
    optimum = vulcan.solve(problem, vulcan.ForwardSearch()).certificate.reward
    assert min(uppers.values()) >= optimum


def test_longer_missions_have_no_table(tables):
    model = Exploration(horizon=10, map="narrow")
    proof = Proof(vulcan.Problem(model, BOUND), ModelReader(model), device="cuda")
    proof.improve(20.0, 3)
    assert tables == []
    assert proof.upper < np.inf


def test_tables_of_a_mission_are_those_of_the_model():
    """A cell of the window of the GPU is where the compiled form has it."""
    model = Exploration(horizon=7, map="wide", first_sample=3.0)
    tables = cuda.make_tables(model.compiled.parameters)[0]
    x, y = model.area.start
    middle = int(tables["middle"])
    assert tables["west"] == middle - x
    for east, north, step in ((1, 1, 1), (2, -1, 3), (3, 0, 7)):
        cell = (x + east, y + north)
        place = middle + east, middle + north
        assert tables["risk"][step, *place] == model.risk(cell, step)
        field, start = model.field, model.area.locate(model.area.start)
        covariance = field.kernel(model.area.locate(cell), start)
        shift = covariance / field.variance * (3.0 - field.mean(start))
        mean = field.mean(model.area.locate(cell)) + shift
        assert tables["mean"][place] == pytest.approx(mean, rel=1e-12)
        assert tables["kernel"][abs(east), abs(north)] == pytest.approx(covariance, rel=1e-12)
