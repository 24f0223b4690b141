"""Checkpoints whose seals are right and whose contents are made up: refused, or searched on."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import vulcan
from tests.helpers.crafted_checkpoints import KINDS, MORE, TAKEN, make_snapshot, solve
from vulcan.graph.states import ACTION, OUTCOME, STATE
from vulcan.kernels import paper_tree, price_tree
from vulcan.sampling import price_search as price_run
from vulcan.sampling.checkpoint import Snapshot

Change = Callable[[Any], None]

TYPES: dict[str, Any] = {
    "nodes": price_tree.NODE,
    "edges": price_tree.EDGE,
    "edge_values": np.float32,
    "prices": np.float32,
    "judged": price_tree.JUDGED,
    "_orders": price_tree.ORDER,
    "_roots": np.int32,
    "upper_nodes": np.int32,
    "subtrees": np.int64,
    "numbers": np.float64,
    "local nodes": paper_tree.NODE,
    "local edges": paper_tree.EDGE,
    "children": np.int32,
    "_path": paper_tree.STEP,
    "control": paper_tree.CONTROL,
} | {"states": STATE, "actions": ACTION, "outcomes": OUTCOME}


@pytest.mark.slow
def test_nothing_crashes_or_goes_on_for_ever() -> None:
    """In a process of its own: kernels that read beyond their arrays would end this one."""
    command = [sys.executable, "-m", "tests.helpers.crafted_checkpoints", "0", "4"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    last = "\n".join(found.stdout.splitlines()[-3:])
    assert found.returncode == 0, f"{last}\n{found.stderr[-2000:]}"
    refused = re.findall(r"^.+: {.*'CheckpointError': (\d+)", found.stdout, re.MULTILINE)
    assert sum(map(int, refused)) > len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_not_changed_is_searched_on(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "search"
    make_snapshot(kind).write(path)
    resumed, whole = solve(kind, checkpoint=vulcan.Checkpoint(path, resume=True)), solve(kind)
    assert resumed.policy == whole.policy
    assert resumed.statistics.samples == whole.statistics.samples


def change_array(snapshot: Snapshot, kind: str, name: str, change: Change) -> None:
    rows = TYPES.get(f"{kind} {name}") or TYPES[name]
    array = np.frombuffer(snapshot.arrays[name], rows).copy()
    change(array)
    snapshot.arrays[name] = array.tobytes()


def set_field(field: str, row: int, value: float) -> Change:
    def change(array: Any) -> None:
        (array[field] if field else array)[row] = value

    return change


def set_second(field: str, value: float) -> Change:
    """Change the second row that has something."""

    def change(array: Any) -> None:
        array[field][np.flatnonzero(array[field] >= 0)[1]] = value

    return change


@pytest.fixture(autouse=True)
def split_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_run, "FEWEST_TO_SPLIT", 64)


@pytest.mark.parametrize(
    ("kind", "name", "change", "problem"),
    [
        ("prices", "nodes", set_second("first_edge", 1 << 30), "outside of their array"),
        ("prices", "nodes", set_field("state", 1, 1 << 30), "a state that was never made"),
        ("prices", "nodes", set_field("level", 1, 0), "on another level"),
        ("prices", "nodes", set_field("level", 0, 3), "begins on another level"),
        ("prices", "nodes", set_field("visits", 1, -1), "visits are wrong"),
        ("prices", "nodes", set_field("plan", 0, 99), "an action that is not there"),
        ("prices", "nodes", set_field("price_index", 0, 8), "a price that is not there"),
        ("prices", "edges", set_field("first_child", 0, 0), "leads to another state"),
        ("prices", "edges", set_field("children", 0, 1 << 30), "has other outcomes"),
        ("prices", "edge_values", set_field("", 0, np.nan), "a value is not a number"),
        ("prices", "prices", set_field("", 0, np.inf), "a price is not a number"),
        ("prices", "judged", set_field("price_index", 0, 99), "a price is not there"),
        ("prices", "_orders", set_field("price_index", 0, 99), "a price is not there"),
        ("prices", "_roots", set_field("", 0, 0), "a subtree begins where none can"),
        ("prices", "subtrees", set_field("", 0, 1 << 40), "a subtree begins where none can"),
        ("prices", "upper_nodes", set_field("", 0, -1), "a subtree begins where none can"),
        ("prices", "numbers", set_field("", 2, np.nan), "the range of rewards is NaN"),
        ("local", "nodes", set_field("survival", 0, 0.5), "the tree has no root"),
        ("local", "nodes", set_second("first_edge", -2), "outside of their array"),
        ("local", "edges", set_second("first_child", 1 << 30), "outside of their array"),
        ("local", "children", set_field("", 0, 1 << 30), "outside of their array"),
        ("local", "_path", set_field("node", 0, -5), "leads to a missing history"),
        ("local", "control", set_field("depth", 0, 99), "deeper than the horizon"),
        ("local", "control", set_field("phase", 0, 3), "in no phase"),
    ],
)
def test_it_is_said_what_is_wrong(kind, name, change, problem, tmp_path):
    path = tmp_path / "search"
    snapshot = make_snapshot(kind)
    change_array(snapshot, kind, name, change)
    snapshot.write(path)
    message = rf"search: the content is not a checkpoint: .*{re.escape(problem)}"
    with pytest.raises(vulcan.errors.CheckpointError, match=message):
        solve(kind, checkpoint=vulcan.Checkpoint(path, resume=True))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("outcomes", lambda rows: np.add.at(rows["probability"], 0, 1e-9)),
        ("outcomes", set_second("state", 0)),  # a cycle
        ("outcomes", set_second("state", 1 << 30)),
        ("actions", set_second("first_outcome", 1 << 30)),
        ("states", set_field("first_action", 0, -5)),
        ("states", set_field("action_count", 0, -2)),
    ],
)
def test_a_compiled_model_is_evaluated_again(name: str, change: Change, tmp_path: Path) -> None:
    path = tmp_path / "search"
    snapshot = make_snapshot("compiled")
    assert "records" not in snapshot.graph  # which its functions would believe
    rows = np.frombuffer(snapshot.graph[name], TYPES[name]).copy()
    change(rows)
    snapshot.graph[name] = rows.tobytes()
    snapshot.write(path)
    with pytest.raises(vulcan.errors.CheckpointError, match="no longer answers as it did"):
        solve("compiled", checkpoint=vulcan.Checkpoint(path, resume=True))


@pytest.mark.parametrize("kind", ["prices", "local"])
def test_a_claim_of_length_takes_no_memory(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "search"
    snapshot = make_snapshot(kind)
    long = dict.fromkeys(snapshot.capacities, 1 << 62)
    msgspec.structs.replace(snapshot, capacities=long).write(path)
    resumed = solve(
        kind, checkpoint=vulcan.Checkpoint(path, resume=True), limits=vulcan.Limits(memory=1 << 28)
    )
    assert resumed.statistics.samples == TAKEN + MORE
