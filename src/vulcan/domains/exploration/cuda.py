"""The exploration mission on a GPU: the exact value of every history of the first moves.

The value is the largest reward less price times risk over all 32ⁿ sequences of moves and readings.
Nothing is pruned, so that the value at each history comes out, too. A block of threads has a
sequence of moves up to the last four, its threads the readings on the way. The last four moves are
walked through for all their readings at once, in registers. A cell that was visited before is read
once.

With these values as bounds, a proof (`vulcan.sampling.proof`) opens only what the best policy of a
price reaches. Histories that its table does not have are evaluated by the processor
(`compiled.last_value`), and both must agree.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.runtime.devices import explain_memory, to_host

LAST: Final = 4  # moves that are walked through at once
MOST_MOVES: Final = 5  # before these
DEGREE: Final = 4  # readings of a sample
SIDE: Final = 19  # cells of the window each way, at most
KEPT: Final = 4  # moves whose histories have their values in the table

MISSION: Final = r"""
struct Tables { int west, east, south, north, middle; double nodes[4], chances[4], variance;
                double risk[10][19][19], mean[19][19], kernel[19][19]; };
__constant__ Tables c;
__constant__ int EAST[8] = {0, 1, 1, 1, 0, -1, -1, -1}, NORTH[8] = {1, 1, 0, -1, -1, -1, 0, 1};

// A path: its cells, and for each its row of L by step; zero where a step brought no new sample.
struct Path { int x[10], y[10], fresh[10]; double row[10][10], inverse[10]; };

__device__ bool is_off(int x, int y) {
  return x < c.west || x > c.east || y < c.south || y > c.north;
}

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
  p.x[0] = p.y[0] = c.middle; p.fresh[0] = 1;
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
    for (int i = me; i < 8; i += blockDim.x) {
      describe<D>(s.seven[i], s.first, D + 2, i, price);
      if (s.seven[i].kind) { s.second[i] = s.first; go(s.second[i], D + 2, i); }
    }
    __syncthreads();
    for (int i = me; i < 64; i += blockDim.x) {
      s.eight[i].kind = 0;
      if (s.seven[i / 8].kind) {
        describe<D>(s.eight[i], s.second[i / 8], D + 3, i % 8, price);
        if (s.eight[i].kind) { s.third[i] = s.second[i / 8]; go(s.third[i], D + 3, i % 8); }
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
extern "C" __global__ void __launch_bounds__(256) deepest(T price, T *values) {
  deep<DEPTH>(price, values, room);
}
extern "C" __global__ void measure(int *out) { out[0] = sizeof(Shared<DEPTH>); }

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
        *((name, "i4") for name in ("west", "east", "south", "north", "middle")),
        ("nodes", "f8", (DEGREE,)),
        ("chances", "f8", (DEGREE,)),
        ("variance", "f8"),
        ("risk", "f8", (LAST + MOST_MOVES + 1, SIDE, SIDE)),
        ("mean", "f8", (SIDE, SIDE)),
        ("kernel", "f8", (SIDE, SIDE)),
    ],
    align=True,
)
"""What the GPU knows of a mission, in cells of the window of `compiled`."""


def count_moves(parameters: NDArray[Any]) -> int:
    """Return the moves before the last four; 0 if the GPU does not know such missions."""
    tables = parameters[0]
    moves = int(tables["horizon"]) - LAST
    known = 0 < moves <= MOST_MOVES and tables["degree"] == DEGREE and tables["discount"] == 1.0
    return moves if known and tables["begun"] == 0 else 0


def make_tables(parameters: NDArray[Any]) -> NDArray[Any]:
    """Return the tables of a mission, from the parameters of its compiled form."""
    tables, made = parameters[0], np.zeros(1, TABLES)
    capacity = len(tables["known_cells"]) - 1
    window, levels = 2 * capacity + 1, int(tables["horizon"]) + 1
    made["west"], made["east"] = tables["least_x"], tables["most_x"]
    made["south"], made["north"], made["middle"] = tables["least_y"], tables["most_y"], capacity
    made["nodes"], made["chances"] = tables["nodes"][:DEGREE], tables["chances"][:DEGREE]
    made["variance"] = tables["variance"]
    kernel = tables["kernel"][window - 1 :, window - 1 :]  # by distance, from 0 on
    made["kernel"][0, :window, :window] = kernel
    risks = tables["risks"][:levels].reshape(levels, window, window)
    made["risk"][0, :levels, :window, :window] = risks
    # The first sample, taken before the mission, shifts the mean for good.
    away = np.abs(np.arange(window) - capacity)
    shift = kernel[np.ix_(away, away)] / np.sqrt(tables["variance"]) * tables["first_node"]
    made["mean"][0, :window, :window] = tables["means"].reshape(window, window) + shift
    return made


@cache
def load_kernels(arrays: Any, moves: int, kind: str = "double") -> tuple[Any, Any, Any, int]:
    """Return the module, its kernels, and the bytes that a block shares."""
    code = f"#define T {kind}\n#define DEPTH {moves}\n{MISSION}"
    module = arrays.RawModule(code=code, options=("-std=c++17",))
    size = arrays.zeros(1, np.int32)
    module.get_function("measure")((1,), (1,), (size,))
    deepest, room = module.get_function("deepest"), int(size[0])
    deepest.max_dynamic_shared_size_bytes = room
    return module, deepest, module.get_function("up"), room


def value_histories(
    arrays: Any, tables: NDArray[Any], moves: int, price: float, kind: str = "double"
) -> list[Any]:
    """Return the values of all histories after 0, 1, ... moves at a price, on the GPU."""
    real = np.dtype("f8" if kind == "double" else "f4").type
    with explain_memory(arrays, f"the {32**moves:,} histories of {moves} moves"):
        module, deepest, up, room = load_kernels(arrays, moves, kind)
        place = module.get_global("c")
        arrays.ndarray((tables.nbytes,), np.uint8, place).set(tables.view(np.uint8))
        values = [arrays.full(32**d, -1e30, real) for d in range(moves + 1)]
    threads = min(256, max(64, DEGREE**moves))
    deepest((8**moves,), (threads,), (real(price), values[moves]), shared_mem=room)
    for d in range(moves - 1, -1, -1):
        blocks = (32**d + 127) // 128
        up((blocks,), (128,), (np.int32(d), real(price), values[d + 1], values[d]))
    return values


def tabulate(
    arrays: Any, parameters: NDArray[Any], price: float | None
) -> NDArray[np.float64] | None:
    """Return the values of the histories of the first `KEPT` moves at a price, shortest first.

    None if the GPU does not know such missions, or without a price, when kernels are only loaded.
    """
    moves = count_moves(parameters)
    if not moves:
        return None
    if price is None:
        load_kernels(arrays, moves)
        return None
    lost = price - float(parameters[0]["collision_reward"])
    values = value_histories(arrays, make_tables(parameters), moves, lost)
    return np.concatenate([to_host(some) for some in values[: KEPT + 1]])
