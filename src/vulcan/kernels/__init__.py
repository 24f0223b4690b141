"""Kernels: compiled search on integers and floats, the only place that imports Numba.

| module | work |
|---|---|
| `dp` | levels of state–step pairs, and dynamic programs over them |
| `thin_front`, `exact_front` | fronts of risk and reward: a few points per pair, or all |
| `subgoals` | orders of subgoals, and plans along them |
| `price_tree`, `plan` | Vulcan's tree for several prices, and plans on it |
| `paper_tree`, `forward_search` | the paper's algorithms, with `local_tests` of histories |
| `value_bounds` | upper bounds by best-first search |
| `expand` | how kernels evaluate a compiled model, or return to Python for another |
| `episodes` | simulation |
| `codes`, `compilation` | return codes; compiling and caching, and clamped indices |

Models may come compiled, and use Numba in their own files. May import: the root.

Importing this package imports nothing; solvers import the kernel that they need when they run, so
that `vulcan --help` stays quick.
"""
