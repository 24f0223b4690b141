"""What a GPU does: sweeps of a large grid, the whole exploration mission, and proofs from it.

`python -m benchmarks.gpu` runs all three, and needs CuPy and a GPU;
`python -m benchmarks.gpu mission` (or `sweeps`, `proofs`) runs one.

**Sweeps.** The dynamic programs of `device="cuda"` over a grid of 1,000 by 1,000 cells with 4
actions, 3 safe outcomes and a failure each, for 300 steps and 32 prices at once: for each price the
reward and the risk of the best policy, and with these the dual bound. One core does some of these
steps in C++, with the values of the 32 prices in its vector registers.

**The whole mission.** The largest reward less price times risk over every one of the 32⁹ sequences
of nine moves and readings: nothing is pruned, so that the value at each history comes out, too.

**Proofs.** Missions of nine moves, solved within a gap of 0.1 % in at most 60 s, the certificate
included: `vulcan.solve(problem, vulcan.Vulcan(), gap=0.001, device="cuda")`.
"""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

import vulcan
from benchmarks.exploration_table import Setting
from benchmarks.spend_risk import find_problem
from vulcan.domains import Exploration
from vulcan.domains.exploration.cuda import (
    LAST,
    count_moves,
    load_kernels,
    make_tables,
    value_histories,
)
from vulcan.exact.device import DeviceSweeps
from vulcan.exact.sweeps import Sweeps
from vulcan.graph.levels import Levels
from vulcan.graph.states import StateGraph
from vulcan.kernels.dp import LevelArrays
from vulcan.runtime.devices import open_arrays
from vulcan.runtime.limits import Limits

PRICES: Final = (0.0, 25.497, 27.0)
SECONDS: Final = 60.0
GAP: Final = 0.001
MEMORY: Final = 24 << 30
LANES: Final = 32
LAST_STEPS: Final = 3  # of a sweep, that one core does, too
MISSIONS: Final = [
    Setting(area, width, 9, bound)
    for area, width in (("narrow", None), ("wide", 0.16))
    for bound in ("Δ", "Δ/2")
]


RIVAL: Final = r"""
#include <cstddef>
extern "C" void sweep(const double *__restrict__ rewards, const double *__restrict__ risks,
    const double *__restrict__ chances, const int *__restrict__ next,
    const double *__restrict__ prices, const double *__restrict__ before_reward,
    const double *__restrict__ before_risk, double *__restrict__ after_reward,
    double *__restrict__ after_risk, int states) {
  for (int n = 0; n < states; n++)
    for (int lane = 0; lane < 32; lane++) {
      double best = -1e300, reward = 0, risk = 0;
      for (int a = 0; a < 4; a++) {
        double g = rewards[4 * n + a], e = risks[4 * n + a];
        for (int o = 0; o < 3; o++) {
          size_t k = 12 * (size_t)n + 3 * a + o, where = (size_t)next[k] * 32 + lane;
          g += chances[k] * before_reward[where]; e += chances[k] * before_risk[where];
        }
        double value = g - prices[lane] * e;
        if (value > best) { best = value; reward = g; risk = e; }
      }
      size_t at = (size_t)n * 32 + lane;
      after_reward[at] = reward; after_risk[at] = risk;
    }
}
"""


def plan_whole_mission(area: str = "narrow", horizon: int = 9) -> None:
    """Print the value of the whole mission at some prices, and the seconds."""
    arrays, parameters = open_arrays(), Exploration(map=area, horizon=horizon).compiled.parameters
    tables, moves = make_tables(parameters), count_moves(parameters)
    for kind in ("double", "float"):
        began = time.perf_counter()
        _, deepest, _, room = load_kernels(arrays, moves, kind)
        seconds = time.perf_counter() - began
        shape = f"{deepest.num_regs} registers, {deepest.local_size_bytes} bytes spilt"
        shape = f"{shape}, {room} bytes shared"
        print(f"{moves + LAST} moves, {kind}: {shape}, loaded in {seconds:.1f} s")
        for price in PRICES:
            began = time.perf_counter()
            value = float(value_histories(arrays, tables, moves, price, kind)[0][0])
            seconds = time.perf_counter() - began
            print(f"  price {price:g}: {value:.9f} in {seconds:.2f} s", flush=True)


def make_grid(side: int, horizon: int, seed: int = 0) -> LevelArrays:
    """Return a grid in which moves slip, with a risk and a reward in each cell, at every step."""
    rng, states = np.random.default_rng(seed), side * side
    x, y = np.divmod(np.arange(states), side)
    steps = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    target = np.empty((states, 4, 3), np.int32)
    for a in range(4):
        for o, turn in enumerate((0, 1, 3)):
            east, north = steps[(a + turn) % 4]
            there = np.clip(x + east, 0, side - 1) * side + np.clip(y + north, 0, side - 1)
            target[:, a, o] = there
    risks = rng.random((states, 4)) ** 8 * 0.02
    chances = (1 - risks)[:, :, None] * np.array([0.8, 0.1, 0.1])
    rows = np.arange(4 * states, dtype=np.int32)
    return LevelArrays(
        first=states * np.arange(horizon + 1, dtype=np.int64),
        state=np.tile(np.arange(states, dtype=np.int32), horizon),
        expanded=np.zeros(0, np.bool_),
        weights=np.ones(horizon),
        first_action=rows[::4].copy(),
        action_count=np.full(states, 4, np.int32),
        expected_reward=rng.random(4 * states),
        immediate_risk=risks.ravel(),
        first_outcome=3 * rows,
        safe_count=np.full(4 * states, 3, np.int32),
        probability=chances.ravel(),
        target=target.ravel(),
        place=np.full(states, -1, np.int32),
    )


