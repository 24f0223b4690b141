"""Models of model checkers, read by us and by Storm: the same values of the best randomised policy.

Storm reads the same file, and answers its own multi-objective query (`tests.oracles.storm_files`).
Resource gathering and the addresses of zeroconf are small versions of our own; consensus, CSMA and
wireless LAN come with stormpy. One of them goes through JANI as well. Beside the values: the best
deterministic policy that `solve` finds by itself, and the seconds of processor time of all three.
Run with `make bench`; needs the extra `storm`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import vulcan
from tests.oracles.storm_files import ask_storm
from vulcan.formats import from_prism
from vulcan.model import ArrayModel

OWN = Path(__file__).parent / "models"
AGREEMENT = 2e-7
"""Storm's precision is set to 1e-7; our tolerance on risk moves a value by less."""

GATHERING = [(steps, bound) for steps in (30, 100, 300, 1000) for bound in (0.05, 0.1, 0.2, 0.5)]
ADDRESSES = [(30, 0.05), (30, 0.3), (300, 0.1), (1000, 0.1)]


class Reaching(NamedTuple):
    """A goal to reach, in a file that comes with stormpy."""

    file: str
    goal: str
    failure: str
    cases: list[tuple[int, float]]
    constants: Mapping[str, Any] = {}


CONSENSUS = Reaching(
    "coin2-2.nm",
    '"finished" & "all_coins_equal_1"',
    '"finished" & "all_coins_equal_0"',
    [(40, 0.25), (100, 0.4), (1000, 0.4)],
)
CSMA = Reaching(
    "csma2-2.nm", '"all_delivered"', '"collision_max_backoff"', [(80, 0.3), (100, 0.3), (200, 0.5)]
)
WLAN = Reaching(
    "wlan0_collide.nm",
    "s1=12 & s2=12",
    '"twoCollisions"',
    [(40, 0.05), (60, 0.1), (200, 0.1)],
    {"COL": 4, "TRANS_TIME_MAX": 10},
)


def measure(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    return work(), time.process_time() - began


def compare(
    name: str, model: ArrayModel, bound: float, ask: Callable[[], float], report: Any
) -> None:
    """Solve a model by ourselves and by Storm, and report both."""
    problem = vulcan.Problem(model, vulcan.Constant(bound))
    best, seconds = measure(lambda: vulcan.solve(problem, vulcan.Lagrangian(randomised=True)))
    theirs, storm_seconds = measure(ask)
    plan, plan_seconds = measure(lambda: vulcan.solve(problem, time_limit=10))
    value = best.certificate.reward
    gap = "no policy" if plan.certificate is None else f"{plan.certificate.reward:.6f}"
    report(
        f"{name}, {model.horizon} steps, bound {bound}: ours, Storm's, by default",
        f"{value:.8f}, {theirs:.8f}, {gap}",
    )
    report(
        "  seconds of processor time: ours, Storm's, by default",
        f"{seconds:.3f}, {storm_seconds:.3f}, {plan_seconds:.3f}",
    )
    report("  ours / Storm's", f"{seconds / storm_seconds:.2f}")
    assert best.certificate.safe
    assert value == pytest.approx(theirs, abs=AGREEMENT)
    assert plan.certificate is None or plan.certificate.reward <= theirs + AGREEMENT
    if plan.policy is not None:
        assert vulcan.verify(problem, plan.policy).agrees


@pytest.mark.parametrize(
    ("file", "reward", "cases"),
    [("gathering.prism", "gold", GATHERING), ("zeroconf.prism", "machines", ADDRESSES)],
)
def test_rewards(file: str, reward: str, cases: list[tuple[int, float]], report: Any) -> None:
    pytest.importorskip("stormpy")
    for steps, bound in cases:
        objective, limit = f'R{{"{reward}"}}max=? [C<={steps}]', f'P<={bound} [F<={steps} "failed"]'
        model = from_prism(OWN / file, horizon=steps, reward=reward)
        ask = lambda o=objective, d=limit: ask_storm(OWN / file, o, d)  # noqa: E731
        compare(Path(file).stem, model, bound, ask, report)


def test_a_long_horizon(report: Any, tmp_path: Path) -> None:
    """Consensus with counters up to 32, 1,000 steps: levels are small, and there are many."""
    files = pytest.importorskip("stormpy.examples.files")
    text = (Path(files.__file__).parent / "files" / "mdp" / CONSENSUS.file).read_text()
    path = tmp_path / "coin2-16.nm"
    path.write_text(text.replace("K=2;", "K=16;"))
    goal, failure = f"({CONSENSUS.goal})", f"({CONSENSUS.failure})"
    places = {"goal": CONSENSUS.goal, "failure": CONSENSUS.failure}
    short = from_prism(path, horizon=10, reward=1, **places)
    vulcan.solve(vulcan.Problem(short, 0.4), vulcan.Lagrangian(randomised=True))  # compiles
    model = from_prism(path, horizon=1000, reward=1, **places)
    objective, limit = (
        f"Pmax=? [!{failure} U<=1000 {goal}]",
        f"P<=0.4 [!{goal} U<=1000 {failure}]",
    )
    compare("coin2-16", model, 0.4, lambda: ask_storm(path, objective, limit), report)


@pytest.mark.parametrize("jani", [False, True], ids=["prism", "jani"])
@pytest.mark.parametrize("case", [CONSENSUS, CSMA, WLAN], ids=lambda case: case.file)
def test_goals(case: Reaching, jani: bool, report: Any, tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy")
    files = pytest.importorskip("stormpy.examples.files")
    path = Path(files.__file__).parent / "files" / "mdp" / case.file
    if jani:
        program = stormpy.parse_prism_program(path)
        path = tmp_path / f"{path.stem}.jani"
        stormpy.io.export_jani_to_file(path, program.to_jani([])[0])
    goal, failure = f"({case.goal})", f"({case.failure})"
    for steps, bound in case.cases:
        model = from_prism(
            path,
            horizon=steps,
            goal=case.goal,
            failure=case.failure,
            reward=1,
            **(case.constants or {}),
        )
        objective = f"Pmax=? [!{failure} U<={steps} {goal}]"
        limit = f"P<={bound} [!{goal} U<={steps} {failure}]"
        ask = lambda o=objective, d=limit: ask_storm(path, o, d, case.constants)  # noqa: E731
        compare(path.name, model, bound, ask, report)
