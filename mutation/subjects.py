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
    modules
        Patterns of their paths below `src`.
    tests
        Folders and files below `tests`. Those that need other processes, which know nothing of a
        mutant, or too much time don't help.
    """

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def list_modules(self) -> list[str]:
        """Return the paths of its modules below `src`."""
        found = {path for pattern in self.modules for path in (ROOT / "src").glob(pattern)}
        return sorted(path.relative_to(ROOT / "src").as_posix() for path in found)

    def list_tests(self) -> Iterator[Path]:
        """Yield the files of its tests."""
        for name in self.tests:
            place = ROOT / "tests" / name
            yield from sorted(place.rglob("test_*.py")) if place.is_dir() else (place,)


SUBJECTS = (
    Subject(
        "kernels",
        ("vulcan/kernels/*.py",),
        (
            "kernels",
            "graphs",
            "execution/test_simulation.py",
            "model/test_compiled_lies.py",
            "planning/test_recorded.py",
            *(f"solvers/layered/test_{name}.py" for name in ("coins", "dual", "pareto", "run")),
            *(
                f"solvers/tree/test_{name}.py"
                for name in (
                    "foresight",
                    "forward_search",
                    "gap",
                    "golden_policies",
                    "merged",
                    "plans",
                    "price_values",
                    "proof",
                    "shared",
                    "vulcan_exact",
                )
            ),
            "solvers/test_exact_solvers.py",
            "solvers/test_prices.py",
        ),
    ),
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
        ("policies", "certificates/test_randomised.py"),
    ),
    Subject(
        "reader",
        tuple(f"vulcan/model/{name}.py" for name in ("reader", "rules", "observations")),
        ("model", "graphs", "planning/test_lying_models.py", "certificates"),
    ),
)
