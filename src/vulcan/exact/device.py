"""Dynamic programs over levels on a GPU, for several weights at once.

The same as `vulcan.kernels.dp.sweep`, in the same order of operations and without fused
multiplications, so that values and decisions are those of the processor, bit for bit. A *lane* is a
pair of weights; the values of a state lie beside each other for all lanes.

`SWEEP` has one thread for each state–step pair of a level and lane. `sweep_level` is the same with
array operations, for any namespace of arrays (numpy in tests).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import Weights
from vulcan.exact.sweeps import PolicyPoint, Sweeps, make_values
from vulcan.graph.levels import Choice, Levels
from vulcan.numerics import NONE
from vulcan.runtime.devices import explain_memory, is_gpu, open_arrays, to_host

SWEEP: Final = r"""
struct Value { double reward, risk; };
#ifdef __CUDACC__
#define WHERE extern "C" __global__
#else
#define WHERE extern "C"
#endif
WHERE void sweep(const int *state, const int *first_action, const int *action_count,
    const double *expected_reward, const double *immediate_risk, const int *first_outcome,
    const int *safe_count, const double *probability, const int *target, const double *weights,
    const Value *after, Value *here, int *choice, Value *values, double discount,
    long long begin, long long end, int lanes) {
#ifdef __CUDACC__
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= (end - begin) * lanes) return;
#else
  for (long long i = 0; i < (end - begin) * lanes; i++)
