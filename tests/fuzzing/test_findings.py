"""What campaigns found and no other test says better: cases that were wrong once."""

from __future__ import annotations

from fuzzing.checks.case import Case
from fuzzing.planners import Planner
from fuzzing.problems import Bound, PlainProblem, Way
from fuzzing.reproducers import judge

LARGE = 1e8
CANCELLING = PlainProblem(
    horizon=1,
    discount=1.0,
    states={
        0: {
            "a": (
                Way(probability=0.25, reward=LARGE, target=2, label=None),
                Way(probability=0.25, reward=0.0, target=3, label=None),
                Way(probability=0.25, reward=0.1, target=2, label=None),
                Way(probability=0.25, reward=-LARGE, target=None, label=None),
            )
        }
    },
    start=0,
    bound=Bound(kind="pieces", form="class", numbers=((0.0, 0.0), (1.0, 0.0))),
    tags=(),
)


def test_rewards_that_cancel_are_those_of_the_compiled_model() -> None:
    """The mean of its rewards is off by the roundings of the large ones."""
    planner = Planner(name="uct", parameters={}, options={})
    assert judge(Case("compiled", CANCELLING, planner, seed=3)) == []


MINUTE = PlainProblem(
    horizon=1,
    discount=1.0,
    states={
        0: {
            "b": (
                Way(probability=0.1472560242337851, reward=1e-300, target=1, label=None),
                Way(probability=0.852743975766215, reward=0.0, target=0, label=None),
            )
        }
    },
    start=0,
    bound=Bound(
        kind="logarithm",
        form="function",
        numbers=(7.74386296e140, 1.08546494e138, 1.4725602408652907e-301),
    ),
    tags=(),
)


def test_tangents_beyond_all_floats_are_left_out() -> None:
    planner = Planner(name="linear-program", parameters={}, options={})
    assert judge(Case("answer", MINUTE, planner, seed=1)) == []
