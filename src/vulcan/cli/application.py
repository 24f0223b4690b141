"""The application: its commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from vulcan.cli import certify, check, compare, draw, frontier, reproduce, show, solve
from vulcan.cli.codes import ExitCode

__all__ = ["application"]

OVERVIEW = """
\b
Examples:
  vulcan solve bandit --bound "0.002*x"
  vulcan frontier bandit --gap 0.01 --plot frontier.png
  vulcan compare bandit --bound "0.002*x" --set horizon=6
  vulcan solve mission.toml --set horizon=5 --time-limit 10
  vulcan solve rover.py:Rover --set days=6 --bound 0.01 -o plan.vulcan
  vulcan certify plan.vulcan rover.py:Rover --set days=6
  vulcan show plan.vulcan --depth 4
  vulcan draw plan.vulcan mission.toml --outcomes six.png

\b
Exit codes:
  0 yes, 1 no, 2 bad input, 70 defect in Vulcan, 130 stopped by Ctrl-C
"""


class Commands(TyperGroup):
    """The group of all commands, which turns expected errors into messages."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; only `VulcanError` and `OSError` become messages."""
        from vulcan.cli.screen import show_error
        from vulcan.errors import DisagreementError, VulcanError

        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            show_error("interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            _forget_broken_pipes()
            raise typer.Exit(ExitCode.READER_LEFT) from None
        except (VulcanError, OSError) as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            show_error(error)
            defect = isinstance(error, DisagreementError)
            raise typer.Exit(ExitCode.DEFECT if defect else ExitCode.BAD_INPUT) from None


def _forget_broken_pipes() -> None:
    """Let what is still to be written go nowhere; Python would complain about it at its exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show_version(wanted: bool) -> None:
    if wanted:
        import vulcan

        typer.echo(f"vulcan {vulcan.__version__}")
        raise typer.Exit


application = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@application.callback(epilog=OVERVIEW)
def _describe(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="VULCAN_DEBUG", help="Show the traceback of every error."),
    ] = False,
) -> None:
    """Risk-bounded planning: policies for agents that may fail, with exact certificates."""


application.command(epilog=solve.EXAMPLES)(solve.solve)
application.command(epilog=frontier.EXAMPLES)(frontier.frontier)
application.command(epilog=compare.EXAMPLES)(compare.compare)
application.command(epilog=check.EXAMPLES)(check.check)
application.command(epilog=certify.EXAMPLES)(certify.certify)
application.command(epilog=show.EXAMPLES)(show.show)
application.command(epilog=draw.EXAMPLES)(draw.draw)
application.command(epilog=reproduce.EXAMPLES)(reproduce.reproduce)
