"""Models written for other tools, and read again."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import vulcan
from tests.helpers.tables import REWARDS, Table, random_table
from vulcan import FAILURE, ArrayModel, OptionError, Outcome, Start
from vulcan.domains import Bandit
from vulcan.formats import export, export_model, from_prism, from_table

SUFFIXES = [".drn", ".prism"]
TABLE = {
    0: {
        "go on": [Outcome(0.5, 1, 1, "a"), Outcome(0.25, 3, 1, "b"), Outcome.failure(0.25, 2)],
        "go-on": [Outcome(1, 0.5, 2)],
        "max": [Outcome(1, 0, 0)],
    },
    1: {"7": [Outcome.failure(1.0, -1.0)]},
}


def find_value(model: object, level: float) -> float | None:
    problem = vulcan.Problem(model, vulcan.Constant(level))
    return vulcan.solve(problem, vulcan.Lagrangian(randomised=True)).upper_bound


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", range(12))
def test_what_is_read_again_is_worth_the_same(seed: int, suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("stormpy")
    random = Random(seed)
    model = random_table(random, REWARDS, False)
    path = tmp_path / f"model{suffix}"
    if getattr(model, "discount", 1) != 1:
        model = Table(model.table, horizon=model.horizon)
    if not model.actions(model.initial_state()):
        pytest.skip("nothing to decide")
    export_model(model, path)
    again = from_prism(path, horizon=model.horizon)
    for level in (0.0, 0.1, 1.0):
        assert find_value(again, level) == pytest.approx(find_value(model, level), abs=1e-9)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bandit(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("stormpy")
    path = tmp_path / f"bandit{suffix}"
    written = export_model(Bandit(4), path)
    again = from_prism(path, horizon=4)
    assert (written.states, written.choices, written.transitions) == (212, 464, 968)
    assert {"stop", "play_1", "play_2", "play_3"} <= set(again.action_labels)
    assert find_value(again, 0.003) == pytest.approx(find_value(Bandit(4), 0.003), abs=1e-12)


def test_drn(tmp_path: Path) -> None:
    path = tmp_path / "model.drn"
    written = export_model(Table(TABLE, horizon=3), path)
    assert (written.states, written.choices, written.transitions) == (4, 6, 7)
    lines = path.read_text().splitlines()
    assert lines[1] == '// multi(R{"reward"}max=? [C<=3], P<=0.1 [F<=3 "failed"])'
    begin = lines.index("state 0 [0] init")
    assert lines[begin : begin + 9] == [
        "state 0 [0] init",
        "//0",
        "\taction go_on [1.75]",
        "\t\t1 : 0.75",
        "\t\t3 : 0.25",
        "\taction go_on_2 [0.5]",
        "\t\t2 : 1.0",
        "\taction a_max [0.0]",
        "\t\t0 : 1.0",
    ]
    assert "state 2 [0] ended" in lines
    assert "state 3 [0] failed" in lines


def test_prism(tmp_path: Path) -> None:
    path = tmp_path / "model.pm"
    export_model(Table(TABLE, horizon=3), path)
    text = path.read_text()
    assert "    [go_on] state=0 -> 0.75 : (state'=1) + 0.25 : (state'=3);\n" in text
    assert "    [a_7] state=1 -> 1.0 : (state'=3);\n" in text
    assert 'label "failed" = state=3;\nlabel "ended" = state=2;\n' in text
    assert "    [a_7] state=1 : -1.0;\n" in text


def test_states_after_the_last_step_are_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "model.drn"
    table = {k: {"on": [Outcome(1, 1, k + 1)]} for k in range(100)}
    assert export_model(Table(table, horizon=3), path).states == 5


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_start_that_is_drawn_is_one_more_step(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("stormpy")
    start = Start.draw([Outcome(0.5, 0, 0), Outcome(0.5, 0, 2)])
    model = Table(TABLE, horizon=2)
    model.initial_state = lambda: start  # type: ignore[method-assign]
    path = tmp_path / f"model{suffix}"
    assert "C<=3" in export_model(model, path).query
    assert find_value(from_prism(path, horizon=3), 1) == pytest.approx(find_value(model, 1))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_arrays(suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("stormpy")
    model = ArrayModel(
        [3, 3, 0], [0, 0, 1], [0, -1, 2], [0.9, 0.1, 1], [2, 0, 1], horizon=2, start=3
    )
    path = tmp_path / f"model{suffix}"
    export_model(model, path)
    assert find_value(from_prism(path, horizon=2), 1) == pytest.approx(2.7)


def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match=r"written as \.drn, \.prism, \.pm, \.nm, not as '\.xml'"):
        export_model(Bandit(2), tmp_path / "model.xml")
    discounted = Table(TABLE, horizon=3)
    discounted.discount = 0.9
    with pytest.raises(OptionError, match=r"no discount, and this model has 0\.9"):
        export_model(discounted, tmp_path / "model.drn")
    monkeypatch.setattr(export, "MOST_STATES", 100)
    with pytest.raises(OptionError, match="more than 100 states within its horizon of 5"):
        export_model(Bandit(5), tmp_path / "model.drn")
    assert list(tmp_path.iterdir()) == []


def test_states_of_a_drn_file_keep_their_names(tmp_path: Path) -> None:
    pytest.importorskip("stormpy")
    table = {"shore": {"swim": [(0.9, "island", 3.0), (0.1, FAILURE)]}, "island": {}}
    path = tmp_path / "model.drn"
    export_model(from_table(table, horizon=2), path)
    again = from_prism(path, horizon=2)
    assert again.initial_state() == "shore"
    assert [outcome.state for outcome in again.outcomes("shore", "swim")] == ["island", FAILURE]
    path.write_text(path.read_text().replace("//island", "//shore"))
    assert from_prism(path, horizon=2).initial_state() == 0
