"""Tables of decisions: what their rows say, which rows there are, and in which form."""

from __future__ import annotations

import csv
import io
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

import vulcan
from examples.treatment import Treatment
from tests.helpers.mixtures import mix_bandit
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.errors import MismatchError, OptionError
from vulcan.model.reader import ModelReader
from vulcan.policies.places import find_places
from vulcan.policies.policy import About, PolicyBuilder
from vulcan.policies.table import PolicyTable
from vulcan.sentinels import END


@pytest.fixture(scope="module")
def treated() -> vulcan.Result:
    return vulcan.solve(vulcan.Problem(Treatment(weeks=6), 0.006))


@pytest.fixture(scope="module")
def table(treated: vulcan.Result) -> PolicyTable:
    assert treated.policy is not None
    return treated.policy.table()


class Discounted(Bandit):
    discount = 0.9


class Chosen(Discounted):
    """Begins with a choice, after which nothing is discounted."""

    def initial_state(self):
        start = super().initial_state()
        return vulcan.Start.choose({"here": start, "there": start})


def walk(policy: vulcan.Policy, model: Treatment) -> dict[tuple[int, str, str], list[float]]:
    """Return sums over all histories, one by one, for each step, state and action."""
    sums: dict[tuple[int, str, str], list[float]] = {}

    def follow(node: int, state: Any, step: int, chance: float) -> tuple[float, float]:
        action = policy.labels[policy.action[node]]
        fails, risk, reward = 0.0, 0.0, 0.0
        outcomes = ModelReader(model).outcomes(state, action)
        for row, outcome in zip(policy.outcomes(node), outcomes, strict=True):
            reward += outcome.probability * outcome.reward
            child = int(policy.child[row])
            if outcome.fails:
                fails += outcome.probability
            elif child >= 0:
                later = follow(child, outcome.state, step + 1, chance * outcome.probability)
                risk += outcome.probability * later[0]
                reward += outcome.probability * later[1]
        found = sums.setdefault((step, str(state), action), [0.0] * 4)
        for k, value in enumerate((1.0, fails, fails + risk, reward)):
            found[k] += chance * value
        return fails + risk, reward

    follow(0, model.initial_state(), 1, 1.0)
    return sums


def test_rows_are_what_all_histories_add_up_to() -> None:
    model = Treatment(weeks=4)
    policy = vulcan.solve(vulcan.Problem(model, 0.003)).policy
    table, wanted = policy.table(), walk(policy, model)
    assert max(table["decisions"]) > 1  # or nothing was joined
    assert table["decisions"].sum() == len(policy)
    names = ("reach", "risk", "risk_ahead", "reward_ahead")
    keys = zip(*(table[name].tolist() for name in ("step", "state", "action")), strict=True)
    found = dict(zip(keys, zip(*(table[name] for name in names), strict=True), strict=True))
    assert set(found) == set(wanted)
    assert len(found) == len(table)
    for key, (reach, risk, risk_ahead, reward_ahead) in found.items():
        assert reach == pytest.approx(wanted[key][0])
        assert risk == pytest.approx(wanted[key][1], abs=1e-15)
        assert risk_ahead == pytest.approx(wanted[key][2] / reach)
        assert reward_ahead == pytest.approx(wanted[key][3] / reach)


def test_the_risk_of_all_rows_is_that_of_the_certificate(treated, table) -> None:
    assert table["risk"].sum() == pytest.approx(treated.certificate.risk)
    assert table["risk_ahead"][0] == pytest.approx(treated.certificate.risk)
    assert table["reward_ahead"][0] == pytest.approx(treated.certificate.reward)


def test_without_a_model_rows_are_single_decisions_known_by_their_histories(treated) -> None:
    policy = treated.policy
    alone = vulcan.Policy(policy.about, policy.labels, *(getattr(policy, n) for n in policy.ARRAYS))
    table = alone.table()
    assert len(table) == len(policy)
    assert "state" not in table.columns
    assert sorted(table["node"]) == list(range(len(policy)))
    assert table["history"][0] == ""
    assert table["history"][1].startswith(f"{table['action'][0]} → ")
    ahead = dict(zip(table["node"], table["risk_ahead"], strict=True))
    assert [ahead[node] for node in range(len(policy))] == policy.prospects()["risk"].tolist()
    assert len(set(table["history"])) == len(table)


def test_a_model_whose_histories_are_its_states_is_told_by_histories() -> None:
    table = vulcan.solve(vulcan.Problem(Bandit(3, merges=False), "0.002*x")).policy.table()
    assert "history" in table.columns
    assert len(set(table["history"])) == len(table)


def test_members_have_rows_of_their_own() -> None:
    policy = mix_bandit()
    table = policy.table()
    assert set(table["member"]) == {1, 2}
    assert table.where("step=1")["reach"].tolist() == [0.6, 0.4]
    certificate = vulcan.certify(vulcan.Problem(Bandit(3), 1), policy)
    assert table["risk"].sum() == pytest.approx(certificate.risk)


