"""Tables of decisions."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vulcan
from examples.treatment import Treatment
from tests.helpers.builder import PolicyBuilder
from tests.helpers.mixtures import mix_bandit
from tests.helpers.plans import about, edit
from tests.helpers.tables import Table
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.errors import OptionError
from vulcan.model.reader import ModelReader
from vulcan.numerics import END
from vulcan.policy.views import PolicyTable
from vulcan.policy.walk import find_decision_points


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
    table = edit(policy).table()
    assert len(table) == len(policy)
    assert "state" not in table.columns
    assert sorted(table["node"]) == list(range(len(policy)))
    assert table["history"][0] == ""
    assert table["history"][1].startswith(f"{table['action'][0]} → ")
    ahead = dict(zip(table["node"], table["risk_ahead"], strict=True))
    assert [ahead[node] for node in range(len(policy))] == policy.node_values()["risk"].tolist()
    assert len(set(table["history"])) == len(table)


def test_members_have_rows_of_their_own() -> None:
    policy = mix_bandit()
    table = policy.table()
    assert set(table["member"]) == {1, 2}
    assert table.where(table["step"] == 1)["reach"].tolist() == [0.6, 0.4]
    certificate = vulcan.certify(vulcan.Problem(Bandit(3), 1), policy)
    assert table["risk"].sum() == pytest.approx(certificate.risk)


def test_a_decision_of_several_levels_and_states_has_a_row_for_each() -> None:
    over = {"go": [Outcome(1.0, 2.0, "over")]}
    fork = {"go": [Outcome(0.25, 0, "left"), Outcome(0.75, 0, "right")]}
    model = Table({"fork": fork, "left": over, "right": over}, 2, start="fork")
    builder = PolicyBuilder(about(model))
    builder.add("go", ["left", "right"], [0.25, 0.75], [0.0, 0.0], [1, 1])
    builder.add("go", ["over"], [1.0], [2.0], [END])
    policy = builder.build()
    assert policy.table()["reach"].tolist() == [1.0, 1.0]
    states = policy.bind(model).table()
    assert states["state"].tolist() == ["fork", "right", "left"]
    assert states["reach"].tolist() == [1.0, 0.75, 0.25]

    builder = PolicyBuilder(
        about(model)
    )  # its last decision is taken second by some, third by others
    builder.add("go", ["left", "right"], [0.5, 0.5], [0.0, 0.0], [1, 2])
    builder.add("go", ["over"], [1.0], [0.0], [2])
    builder.add("go", ["over"], [1.0], [2.0], [END])
    rows = find_decision_points(builder.build()).rows
    assert sorted(zip(rows["node"], rows["level"], rows["reach"], strict=True)) == [
        (0, 0, 1.0),
        (1, 1, 0.5),
        (2, 1, 0.5),
        (2, 2, 0.5),
    ]


def test_what_only_the_model_knows_of_discounts_is_not_guessed() -> None:
    policy = vulcan.solve(vulcan.Problem(Discounted(3), "0.002*x")).policy
    rewards = edit(policy, origin={"initial_action": None}).table()["reward_ahead"]
    assert math.isnan(rewards[0])
    assert not np.isnan(rewards[1:]).any()
    for table in (edit(policy).table(), policy.table()):
        assert table["reward_ahead"][0] == pytest.approx(policy.start().reward_ahead)
    chosen = vulcan.solve(vulcan.Problem(Chosen(3), "0.002*x"))
    first = chosen.policy.table()
    assert first["state"][0] == "start"
    assert first["reward_ahead"][0] == pytest.approx(chosen.certificate.reward)
    bare = edit(chosen.policy)  # four decisions in three steps: the first is no step
    assert bare.table()["reward_ahead"][0] == pytest.approx(chosen.certificate.reward)


def test_rows_are_chosen_by_their_columns(table) -> None:
    chosen = table.where((table["step"] == 3) & (table["reach"] >= 0.01))
    assert 0 < len(chosen) < len(table) == chosen.whole
    assert set(chosen["step"]) == {3}
    assert chosen["reach"].min() >= 0.01


def test_rows_are_sorted_as_one_expects(table) -> None:
    assert (np.diff(table["step"]) >= 0).all()
    assert (np.diff(table.sort("risk")["risk"]) <= 0).all()
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


def test_arrays_are_ready_for_frames(table) -> None:
    arrays = table.to_dict()
    assert {len(cells) for cells in arrays.values()} == {len(table)}
    assert arrays["reach"].dtype == np.float64
    assert {type(text) for text in arrays["state"]} == {str}


def test_only_csv_files_are_written(table, tmp_path: Path) -> None:
    table.save(tmp_path / "plan.csv")
    assert (tmp_path / "plan.csv").read_text(encoding="utf-8").startswith("step,state,")
    with pytest.raises(OptionError, match=r"plan.xls: the file must end in .csv"):
        table.save("plan.xls")


def test_html_shows_labels_and_runs_none() -> None:
    class Loud(Bandit):
        def action_label(self, action):
            return f"<script>{action}</script>"

    table = vulcan.solve(vulcan.Problem(Loud(2), "0.002*x")).policy.table()
    assert "<script" not in table._repr_html_()
    assert "&lt;script&gt;" in table._repr_html_()


def test_a_plan_without_decisions_has_an_empty_table() -> None:
    table = vulcan.solve(vulcan.Problem(Table({}), 0.1)).policy.table()
    assert len(table) == len(table.top(3)) == len(table.where(table["step"] == 1)) == 0
    assert str(table).startswith("step")


HOSTILE = (
    '=HYPERLINK("http://evil","rest")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1:A9)",
    "\t=1",
    "\r=1",
)


def test_a_line_break_in_a_label_begins_no_row_of_a_csv() -> None:
    text = tabulate_hostile("rest\r=1").to_csv()
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["action"] == "rest\r=1"


def tabulate_hostile(label: str) -> PolicyTable:
    """Return the table of one step whose label a spreadsheet would run, in a state -1.5."""
    model = Table({-1.5: {label: [Outcome(1.0, -1.5, "done")]}}, start=-1.5)
    return vulcan.solve(vulcan.Problem(model, 0.1)).policy.table()


@pytest.mark.parametrize("label", HOSTILE)
def test_csv_has_no_label_that_a_spreadsheet_would_run(label) -> None:
    table = tabulate_hostile(label)
    (row,) = csv.DictReader(io.StringIO(table.to_csv(), newline=""))
    assert row["action"] == f"'{label}"
    assert (row["state"], row["reward_ahead"]) == ("-1.5", "-1.5")  # numbers stay numbers
