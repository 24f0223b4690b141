"""Who does the work: this thread, threads, processes, or the machines of a Ray cluster.

Work comes in pieces: a plain description goes to a worker, and a plain answer comes back. A worker
makes something once and holds it, such as a model or a part of a search tree; pieces are calls of
its methods. `base.py` says what executors and workers are, `here.py`, `processes.py` and
`cluster.py` are the kinds, `choice.py` finds the one that was asked for, and a `crew.py` hands
pieces to whoever is free, again if a worker was lost. `faults.py` brings errors home, and
`losses.py` counts who was lost.

Executors know nothing of models, searches and plans; Ray is imported by `cluster.py` alone, when it
is used.

May import: runtime, parameters, errors.
"""
