"""What the command line's exit codes mean."""

from __future__ import annotations

from enum import IntEnum

from vulcan.runtime.limits import StopReason

__all__ = ["ExitCode", "find_code"]


class ExitCode(IntEnum):
    """How a command ended."""

    YES = 0
    """Good: a safe policy, a sound model, a certificate that passes."""

    NO = 1
    """Answered, but with no: no safe policy, a broken rule, a certificate that does not pass."""

    BAD_INPUT = 2
    """No answer; the message says what was wrong with the question."""

    DEFECT = 70
    """A defect in Vulcan, with its traceback, or with what search and certificate differ in.
    Python's own 1 would read as NO; this is what sysexits.h calls an internal software error."""

    INTERRUPTED = 130
    """Stopped by Ctrl-C, after showing the best answer so far."""

    READER_LEFT = 141
    """Nobody reads the output any more, as under `| head -1`. A plan was saved before. This is what
    shells report of a program that a broken pipe ended."""

    TERMINATED = 143
    """Stopped by SIGTERM, after showing the best answer so far."""


def find_code(stopped_by: StopReason | None, answer: ExitCode) -> ExitCode:
    """Return how a command ended that has an answer, and may have been asked to stop early."""
    if stopped_by is StopReason.TERMINATED:
        return ExitCode.TERMINATED
    return ExitCode.INTERRUPTED if stopped_by is StopReason.INTERRUPTED else answer