def test_a_decision_of_several_levels_and_states_has_a_row_for_each() -> None:
    class Fork:
        horizon = 2

        def initial_state(self):
            return "fork"

        def actions(self, state):
            return ["go"]

        def outcomes(self, state, action):
            if state == "fork":
                return [Outcome(0.25, 0, "left"), Outcome(0.75, 0, "right")]
            return [Outcome(1.0, 2.0, "over", label="over")]

    about = About("Fork", ModelReader(Fork()).fingerprint(), 2, 1.0, None, "by hand")
    builder = PolicyBuilder(about)
    builder.add("go", ["left", "right"], [0.25, 0.75], [0.0, 0.0], [1, 1])
    builder.add("go", ["over"], [1.0], [2.0], [END])
    policy = builder.build()
    assert policy.table()["reach"].tolist() == [1.0, 1.0]
    states = policy.bind(Fork()).table()
    assert states["state"].tolist() == ["fork", "right", "left"]
    assert states["reach"].tolist() == [1.0, 0.75, 0.25]

    builder = PolicyBuilder(about)  # its last decision is taken second by some, third by others
    builder.add("go", ["left", "right"], [0.5, 0.5], [0.0, 0.0], [1, 2])
    builder.add("go", ["over"], [1.0], [0.0], [2])
    builder.add("go", ["over"], [1.0], [2.0], [END])
    rows = find_places(builder.build()).rows
    assert sorted(zip(rows["node"], rows["level"], rows["reach"], strict=True)) == [
        (0, 0, 1.0),
        (1, 1, 0.5),
        (2, 1, 0.5),
        (2, 2, 0.5),
    ]


def test_what_only_the_model_knows_of_discounts_is_not_guessed() -> None:
    policy = vulcan.solve(vulcan.Problem(Discounted(3), "0.002*x")).policy
    arrays = [getattr(policy, name) for name in policy.ARRAYS]
    older = msgspec.structs.replace(policy.about, initial_action=None)
    rewards = vulcan.Policy(older, policy.labels, *arrays).table()["reward_ahead"]
    assert math.isnan(rewards[0])
    assert not np.isnan(rewards[1:]).any()
    alone = vulcan.Policy(policy.about, policy.labels, *arrays)
    for table in (alone.table(), policy.table()):
        assert table["reward_ahead"][0] == pytest.approx(policy.start().reward_ahead)
    chosen = vulcan.solve(vulcan.Problem(Chosen(3), "0.002*x"))
    first = chosen.policy.table()
    assert first["state"][0] == "start"
    assert first["reward_ahead"][0] == pytest.approx(chosen.certificate.reward)
    bare = vulcan.Policy(
        chosen.policy.about,
        chosen.policy.labels,
        *(getattr(chosen.policy, name) for name in chosen.policy.ARRAYS),
    )  # four decisions in three steps: the first is no step
    assert bare.table()["reward_ahead"][0] == pytest.approx(chosen.certificate.reward)


def test_another_model_is_refused(treated) -> None:
    policy = treated.policy
    alone = vulcan.Policy(policy.about, policy.labels, *(getattr(policy, n) for n in policy.ARRAYS))
    with pytest.raises(MismatchError):
        alone.bind(Treatment(weeks=7)).table()


@pytest.mark.parametrize(
    ("condition", "keeps"),
    [
        ("step=3", lambda row: row["step"] == 3),
        ("step != 3", lambda row: row["step"] != 3),
        ("reach>=1%", lambda row: row["reach"] >= 0.01),
        ("risk < 1e-4", lambda row: row["risk"] < 1e-4),
        ("action=rest", lambda row: row["action"] == "rest"),
        ("state ~ SEVERE", lambda row: "severe" in row["state"]),
    ],
)
def test_conditions_choose_rows(table, condition, keeps) -> None:
    rows = [dict(zip(table.columns, row, strict=True)) for row in list_rows(table)]
    wanted = [tuple(row.values()) for row in rows if keeps(row)]
    assert list_rows(table.where(condition)) == wanted
    assert 0 < len(wanted) < len(table)


def list_rows(table: PolicyTable) -> list[tuple[object, ...]]:
    return list(zip(*(table[name].tolist() for name in table.columns), strict=True))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("stp=3", "no column 'stp'; did you mean 'step'? The columns: step, state, action"),
        ("step", "such as 'step=3' or 'reach>=0.01', not 'step'"),
        ("step=three", "step is compared with a number, not with 'three'"),
        ("action>rest", "action holds words, compared by =, ==, !=, ~, not by >"),
        ("reach~1", "reach holds numbers"),
        (3, "not 3"),
    ],
)
def test_a_condition_that_is_none_says_what_is_allowed(table, condition, message) -> None:
    with pytest.raises(OptionError) as caught:
        table.where(condition)
    assert message in str(caught.value)


