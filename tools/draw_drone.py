"""Draw docs/images/drone.png, and print the table of docs/examples/drone.md.

python tools/draw_drone.py

A policy for each of several bounds, followed through all its histories: how many minutes the drone
is expected to spend in each cell.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import vulcan
from vulcan.model.reader import ModelReader
from vulcan.plotting import save
from vulcan.policy.policy import AnyPolicy
from vulcan.policy.walk import find_decision_points

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from examples.drone import Drone, Flight  # noqa: E402

BOUNDS = ("0.001*x", "0.002*x", "0.004*x", "0.01*x", "1")
DRAWN = {"0.002*x": "Δ(x) = 0.002 x", "1": "any risk"}


def count_minutes(drone: Drone, policy: AnyPolicy) -> NDArray[np.float64]:
    """Return the minutes that the drone is expected to spend in each cell."""
    reader = ModelReader(drone)
    points = find_decision_points(policy, reader)
    minutes = np.zeros((drone.size, drone.size))
    for row in points.rows:
        member, state = policy.members[row["member"]], points.states[row["state"]]
        label = member.labels[member.action[row["node"]]]
        for outcome in reader.outcomes(state, reader.actions(state)[label]):
            if not outcome.fails:
                flight: Flight = outcome.state
                minutes[flight.row, flight.column] += row["reach"] * outcome.probability
    return minutes


def draw(drone: Drone, found: dict[str, vulcan.Result]) -> None:
    """Draw the town, once for each bound."""
    figure, panels = plt.subplots(1, len(found), figsize=(9, 4.6), layout="constrained")
    cells = np.ndindex(drone.size, drone.size)
    towers = np.array([cell for cell in cells if cell not in drone.streets])
    for panel, (bound, result) in zip(panels, found.items(), strict=True):
        assert result.policy is not None
        assert result.certificate is not None
        minutes = count_minutes(drone, result.policy)
        shown = panel.imshow(np.ma.masked_less(minutes, 1e-3), norm="log", vmin=0.01, vmax=5)
        panel.scatter(towers[:, 1], towers[:, 0], marker="s", s=130, color="0.35")
        signs = {drone.depot: "D"} | {place: f"{pays:g}" for place, pays in drone.pays.items()}
        for (row, column), sign in signs.items():
            around = {"boxstyle": "circle,pad=0.15", "facecolor": "w"}
            panel.annotate(sign, (column, row), ha="center", va="center", bbox=around, size=8)
        certificate = result.certificate
        numbers = f"reward {certificate.reward:.2f}, risk {certificate.risk:.4f}"
        panel.set(title=f"{DRAWN[bound]}\n{numbers}", xticks=[], yticks=[])
    figure.colorbar(shown, ax=panels, label="minutes expected in a cell", shrink=0.8)
    save(panels[0], ROOT / "docs" / "images" / "drone.png")


def main() -> None:
    """Solve, draw and print."""
    drone, drawn = Drone(), {}
    print("| bound | reward | at most | risk | allowed | decisions |")
    print("|---|---|---|---|---|---|")
    for bound in BOUNDS:
        problem = vulcan.Problem(drone, vulcan.parse(bound))
        result = vulcan.solve(problem, vulcan.Lagrangian())
        found = result.certificate
        assert result.policy is not None
        assert found is not None
        rewards = f"{found.reward:.4f} | {result.upper_bound:.4f}"
        risks = f"{found.risk:.5f} | {found.allowed:.5f}"
        print(f"| `{bound}` | {rewards} | {risks} | {len(result.policy):,} |", flush=True)
        if bound in DRAWN:
            drawn[bound] = result
    draw(drone, drawn)


if __name__ == "__main__":
    main()
