"""Plan for missions over histories by default: `python -m benchmarks.histories --seconds 20`.

For each mission: reward of the certified plan, its share of the optimum (of the merged twin), and
its share of what the best plan with as many decisions earns.
"""

from __future__ import annotations

import argparse
import time

import vulcan
from benchmarks.histories.missions import MISSIONS, History, Merged
from benchmarks.histories.reference import best_of_size, trace_sizes


def main() -> None:
    """Print a line for each mission."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MISSIONS))
    parser.add_argument("--seconds", type=float, default=None, help="time limit; by default none")
    given = parser.parse_args()
    print("mission      seconds  decisions   reward  optimum  share  of best of its size")
    for name in given.names:
        mission = MISSIONS[name]()
        optimum = vulcan.solve(vulcan.Problem(Merged(mission), mission.bound), gap=1e-3)
        curve = trace_sizes(mission)
        problem = vulcan.Problem(History(mission), mission.bound)
        began = time.process_time()
        result = vulcan.solve(problem, time_limit=given.seconds)
        seconds = time.process_time() - began
        best = optimum.certificate.reward
        if not result.safe:
            print(f"{name:12} {seconds:7.1f}  no safe plan: {result.explanation}")
            continue
        reward, size = result.certificate.reward, len(result.policy)
        fair = best_of_size(curve, size)
        print(
            f"{name:12} {seconds:7.1f} {size:10,} {reward:8.3f} {best:8.3f} "
            f"{reward / best:6.1%} {reward / fair:6.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
