"""Kernels are compiled once, and cached where that is possible."""

from __future__ import annotations

import logging
import os
import subprocess
import sys


def test_first_compilation_is_announced_and_cached(tmp_path) -> None:
    script = (
        "import vulcan\nfrom vulcan.domains import Bandit\n"
        "problem = vulcan.Problem(Bandit(2), vulcan.Linear(0.002))\n"
        "print(vulcan.solve(problem, vulcan.ForwardSearch()).safe)"
    )
    environment = {**os.environ, "VULCAN_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    assert [run.stdout for run in runs] == ["True\n", "True\n"]
    assert "compiling" in runs[0].stderr
    assert runs[1].stderr == ""


def test_cache_directory_that_cannot_be_written(tmp_path, monkeypatch, caplog) -> None:
    from vulcan.kernels import compilation

    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("VULCAN_CACHE_DIR", str(blocked))
    with caplog.at_level(logging.WARNING):
        directory = compilation.cache_directory.__wrapped__("vulcan.kernels.tree")
    assert directory.is_dir()
    assert not directory.is_relative_to(tmp_path)
