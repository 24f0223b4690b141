"""Mutants are what they are said to be, and those that are explained exist."""

from __future__ import annotations

import ast

import pytest

from mutation.mutants import draw_mutants, find_changes, list_mutants, write_mutant
from mutation.report import read_explanations
from mutation.subjects import SUBJECTS

MODULE = "vulcan/model/rules.py"


def mutate(source: str) -> set[str]:
    """Return all mutants of a source."""
    count = sum(1 for _ in find_changes(ast.parse(source)))
    found = set()
    for place in range(count):
        tree = ast.parse(source)
        list(find_changes(tree))[place].apply()
        found.add(ast.unparse(tree))
    assert len(found) == count  # no two are the same
    return found


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("a < b", {"a <= b"}),
        ("a == b", {"a != b"}),
        ("a < b <= c", {"a <= b <= c", "a < b < c"}),
        ("x = a + b * c", {"x = a - b * c", "x = a + b / c"}),
        ("x = a and b or c", {"x = (a or b) or c", "x = (a and b) and c"}),
        ("x = -a", {"x = a"}),
        ("x = 3", {"x = 4", "x = 2"}),
        ("x = 0.5", {"x = 1.5"}),
        ("x = 1e300", {"x = 2e+300"}),
        ("x = True", {"x = False"}),
        ("x = a[0]", {"x = a[1]"}),
        ("x = min(a, b)", {"x = max(a, b)"}),
        ("x = [y for y in z if y]", {"x = [y for y in z if not y]"}),
        ("x += y", {"pass", "x -= y"}),
        ("x.y = z", {"pass"}),
        ("x = 'text'", set()),
        ("x: Final[3] = y", set()),
        ("assert x > 0", set()),
        ("x = dtype(y, align=True)", set()),
        ('"""Text."""', set()),
    ],
)
def test_mutants_of_a_line(source: str, mutants: set[str]) -> None:
    if mutants and source.startswith("a "):  # a line that does nothing may also go
        mutants |= {"pass"}
    assert mutate(source) == mutants


def test_mutants_of_control_flow() -> None:
    body = "    while a:\n        if a.b:\n            continue\n        break\n    return a"
    source = f"def f(a):\n{body}"
    new = {("while a", "while not a"), ("if a.b", "if not a.b"), ("continue", "pass")}
    new |= {("break", "pass"), ("return a", "return None")}
    assert mutate(source) == {source.replace(*pair) for pair in new}


def test_samples_grow() -> None:
    mutants = list_mutants(MODULE)
    assert len({mutant.key for mutant in mutants}) == len(mutants)
    few, many = draw_mutants(mutants, 10, 0), draw_mutants(mutants, 20, 0)
    assert len(few) == 10
    assert many[:10] == few
    assert draw_mutants(mutants, 10, 1) != few
    assert set(draw_mutants(mutants, None, 0)) == set(mutants)


def test_a_mutant_is_the_source_with_one_change() -> None:
    mutants = list_mutants(MODULE)
    assert [mutant.place for mutant in mutants] == list(range(len(mutants)))
    for mutant in draw_mutants(mutants, 5, 0):
        found = ast.unparse(write_mutant(MODULE, mutant.place))
        assert found != ast.unparse(write_mutant(MODULE, mutant.place - 1))
    with pytest.raises(ValueError, match="has no change"):
        write_mutant(MODULE, len(mutants))


def test_explanations_are_of_mutants_that_exist() -> None:
    modules = {module for subject in SUBJECTS for module in subject.list_modules()}
    known = {
        (mutant.module, mutant.function, mutant.text, change)
        for module in modules
        for mutant in list_mutants(module)
        for change in (mutant.change, f"{mutant.change} #{mutant.count}")
    }
    assert set(read_explanations()) <= known
