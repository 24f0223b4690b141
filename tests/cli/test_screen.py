"""What people see in terminals of any width."""

from io import StringIO

import pytest
from rich.console import Console

import vulcan
from vulcan.cli import screen
from vulcan.domains import Bandit
from vulcan.runtime.formatting import TextTable

TABLE = TextTable(
    ["", "solver", "reward", "evaluations", ""],
    [["✓", "vulcan", "6.000000", "1,234,567", "best policy that constraint B admits"]],
    left=2,
)


def show(width, function, *arguments):
    console = Console(file=StringIO(), width=width, highlight=False, markup=False)
    function(console, *arguments)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_tables_fit_and_lose_nothing(width):
    lines = show(width, screen.show_table, TABLE, [""])
    assert all(len(line) <= width for line in lines)
    assert set(" ".join(TABLE.rows[0]).split()) <= set(" ".join(lines).split())


def test_a_table_without_words_says_what_its_rows_begin_with():
    table = TextTable(["allowed", "reward", ""], [["0.010000", "5.000000", ""]])
    assert show(15, screen.show_table, table, [""]) == [
        "  allowed  0.010000",
        "    reward  5.000000",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_policies_and_headings_fit(width):
    policy = vulcan.solve(vulcan.Problem(Bandit(3), 0.002)).policy
    lines = show(width, screen.show_policy, policy, 3)
    assert all(len(line) <= width for line in lines)
    assert " ".join(" ".join(lines).replace("│", " ").split()) == " ".join(
        policy.draw(3).replace("│", " ").split()
    )
    lines = show(width, screen.show_heading, "✗ fails on purpose", "red", "for no reason " * 9)
    assert all(len(line) <= width for line in lines)
    assert (lines[0] == "✗ fails on purpose") == (width == 40)
