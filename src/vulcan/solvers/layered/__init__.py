"""Solvers on pairs of state and step, by dynamic programs over a layered graph.

`pareto` and `lagrangian` are the solvers. They share a `run`; `dual` is the bound on every policy,
`improvement` finds deterministic policies close to it, `shortfall` says what need not be looked at,
`growth` when a problem is small enough, and `upper_bound` bounds the results of other solvers.
`accuracy` says what rounding can do to all that, `referee` what a risk bound accepts or refuses for
certain, and `arbiter` decides on what is left.
"""
