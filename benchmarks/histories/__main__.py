"""Plan for missions over histories by default: `python -m benchmarks.histories --seconds 20`.

For each mission: reward of the default action alone (nothing), and what can be certified of it
without planning (claimed); reward of the certified plan, its share of the optimum (of the merged
twin), and its share of what the best plan with as many decisions earns. With --samples
1000,4000,16000 there is a row for each, and the command fails if more samples earn less. Where
plans grow, they do not depend on a seed.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import vulcan
from benchmarks.histories.missions import MISSIONS, History, Merged
from benchmarks.histories.reference import best_of_size, evaluate_default, trace_sizes


def read_counts(text: str) -> list[int]:
    """Return whole numbers, separated by commas, in increasing order."""
    return sorted(int(word) for word in text.split(","))


def main() -> None:
    """Print a line for each mission and number of samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MISSIONS))
    parser.add_argument("--seconds", type=float, default=None, help="time limit; by default none")
    parser.add_argument("--memory", type=int, default=10**9, help="bytes; by default 1 GB")
    parser.add_argument("--samples", type=read_counts, default=[None], help="such as 1000,4000")
    given = parser.parse_args()
    print(
        "mission        samples  seconds  decisions  nothing  claimed   reward  optimum  share  "
        "of best of its size"
    )
    worse = []
    for name in given.names:
        mission = MISSIONS[name]()
        optimum = vulcan.solve(vulcan.Problem(Merged(mission), mission.bound), gap=1e-3)
        best, nothing = optimum.certificate.reward, evaluate_default(mission)
        claimed = nothing if mission.end else mission.default_bounds(mission.initial, 0)[1]
        curve = trace_sizes(mission)
        problem = vulcan.Problem(History(mission), mission.bound)
        rewards = []
        for samples in given.samples:
            limits = vulcan.Limits(time_limit=given.seconds, samples=samples, memory=given.memory)
            began = time.process_time()
            result = vulcan.solve(problem, limits=limits)
            seconds = time.process_time() - began
            row = f"{name:12} {'' if samples is None else f'{samples:,}':>9} {seconds:8.1f} "
            if not result.safe:
                rewards.append(float("-inf"))
                print(f"{row} no safe plan: {result.explanation}", flush=True)
                continue
            reward, size = float(result.certificate.reward), len(result.policy)
            rewards.append(reward)
            print(
                f"{row}{size:10,} {nothing:8.3f} {claimed:8.3f} {reward:8.3f} {best:8.3f} "
                f"{reward / best:6.1%} {reward / best_of_size(curve, size):6.1%}",
                flush=True,
            )
        if any(more < less - 1e-9 for less, more in pairwise(rewards)):
            worse.append(name)
    if worse:
        raise SystemExit(f"more samples earned less: {', '.join(worse)}")


if __name__ == "__main__":
    main()
