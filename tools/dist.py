"""Build the source archives and wheels of a release, reproducibly, and write their SHA-256.

Run it as `make dist`. Everything is built twice, each time in a fresh copy of the commit, and must
be the same byte for byte: then anyone who builds this commit with the same version of hatchling
gets the same sums. The time stamp of all files is that of the commit.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "dist"
SUMS = "SHA256SUMS"


def main() -> int:
    """Build, compare, write, and return the exit code."""
    if _git("status", "--porcelain").strip():
        print("There are changes that are not committed: a release is built from a commit")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        one, other = (_build(Path(folder) / name) for name in ("one", "other"))
    if one != other:
        differing = sorted(name for name in {**one, **other} if one.get(name) != other.get(name))
        print(f"Two builds differ: {', '.join(differing)}")
        return 1
    TARGET.mkdir(exist_ok=True)
    for name, content in one.items():
        (TARGET / name).write_bytes(content)
    sums = {name: hashlib.sha256(one[name]).hexdigest() for name in sorted(one)}
    text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    (TARGET / SUMS).write_text(text, encoding="utf-8")
    print(f"dist/{SUMS}, of two builds that are the same:\n{text}", end="")
    return 0


def _build(place: Path) -> dict[str, bytes]:
    """Return what a build of the present commit gives, by name."""
    place.mkdir()
    archive = place / "archive.tar"
    _git("archive", "--output", str(archive), "HEAD")
    shutil.unpack_archive(archive, place / "copy")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct").strip()}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(place / "built")]
    for folder in (place / "copy", place / "copy" / "rddl"):
        subprocess.run(  # noqa: S603 - a command of our own
            command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL
        )
    return {path.name: path.read_bytes() for path in (place / "built").iterdir()}


def _git(*arguments: str) -> str:
    return subprocess.run(  # noqa: S603 - a command of our own
        ["git", *arguments],  # noqa: S607 - whichever git it is
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


if __name__ == "__main__":
    raise SystemExit(main())
