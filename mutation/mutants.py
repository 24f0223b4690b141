"""The mutants of a module: its source with one thing changed.

What is changed is what people get wrong: the boundary of a comparison, a sign, a constant by one, a
condition, the larger for the smaller, a statement or a return value that is missing. Strings are
left alone (most are messages), and so are annotations, assertions and the layout of records.
"""

from __future__ import annotations

import ast
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
LEFT_ALONE = (ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
SKIPPED_FIELDS = ("annotation", "returns", "decorator_list", "type_comment", "type_params")
SKIPPED_KEYWORDS = ("align",)  # of records: where their fields lie in memory
SWAPPED_TESTS = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes
    ----------
    module
        Its path below `src`, like `vulcan/model/reader.py`.
    function
        The function that is changed, with its class; empty at the top of the module.
    text, change
        The line, without its indentation, and what becomes of it.
    count
        How many there were before of which all of this is the same.
    line
        Where that is now.
    place
        Which of all changes of the module it is.
    """

    module: str
    function: str
    text: str
    change: str
    count: int
    line: int
    place: int

    @property
    def key(self) -> str:
        """A name that lasts while other lines are added or removed."""
        return " | ".join((self.module, self.function, self.text, self.change, str(self.count)))


@dataclass(frozen=True)
class Change:
    """Something that can be changed in a tree, and how."""

    line: int
    function: str
    words: str
    apply: Callable[[], None]


def list_mutants(module: str) -> list[Mutant]:
    """Return all mutants of a module, in the order of its source."""
    source = (SOURCES / module).read_text(encoding="utf-8")
    lines = source.splitlines()
    seen: Counter[tuple[str, str, str]] = Counter()
    mutants = []
    for place, change in enumerate(find_changes(ast.parse(source))):
        text = lines[change.line - 1].strip()
        same = (change.function, text, change.words)
        mutants.append(Mutant(module, *same, seen[same], change.line, place))
        seen[same] += 1
    return mutants


def draw_mutants(mutants: list[Mutant], number: int | None, seed: int) -> list[Mutant]:
    """Return some of the mutants; those for a smaller number are among those for a larger one."""

    def rank(mutant: Mutant) -> float:
        digest = hashlib.sha256(mutant.key.encode()).digest()
        return random.Random(int.from_bytes(digest) ^ seed).random()  # noqa: S311

    return sorted(mutants, key=rank)[:number]


def write_mutant(module: str, place: int) -> ast.Module:
    """Return the tree of a module with one of its changes."""
    tree = ast.parse((SOURCES / module).read_text(encoding="utf-8"))
    for k, change in enumerate(find_changes(tree)):
        if k == place:
            change.apply()
            return ast.fix_missing_locations(tree)
    raise ValueError(f"{module} has no change {place}")


def find_changes(tree: ast.AST, function: str = "") -> Iterator[Change]:
    """Yield all that can be changed in a tree; apply one of them at most."""
    for parent, field, k, node in _list_children(tree):
        here = function
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            here = f"{function}.{node.name}".strip(".")
        elif isinstance(node, ast.stmt | ast.expr):
            name = f"{parent.arg} " if isinstance(parent, ast.keyword) else ""
            for words, new in _list_replacements(node, field):
                yield Change(node.lineno, here, name + words, _replace(parent, field, k, new))
        if isinstance(parent, ast.stmt | ast.expr) and type(node) in OPERATORS:
            other = OPERATORS[type(node)]
            words = f"{type(node).__name__} to {other.__name__}"
            yield Change(_find_line(parent, k), here, words, _replace(parent, field, k, other()))
        yield from find_changes(node, here)


def _find_line(parent: ast.stmt | ast.expr, k: int | None) -> int:
    """Return the line of an operator: that of what it is applied to, further on."""
    if isinstance(parent, ast.Compare):
        return parent.comparators[k or 0].lineno
    if isinstance(parent, ast.BinOp):
        return parent.right.lineno
    return parent.lineno


def _list_children(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield the parts of a tree that may be changed, and where they are."""
    for field, value in ast.iter_fields(tree):
        if field in SKIPPED_FIELDS:
            continue
        for k, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST) and not _is_left_alone(node):
                yield tree, field, k, node


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in SKIPPED_KEYWORDS
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, LEFT_ALONE)


def _list_replacements(node: ast.stmt | ast.expr, field: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield what a statement or an expression may become, in words and as a tree."""
    if isinstance(node, ast.stmt):
        yield from _list_statements(node)
        return
    if field in ("test", "ifs") and not _is_swapped(node):
        yield "negated", ast.UnaryOp(ast.Not(), node)
    if isinstance(node, ast.Constant):
        yield from _list_constants(node, field == "slice")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield f"without {type(node.op).__name__}", node.operand
    elif isinstance(node, ast.Name) and node.id in FUNCTIONS and field == "func":
        other = FUNCTIONS[node.id]
        yield f"{node.id} to {other}", ast.Name(other, ast.Load())


def _is_swapped(test: ast.expr) -> bool:
    """Whether a change of its operator negates a condition already."""
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(test.ops[0], SWAPPED_TESTS)
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _list_statements(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Return) and node.value is not None:
        # False would be much the same as None, and becomes True anyway.
        if not (isinstance(node.value, ast.Constant) and node.value.value in (None, False)):
            yield "returns None", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Assign):
        written = [part for target in node.targets for part in ast.walk(target)]
        if any(isinstance(part, ast.Attribute | ast.Subscript) for part in written):
            yield "removed", ast.Pass()
    elif isinstance(node, ast.Expr):
        if not isinstance(node.value, ast.Constant):  # a docstring, or an ellipsis
            yield "removed", ast.Pass()
    elif isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete):
        yield "removed", ast.Pass()


def _list_constants(node: ast.Constant, index: bool) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield f"{value} to {not value}", ast.Constant(not value)
    elif isinstance(value, int):
        yield f"{value} to {value + 1}", ast.Constant(value + 1)
        if value or not index:  # the last is the first in all those arrays of one record
            yield f"{value} to {value - 1}", ast.Constant(value - 1)
    elif isinstance(value, float):
        other = value + 1.0 if value + 1.0 != value else 2.0 * value
        yield f"{value!r} to {other!r}", ast.Constant(other)


def _replace(parent: ast.AST, field: str, k: int | None, new: ast.AST) -> Callable[[], None]:
    def apply() -> None:
        if k is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[k] = new

    return apply