#endif
  {
    long long n = begin + i / lanes;
    int lane = i % lanes, s = state[n], row = -1;
    double best = 0, w = weights[lane], k = weights[lanes + lane];
    Value found = {0, 0};
    for (int a = first_action[s]; a < first_action[s] + action_count[s]; a++) {
      Value v = {discount * expected_reward[a], immediate_risk[a]};
      for (int o = first_outcome[a]; o < first_outcome[a] + safe_count[a]; o++) {
        Value to = after[(long long)target[o] * lanes + lane];
        v.reward += probability[o] * to.reward;
        v.risk += probability[o] * to.risk;
      }
      double value = w * v.reward - k * v.risk;
      bool less = v.risk < found.risk || (v.risk == found.risk && v.reward > found.reward);
      if (row < 0 || value > best || (value == best && less)) {
        best = value; found = v; row = a;
      }
    }
    here[(long long)s * lanes + lane] = found;
    if (choice) choice[n * lanes + lane] = row;
    if (values) values[n * lanes + lane] = found;
  }
}
"""
"""In CUDA, and in C++ for tests."""

MODEL: Final = (
    "state",
    "first_action",
    "action_count",
    "expected_reward",
    "immediate_risk",
    "first_outcome",
    "safe_count",
    "probability",
    "target",
)
"""The arrays of `LevelArrays` that a sweep reads, in the order of `SWEEP`."""

THREADS: Final = 256  # of a block


class Swept(NamedTuple):
    """What a sweep is asked for, by state–step pair and lane: arrays, or None."""

    choice: Any = None
    values: Any = None


class DeviceSweeps(Sweeps):
    """The dynamic programs of some levels without tips, on arrays of a namespace."""

    spreads: ClassVar[bool] = True

    def __init__(self, levels: Levels, arrays: Any) -> None:
        super().__init__(levels)
        self._arrays, self._first = arrays, levels.arrays.first.tolist()
        with explain_memory(arrays, f"a model with {len(levels):,} state–step pairs"):
            self._model = [arrays.asarray(getattr(levels.arrays, name)) for name in MODEL]
        kinds = [array.dtype.kind + str(array.dtype.itemsize) for array in self._model]
        assert kinds == ["i4", "i4", "i4", "f8", "f8", "i4", "i4", "f8", "i4"]

    def find_many(self, weights: Sequence[Weights]) -> list[PolicyPoint]:
        """Return the policies of `find_best` for several weights, by one sweep."""
        found = self._sweep_lanes(weights, Swept())
        return [
            PolicyPoint(reward, risk, self._defer(*pair))
            for (reward, risk), pair in zip(found.tolist(), weights, strict=True)
        ]

    def _sweep(
        self, reward_weight: float, risk_weight: float, values: NDArray[np.void], choice: Choice
    ) -> NDArray[np.void]:
        arrays, size = self._arrays, len(self.levels)
        with explain_memory(arrays, f"{size:,} state–step pairs"):
            asked = Swept(
                arrays.empty((size, 1), np.int32) if len(choice) else None,
                arrays.empty((size, 1, 2), np.float64) if len(values) else None,
            )
        root = make_values(1).reshape(1, 1)
        root[0, 0] = tuple(self._sweep_lanes([(reward_weight, risk_weight)], asked)[0])
        if len(choice):
            choice[:] = to_host(asked.choice)[:, 0]
        if len(values):
            found = to_host(asked.values)[:, 0]
            values["reward"], values["risk"] = found[:, 0], found[:, 1]
        return root

    def _sweep_lanes(self, weights: Sequence[Weights], asked: Swept) -> NDArray[np.float64]:
        """Return reward and risk of the root for each lane."""
        arrays, first = self._arrays, self._first
        states, lanes = len(self.levels.arrays.action_count), len(weights)
        with explain_memory(arrays, f"the values of {states:,} states for {lanes} prices"):
            given = arrays.asarray(np.array(weights, np.float64).T.copy())
            levels = arrays.zeros((2, states, lanes, 2), np.float64)
            run = _launch if is_gpu(arrays) else sweep_level
            for level in range(len(first) - 2, -1, -1):
                discount = float(self.levels.arrays.weights[level])
                after, here = levels[(level + 1) % 2], levels[level % 2]
                ends = first[level], first[level + 1]
                run(arrays, self._model, given, after, here, asked, discount, *ends)
            found: NDArray[np.float64] = to_host(levels[0, self.levels.graph.ROOT])
        return found


def open_sweeps(levels: Levels, tips: NDArray[np.void] | None, threads: int, device: str) -> Sweeps:
    """Return the dynamic programs of some levels on a device; those with tips on the processor."""
    if device == "cpu" or tips is not None or not len(levels):
        return Sweeps(levels, tips, threads)
    return DeviceSweeps(levels, open_arrays())


@cache
def _load_kernel(arrays: Any) -> Any:
    # Fused multiplications would round otherwise than the processor does.
    module = arrays.RawModule(code=SWEEP, options=("-std=c++17", "--fmad=false"))
    return module.get_function("sweep")


def _launch(
    arrays: Any,
    model: Sequence[Any],
    weights: Any,
    after: Any,
    here: Any,
    asked: Swept,
    discount: float,
    begin: int,
    end: int,
) -> None:
    """Sweep a level on the GPU."""
    lanes = weights.shape[1]
    blocks = ((end - begin) * lanes + THREADS - 1) // THREADS
    pointers = [np.uintp(0) if array is None else array for array in asked]
    sizes = (np.float64(discount), np.int64(begin), np.int64(end), np.int32(lanes))
    if blocks:
        given = (*model, weights, after, here, *pointers, *sizes)
        _load_kernel(arrays)((blocks,), (THREADS,), given)


def sweep_level(
    arrays: Any,
    model: Sequence[Any],
    weights: Any,
    after: Any,
    here: Any,
    asked: Swept,
    discount: float,
    begin: int,
    end: int,
) -> None:
    """Sweep a level by array operations."""
    named = dict(zip(MODEL, model, strict=True))
    state = named["state"][begin:end]
    first, counts = named["first_action"][state], named["action_count"][state]
    shape = len(state), weights.shape[1]
    best, found = arrays.full(shape, -np.inf), arrays.zeros((*shape, 2))
    chosen = arrays.full(shape, NONE, np.int32)
    for a in range(int(counts.max()) if len(state) else 0):
        there = counts > a
        rows = arrays.where(there, first + a, 0)
        value = arrays.empty((*shape, 2))
        value[..., 0] = (discount * named["expected_reward"][rows])[:, None]
        value[..., 1] = named["immediate_risk"][rows][:, None]
        safe = arrays.where(there, named["safe_count"][rows], 0)
        for o in range(int(safe.max())):
            stored = safe > o
            places = arrays.where(stored, named["first_outcome"][rows] + o, 0)
            chance = arrays.where(stored, named["probability"][places], 0.0)
            value += chance[:, None, None] * after[named["target"][places]]
        worth = weights[0] * value[..., 0] - weights[1] * value[..., 1]
        equal = (value[..., 1] == found[..., 1]) & (value[..., 0] > found[..., 0])
        less = (value[..., 1] < found[..., 1]) | equal
        better = (chosen == NONE) | (worth > best) | ((worth == best) & less)
        better &= there[:, None]
        best = arrays.where(better, worth, best)
        found = arrays.where(better[..., None], value, found)
        chosen = arrays.where(better, rows[:, None], chosen)
    here[state] = found
    if asked.choice is not None:
        asked.choice[begin:end] = chosen
    if asked.values is not None:
        asked.values[begin:end] = found
