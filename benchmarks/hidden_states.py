"""Models with hidden states: ten problems, two bounds, three horizons, and the paper's bandit.

    python -m benchmarks.hidden_states              the table, then the bandit
    python -m benchmarks.hidden_states rocks        RockSample(5, 7) with traps, horizon 20

Each run has 60 seconds and ends within 0.1 % of the best. The bandit as machines with hidden kinds
is compared with the paper's model, in which Bayes' rule is written by hand: the same reward, and
the time of the search without evaluations.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import vulcan
from vulcan import BeliefModel, Transition
from vulcan.domains import Avoidance, Bandit, LightDark, Machine, RockSample, Tiger
from vulcan.domains.bandit import MACHINES

SECONDS: Final = 60
GAP: Final = 1e-3

Case = tuple[str, Any, tuple[float, float], tuple[int, int, int]]

CASES: Final[list[Case]] = [
    ("tiger", lambda h: Tiger(h), (0.02, 0.1), (6, 10, 14)),
    ("tiger, 0.7", lambda h: Tiger(h, accuracy=0.7), (0.02, 0.1), (6, 10, 14)),
    ("rock-sample 3, 2", lambda h: RockSample(3, 2, h), (0.01, 0.05), (4, 6, 8)),
    ("rock-sample 4, 3", lambda h: RockSample(4, 3, h), (0.01, 0.05), (4, 5, 6)),
    ("light-dark 3, 3", lambda h: LightDark(3, 3, h), (0.05, 0.2), (4, 5, 6)),
    ("light-dark 4, 5", lambda h: LightDark(4, 5, h), (0.05, 0.2), (3, 4, 5)),
    ("avoidance 5", lambda h: Avoidance(5, h), (0.02, 0.1), (6, 8, 10)),
    ("avoidance 8", lambda h: Avoidance(8, h), (0.02, 0.1), (6, 8, 10)),
    ("machine 3", lambda h: Machine(3, h), (0.02, 0.1), (5, 6, 7)),
    ("machine 4", lambda h: Machine(4, h), (0.02, 0.1), (5, 6, 7)),
]


@dataclass(frozen=True)
class HiddenBandit:
    """The paper's bandit, in which the kind of each machine is a hidden state."""

    horizon: int = 8

    def initial_belief(self) -> dict[tuple[bool, ...], float]:
        """Return the prior of the kinds of the machines."""
        belief = {}
        for kinds in product((True, False), repeat=len(MACHINES)):
            chance = 1.0
            for kind, machine in zip(kinds, MACHINES, strict=True):
                chance *= machine.theta if kind else 1 - machine.theta
            belief[(*kinds, False)] = chance
        return {(*kinds[:-1], 0, 0): chance for kinds, chance in belief.items()}

    def actions(self, observation: Any) -> list[str]:
        """Return "stop" and the plays."""
        plays = [f"play {k}" for k in range(1, 1 + len(MACHINES))]
        return [] if observation == "stopped" else ["stop", *plays]

    def transitions(self, state: Any, action: str) -> list[Transition]:
        """Return what a machine pays; the state has the number of plays and the last reward."""
        *kinds, played, _ = state
        if action == "stop":
            left = self.horizon - played
            return [Transition(1.0, (*kinds, self.horizon, 2), 0.25 * left)]
        number = int(action.removeprefix("play ")) - 1
        machine = MACHINES[number]
        first = machine.p1 if kinds[number] else machine.p2
        safe = 1 - machine.risk
        ways = [(first, 0), (1 - first, 1)]
        moves = [Transition(safe * p, (*kinds, played + 1, k), machine.rewards[k]) for p, k in ways]
        return [*moves, Transition(machine.risk, state, 0.0, fails=True)]

    def observations(self, state: Any, action: str) -> dict[str, float]:
        """Return which reward was paid."""
        return {("pays first", "pays second", "stopped")[state[-1]]: 1.0}


def run(problem: vulcan.Problem, **options: Any) -> tuple[vulcan.Result, float]:
    """Return the result and its seconds."""
    began = time.perf_counter()
    result = vulcan.solve(problem, **options)
    return result, time.perf_counter() - began


def print_table() -> None:
    """Solve all problems, and print a row for each."""
    print("| problem | horizon | bound | reward | risk | gap | decisions | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    proved = count = 0
    for name, make, bounds, horizons in CASES:
        for horizon, bound in product(horizons, bounds):
            problem = vulcan.Problem(BeliefModel(make(horizon)), bound)
            result, seconds = run(problem, time_limit=SECONDS, gap=GAP)
            gap, count = result.gap, count + 1
            proved += bool(result.safe and gap is not None and gap <= GAP)
            reward, risk = "", ""
            if result.certificate is not None:
                reward = f"{float(result.certificate.reward):.4f}"
                risk = f"{float(result.certificate.risk):.4f}"
            off = "" if gap is None else f"{100 * gap:.3f} %"
            cells = [
                name,
                horizon,
                bound,
                reward,
                risk,
                off,
                len(result.policy or ()),
                f"{seconds:.1f}",
            ]
            print("|", " | ".join(map(str, cells)), "|", flush=True)
    print(f"\n{proved} of {count} proved within 0.1 %\n")


def compare_bandits() -> None:
    """Compare the bandit with hidden kinds with the paper's."""
    for horizon in (6, 8):
        found = []
        for model in (Bandit(horizon), BeliefModel(HiddenBandit(horizon))):
            result, _ = run(vulcan.Problem(model, "0.002*x"), gap=0.0)
            found.append((float(result.certificate.reward), result.statistics))
        (plain, own), (hidden, theirs) = found
        print(f"bandit, horizon {horizon}: {plain:.9f} by hand, {hidden:.9f} from hidden kinds")
        for what, stats in (("by hand", own), ("hidden kinds", theirs)):
            print(f"  {what}: {stats}")


def plan_rocks(seconds: float) -> None:
    """Plan RockSample(5, 7) with traps for 20 decisions."""
    problem = vulcan.Problem(BeliefModel(RockSample(5, 7, 20)), 0.05)
    result, taken = run(problem, time_limit=seconds)
    print(result, f"\n{taken:.1f} s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["rocks"]:
        plan_rocks(float(sys.argv[2]) if sys.argv[2:] else SECONDS)
    else:
        print_table()
        compare_bandits()
