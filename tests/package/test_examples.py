"""The examples of the readme and the folder of examples run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SMALLER = {
    "drone.py": {"Drone()": "Drone(minutes=20)"},
    "glider.py": {"5_000": "500", "200_000": "20_000"},
}
"""What makes the long ones short."""


def test_ten_lines_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    assert "4.200000" in capsys.readouterr().out
    exec(compile(code.replace("0.003", "0.004"), "README.md", "exec"), {})
    assert "5.880000" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(path: Path, tmp_path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    for large, small in SMALLER.get(path.name, {}).items():
        assert code.count(large) == 1
        code = code.replace(large, small)
    copy = tmp_path / path.name
    copy.write_text(code, encoding="utf-8")
    for data in path.parent.glob("*.csv"):
        shutil.copy(data, tmp_path)
    run = subprocess.run([sys.executable, copy], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "acceptable" in run.stdout
