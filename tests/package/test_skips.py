"""CI fails on skipped tests, except for the reasons listed in tests/conftest.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
ONE_FILE = """
import pytest

def test_missing_library():
    pytest.importorskip("a_library_that_does_not_exist")

@pytest.mark.skipif(True, reason="there is no browser")
def test_missing_program():
    pass

@pytest.mark.skipif(True, reason="only root gives directories away")
def test_listed():
    pass

@pytest.mark.xfail
def test_expected_failure():
    assert False
"""
ANOTHER_FILE = "import pytest\npytest.importorskip('a_library_that_does_not_exist')\n"


@pytest.mark.parametrize(
    ("ci", "summary"),
    [("", "4 skipped, 1 xfailed"), ("true", "1 failed, 1 skipped, 1 xfailed, 2 errors")],
)
def test_skipped_tests_fail_in_ci_only(tmp_path: Path, ci: str, summary: str) -> None:
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_one.py").write_text(ONE_FILE)
    (tmp_path / "test_another.py").write_text(ANOTHER_FILE)
    command = [sys.executable, "-m", "pytest", "--continue-on-collection-errors", "-q", "-p"]
    answer = subprocess.run(
        [*command, "no:cacheprovider", "--override-ini=markers=slow", str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "CI": ci}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert summary in answer.stdout, answer.stdout
    assert answer.returncode == (1 if ci else 0)
    assert ("install what it needs" in answer.stdout) == bool(ci)
