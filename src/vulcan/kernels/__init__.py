"""Compiled search: the only place that imports Numba.

Importing this package imports nothing; solvers import the kernel they need when they run, so that
`vulcan --help` stays quick.
"""
