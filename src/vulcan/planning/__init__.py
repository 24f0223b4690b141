"""Planning: from a problem and a solver to a certified result.

`solve` is the one way to solve, `result` what it returns; `compare` runs several solvers on one
problem (`comparison` is the outcome), `frontier` one solver on many bounds, and `batch` watches
several searches as one. May import: everything above solvers, and solvers.
"""
