"""Graphs: the answers of a model as flat arrays that kernels read.

`states` has the state graph of a model in Python or in arrays, `compiled` that of a compiled model,
and `levels` a state graph unrolled over the steps: the state–step pairs of exact solvers. May
import: the root, runtime, model, policy; kernels inside functions.
"""
