"""What a GPU does: the whole exploration mission at single prices, and sweeps of a large grid.

`python -m benchmarks.gpu` runs both, and needs CuPy and a GPU; no part of the library does.

**The whole mission.** The largest reward less price times risk over every one of the 32⁹ sequences
of nine moves and readings: nothing is pruned, so that the value at each history comes out, too. A
block has the first five moves, its threads what was read on the way. Four more moves are walked
through, for all their readings at once, in registers. A cell that was visited before is read once,
not four times.

**Sweeps.** Dynamic programming over a grid of 1,000 by 1,000 cells with 4 actions, 3 safe outcomes
and a failure each, for 300 steps and 32 prices at once: for each price the reward and the risk of
the best policy, and with these the dual bound. One core does the same in C++ for a few steps.

On a machine without the library, tables are read from a file: `python -m benchmarks.gpu save FILE`
writes it here, `python benchmarks/gpu.py FILE` reads it there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

PRICES: Final = (0.0, 25.497, 27.0)
MOVES: Final = 9
LAST: Final = 4

MISSION: Final = r"""
struct Tables { int columns, rows, x, y; double nodes[4], chances[4], variance;
                double risk[10][20][20], mean[20][20], kernel[20][20]; };
__constant__ Tables c;
__constant__ int EAST[8] = {0, 1, 1, 1, 0, -1, -1, -1}, NORTH[8] = {1, 1, 0, -1, -1, -1, 0, 1};

// A path: its cells, and for each its row of L by step; zero where a step brought no new sample.
struct Path { int x[10], y[10], fresh[10]; double row[10][10], inverse[10]; };

__device__ bool is_off(int x, int y) { return x < 0 || y < 0 || x >= c.columns || y >= c.rows; }

// Write the row of a cell after k steps, and return whether it is new.
__device__ bool extend(const Path &p, int k, int x, int y, double *row) {
  for (int j = 0; j < k; j++) if (p.x[j] == x && p.y[j] == y) return false;
  double left = c.variance;
  for (int j = 0; j < k; j++) {
    if (!p.fresh[j]) { row[j] = 0; continue; }
    double q = c.kernel[abs(p.x[j] - x)][abs(p.y[j] - y)];
    for (int i = 0; i < j; i++) q -= p.row[j][i] * row[i];
    row[j] = q * p.inverse[j];
    left -= row[j] * row[j];
  }
  row[k] = left > 1e-12 * c.variance ? sqrt(left) : 0;
  return true;
}
__device__ void begin(Path &p) {
  p.x[0] = c.x; p.y[0] = c.y; p.fresh[0] = 1;
  p.row[0][0] = sqrt(c.variance); p.inverse[0] = 1 / p.row[0][0];
}
__device__ bool go(Path &p, int k, int action) {
  int x = p.x[k - 1] + EAST[action], y = p.y[k - 1] + NORTH[action];
  if (is_off(x, y)) return false;
  p.x[k] = x; p.y[k] = y;
  for (int j = 0; j <= k; j++) p.row[k][j] = 0;
  p.fresh[k] = extend(p, k, x, y, p.row[k]);
  p.inverse[k] = p.fresh[k] && p.row[k][k] > 0 ? 1 / p.row[k][k] : 0;
  return true;
}

// What a move earns: mean + read · (z_1 ... z_D) + more · (z of the moves after), times survival
// less price times risk; kind is 0 off the map, 1 in a cell visited before, 2 in a new one.
template <int D> struct Move { T mean, read[D], more[3], safe, cost; int kind; };

template <int D> __device__ void describe(Move<D> &m, const Path &p, int k, int action, T price) {
  int x = p.x[k - 1] + EAST[action], y = p.y[k - 1] + NORTH[action];
  m.kind = 0;
  if (is_off(x, y)) return;
  double row[10], risk = c.risk[k][x][y];
  for (int j = 0; j < 10; j++) row[j] = 0;
  m.kind = extend(p, k, x, y, row) ? 2 : 1;
  if (m.kind == 1) for (int j = 0; j < 10; j++) row[j] = 0;
  m.safe = 1 - risk; m.cost = -price * risk;
  m.mean = m.cost + (m.kind == 2 ? (1 - risk) * c.mean[x][y] : 0);
  for (int j = 0; j < D; j++) m.read[j] = (1 - risk) * row[j + 1];
  for (int j = 0; j < 3; j++) m.more[j] = D + 1 + j < k ? (1 - risk) * row[D + 1 + j] : 0;
}
template <int D> __device__ T expect(const Move<D> &m, const T *z) {
  T sum = m.mean;
#pragma unroll
  for (int j = 0; j < D; j++) sum += m.read[j] * z[j];
  return sum;
}

