"""Files with hidden states: Cassandra's format, and PRISM's through Storm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vulcan
from vulcan import BeliefModel
from vulcan.domains import Tiger
from vulcan.errors import OptionError
from vulcan.formats.registry import open_model

TIGER = """# the tiger problem, with a state of failure
discount: 0.95
values: reward
states: left right eaten
actions: listen open-left open-right
observations: growl-left growl-right
start: 0.5 0.5 0.0

T: listen
identity
T: open-left : left
0.25 0.25 0.5
T: open-right : right : left 0.25
T: open-right : right : 1 0.25
T: open-right : right : eaten 0.5
T: open-left : right
0.5 0.5 0
T: open-right : left
0.5 0.5 0
T: * : eaten : eaten 1
O: *
uniform
O: listen : left
0.85 0.15
O: listen : right : growl-left 0.15
O: listen : right : growl-right 0.85
R: listen : * : * : * -1
R: open-left : left : * : * -10
R: open-left : right : * : * 10
R: open-right : right : *
-10 -10
R: open-right : left
10 10 10 10 10 10
"""


def read(tmp_path: Path, text: str, *settings: str) -> Any:
    path = tmp_path / "model.POMDP"
    path.write_text(text)
    return open_model(str(path), ["horizon=4", *settings]).model


@pytest.mark.parametrize("bound", [0.0, 0.1, 1.0])
def test_file_is_the_domain(tmp_path: Path, bound: float) -> None:
    model = read(tmp_path, TIGER, "failure=eaten", "discount=1.0")
    rewards = [
        vulcan.solve(vulcan.Problem(one, bound)).certificate.reward
        for one in (model, BeliefModel(Tiger(4)))
    ]
    assert rewards[0] == pytest.approx(rewards[1])


def test_costs_are_negative_rewards_and_the_file_has_a_discount(tmp_path: Path) -> None:
    model = read(tmp_path, TIGER.replace("values: reward", "values: cost"), "failure=eaten")
    assert model.discount == 0.95
    root = model.initial_state()
    assert {float(o.reward) for o in model.outcomes(root, "listen")} == {1.0}


def test_goal_ends_the_mission(tmp_path: Path) -> None:
    model = read(tmp_path, TIGER, "goal=eaten")
    policy = vulcan.solve(vulcan.Problem(model, 0.0)).policy
    run = policy.start()
    while not run.finished:
        assert run.expected
        run.observe(max(run.expected))
    assert not run.failed


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("T: listen\n", "T: lsten\n", "'lsten' is none of the actions"),
        ("0.85 0.15", "0.85 x", "'x' is not a number"),
        ("states: left right eaten", "", "line 7: states are not declared"),
        ("values: reward", "values: money", "values must be reward or cost"),
        ("T: listen", "Q: listen", "'Q' is not one of discount, values"),
        ("10 10 10 10 10 10", "10 10", "it ends too soon"),
        ("0.5 0.5 0.0", "0.5 0.4 0.0", "the initial belief sum to 0.9"),
        ("0.85 0.15", "0.85 0.25", "observations sum to 1.1"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TIGER
    with pytest.raises(vulcan.VulcanError, match=said):
        vulcan.solve(vulcan.Problem(read(tmp_path, TIGER.replace(old, new, 1)), 0.1))


def test_unknown_failure_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="'eatn' is none of the states"):
        read(tmp_path, TIGER, "failure=eatn")


MAZE = """pomdp
observables o endobservables
module maze
  x : [0..4] init 0;
  o : [0..2] init 0;
  [go] x=0 -> 0.5:(x'=1)&(o'=1) + 0.5:(x'=2)&(o'=1);
  [left] x=1 -> 0.9:(x'=3)&(o'=2) + 0.1:(x'=4)&(o'=2);
  [right] x=1 -> 0.2:(x'=3)&(o'=2) + 0.8:(x'=4)&(o'=2);
  [left] x=2 -> 0.3:(x'=3)&(o'=2) + 0.7:(x'=4)&(o'=2);
  [right] x=2 -> 0.9:(x'=3)&(o'=2) + 0.1:(x'=4)&(o'=2);
endmodule
label "failed" = x=4;
rewards "r" [left] true : 1; [right] true : 2; endrewards
"""


def test_prism_pomdp_hides_what_is_not_observable(tmp_path: Path) -> None:
    pytest.importorskip("stormpy")
    path = tmp_path / "maze.prism"
    path.write_text(MAZE)
    model = open_model(str(path), ["horizon=2", 'goal="x=3"']).model
    assert isinstance(model, BeliefModel)
    safe = vulcan.solve(vulcan.Problem(model, 0.42)).certificate
    assert (safe.reward, safe.risk) == pytest.approx((1.0, 0.4))
    bold = vulcan.solve(vulcan.Problem(model, 1.0)).certificate
    assert (bold.reward, bold.risk) == pytest.approx((2.0, 0.45))
    path.write_text(MAZE.replace("[right] x=2", "[up] x=2"))
    with pytest.raises(OptionError, match="another state with the same observation 'o=1'"):
        open_model(str(path), ["horizon=2"])