def sweep_grid(side: int = 1000, horizon: int = 300) -> None:
    """Print the seconds of all sweeps on the GPU, and of one core."""
    prices = np.geomspace(0.1, 1e4, LANES)
    weights = [(1.0, float(price)) for price in prices]
    few = Levels(StateGraph, make_grid(side, LAST_STEPS))
    core, found = sweep_on_a_core(few.arrays, prices)
    arrays = open_arrays()
    sweeps = DeviceSweeps(few, arrays)
    values = sweeps.sweep_lanes(weights, values=True).values  # loads the kernel, too
    assert np.array_equal(values[: side * side], found), "the GPU computes something else"
    own = Sweeps(few).find_best(*weights[7])
    assert [own.reward, own.risk] == found[0, 7].tolist(), "Numba computes something else"
    levels = Levels(StateGraph, make_grid(side, horizon))
    began = time.perf_counter()
    sweeps = DeviceSweeps(levels, arrays)
    copied = time.perf_counter() - began
    rewards, risks = sweeps.sweep_lanes(weights).root.T
    seconds = time.perf_counter() - began
    dual = (rewards - prices * (risks - 0.5 * (risks[0] + risks[-1]))).min()
    size = f"{side} x {side} cells, horizon {horizon}, {LANES} prices"
    print(f"{size}: {seconds:.2f} s, of which {copied:.2f} s to copy the model; at most {dual:.4f}")
    core *= horizon / LAST_STEPS
    swept = seconds - copied
    print(f"one core, C++: {core:.0f} s: {core / seconds:.0f}x, sweeps {core / swept:.0f}x")


def sweep_on_a_core(
    levels: LevelArrays, prices: np.ndarray[Any, Any]
) -> tuple[float, np.ndarray[Any, Any]]:
    """Return the seconds of a sweep in C++, and reward and risk of the first level by price."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "sweep.cpp", Path(folder) / "sweep.so"
        source.write_text(RIVAL, encoding="utf-8")
        command = ["g++", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
        subprocess.run([*command, "-o", library, source], check=True)
        sweep = ctypes.CDLL(str(library)).sweep
    states = len(levels.action_count)
    names = ("expected_reward", "immediate_risk", "probability", "target")
    given = [*(getattr(levels, name) for name in names), prices]
    arrays = [np.ones((states, LANES)) for _ in range(4)]  # pages that were touched
    for array in arrays[:2]:
        array[:] = 0
    began = time.perf_counter()
    for _ in range(len(levels.first) - 1):
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*given, *arrays)]
        sweep(*pointers, states)
        arrays = [*arrays[2:], *arrays[:2]]
    return time.perf_counter() - began, np.stack(arrays[:2], 2)


def prove_missions(*names: str) -> None:
    """Print reward, bound and gap of missions, and the seconds until the gap was proved."""
    workers = min(8, os.cpu_count() or 1)
    limits = Limits(time_limit=SECONDS, gap=GAP, memory=MEMORY)
    open_arrays()
    print(f"{workers} threads; limit {SECONDS:.0f} s, requested gap {100 * GAP:g} %")
    for setting in MISSIONS:
        if names and setting.area not in names:
            continue
        problem = find_problem(setting)
        vulcan.solve(problem, vulcan.Vulcan(), samples=2000, device="cuda")  # loads kernels
        began = time.perf_counter()
        result = vulcan.solve(
            problem, vulcan.Vulcan(), limits=limits, parallel=workers, device="cuda"
        )
        seconds, upper = time.perf_counter() - began, result.upper_bound or math.inf
        print(f"{setting.area} under {setting.bound}: {result.explanation}")
        if result.certificate is None:
            continue
        earned = result.certificate.reward
        print(
            f"  {earned:.4f}, no policy more than {upper:.4f}: "
            f"gap {100 * (upper / earned - 1):.3f} % after {seconds:.1f} s; "
            f"certificate {result.statistics.certificate_seconds:.1f} s, "
            f"{result.statistics.samples:,} samples",
            flush=True,
        )


PARTS: Final = {"sweeps": sweep_grid, "mission": plan_whole_mission, "proofs": prove_missions}


def main(*names: str) -> None:
    """Run some parts, by default all."""
    device = open_arrays().cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(device)
    for name in names or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(*sys.argv[1:])
