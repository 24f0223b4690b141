"""The examples of the readme and the folder of examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_ten_lines_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    assert "4.200000" in capsys.readouterr().out
    exec(compile(code.replace("0.003", "0.004"), "README.md", "exec"), {})
    assert "5.880000" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path: Path) -> None:
    run = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "acceptable" in run.stdout
