"""What a campaign has done so far: an append-only file of JSON lines.

A line is one of

    {"seed": s, ...}         a start, with the revision that is tried from here on
    {"block": k, ...}        the problems of block k are done; with what was counted
    {"lost": n, ...}         problem n ended its process, or never ended

A line that was cut off by a kill is ignored, and so the block is done again.
"""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import vulcan
from fuzzing.statistics import Statistics

__all__ = ["Log", "find_last_log"]


class Log:
    """A campaign's file.

    Parameters
    ----------
    path
        Where it is; what it holds is read.
    seed
        The campaign's seed.
    check
        The only check that is made; None for all.

    Attributes
    ----------
    done, lost
        Blocks that are done, and problems that must not be tried again.
    statistics
        What was counted so far.
    header
        What is tried: the seed, versions, and the revisions of all starts.
    """

    def __init__(self, path: Path, seed: int, check: str | None = None) -> None:
        self.path, self.seed, self.check = path, seed, check
        self.done: set[int] = set()
        self.lost: set[int] = set()
        self.statistics = Statistics()
        self._revisions: dict[str, None] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read()
        revision = _find_revision()
        self._revisions[revision] = None
        self.header: Mapping[str, Any] = {
            "seed": seed,
            "version": vulcan.__version__,
            "python": platform.python_version(),
            "revisions": list(self._revisions),
        }
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self._append({"seed": seed, "revision": revision, "started": started})

    def _read(self) -> None:
        """Read what was done, and end a line that was cut off."""
        text = self.path.read_text(encoding="utf-8")
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if "block" in record and record["block"] not in self.done:
                self.done.add(record["block"])
                self.statistics.add_record(record)
            elif "lost" in record:
                self.lost.add(record["lost"])
                self.statistics.findings[record["signature"]] += 1
            elif "revision" in record:
                self._revisions[record["revision"]] = None
        if not text.endswith("\n"):
            self._write("\n")

    def _append(self, record: Mapping[str, Any]) -> None:
        self._write(json.dumps(record) + "\n")

    def _write(self, text: str) -> None:
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(text)

    def add_block(self, block: int, record: Mapping[str, Any]) -> None:
        """Keep what came of a block."""
        if block not in self.done:
            self.done.add(block)
            self.statistics.add_record(record)
            self._append({"block": block, **record})

    def add_lost(self, number: int, signature: str) -> None:
        """Keep that a problem ended its process, or never ended."""
        self.lost.add(number)
        self.statistics.findings[signature] += 1
        self._append({"lost": number, "signature": signature})


def _find_revision() -> str:
    """Return which sources are tried, as git calls them."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def find_last_log(folder: Path) -> Path | None:
    """Return the log that was written to last."""
    logs = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    return logs[-1] if logs else None
