"""The application: its commands, and how their errors are shown.

A command is a function of its name in the module listed in `COMMANDS`, which is imported when the
command is run. The list of commands takes the first lines of their docstrings from the sources, so
that `vulcan --help` imports none of them.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from vulcan.cli import ExitCode
from vulcan.parameters import suggest

COMMANDS: Final = {
    "solve": "solve",
    "frontier": "compare",
    "compare": "compare",
    "check": "check",
    "certify": "certify",
    "verify": "certify",
    "explain": "explain",
    "simulate": "run",
    "run": "run",
    "show": "show",
    "explore": "show",
}
"""The module of each command."""

CONTEXT: Final = {"help_option_names": ["-h", "--help"]}

RENAMED: Final = {
    "--workers": "--parallel 4",
    "--executor": "--parallel processes",
    "--cluster": "--parallel ray@auto",
    "--states": "--most-states",
    "--checkpoint-every": "--checkpoint, which writes every minute",
}
"""Options that commands once had, and what to use instead."""

OVERVIEW = """
\b
Examples:
  vulcan solve bandit --bound "0.002*x"
  vulcan solve rover.py:Rover --set days=6 --bound 0.01 -o plan.vulcan
  vulcan certify plan.vulcan rover.py:Rover --set days=6 --bound 0.01
  vulcan explain plan.vulcan rover.py:Rover --set days=6
  vulcan frontier bandit --gap 0.01 --plot frontier.png
  vulcan COMMAND --help

rover.py and plan.vulcan stand for files of your own.

\b
Exit codes:
  0 yes, 1 no, 2 bad input, 4 passed, but only by the bound in the policy's own file,
  70 defect in Vulcan, 130 stopped by Ctrl-C, 143 by SIGTERM
"""


class Command(TyperCommand):
    """A command whose help has its options in sections."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from vulcan.cli.options import spell_out

        for name in (arg.partition("=")[0] for arg in args):
            if name in RENAMED:
                ctx.fail(f"No such option: {name}; use {RENAMED[name]}")
        sets = any(parameter.name == "settings" for parameter in self.get_params(ctx))
        return super().parse_args(ctx, spell_out(args) if sets else args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        from vulcan.cli.options import SECTIONS

        sections: dict[str, list[Any]] = {name: [] for name in ("Arguments", *SECTIONS, "Options")}
        for parameter in self.get_params(ctx):
            argument = parameter.param_type_name == "argument"
            section = "Arguments" if argument else getattr(parameter, "rich_help_panel", None)
            if record := parameter.get_help_record(ctx):
                sections[section or "Options"].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class Commands(TyperGroup):
    """The group of all commands, which turns expected errors into messages."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        from vulcan.cli.options import declare

        module = import_module(f"vulcan.cli.{COMMANDS[cmd_name]}")
        single = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        function = getattr(module, cmd_name)
        text, _, examples = (inspect.getdoc(function) or "").partition("\n\nExamples\n--------\n")
        register = single.command(
            cmd_name,
            cls=Command,
            help=text,
            epilog=f"\b\nExamples:\n{indent(examples, '  ')}",
            context_settings=CONTEXT,
        )
        register(declare(function))
        return typer.main.get_command(single)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return a command with its arguments; suggest one for an unknown name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{suggest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = []
        for name, module in COMMANDS.items():
            source = ast.parse((Path(__file__).parent / f"{module}.py").read_bytes())
            functions = [node for node in source.body if isinstance(node, ast.FunctionDef)]
            described = next(function for function in functions if function.name == name)
            rows.append((name, (ast.get_docstring(described) or "").partition("\n")[0]))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        from vulcan.cli.output import show_error
        from vulcan.errors import DisagreementError, VulcanError

        try:
            with _show_warnings():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            show_error("interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except BrokenPipeError:  # discard the rest: Python would complain at its exit
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            raise typer.Exit(ExitCode.READER_LEFT) from None
        except (VulcanError, OSError) as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            show_error(error)
            defect = isinstance(error, DisagreementError)
            raise typer.Exit(ExitCode.DEFECT if defect else ExitCode.BAD_INPUT) from None


@contextmanager
def _show_warnings() -> Iterator[None]:
    """Show our own warnings as remarks, and others as Python does."""
    from vulcan.cli.output import show_note
    from vulcan.errors import BoundWarning, SimulationWarning

    with warnings.catch_warnings():
        otherwise = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **rest: Any) -> None:
            if issubclass(category, BoundWarning | SimulationWarning):
                show_note(f"Warning: {message}\n")
            else:
                otherwise(message, category, *place, **rest)

        warnings.showwarning = show
        yield


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
    context_settings=CONTEXT,
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
