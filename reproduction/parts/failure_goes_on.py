"""The paper's footnote: failures after which the mission goes on, on the bandit.

The paper lets a failure end the mission, and says in a footnote that this "is not a necessary
assumption". Here a machine that breaks costs its money, nothing is paid for that play, and the game
goes on: breaking is an event of a safe outcome. The bound limits the probability that a machine
ever breaks. The best policy is found by fronts over states, and by plain recursion over all
histories, which lists what every policy is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

from reproduction.part import Claim, Record, Section, Table, Task, weigh
from vulcan.bounds.parse import parse
from vulcan.constraints import Risk
from vulcan.domains import Bandit
from vulcan.exact.pipeline import Pareto
from vulcan.model.interface import Outcome
from vulcan.planning.solve import solve
from vulcan.problem import Problem

__all__ = ["FailureGoesOn", "LastingBandit", "list_worths"]

BOUND: Final = "0.002*x"
BROKEN: Final = "broken"
ENDING, GOING_ON, LISTED = "the game ends", "the game goes on", "the game goes on, all policies"
HORIZONS: Final = (1, 2, 3, 4)
SAME: Final = 1e-9

State = tuple[tuple[int | str, ...], int]
Worth = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class LastingBandit:
    """The paper's bandit, in which a play that fails pays nothing and the game goes on."""

    horizon: int

    @property
    def _bandit(self) -> Bandit:
        return Bandit(self.horizon)

    def initial_state(self) -> State:
        """Return the counts before any play, and that nothing broke."""
        return self._bandit.initial_state(), 0

    def actions(self, state: State) -> list[str]:
        """Return what can be done."""
        return self._bandit.actions(state[0])

    def outcomes(self, state: State, action: str) -> list[Outcome]:
        """Return what may come of it; stopping is paid for each play that is left."""
        counts, broken = state
        after = []
        for outcome in Bandit(self.horizon - broken).outcomes(counts, action):
            if outcome.fails:
                lost = (counts, broken + 1)
                after.append(Outcome(outcome.probability, 0.0, lost, BROKEN, event=BROKEN))
            else:
                kept = (outcome.state, broken)
                after.append(Outcome(outcome.probability, outcome.reward, kept, outcome.label))
        return after


def list_worths(model: LastingBandit) -> set[Worth]:
    """Return reward and probability of a break of every policy that no other beats, in fractions.

    Plain recursion over histories; what is beaten is dropped, as it can't be part of a better one.
    """

    def follow(state: State, step: int, happened: bool) -> set[Worth]:
        actions = model.actions(state) if step < model.horizon else []
        found = set() if actions else {(Fraction(0), Fraction(0))}
        for action in actions:
            sums = {(Fraction(0), Fraction(0))}
            for outcome in model.outcomes(state, action):
                p, breaks = Fraction(outcome.probability), outcome.event == BROKEN
                own = Fraction(outcome.reward), Fraction(breaks and not happened)
                later = follow(outcome.state, step + 1, happened or breaks)
                sums = {
                    (g + p * (own[0] + more), x + p * (own[1] + danger))
                    for (g, x), (more, danger) in product(sums, later)
                }
                sums = _drop_beaten(sums)
            found |= sums
        return _drop_beaten(found)

    return follow(model.initial_state(), 0, False)


def _drop_beaten(points: set[Worth]) -> set[Worth]:
    kept, least = set(), None
    for reward, risk in sorted(points, key=lambda point: (-point[0], point[1])):
        if least is None or risk < least:
            kept.add((reward, risk))
            least = risk
    return kept


