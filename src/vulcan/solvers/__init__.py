"""Solvers: how policies are found.

`base` is what a solver is and declares of itself, `registry` lists them all, `finding` is what a
search returns, and `constraints` are the local constraints. `tree` searches histories, `layered`
pairs of state and step, `baselines` are what others do, and `automatic` chooses by size. May
import: kernels, graphs, certificates, policies, bounds, model, runtime, and the root.
"""
