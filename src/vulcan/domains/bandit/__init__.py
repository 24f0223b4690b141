"""The simplified multi-armed bandit of Ayton and Williams: three machines that may fail.

Three machines pay one of two known rewards. Machine i pays its first reward with an unknown
probability that is either p1 or p2; θ is the belief that it is p1. A played machine fails with a
known risk, which ends the game with no reward for the step. The player may stop at any time for
0.25 per remaining step.

With n_k the times that machine i has paid its reward k, the belief is

    θ' = θ p1^n1 (1-p1)^n2 / (θ p1^n1 (1-p1)^n2 + (1-θ) p2^n1 (1-p2)^n2),

so a state is six counts, and histories that differ in their order merge. Horizon n has
C(n + 6, 6) states, 6^n histories at the horizon, and 2^n of them under one policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from vulcan.model.compiled import CompiledModel
from vulcan.model.interface import Outcome

STOP: Final = "stop"
STOPPED: Final = "stopped"


State = tuple[int | str, ...]


@dataclass(frozen=True)
class Machine:
    """One machine.

    Attributes
    ----------
    rewards
        What it pays: the first with probability p1 or p2, else the second.
    p1, p2
        The two probabilities that may be true.
    theta
        The belief that p1 is true.
    risk
        Probability that a play fails.
    """

    rewards: tuple[float, float]
    p1: float
    p2: float
    theta: float
    risk: float

    def belief(self, first: int, second: int) -> float:
        """Return the belief in p1 after this many first and second rewards."""
        one = self.theta * self.p1**first * (1 - self.p1) ** second
        two = (1 - self.theta) * self.p2**first * (1 - self.p2) ** second
        return one / (one + two)

    def first_chance(self, first: int, second: int) -> float:
        """Return how probable the first reward is after this many first and second ones."""
        theta = self.belief(first, second)
        return theta * self.p1 + (1 - theta) * self.p2


MACHINES: Final = (
    Machine((0.0, 1.0), 0.3, 0.7, 0.5, 0.001),
    Machine((0.2, 0.5), 0.2, 0.5, 0.6, 0.0005),
    Machine((0.4, 0.6), 0.3, 0.6, 0.3, 0.0015),
)


@dataclass(frozen=True)
class Bandit:
    """The paper's bandit.

    Parameters
    ----------
    horizon
        Number of plays.
    merges
        Whether histories with the same counts are one state. False makes the state the whole
        history, which stands for problems in which the order matters.
    machines
        The machines; the paper's three by default.
    stop_reward
        What stopping pays for each remaining play.
    """

    horizon: int = 9
    merges: bool = field(default=True, repr=False)
    machines: tuple[Machine, ...] = field(default=MACHINES, repr=False)
    stop_reward: float = field(default=0.25, repr=False)

    def initial_state(self) -> State:
        """Return the counts, or the history, before any play."""
        return (0,) * (2 * len(self.machines)) if self.merges else ()

    def actions(self, state: State) -> list[str]:
        """Return "stop" and a play of each machine; nothing once stopped."""
        if state and state[-1] == STOPPED:
            return []
        return [STOP, *(f"play {i}" for i in range(1, len(self.machines) + 1))]

    def outcomes(self, state: State, action: str) -> list[Outcome]:
        """Return both rewards and failure, or the certain reward of stopping."""
        counts = self.count_paid(state)
        if action == STOP:
            left = self.horizon - sum(counts)
            ended = (STOPPED,) if self.merges else (*state, STOPPED)
            return [Outcome(1.0, self.stop_reward * left, ended, STOPPED)]
        number = self._number(action)
        machine = self.machines[number]
        first = machine.first_chance(counts[2 * number], counts[2 * number + 1])
        safe = 1 - machine.risk
        return [
            Outcome(safe * p, reward, self._after(state, 2 * number + k), f"pays {reward:g}")
            for k, (p, reward) in enumerate(zip((first, 1 - first), machine.rewards, strict=True))
        ] + [Outcome.failure(machine.risk, 0.0)]

    def reward_to_go_bound(self, state: State, step: int) -> float:
        """Return what the best machine would pay on average if its better case were certain."""
        best = max(
            (1 - m.risk) * (p * m.rewards[0] + (1 - p) * m.rewards[1])
            for m in self.machines
            for p in (m.p1, m.p2)
        )
        return max(best, self.stop_reward) * (self.horizon - step)

    def risk_to_go_bound(self, state: State, action: str, step: int) -> float:
        """Return the risk of the action itself, as the paper does for RAO*."""
        return 0.0 if action == STOP else self.machines[self._number(action)].risk

    @cached_property
    def compiled(self) -> CompiledModel | None:
        """The same as machine code, where histories don't merge."""
        return self.compile_from(self.initial_state())

    def compile_from(self, state: State) -> CompiledModel | None:
        """Return what is left after a history as machine code, likewise."""
        if self.merges or type(self) is not Bandit:
            return None  # where they do, evaluations are too few for it to matter
        from vulcan.domains.bandit.compiled import compile_bandit

        return compile_bandit(self, self.count_paid(state))

    def _number(self, action: str) -> int:
        return int(action.removeprefix("play ")) - 1

    def count_paid(self, state: State) -> list[int]:
        """Return how often each machine has paid either reward."""
        if self.merges:
            return [int(count) for count in state]
        return [state.count(slot) for slot in range(2 * len(self.machines))]

    def _after(self, state: State, slot: int) -> State:
        if not self.merges:
            return (*state, slot)
        return (*state[:slot], int(state[slot]) + 1, *state[slot + 1 :])
