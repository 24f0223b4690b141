"""The modules of the library and of the reproduction, and what they import."""

from __future__ import annotations

import ast
from pathlib import Path

import reproduction
import vulcan


def _list_modules(package: str, folder: Path) -> dict[str, Path]:
    return {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in sorted(folder.rglob("*.py"))
        if path.name != "__main__.py"
    }


LIBRARY = _list_modules("vulcan", Path(vulcan.__file__).parent)
REPRODUCTION = _list_modules("reproduction", Path(reproduction.__file__).parent)


def list_imports(path: Path) -> set[str]:
    """Return what a module imports, wherever in its source it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found
