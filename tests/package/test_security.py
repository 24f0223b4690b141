"""What SECURITY.md promises of the library as a whole: no pickles, no `eval`, no network."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.sources import LIBRARY, list_imports

PICKLERS = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}

BETWEEN_PROCESSES = ("vulcan.executors.", "vulcan.kernels.cache")
"""Workers of a program, and compiled kernels in a directory that is the user's own."""


OF_OUR_OWN = ("vulcan.formats.rddl.terms", "vulcan.formats.rddl.intervals")
"""They run code that they have written themselves, of numbers, places and known functions."""


def find_calls(path: Path) -> list[ast.Call]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_nothing_that_reads_files_imports_a_pickler() -> None:
    for module, path in LIBRARY.items():
        found = {name.partition(".")[0] for name in list_imports(path)} & PICKLERS
        assert not found or module.startswith(BETWEEN_PROCESSES), (module, found)


def test_nothing_is_evaluated_and_arrays_are_never_objects() -> None:
    for module, path in LIBRARY.items():
        for call in find_calls(path):
            place = (module, call.lineno)
            if isinstance(call.func, ast.Name):
                evaluates = call.func.id in {"eval", "exec", "compile"}
                assert not evaluates or module in OF_OUR_OWN, place
            named = {word.arg: word.value for word in call.keywords}
            if "allow_pickle" in named:
                assert ast.unparse(named["allow_pickle"]) == "False", place
            if ast.unparse(call.func) in {"np.load", "numpy.load", "npy.read_array"}:
                assert "allow_pickle" in named, place


SOLVES = """
import os, sys

def refuse(event, arguments):
    if event.startswith("socket."):
        print(event, arguments, file=sys.stderr, flush=True)
        os._exit(99)

sys.addaudithook(refuse)
import vulcan
from vulcan.domains import Bandit

problem = vulcan.Problem(Bandit(4), "0.002*x")
for solver, samples in ((None, None), (vulcan.Vulcan(), 50)):
    result = vulcan.solve(problem, solver, samples=samples)
    result.policy.save(sys.argv[1])
    assert vulcan.certify(problem, vulcan.Policy.load(sys.argv[1])) == result.certificate
vulcan.simulate(vulcan.Policy.load(sys.argv[1]), episodes=100, seed=1)
"""


def test_no_connection_is_opened(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SOLVES, str(tmp_path / "plan.vulcan")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_the_hook_would_notice() -> None:
    code = re.sub(r"import vulcan\n.*", "import socket; socket.socket()", SOLVES, flags=re.DOTALL)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert found.returncode == 99
