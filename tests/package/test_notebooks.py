"""The notebooks in `examples/` run, and show what notebooks show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
import nbformat  # noqa: E402 - only where nbclient is

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))

pytestmark = pytest.mark.filterwarnings("default")  # those of Jupyter are not ours


def run(notebook: Any) -> Any:
    beside = {"metadata": {"path": str(EXAMPLES)}}  # where Jupyter starts it
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=beside)
    client.execute()
    return notebook


def list_outputs(notebook: Any) -> list[Any]:
    return [out for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_something(path: Path) -> None:
    notebook = run(nbformat.read(path, as_version=4))
    shown = [out.data for out in list_outputs(notebook) if out.output_type == "execute_result"]
    assert any("text/html" in data for data in shown)
    plots = sum("plot_" in "".join(cell.source) and "import" not in cell.source.split("\n")[-1]
                for cell in notebook.cells if cell.cell_type == "code")  # fmt: skip
    assert sum("image/png" in data for data in shown) == plots


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_what_they_print(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    nbformat.validate(nbformat.from_dict(notebook))


PROGRESS = """
from vulcan.runtime import display
from vulcan.runtime.limits import Progress

with display.show_progress() as show:
    for k in range(1, 4):
        show(Progress(k, k / 4, 1000 * k, 10, 1.5, samples=100 * k))
        print("seen")
"""


def test_progress_is_kept_up_to_date_in_the_cell_and_removed() -> None:
    heard: list[Any] = []

    class Client(nbclient.NotebookClient):
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            heard.append((msg["msg_type"], msg["content"].get("data", {}).get("text/plain")))
            return super().process_message(msg, cell, cell_index)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PROGRESS)])
    Client(notebook, timeout=120, kernel_name="python3").execute()
    shown = [text for kind, text in heard if kind == "display_data"]
    updates = [text for kind, text in heard if kind == "update_display_data"]
    assert len(shown) == 1
    assert "100 samples" in shown[0]
    assert ["200 samples" in updates[0], "300 samples" in updates[1], updates[2]] == [
        True,
        True,
        "",
    ]
