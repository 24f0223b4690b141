"""Count the files and classes of the library that a solve touches: `python tools/count_touched.py`.

A file is touched if a function of it runs in Python during the solve, imports apart; a class, if a
method of it does. Kernels count by the file that calls them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import vulcan
from vulcan.domains import Bandit, Exploration

ROOT = Path(vulcan.__file__).parent


def count_touched(solve: Callable[[], object]) -> tuple[set[str], set[str]]:
    """Return the files and the classes that a function touches, and that belong to the library."""
    files, classes = set[str](), set[str]()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(ROOT)):
            return
        if code.co_name == "<module>":
            return
        files.add(Path(code.co_filename).relative_to(ROOT).as_posix())
        owner, _, _ = code.co_qualname.rpartition(".")
        if owner and not owner.endswith("<locals>"):
            classes.add(owner)

    solve()  # imports and compilation apart
    sys.setprofile(watch)
    try:
        solve()
    finally:
        sys.setprofile(None)
    return files, classes


def main() -> None:
    """Print both counts, and the files."""
    bandit = vulcan.Problem(Bandit(horizon=4), "0.002*x")
    mission = vulcan.Problem(Exploration(), "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)")
    for name, run in (
        ("default solve of a four-step bandit", lambda: vulcan.solve(bandit)),
        ("Vulcan on the mission", lambda: vulcan.solve(mission, vulcan.Vulcan(), samples=2_000)),
    ):
        files, classes = count_touched(run)
        print(f"{name}: {len(files)} files, {len(classes)} classes")
        print("  " + " ".join(sorted(files)))


if __name__ == "__main__":
    main()
