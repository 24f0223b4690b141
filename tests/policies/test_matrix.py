"""What is done in which state at which step, at a glance."""

from __future__ import annotations

import pytest
from rich.console import Console

import vulcan
from examples.treatment import Treatment
from tests.helpers.mixtures import mix_bandit
from vulcan import ActionMatrix
from vulcan.domains import Bandit
from vulcan.errors import OptionError


@pytest.fixture(scope="module")
def matrix() -> ActionMatrix:
    return vulcan.solve(vulcan.Problem(Treatment(weeks=6), 0.006)).policy.table().matrix()


def test_a_cell_has_what_the_policy_does_there(matrix: ActionMatrix) -> None:
    policy = vulcan.solve(vulcan.Problem(Treatment(weeks=6), 0.006)).policy
    run = policy.start()
    while not run.finished:
        cell = matrix.cells[str(run.state), run.step + 1]
        assert run.action in cell.actions
        run.observe(max(run.expected, key=run.expected.get))
    table = policy.table()
    assert sum(cell.reach for cell in matrix.cells.values()) == pytest.approx(table["reach"].sum())
    assert sum(cell.risk for cell in matrix.cells.values()) == pytest.approx(table["risk"].sum())
    assert all(sum(cell.actions.values()) == pytest.approx(1) for cell in matrix.cells.values())


def test_states_come_in_their_own_order(matrix: ActionMatrix) -> None:
    assert matrix.states[:3] == ("well, strain 0", "well, strain 1", "well, strain 2")
    assert matrix.states[-1].startswith("severe")  # by the text it would be well
    assert matrix.steps == (1, 2, 3, 4, 5, 6)


def test_letters_tell_actions_apart() -> None:
    def name(*actions: str) -> dict[str, str]:
        return ActionMatrix("", (), (), actions, {}).letters

    assert name("rest", "tablets") == {"rest": "r", "tablets": "t"}
    assert name("north", "northeast", "no") == {"north": "A", "northeast": "B", "no": "C"}
    assert name("in", "is") == {"in": "in", "is": "is"}
    many = name(*(f"play {k}" for k in range(30)))
    assert len(set(many.values())) == 30


def test_text_has_a_line_for_each_state_and_the_names_of_all_actions(matrix: ActionMatrix) -> None:
    lines = str(matrix).splitlines()
    assert [line.split("  ")[0] for line in lines[1 : 1 + len(matrix.states)]] == [*matrix.states]
    assert all(action in lines[-2] for action in matrix.actions)
    assert lines[-1].startswith("·: the policy never comes there")


def test_a_narrow_terminal_gets_it_in_parts(matrix: ActionMatrix) -> None:
    console = Console(width=40, color_system=None)
    with console.capture() as capture:
        console.print(matrix.build(40))
    text = capture.get()
    assert text.count("step") > 1
    assert max(map(len, text.splitlines())) <= 40
    for step in matrix.steps:
        assert f" {step} " in text


def test_colours_say_which_action_it_is(matrix: ActionMatrix) -> None:
    console = Console(width=100, force_terminal=True, color_system="truecolor")
    with console.capture() as capture:
        console.print(matrix.build(100))
    assert "48;2;86;180;233" in capture.get()  # the first colour, as a background
    assert matrix._repr_html_().count("background: #56b4e9") > 3


def test_randomised_policies_have_cells_with_several_actions() -> None:
    matrix = mix_bandit().bind(Bandit(3)).table().matrix()
    assert any(len(cell.actions) > 1 for cell in matrix.cells.values())
    for text in (str(matrix), matrix._repr_html_()):
        assert "several letters: it depends on what came before" in text
    for action, letter in matrix.letters.items():
        assert f"{letter}: {action}" in matrix._repr_html_()


def test_states_must_be_known_and_few() -> None:
    policy = vulcan.solve(vulcan.Problem(Bandit(3), "0.002*x")).policy
    alone = vulcan.Policy(policy.about, policy.labels, *(getattr(policy, n) for n in policy.ARRAYS))
    with pytest.raises(OptionError, match="bind the policy to its model"):
        alone.table().matrix()

    branching = vulcan.solve(vulcan.Problem(Bandit(3, merges=False), "0.002*x")).policy
    with pytest.raises(OptionError, match="every history is a state of its own"):
        branching.table().matrix()
    many = vulcan.solve(vulcan.Problem(Bandit(9), "0.002*x"), vulcan.Lagrangian()).policy.table()
    if len(set(many["state"])) > 200:
        with pytest.raises(OptionError, match="at most 200 states"):
            many.matrix()
    assert many.where("step<=3").matrix().steps == (1, 2, 3)


def test_it_is_written_as_a_page(matrix: ActionMatrix, tmp_path) -> None:
    matrix.save(tmp_path / "matrix.html")
    assert (tmp_path / "matrix.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(OptionError, match=r"must end in .html"):
        matrix.save(tmp_path / "matrix.csv")
