"""`make audit` says what was compared, and never that all is well where nobody was asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"

SKIPPED = {"name": "numpy", "skip_reason": "Dependency not found on PyPI"}
SOUND = {"name": "scipy", "version": "1.0", "vulns": []}
HOLE = {"id": "CVE-1", "fix_versions": ["2.1"]}
UNSOUND = {"name": "numba", "version": "2.0", "vulns": [HOLE]}


@pytest.mark.parametrize(
    ("packages", "code", "told"),
    [
        ([SKIPPED], 3, "NOT AUDITED"),
        ([], 3, "NOT AUDITED"),
        (None, 3, "NOT AUDITED: no route to host"),
        ([SKIPPED, SOUND], 0, "not compared: numpy\n1 packages compared, 0 known"),
        ([SOUND, UNSOUND], 1, "numba 2.0: CVE-1, mended in 2.1"),
    ],
)
def test_the_answer_says_what_was_compared(
    packages: list[dict[str, Any]] | None,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    import audit

    answer = "" if packages is None else json.dumps({"dependencies": packages})
    done = subprocess.CompletedProcess([sys.executable], 0, answer, "failed:\nno route to host")
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: done)
    assert audit.main() == code
    assert told in capsys.readouterr().out