def test_rows_are_sorted_as_one_expects(table) -> None:
    assert (np.diff(table["step"]) >= 0).all()
    assert (np.diff(table.sort("risk")["risk"]) <= 0).all()
    assert (np.diff(table.sort("risk", descending=False)["risk"]) >= 0).all()
    assert (np.diff(table.sort("step", descending=True)["step"]) <= 0).all()
    assert table.sort("state")["state"].tolist() == sorted(table["state"])
    top = table.top(3, by="reach")
    assert top["reach"].tolist() == sorted(table["reach"], reverse=True)[:3]
    assert (len(top), top.whole) == (3, len(table))
    with pytest.raises(OptionError, match="did you mean 'reach'"):
        table.sort("reech")
    with pytest.raises(OptionError, match="the number of rows must be a whole number"):
        table.top(2.5)


def test_csv_has_all_digits_and_quotes_what_it_must(table) -> None:
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert tuple(rows[0]) == table.columns
    place = table.columns.index("reach")
    assert [float(row[place]) for row in rows[1:]] == table["reach"].tolist()
    assert "well, strain 1" in {row[1] for row in rows}


def test_markdown_has_a_line_for_each_row_and_keeps_its_columns(table) -> None:
    lines = table.to_markdown().splitlines()
    assert len(lines) == len(table) + 2
    assert {line.count("|") for line in lines} == {len(lines[1].split("|")) - 1}


def test_arrays_are_ready_for_frames(table, monkeypatch) -> None:
    arrays = table.to_dict()
    assert {len(cells) for cells in arrays.values()} == {len(table)}
    assert arrays["reach"].dtype == np.float64
    assert {type(text) for text in arrays["state"]} == {str}

    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(OptionError, match="pandas or polars, and neither is installed"):
        table.to_frame()
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(DataFrame=dict))
    assert list(table.to_frame()) == list(table.columns)


def test_a_frame_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = vulcan.solve(vulcan.Problem(Bandit(2), "0.002*x")).policy.table().to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["step"].tolist()[0] == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_parquet_has_what_the_table_has(library, table, tmp_path, monkeypatch) -> None:
    frames = pytest.importorskip(library)
    if library == "pandas":
        pytest.importorskip("pyarrow")
    monkeypatch.setitem(sys.modules, "polars" if library == "pandas" else "pandas", None)
    table.save(tmp_path / "plan.parquet")
    read = frames.read_parquet(tmp_path / "plan.parquet")
    assert list(read.columns) == list(table.columns)
    assert list(read["reach"]) == table["reach"].tolist()
    assert list(read["state"]) == table["state"].tolist()


def test_what_parquet_lacks_is_said(table, tmp_path, monkeypatch) -> None:
    class Frame:
        def __init__(self, columns: Any) -> None:
            pass

        def to_parquet(self, stream: Any) -> None:
            raise ImportError("pyarrow is missing")

    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=Frame))
    with pytest.raises(OptionError, match="Parquet can't be written here: pyarrow is missing"):
        table.save(tmp_path / "plan.parquet")
    assert not list(tmp_path.iterdir())


def test_files_are_written_by_their_suffixes(table, tmp_path: Path) -> None:
    for suffix, begins in ((".csv", "step,state,"), (".md", "| step |"), (".html", "<!doctype")):
        path = tmp_path / f"plan{suffix}"
        table.save(path)
        assert path.read_text(encoding="utf-8").startswith(begins)
    with pytest.raises(OptionError, match=r"plan.xls: the file must end in .csv or .md or .html"):
        table.save("plan.xls")


def test_text_says_how_much_of_it_is_not_shown(table) -> None:
    assert len(str(table).splitlines()) == 1 + 60 + 1
    assert f"… and {len(table) - 60:,} more rows of {len(table):,}" in str(table)
    assert str(table.head(5)).count("\n") == 5
    assert "more rows" not in str(table.head(5))
    assert repr(table.head(5)).startswith(
        f"<PolicyTable for Treatment(weeks=6, severity='moderate'): 5 of {len(table):,} rows of "
    )


def test_html_shows_labels_and_runs_none() -> None:
    class Loud(Bandit):
        def action_label(self, action):
            return f"<script>{action}</script>"

    table = vulcan.solve(vulcan.Problem(Loud(2), "0.002*x")).policy.table()
    for html in (table._repr_html_(), table.matrix()._repr_html_()):
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_a_plan_without_decisions_has_an_empty_table() -> None:
    class Over(Bandit):
        def actions(self, state):
            return []

    policy = vulcan.solve(vulcan.Problem(Over(2), 0.1)).policy
    table = policy.table()
    assert len(table) == len(table.top(3)) == len(table.where("step=1")) == 0
    assert str(table).startswith("step")
    assert table.matrix().cells == {}


def test_long_histories_are_told_by_their_ends() -> None:
    table = vulcan.solve(vulcan.Problem(Treatment(weeks=30), 0.05)).policy
    alone = vulcan.Policy(table.about, table.labels, *(getattr(table, n) for n in table.ARRAYS))
    last = alone.table().where("step=30").head(1)
    assert last["history"][0].startswith("… ")
    assert last["history"][0].count("→") == 20


def test_a_table_without_rows_says_so(table: PolicyTable) -> None:
    empty = table.where("state ~ nowhere")
    assert str(empty).splitlines()[-1] == f"none of {len(table)} rows is like that"
    assert f"<p>none of {len(table)} rows is like that</p>" in empty._repr_html_()
