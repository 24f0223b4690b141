"""`vulcan export`: write a model to a file that other tools read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vulcan.cli.options import AsJson, ModelText, Settings

__all__ = ["EXAMPLES", "export"]

EXAMPLES = """
\b
Examples:
  vulcan export bandit bandit.drn --set horizon=4
  vulcan export rover.py:Rover rover.prism --set days=6
"""

ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The file to write: .drn, or .prism, .pm, .nm. An existing file is replaced.",
        show_default=False,
    ),
]


def export(
    model: ModelText, file: ModelFile, settings: Settings = None, as_json: AsJson = False
) -> None:
    """Write a model to a file that other tools read.

    All states that can be reached within the horizon are written, as DRN (explicit states, for
    Storm) or in the PRISM language. The horizon itself is part of what a model checker is asked.
    """
    from vulcan.cli import documents, screen
    from vulcan.cli.models import keep_off_stdout
    from vulcan.cli.output import check_output, tell_saved
    from vulcan.formats.export import check_export, export_model
    from vulcan.formats.registry import open_model

    check_export(file)
    check_output(file)
    with keep_off_stdout():
        written = export_model(open_model(model, settings or ()).model, file)
    if as_json:
        documents.print_document(documents.describe_fields(written))
        return
    console = screen.open_console()
    screen.show_rows(
        console,
        [
            ("states", f"{written.states:,}"),
            ("choices", f"{written.choices:,}"),
            ("transitions", f"{written.transitions:,}"),
            ("ask for", written.query),
        ],
    )
    tell_saved(file, as_json, None)
