"""No kernel leaves its arrays, however small probabilities and large quotients are.

An index out of range is undefined in machine code, so what would show it runs in a process of its
own, with `NUMBA_BOUNDSCHECK`.
"""

from __future__ import annotations

import ast
import math
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import vulcan
from vulcan.formats import from_table
from vulcan.kernels.compilation import find_bin, scale_bins
from vulcan.model import FAILURE

SMALLEST = 1e-300


@numba.njit
def find(place: float, last: int) -> int:
    return find_bin(place, last)


@numba.njit
def count(low: float, high: float, bins: int) -> float:
    return scale_bins(low, high, bins)


EVIL = """
{"horizon":3,"discount":0.5,"bound":"5e-13","start":"0","states":{
"0":{"a0":[[0.999999999999,"1",0.65],[1e-12,"FAILURE",0]],"a1":[[0.999999,"1",1.12],[1e-06,"FAILURE",0]]},
"1":{"a0":[[1.0,"1",1.07],[5e-324,"FAILURE",1.6]],"a1":[[1.0,"0",1.59]]}}}
"""

SCRIPT = """
import vulcan
from tests.kernels.test_bounds import make_problem
print(vulcan.solve(make_problem(), vulcan.Lagrangian()).safe)
"""


def make_problem() -> vulcan.Problem:
    """Return a problem of allowed probabilities whose risks differ by less than 1e-308.

    So many bins per risk are more than floats can say.
    """
    table = {
        0: {"a": [(1.0, 1, 0.69)], "b": [(1.0, 1, 1.04), (SMALLEST, 2, 1.6)]},
        1: {
            "a": [(1.0, 2, 0.81)],
            "b": [(0.999999999, 1, 0.81), (1e-9, 2, 1.6), (1e-20, 0, 0.0)],
        },
        2: {
            "a": [(0.999999999999, 2, 0.5), (1e-12, 1, 1.6), (SMALLEST, FAILURE, 0.0)],
            "b": [(0.999999999999, 1, 1.53), (SMALLEST, 1, 0.0), (1e-12, FAILURE, 1.6)],
        },
    }
    return vulcan.Problem(from_table(table, horizon=4), vulcan.Constant(0.0))


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (-math.inf, 0),
        (-1.5, 0),
        (-0.0, 0),
        (0.9, 0),
        (3.999, 3),
        (7.0, 7),
        (8.0, 7),
        (1e19, 7),
        (1.7e308, 7),
        (math.inf, 7),
        (math.nan, 0),
    ],
)
def test_every_float_has_a_bin(place: float, found: int) -> None:
    assert find(place, 7) == found


@pytest.mark.parametrize("width", [5e-324, 1e-320, 1e-308, 1e-304, 1.0, 1e300])
def test_bins_span_what_they_are_for(width: float) -> None:
    scale = count(0.0, width, 1000)
    assert 0 < scale < math.inf
    assert count(width, width, 1000) == 0.0
    places = [find(share * width * scale, 1000) for share in (0.0, 0.25, 0.5, 1.0)]
    assert places == sorted(places)
    assert places[-1] <= 1000
    if width >= 1e-304:
        assert places == pytest.approx([0, 250, 500, 1000], abs=1)


SOURCES = Path(vulcan.__file__).parent
CONVERSIONS = {"int", "round", "floor", "ceil", "rint", "trunc", "astype"}
CONVERSIONS |= {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64, "p")}
HARMLESS = {
    "int(place)",  # in `find_bin`, which clamps
    "np.int64(share * control[0].most_points)",  # `share` is at most 1
    "types.int64(word, word, word, types.int64, word, word)",  # a signature
    # Integers, as what Numba or a model wants.
    *(f"np.int64({name})" for name in ("level", "number", "step + 1")),
    "np.int64(problem.outcomes[begin].state)",
    "int(tables['last_steps'][0])",
    *(f"np.int32({name})" for name in ("NONE", "row")),
    *(f"np.uint64({name})" for name in ("depth", "source.most_outcomes * source.state_size")),
    *(f"np.uint64({name} * source.state_size)" for name in ("s", "k", "frame.outcome")),
    # Hashes of rows of integers, cut to the places of a table.
    *(f"np.uint64({name})" for name in ("rows[k, j]", "last")),
    "np.int64(code & np.uint64(last))",
}


def test_only_one_function_turns_floats_into_indices() -> None:
    found = set()
    for path in (*SOURCES.glob("kernels/*.py"), *SOURCES.glob("domains/**/compiled.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func).rpartition(".")[2]
                literal = all(isinstance(argument, ast.Constant) for argument in node.args)
                if name in CONVERSIONS and not (literal and name != "astype"):
                    found.add(ast.unparse(node))
    assert found == HARMLESS


def run_checked(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


SOLVERS = ["automatic", "pareto", "lagrangian", "vulcan", "integer-program"]


def test_thin_fronts_stay_within_their_arrays() -> None:
    """Bins per risk were infinite, and indices anything; `make boundscheck` tries all solvers."""
    run = run_checked("-c", SCRIPT)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "True\n"


def test_the_data_file_that_corrupted_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evil.json"
    path.write_text(EVIL)
    run = run_checked("-m", "vulcan", "solve", str(path))
    assert run.returncode == 2
    for text in ("5e-324", "'1'", "'a0'", "failure", "at least 1e-300"):
        assert text in run.stderr


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_smallest_probabilities_are_planned_with(solver: str) -> None:
    result = vulcan.solve(make_problem(), solver)
    assert result.safe
    # Of all policies, the best earns 4.19 and risks 1e-12; without such risks, it is 3.47.
    assert 3.47 <= result.certificate.reward <= 4.1900000008
    assert result.certificate.risk <= 1e-12
