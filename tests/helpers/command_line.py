"""What the tests of the command line share."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

HARBOUR = Path(__file__).parent / "harbour.py"
BOUND = ("--bound", "0.002*x")
SMALL = ("bandit", "--set", "horizon=3")
FORWARD = ("--solver", "forward-search")


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out, parse_constant=pytest.fail)
