"""Solvers: how policies are found.

`base` is what a solver is and declares of itself, `registry` lists them all, `finding` is what a
search returns, and `constraints` are the local constraints. `tree` searches histories, `layered`
pairs of state and step, `baselines` are what others do, and `automatic` chooses by size.
`knowledge` is what a search leaves to one that begins further on, and `fronts` are of risk and
reward, over layers. May import: kernels, graphs, certificates, policies, bounds, model, runtime,
and the root.
"""
