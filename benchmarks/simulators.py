"""Six environments without transition tables: a plan, a certificate and a page of each.

    python -m benchmarks.simulators [NAME ...] [--pages FOLDER]

Policies are learned and then tested on fresh episodes, from safe to daring, until each is decided
(95 % confidence). Each row is the last policy that was found safe, or else the first. At most ten
minutes each on two cores are wanted; times here are of one core. LunarLander needs
gymnasium[box2d], and is skipped without it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import vulcan
from examples.inventory import Shop
from vulcan.errors import OptionError
from vulcan.formats.registry import open_simulator

Task = tuple[str, float, dict[str, Any], int]

TASKS: dict[str, Task] = {
    "CartPole, tree": (
        "CartPole-v1",
        0.05,
        {"horizon": 200, "method": "tree", "samples": 12, "depth": 12, "price": 100.0},
        500,
    ),
    "CartPole, search": ("CartPole-v1", 0.05, {"horizon": 200, "method": "search"}, 10_000),
    "Blackjack": ("Blackjack-v1", 0.15, {"horizon": 20}, 50_000),
    "MountainCar": ("MountainCar-v0", 0.05, {"method": "search", "steps": 500_000}, 10_000),
    "Acrobot": ("Acrobot-v1", 0.05, {"method": "search", "steps": 1_000_000}, 10_000),
    "LunarLander": (
        "LunarLander-v3",
        0.1,
        {"horizon": 400, "method": "search", "steps": 4_000_000},
        10_000,
    ),
    "inventory": ("", 0.05, {}, 50_000),
}


def run(name: str, pages: Path | None) -> str:
    """Return a row: what was learned, and what its certificate says."""
    text, bound, given, most = TASKS[name]
    began = time.process_time()
    if text:
        try:
            simulator, declared = open_simulator(f"gymnasium:{text}")
        except OptionError as error:
            return f"{name:18} skipped: {error}"
    else:
        simulator = Shop()
        declared = {"horizon": simulator.horizon, "reward_range": simulator.reward_range}
    learned = vulcan.learn(simulator, bound, **(declared | given))
    planned = time.process_time() - began
    certificates = learned.certify(until="decided", episodes=most)
    safe = [certificate for certificate in certificates if certificate.safe]
    chosen = safe[-1] if safe else certificates[0]
    if pages is not None:
        chosen.save(pages / f"{name.replace(', ', '-')}.html")
    seconds = time.process_time() - began
    return (
        f"{name:18} {learned.method:7} {chosen.verdict:27} risk <= {chosen.risk_high:.4f} of "
        f"{bound:<5} reward {chosen.reward:9.2f}  {chosen.episodes:6,} episodes, "
        f"{len(certificates)} tested  plan {planned:4.0f} s, in all {seconds:4.0f} s"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--pages", type=Path)
    given = parser.parse_args()
    if given.pages is not None:
        given.pages.mkdir(parents=True, exist_ok=True)
    for name in TASKS:
        if not given.names or name in given.names:
            print(run(name, given.pages), flush=True)


if __name__ == "__main__":
    main()
