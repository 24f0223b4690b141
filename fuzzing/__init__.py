"""A campaign against Vulcan: random problems, an oracle that shares nothing with it, and checks.

    problems, risk_bounds      a problem as plain data, and what its bound allows
    shapes, bound_shapes       which problems are drawn
    oracle                     what is true of a problem, in exact arithmetic
    models, planners           the same problem for Vulcan, and which solvers run
    following, claims          what a policy does, and what a result claims
    checks, registry           what is checked, and how often
    campaign, worker, runner   one problem, one process, all of them
    log, statistics, summary   what was done
    minimising, reproducers    small tests that fail

`problems`, `risk_bounds`, `oracle`, `shapes` and `bound_shapes` import nothing but the standard
library and each other.
"""
