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


def name_files(pattern: str, names: str) -> tuple[str, ...]:
    """Return a path for each of some names."""
    return tuple(pattern.format(name) for name in names.split())


SUBJECTS = (
    Subject(
        "kernels",
        ("vulcan/kernels/*.py",),
        ("kernels",),  # all of which is quick without compilation
    ),
    Subject(
        "certificate",
        name_files("vulcan/certificates/{}.py", "certificate chain margin sums sweep"),
        (
            *name_files("certificates/test_{}.py", "certificate chain margin margin_parts problem"),
            *name_files("certificates/test_{}.py", "randomised recorded_certificates rounding"),
            *name_files("certificates/test_{}.py", "sums sweep sweep_arrays text verdicts"),
        ),
    ),
    Subject(
        "policy files",
        (
            *name_files("vulcan/policies/{}.py", "file policy randomised"),
            "vulcan/runtime/files.py",
        ),
        name_files(
            "policies/test_{}.py",
            "execution file file_edges policy policy_parts randomised randomised_file text",
        ),
    ),
    Subject(
        "reader",
        name_files("vulcan/model/{}.py", "reader rules observations"),
        (
            *name_files("model/test_{}.py", "checker checker_states observations reader"),
            *name_files("policies/test_{}.py", "execution file"),
            "certificates/test_certificate.py",
        ),
    ),
)
