"""Results that were once read and found right, in files.

`python -m tests.golden` makes the files anew; read what has changed before you commit it. The tests
call the same functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helpers.recorded import CASES, record

FOLDER = Path(__file__).parent
DOCUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "recorded.json": lambda: {name: record(case) for name, case in CASES.items()},
}


def read_golden(name: str) -> dict[str, Any]:
    """Return what a file says."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))
