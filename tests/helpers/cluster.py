"""A Ray cluster of this machine alone, whose nodes come and go."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vulcan.parallel.ray_cluster import Ray

STORE = 80_000_000
"""Bytes of each node for what is too large to be sent directly; Ray allows no less than 75 MB."""

SETTINGS = {
    "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(STORE),
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "300",
    "RAY_health_check_timeout_ms": "10000",
    "RAY_health_check_failure_threshold": "3",
}
"""Ray's own: it reads them when it is imported, or starts."""


@contextmanager
def open_cluster(cores: int = 3) -> Iterator[Any]:
    """Yield a cluster as Vulcan starts it, to which nodes can be added."""
    os.environ.update(SETTINGS)
    Ray(workers=cores)
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=False)
    cluster.head_node = ray._private.worker._global_node
    cluster.redis_address = cluster.head_node.redis_address
    try:
        yield cluster
    finally:
        ray.shutdown()


@contextmanager
def add_node(cluster: Any) -> Iterator[Any]:
    """Yield one more node with one core; it is killed in the end, or before."""
    import ray

    before = ray.cluster_resources()["CPU"]
    node = cluster.add_node(wait=False, num_cpus=1, object_store_memory=STORE)
    try:
        while ray.cluster_resources()["CPU"] <= before:
            time.sleep(0.01)
        yield node
    finally:
        if node in cluster.worker_nodes:
            cluster.remove_node(node, allow_graceful=False)
        while ray.cluster_resources()["CPU"] > before:
            time.sleep(0.05)


def list_processes(pid: int) -> dict[int, str]:
    """Return the processes that a process has started, and those that they have, by name."""
    psutil = pytest.importorskip("psutil")
    children = psutil.Process(pid).children(recursive=True)
    return {child.pid: child.name() for child in children}


def list_listeners(pids: Iterable[int]) -> set[tuple[str, int]]:
    """Return the addresses and ports at which some processes listen."""
    psutil = pytest.importorskip("psutil")
    found = set()
    for pid in pids:
        for connection in psutil.Process(pid).net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                found.add((connection.laddr.ip, connection.laddr.port))
    return found
