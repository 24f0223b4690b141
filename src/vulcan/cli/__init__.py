"""The command line: its entry point and its exit codes.

`application` lists the commands and imports each when it is run. `options` declares their
arguments, `search` those that are derived from the solvers. Answers go to standard output, as text
(`output`) or JSON (`documents`); everything else goes to standard error. The other modules hold one
command, or two that are close.
May import: everything.
"""

from __future__ import annotations

import codecs
import sys
import traceback
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vulcan.runtime.limits import StopReason

__all__ = ["ExitCode", "find_code", "main"]

ERRORS: Final = "vulcan.replace"  # name of our handler for characters that a stream can't encode

REPLACEMENTS: Final = {
    "Δ": "Delta",
    "→": "->",
    "…": "...",
    "±": "+-",
    **dict(zip("✓✗–−·≈├└│─━╸", "+x--*~|`|---", strict=True)),
}
"""Our own characters in ASCII, for terminals such as in the locale "C"."""


class ExitCode(IntEnum):
    """How a command ended."""

    YES = 0
    """A safe policy, a sound model, a certificate that passes."""

    NO = 1
    """No safe policy, a broken rule, a certificate that does not pass."""

    BAD_INPUT = 2
    """No answer: something was wrong with the input."""

    OWN_BOUND = 4
    """A policy passed only the bound in its own file: this is not YES. As of `vulcan-check`."""

    AT_CONFIDENCE = 5
    """A policy passed at a confidence, by episodes in a simulator: this is not YES."""

    DEFECT = 70
    """A defect in Vulcan: an unexpected exception, or search and certificate disagree.
    Python's own 1 would read as NO; this is EX_SOFTWARE of sysexits.h."""

    INTERRUPTED = 130
    """Stopped by Ctrl-C, after showing the best answer so far."""

    READER_LEFT = 141
    """The reader closed the pipe, as `| head -1` does; shells report this code for that."""

    TERMINATED = 143
    """Stopped by SIGTERM, after showing the best answer so far."""


def find_code(stopped_by: StopReason | None, answer: ExitCode) -> ExitCode:
    """Return the code of an answer, or of the signal that stopped the command early."""
    from vulcan.runtime.limits import StopReason

    if stopped_by is StopReason.TERMINATED:
        return ExitCode.TERMINATED
    return ExitCode.INTERRUPTED if stopped_by is StopReason.INTERRUPTED else answer


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with some arguments, by default those of the process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ERRORS)
    try:
        from vulcan.cli.application import application

        application(args=arguments, prog_name="vulcan")
    except KeyboardInterrupt:  # before any command had begun
        raise SystemExit(ExitCode.INTERRUPTED) from None
    except Exception:
        traceback.print_exc()
        print("\nThis is a defect in Vulcan; please report it with the above.", file=sys.stderr)
        raise SystemExit(ExitCode.DEFECT) from None


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Replace what a stream can't encode; characters that are not ours become question marks."""
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(REPLACEMENTS.get(character, "?") for character in missing), error.end


codecs.register_error(ERRORS, _replace)
