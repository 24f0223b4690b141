"""The command line: a module for each command, and what they share.

`application` lists the commands and imports them when they are run, so that `vulcan --help` answers
at once. Arguments are described in `options` and, from what solvers declare, in `search_options`,
and read by `choices` and `models`. Answers go to standard output (`screen` for people, `documents`
for programs, `output` for files), everything else to standard error; `codes` are the exit codes.
May import: everything.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from vulcan.cli.codes import ExitCode

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; it ends in `SystemExit` with an `ExitCode`.

    Parameters
    ----------
    arguments
        What follows `vulcan` on the command line; by default what the process was given.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that has no Δ or ├ shows a question mark there, and the rest all the same.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        from vulcan.cli.application import application

        application(args=arguments, prog_name="vulcan")
    except KeyboardInterrupt:  # before any command had begun
        raise SystemExit(ExitCode.INTERRUPTED) from None
    except Exception:
        traceback.print_exc()
        print("\nThis is a defect in Vulcan; please report it with the above.", file=sys.stderr)
        raise SystemExit(ExitCode.DEFECT) from None
