"""Kernels: compiled search on integers and floats, the only place that imports Numba.

`codes` is what kernels return. `forward_search`, `tree_search`, `completion`, `extraction` and
`tree_bound` work on histories, over a common `tree`, `constraints`, `expansion` (`second_asking`)
and `last_step`;
`backward_induction`, `pareto_fronts` and `front_drafts` on layered graphs. `problem_arrays` is what
they are given, and `compilation` how they are compiled. Models may come compiled, and use Numba in
their own files. May import: the root.

Importing this package imports nothing; solvers import the kernel that they need when they run, so
that `vulcan --help` stays quick.
"""
