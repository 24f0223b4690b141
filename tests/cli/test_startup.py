"""The list of commands loads none of them."""

from __future__ import annotations

import subprocess
import sys


def test_help_loads_neither_numpy_nor_solvers() -> None:
    code = (
        "import sys; sys.argv = ['vulcan', '--help']\n"
        "from vulcan.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "names = {'numpy', 'numba', 'scipy', 'msgspec', 'rich'}\n"
        "names |= {'vulcan.solvers', 'vulcan.planning'}\n"
        "print(sorted(names & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
    for command in ("solve", "frontier", "compare", "check", "certify", "show", "draw"):
        assert f"\n  {command} " in run.stdout
    assert "Find the best policy within a risk bound, and certify it." in run.stdout
