"""Policies: an action for every history that can occur.

`policy` is the one form that all solvers return, `randomised` a weighted set of them. `file` saves
and loads both, `text` draws them, `execution` follows one step by step, `prospects` says what one
still risks and earns on the way, `places` how probable each decision is, `table` and `matrix` show
them all at once, and `walk` follows all histories of a policy through its model: certificates,
drawings and simulations share it, and no search does. May import: the root, runtime, model.
"""
