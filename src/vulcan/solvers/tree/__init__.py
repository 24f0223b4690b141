"""Solvers that search a tree of histories with a local constraint.

`vulcan`, `local` (LocalVulcan, and UCT, the same without a constraint) and `forward_search` are the
solvers. They answer what their kernels ask for (`kernel_run`, `forward_run`). A tree search has its
`memory`, takes samples (`sampling`) in `rounds`, keeps the best `draft` of a policy, and writes a
`checkpoint`, of whose arrays `soundness` says what they must be. Policies are completed by `whole`
within an `allowance`, over histories or over pairs of state and step (`shared`).
"""