template <int D> struct Shared {
  Path path, first, second[8], third[64];
  Move<D> six, seven[8], eight[64], nine[512];
  int ok;
};

// The last two moves. A, B, C are the numbers of readings of the three moves before the last.
template <int D, int A, int B, int C>
__device__ void end(const Shared<D> &s, int path, const T *z, T *best) {
  const Move<D> &m = s.eight[path], *last = s.nine + 8 * path;
  T means[8], visited = -1e30;
#pragma unroll
  for (int a = 0; a < 8; a++) {
    means[a] = last[a].kind == 2 ? expect<D>(last[a], z) : T(-1e30);
    if (last[a].kind == 1 && last[a].mean > visited) visited = last[a].mean;
  }
  T mean = expect<D>(m, z);
#pragma unroll
  for (int i = 0; i < A; i++) {
    T value[B * C];
#pragma unroll
    for (int l = 0; l < B * C; l++) value[l] = visited;
#pragma unroll
    for (int a = 0; a < 8; a++) {
      if (last[a].kind != 2) continue;
      T one = A > 1 ? means[a] + last[a].more[0] * T(c.nodes[i]) : means[a];
#pragma unroll
      for (int j = 0; j < B; j++) {
        T two = B > 1 ? one + last[a].more[1] * T(c.nodes[j]) : one;
#pragma unroll
        for (int k = 0; k < C; k++) {
          T three = C > 1 ? two + last[a].more[2] * T(c.nodes[k]) : two;
          if (three > value[j * C + k]) value[j * C + k] = three;
        }
      }
    }
#pragma unroll
    for (int j = 0; j < B; j++) {
      T sum = 0;
#pragma unroll
      for (int k = 0; k < C; k++) sum += (C > 1 ? T(c.chances[k]) : T(1)) * value[j * C + k];
      T q = mean + m.safe * sum;
      if (A > 1) q += m.more[0] * T(c.nodes[i]);
      if (B > 1) q += m.more[1] * T(c.nodes[j]);
      if (q > best[i * B + j]) best[i * B + j] = q;
    }
  }
}
template <int D, int A, int B>
__device__ void follow(const Shared<D> &s, int path, const T *z, T *best) {
  T value[A * B];
#pragma unroll
  for (int l = 0; l < A * B; l++) value[l] = -1e30;
  for (int a = 0; a < 8; a++) {
    int next = 8 * path + a;
    if (s.eight[next].kind == 2) end<D, A, B, 4>(s, next, z, value);
    else if (s.eight[next].kind == 1) end<D, A, B, 1>(s, next, z, value);
  }
  const Move<D> &m = s.seven[path];
  T mean = expect<D>(m, z);
#pragma unroll
  for (int i = 0; i < A; i++) {
    T sum = 0;
#pragma unroll
    for (int j = 0; j < B; j++) sum += (B > 1 ? T(c.chances[j]) : T(1)) * value[i * B + j];
    T q = mean + m.safe * sum;
    if (A > 1) q += m.more[0] * T(c.nodes[i]);
    if (q > best[i]) best[i] = q;
  }
}
template <int D, int A> __device__ T walk(const Shared<D> &s, const T *z) {
  T value[A], sum = 0;
#pragma unroll
  for (int i = 0; i < A; i++) value[i] = -1e30;
  for (int a = 0; a < 8; a++) {
    if (s.seven[a].kind == 2) follow<D, A, 4>(s, a, z, value);
    else if (s.seven[a].kind == 1) follow<D, A, 1>(s, a, z, value);
  }
#pragma unroll
  for (int i = 0; i < A; i++) sum += (A > 1 ? T(c.chances[i]) : T(1)) * value[i];
  return expect<D>(s.six, z) + s.six.safe * sum;
}

