"""What is mutated, and which tests may speak for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Subject:
    """Modules whose scores belong together.

    Attributes
    ----------
    name
        What they are called in the report.
    modules, without
        Patterns of their paths below `src`, and of those that are left out.
    tests
        Folders and files below `tests`, which run in one process: a mutant lives in one alone.
    plain
        Whether kernels are plain Python; then only what is small is solved in time.
    """

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without: str = ""
    plain: bool = False

    def list_modules(self) -> list[str]:
        """Return the paths of its modules below `src`."""
        found = {path for pattern in self.modules for path in (ROOT / "src").glob(pattern)}
        left = found.difference((ROOT / "src").glob(self.without) if self.without else ())
        return sorted(path.relative_to(ROOT / "src").as_posix() for path in left)

    def list_tests(self) -> Iterator[Path]:
        """Yield the files of its tests."""
        for name in self.tests:
            place = ROOT / "tests" / name
            yield from sorted(place.rglob("test_*.py")) if place.is_dir() else (place,)


SUBJECTS = (
    Subject(
        "kernels",
        ("vulcan/kernels/*.py",),
        ("kernels", "graphs", "solvers", "planning/test_solve.py", "execution/test_simulation.py"),
        without="vulcan/kernels/compilation.py",
        plain=True,
    ),
    Subject("compilation", ("vulcan/kernels/compilation.py",), ("kernels", "package")),
    Subject(
        "certificate",
        tuple(
            f"vulcan/certificates/{name}.py"
            for name in ("certificate", "levels", "margin", "sweep")
        ),
        (
            "certificates",
            "policies",
            "planning/test_lying_models.py",
            "planning/test_disagreement.py",
        ),
    ),
    Subject(
        "policy files",
        (
            *(f"vulcan/policies/{name}.py" for name in ("file", "policy", "randomised")),
            "vulcan/runtime/files.py",
        ),
        ("policies", "certificates/test_randomised.py", "solvers/tree/test_checkpoint.py"),
    ),
    Subject(
        "reader",
        tuple(f"vulcan/model/{name}.py" for name in ("reader", "rules", "observations")),
        ("model", "graphs", "planning/test_lying_models.py", "certificates"),
    ),
)
