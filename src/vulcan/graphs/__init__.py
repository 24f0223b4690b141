"""Graphs: what a model said, as flat arrays that kernels read.

`rows` are arrays that grow. `base` is what every state graph is, `state_graph` that of a model in
Python, `compiled_graph` that of a compiled one (`recollection`: after a checkpoint), and
`layered_graph` a state graph unrolled over the steps, on which exact solvers work. May import: the
root, runtime, model, policies; kernels inside functions.
"""