template <int D> __device__ void deep(T price, T *values, char *room) {
  Shared<D> &s = *(Shared<D> *)room;
  int prefix = blockIdx.x, me = threadIdx.x;
  if (me == 0) {
    begin(s.path);
    s.ok = 1;
    for (int k = 1; k <= D && s.ok; k++) s.ok = go(s.path, k, (prefix >> (3 * (D - k))) & 7);
  }
  __syncthreads();
  if (!s.ok) return;
  int fresh = 0;
  for (int k = 1; k <= D; k++) fresh += s.path.fresh[k];
  const int most = 4;
  T best[most], z[most][D];
  int place[most];
#pragma unroll
  for (int i = 0; i < most; i++) {
    int left = me + i * blockDim.x, where = 0;
    bool used = left < (1 << (2 * fresh));
#pragma unroll
    for (int k = D; k >= 1; k--) {
      int digit = 0;
      if (s.path.fresh[k]) { digit = left & 3; left >>= 2; }
      where |= digit << (2 * (D - k));
      z[i][k - 1] = c.nodes[digit];
    }
    place[i] = used ? where : -1; best[i] = -1e30;
  }
  for (int a = 0; a < 8; a++) {
    __syncthreads();
    if (me == 0) {
      describe<D>(s.six, s.path, D + 1, a, price);
      s.first = s.path;
      if (s.six.kind) go(s.first, D + 1, a);
    }
    __syncthreads();
    if (!s.six.kind) continue;
    if (me < 8) {
      describe<D>(s.seven[me], s.first, D + 2, me, price);
      if (s.seven[me].kind) { s.second[me] = s.first; go(s.second[me], D + 2, me); }
    }
    __syncthreads();
    if (me < 64) {
      s.eight[me].kind = 0;
      if (s.seven[me / 8].kind) {
        describe<D>(s.eight[me], s.second[me / 8], D + 3, me % 8, price);
        if (s.eight[me].kind) { s.third[me] = s.second[me / 8]; go(s.third[me], D + 3, me % 8); }
      }
    }
    __syncthreads();
    for (int i = me; i < 512; i += blockDim.x) {
      s.nine[i].kind = 0;
      if (s.eight[i / 8].kind) describe<D>(s.nine[i], s.third[i / 8], D + 4, i % 8, price);
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < most; u++) if (place[u] >= 0) {
      T v = s.six.kind == 2 ? walk<D, 4>(s, z[u]) : walk<D, 1>(s, z[u]);
      if (v > best[u]) best[u] = v;
    }
  }
#pragma unroll
  for (int u = 0; u < most; u++)
    if (place[u] >= 0) values[((size_t)prefix << (2 * D)) + place[u]] = best[u];
}
extern __shared__ char room[];
#define DEEP(D) extern "C" __global__ void __launch_bounds__(256) \
  deep##D(T price, T *values) { deep<D>(price, values, room); }
DEEP(5) DEEP(1)
extern "C" __global__ void sizes(int *out) {
  out[0] = sizeof(Shared<5>);
  out[1] = sizeof(Shared<1>);
}

extern "C" __global__ void up(int depth, T price, const T *next, T *values) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i >> (5 * depth)) return;
  int prefix = i >> (2 * depth), t = i & ((1 << (2 * depth)) - 1);
  Path p; begin(p);
  values[i] = -1e30;
  for (int k = 1; k <= depth; k++) if (!go(p, k, (prefix >> (3 * (depth - k))) & 7)) return;
  T best = -1e30;
  for (int a = 0; a < 8; a++) {
    if (!go(p, depth + 1, a)) continue;
    int k = depth + 1;
    T sum = 0, risk = c.risk[k][p.x[k]][p.y[k]];
    const T *after = next + ((size_t)(8 * prefix + a) << (2 * depth + 2)) + 4 * t;
    if (p.fresh[k]) {
      sum = c.mean[p.x[k]][p.y[k]];
      for (int j = 1; j <= depth; j++) sum += p.row[k][j] * c.nodes[(t >> (2 * (depth - j))) & 3];
      for (int l = 0; l < 4; l++) sum += c.chances[l] * after[l];
    } else sum = after[0];
    T value = (1 - risk) * sum - price * risk;
    if (value > best) best = value;
  }
  values[i] = best;
}
"""

TABLES: Final = np.dtype(
    [
        *((name, "i4") for name in ("columns", "rows", "x", "y")),
        ("nodes", "f8", (4,)),
        ("chances", "f8", (4,)),
        ("variance", "f8"),
        ("risk", "f8", (10, 20, 20)),
        ("mean", "f8", (20, 20)),
        ("kernel", "f8", (20, 20)),
    ],
    align=True,
)

SWEEP: Final = r"""
#ifndef __CUDACC__
#include <cstddef>
#endif
// One step for one state and one price of 32 side by side: reward and risk of the best action.
#define STEP(n, lane, at) \
  double best = -1e300, reward = 0, risk = 0; \
  for (int a = 0; a < 4; a++) { \
    double g = rewards[4 * (n) + a], e = risks[4 * (n) + a]; \
    for (int o = 0; o < 3; o++) { \
      size_t k = 12 * (size_t)(n) + 3 * a + o, where = (size_t)next[k] * 32 + (lane); \
      g += chances[k] * before_reward[where]; e += chances[k] * before_risk[where]; \
    } \
    double value = g - prices[lane] * e; \
    if (value > best) { best = value; reward = g; risk = e; } \
  } \
  after_reward[at] = reward; after_risk[at] = risk;
