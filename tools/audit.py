"""Compare the installed packages with the public list of known vulnerabilities.

Run it as `make audit`. It needs pip-audit, and the network for the list; the exit code says which:

    0  nothing is known of any package
    1  something is known; it is listed
    3  no service answered: nothing was compared
"""

from __future__ import annotations

import json
import subprocess
import sys

FINE, FOUND, NOT_ASKED = 0, 1, 3
PATIENCE = 300
"""Seconds for all questions."""


def main() -> int:
    """Ask, say what was found, and return the exit code."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(  # noqa: S603 - a command of our own
            [*command, "--skip-editable"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        packages = json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return _give_up(f"no answer in {PATIENCE} s")
    except (ValueError, KeyError):
        lines = done.stderr.strip().splitlines() or ["pip-audit said nothing"]
        return _give_up(lines[-1])
    # Where it gets no answer, pip-audit passes over a package, and still says that all is well.
    compared = [package for package in packages if "vulns" in package]
    if not compared:
        return _give_up("no package was found on the list")
    known = [(package, hole) for package in compared for hole in package["vulns"]]
    for package, hole in known:
        mended = ", ".join(hole["fix_versions"]) or "nowhere yet"
        print(f"{package['name']} {package['version']}: {hole['id']}, mended in {mended}")
    left = ", ".join(package["name"] for package in packages if "vulns" not in package)
    print(f"not compared: {left or 'none'}")
    print(f"{len(compared)} packages compared, {len(known)} known vulnerabilities")
    return FOUND if known else FINE


def _give_up(reason: str) -> int:
    print(f"NOT AUDITED: {reason}")
    if "No module named" in reason:
        print("pip install pip-audit, and run it again")
    else:
        print("The list of known vulnerabilities could not be read: this needs the network")
    return NOT_ASKED


if __name__ == "__main__":
    raise SystemExit(main())