class FailureGoesOn:
    """The bandit that goes on after a break, beside the one that ends."""

    name = "failure-goes-on"
    title = "The footnote: failures that do not end the mission"
    version = 1

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return a task for each game and horizon."""
        return [
            {"game": game, "horizon": horizon}
            for horizon in HORIZONS[: 3 if quick else None]
            for game in (ENDING, GOING_ON, LISTED)
        ]

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""
        return 0.5 * 8.0 ** (task["horizon"] - 4) if task["game"] == LISTED else 0.2

    def run(self, task: Task) -> dict[str, Any]:
        """Solve one game."""
        horizon, bound = task["horizon"], parse(BOUND)
        if task["game"] == LISTED:
            worths = list_worths(LastingBandit(horizon))
            reward, risk = max(point for point in worths if point[1] <= bound.exact(point[0]))
            return {"reward": float(reward), "risk": float(risk), "allowed": bound(float(reward))}
        if task["game"] == ENDING:
            problem = Problem(Bandit(horizon), bound)
        else:
            problem = Problem(LastingBandit(horizon), constraints=[Risk(bound, event=BROKEN)])
        result = solve(problem, Pareto(), gap=0)
        certificate = result.certificate
        assert certificate is not None  # stopping at once is always acceptable
        numbers = {"reward": certificate.reward, "risk": certificate.risk}
        numbers["allowed"] = certificate.allowed
        for limited in certificate.constraints:
            numbers |= {"risk": limited.value, "allowed": limited.allowed}
        return {name: float(number) for name, number in numbers.items()} | {
            "passes": certificate.passes,
            "status": result.status.value,
        }

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section."""
        found = {(r.task["horizon"], r.task["game"]): r.found for r in records}
        horizons = sorted({horizon for horizon, _ in found})
        rows: list[list[str | float | None]] = [
            [
                h,
                *(found.get((h, game), {}).get("reward") for game in (ENDING, GOING_ON, LISTED)),
                found.get((h, GOING_ON), {}).get("risk"),
                found.get((h, GOING_ON), {}).get("allowed"),
            ]
            for h in horizons
        ]
        header = ["horizon", ENDING, GOING_ON, LISTED, "ever broken", "allowed"]
        compared = [h for h in horizons if (h, GOING_ON) in found and (h, LISTED) in found]
        same = [h for h in compared if _agree(found[h, GOING_ON], found[h, LISTED])]
        return Section(
            paper=(
                "That a failure ends the mission is “not a necessary assumption”, says a footnote; "
                "it obviates the discussion of how to act afterwards."
            ),
            measured=(
                "A machine that breaks costs its money and the game goes on; the probability that "
                f"one ever breaks is at most Δ(x) = {BOUND}. The best policy knows whether one has."
                if rows
                else ""
            ),
            meaning=_judge(found),
            claims=_list_claims(compared, same),
            tables=[
                Table(
                    self.name,
                    f"Certified expected rewards on the bandit with Δ(x) = {BOUND}",
                    header,
                    rows,
                    brief=True,
                    rewards=header[1:4],
                )
            ],
            numbers={f"{game}, {h}": run["reward"] for (h, game), run in found.items()},
        )


def _judge(found: Mapping[tuple[int, str], Mapping[str, Any]]) -> str:
    gains = [
        100 * (run["reward"] / found[h, ENDING]["reward"] - 1)
        for (h, game), run in found.items()
        if game == GOING_ON and (h, ENDING) in found
    ]
    if not gains:
        return ""
    return (
        "After a break nothing is left to lose, and what pays most is played whatever its risk. "
        f"Breaks are rare: to go on is worth {max(gains):.2g} % at most."
    )


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one["passes"]) and all(
        abs(one[name] - other[name]) <= SAME for name in ("reward", "risk")
    )


def _list_claims(compared: Sequence[int], same: Sequence[int]) -> list[Claim]:
    if not compared:
        return []
    return [
        Claim(
            "A failure need not end the mission: horizons at which the best policy that goes on is "
            f"that of enumeration, of {len(compared)}",
            f"reward and probability agree at {len(same)} of {len(compared)} horizons",
            weigh(len(same) == len(compared)),
            "said",
            f"{len(same)}",
        )
    ]