#define ARGUMENTS const int *__restrict__ next, const double *__restrict__ chances, \
  const double *__restrict__ rewards, const double *__restrict__ risks, \
  const double *__restrict__ prices, const double *__restrict__ before_reward, \
  const double *__restrict__ before_risk, double *__restrict__ after_reward, \
  double *__restrict__ after_risk, int states
#ifdef __CUDACC__
extern "C" __global__ void sweep(ARGUMENTS) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i >= (size_t)states * 32) return;
  STEP(i / 32, i % 32, i)
}
#else
extern "C" void sweep(ARGUMENTS) {
  for (int n = 0; n < states; n++)
    for (int lane = 0; lane < 32; lane++) { size_t at = (size_t)n * 32 + lane; STEP(n, lane, at) }
}
#endif
"""


def make_tables(area: str = "narrow") -> np.ndarray[Any, Any]:
    """Return the tables of a mission."""
    from vulcan.domains import Exploration

    mission = Exploration(map=area)
    place, tables = mission.area, np.zeros(1, TABLES)
    tables["columns"], tables["rows"] = place.columns, place.rows
    tables["x"], tables["y"] = place.start
    tables["nodes"], tables["chances"] = mission.quadrature
    tables["variance"] = mission.field.variance
    for x in range(place.columns):
        for y in range(place.rows):
            tables["mean"][0, x, y] = mission.field.mean(place.locate((x, y)))
            far = mission.displace((0, 0), (x, y))
            tables["kernel"][0, x, y] = mission.field.kernel(far, (0.0, 0.0))
            for step in range(1, MOVES + 1):
                tables["risk"][0, step, x, y] = mission.risk((x, y), step)
    return tables


def plan_whole_mission(tables: np.ndarray[Any, Any], kind: str, moves: int = MOVES) -> None:
    """Print the value of the whole mission at some prices, and the seconds."""
    import cupy

    real, depth = np.dtype(kind), moves - LAST
    code = f"#define T {'double' if kind == 'f8' else 'float'}\n{MISSION}"
    module = cupy.RawModule(code=code, options=("-std=c++17",))
    pointer = module.get_global("c")
    cupy.ndarray((tables.nbytes,), np.uint8, pointer).set(tables.view(np.uint8))
    sizes = cupy.zeros(2, np.int32)
    module.get_function("sizes")((1,), (1,), (sizes,))
    deep, up = module.get_function(f"deep{depth}"), module.get_function("up")
    room = int(sizes[0 if depth > 1 else 1])
    deep.max_dynamic_shared_size_bytes = room
    values = [cupy.empty(32**d, real) for d in range(depth + 1)]
    threads = min(256, max(64, 4**depth))
    shape = f"{deep.num_regs} registers, {deep.local_size_bytes} bytes spilt, {room} bytes shared"
    print(f"{moves} moves, {real}: {shape}")
    for price in PRICES:
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        values[depth].fill(-1e30)
        given = real.type(price)
        deep((8**depth,), (threads,), (given, values[depth]), shared_mem=room)
        for d in range(depth - 1, -1, -1):
            up(((32**d + 127) // 128,), (128,), (np.int32(d), given, values[d + 1], values[d]))
        value = float(values[0][0])
        seconds = time.perf_counter() - began
        print(f"  price {price:g}: {value:.9f} in {seconds:.2f} s", flush=True)


def make_grid(side: int, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Return a grid in which moves slip, with a risk and a reward in each cell."""
    rng, states = np.random.default_rng(seed), side * side
    x, y = np.divmod(np.arange(states), side)
    steps = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    next_state = np.empty((states, 4, 3), np.int32)
    for a in range(4):
        for o, turn in enumerate((0, 1, 3)):
            east, north = steps[(a + turn) % 4]
            there = np.clip(x + east, 0, side - 1) * side + np.clip(y + north, 0, side - 1)
            next_state[:, a, o] = there
    risks = rng.random((states, 4)) ** 8 * 0.02
    chances = (1 - risks)[:, :, None] * np.array([0.8, 0.1, 0.1])
    return {
        "next": next_state,
        "chances": chances,
        "rewards": rng.random((states, 4)),
        "risks": risks,
        "prices": np.geomspace(0.1, 1e4, 32),
    }


