"""Certificates: what a policy earns and risks, from the model alone.

`problem` is the question (a model and a risk bound), `certificate` the answer, computed along the
`chain` of a policy by `sums` that know their errors, `margin` how wrong the model's risks may be,
`verification` what Storm says of it (`storm`), and `text` what people read. Nothing here knows a
search. May import: the root, runtime, model, bounds, policies.
"""
