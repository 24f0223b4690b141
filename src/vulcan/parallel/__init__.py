"""Parallel work: this thread, threads, processes, or the machines of a Ray cluster.

An `Executor` starts workers; a worker holds an object (a model, a shard of a search tree) and runs
calls of its methods (`executors`, `processes`, `ray_cluster`). A `WorkerPool` distributes
independent calls over workers, and repeats those whose worker was lost (`pool`).

May import: runtime, parameters, errors.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