def sweep_grid(side: int = 1000, horizon: int = 300, steps_on_core: int = 3) -> None:
    """Print the seconds of all sweeps on the GPU, and of one core."""
    import cupy

    model = make_grid(side)
    states = side * side
    kernel = cupy.RawModule(code=SWEEP, options=("-std=c++17",)).get_function("sweep")
    given = [cupy.asarray(array) for array in model.values()]
    arrays = [cupy.zeros((states, 32)) for _ in range(4)]
    for trial in range(2):  # the first one loads the kernel
        for array in arrays:
            array.fill(0)
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        for _ in range(horizon if trial else steps_on_core):
            blocks = (states * 32 + 255) // 256
            kernel((blocks,), (256,), (*given, *arrays, np.int32(states)))
            arrays = [*arrays[2:], *arrays[:2]]
        reward, risk = (cupy.asnumpy(array[:, :]) for array in arrays[:2])
        seconds = time.perf_counter() - began
        if trial == 0:
            on_core, (same_reward, same_risk) = sweep_on_a_core(model, states, steps_on_core)
            np.testing.assert_allclose(reward, same_reward)
            np.testing.assert_allclose(risk, same_risk)
    start = states // 2 + side // 2
    allowed = 0.5 * (risk[start].min() + risk[start].max())
    dual = (reward[start] - model["prices"] * risk[start] + model["prices"] * allowed).min()
    print(
        f"{side} x {side} cells, horizon {horizon}, 32 prices: {seconds:.2f} s; at most {dual:.4f}"
    )
    core = on_core / steps_on_core * horizon
    print(f"one core: {on_core / steps_on_core:.2f} s a step, {core:.0f} s: {core / seconds:.0f}x")


def sweep_on_a_core(
    model: dict[str, np.ndarray[Any, Any]], states: int, steps: int
) -> tuple[float, list[np.ndarray[Any, Any]]]:
    """Return the seconds of some steps in C++, and reward and risk."""
    import ctypes

    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "sweep.cpp", Path(folder) / "sweep.so"
        source.write_text(SWEEP, encoding="utf-8")
        command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source]
        subprocess.run(command, check=True)
        sweep = ctypes.CDLL(str(library)).sweep
    arrays = [np.zeros((states, 32)) for _ in range(4)]
    given = [ctypes.c_void_p(array.ctypes.data) for array in model.values()]
    began = time.perf_counter()
    for _ in range(steps):
        sweep(*given, *(ctypes.c_void_p(array.ctypes.data) for array in arrays), states)
        arrays = [*arrays[2:], *arrays[:2]]
    return time.perf_counter() - began, arrays[:2]


def main(*arguments: str) -> None:
    """Run all, or save the tables."""
    if arguments[:1] == ("save",):
        np.save(arguments[1], make_tables())
        return
    tables = np.load(arguments[0]) if arguments else make_tables()
    try:
        import cupy

        name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except Exception as error:  # CuPy raises errors of its own for each thing that is missing
        raise SystemExit(f"this benchmark needs CuPy and a GPU: {error}") from error
    print(name)
    for kind in ("f8", "f4"):
        plan_whole_mission(tables, kind)
    sweep_grid()


if __name__ == "__main__":
    main(*sys.argv[1:])
