"""Dynamic programs over levels on a GPU, for several weights at once.

The same as `vulcan.kernels.dp.sweep`, in the same order of operations and without fused
multiplications, so that values and decisions are those of the processor, bit for bit. A *lane* is a
pair of weights; the values of a state lie beside each other for all lanes.

`SWEEP` has one thread for each state–step pair of a level and lane. `sweep_level` is the same with
array operations, for any namespace of arrays (numpy in tests).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vulcan.bounds.base import Weights
from vulcan.exact.sweeps import Sweeps, make_values
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
    int lane = i % lanes, s = state[i / lanes], row = -1;
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
"""The arrays of `LevelArrays` that a sweep reads, in the order of `SWEEP`; states of its level."""

THREADS: Final = 256  # of a block


LARGEST: Final = 1 << 30  # bytes of values that are kept on the device at once

Kept = tuple[Any, Any]
"""Arrays for the rows that are chosen and for the values, by pair and lane, or None."""


class Swept(NamedTuple):
    """What a sweep found, in arrays of numpy."""

    root: Any  # reward and risk from the first pair on, by lane
    choice: Any  # the row that is chosen, by pair and lane, if wanted
    values: Any  # reward and risk, likewise


class DeviceSweeps(Sweeps):
    """The dynamic programs of some levels without tips, on arrays of a namespace."""

    def __init__(self, levels: Levels, arrays: Any) -> None:
        super().__init__(levels)
        self._arrays, self._first = arrays, levels.arrays.first.tolist()
        with explain_memory(arrays, f"a model with {len(levels):,} state–step pairs"):
            self._states = list(self._copy_states())
            self._model = [arrays.asarray(getattr(levels.arrays, name)) for name in MODEL[1:]]
        kinds = [array.dtype.str[1:] for array in (*self._states[:1], *self._model)]
        assert kinds == ["i4", "i4", "i4", "f8", "f8", "i4", "i4", "f8", "i4"]

    def _copy_states(self) -> Iterator[Any]:
        """Yield the states of each level on the device, those that were there before only once."""
        states, kept = self.levels.arrays.state, list[tuple[NDArray[np.int32], Any]]()
        for begin, end in pairwise(self._first):
            here = states[begin:end]
            # Where moves alternate between two sets of states, every other level is the same.
            known = next((copy for own, copy in kept if np.array_equal(own, here)), None)
            known = self._arrays.asarray(here) if known is None else known
            kept = [(here, known), *kept[:1]]
            yield known

    def follow_many(
        self, weights: Sequence[Weights]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        size = len(self.levels)
        lanes = max(1, LARGEST // (16 * size))
        for begin in range(0, len(weights), lanes):
            some = weights[begin : begin + lanes]
            values = self.sweep_lanes(some, values=True).values
            yield from ((values[:, k, 0].copy(), values[:, k, 1].copy()) for k in range(len(some)))

    def _sweep(
        self, reward_weight: float, risk_weight: float, values: NDArray[np.void], choice: Choice
    ) -> NDArray[np.void]:
        wanted = {"choice": len(choice) > 0, "values": len(values) > 0}
        swept = self.sweep_lanes([(reward_weight, risk_weight)], **wanted)
        root = make_values(1).reshape(1, 1)
        root[0, 0] = tuple(swept.root[0])
        if len(choice):
            choice[:] = swept.choice[:, 0]
        if len(values):
            values["reward"], values["risk"] = swept.values[:, 0].T
        return root

    def sweep_lanes(
        self, weights: Sequence[Weights], choice: bool = False, values: bool = False
    ) -> Swept:
        """Sweep for several weights at once; `choice` and `values` say what is wanted."""
        arrays, first, size = self._arrays, self._first, len(self.levels)
        states, lanes = len(self.levels.arrays.action_count), len(weights)
        with explain_memory(arrays, f"{size:,} state–step pairs and {lanes} prices"):
            kept = (
                arrays.empty((size, lanes), np.int32) if choice else None,
                arrays.empty((size, lanes, 2), np.float64) if values else None,
            )
            given = arrays.asarray(np.array(weights, np.float64).T.copy())
            levels = arrays.zeros((2, states, lanes, 2), np.float64)
            run = _launch if is_gpu(arrays) else sweep_level
            for level in range(len(first) - 2, -1, -1):
                discount = float(self.levels.arrays.weights[level])
                after, here = levels[(level + 1) % 2], levels[level % 2]
                ends = first[level], first[level + 1]
                model = [self._states[level], *self._model]
                run(arrays, model, given, after, here, kept, discount, *ends)
            return Swept(*map(to_host, (levels[0, self.levels.graph.ROOT], *kept)))


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
    kept: Kept,
    discount: float,
    begin: int,
    end: int,
) -> None:
    """Sweep a level on the GPU."""
    lanes = weights.shape[1]
    blocks = ((end - begin) * lanes + THREADS - 1) // THREADS
    pointers = [np.uintp(0) if array is None else array for array in kept]
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
    kept: Kept,
    discount: float,
    begin: int,
    end: int,
) -> None:
    """Sweep a level by array operations."""
    named = dict(zip(MODEL, model, strict=True))
    state = named["state"]
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
    for array, result in zip(kept, (chosen, found), strict=True):
        if array is not None:
            array[begin:end] = result
