"""Planning: from a problem and a solver to a certified result.

`solve` is the one way to solve, `result` what it returns; `compare` runs several solvers on one
problem (`comparison` is the outcome), `frontier` one solver on many bounds, and `seeds` one search
with several seeds (`spread`). These are sweeps: `sweep` hands searches to workers, and `batch`
watches them as one. `explain` says where a policy takes its risk, and `explore` makes a page of it.
May import: everything above solvers, solvers, and pages.
"""
