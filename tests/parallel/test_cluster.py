"""Ray: where it listens, what it refuses, and what happens when its machines die."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import time
from typing import Any

import pytest

from tests.helpers.cluster import STORE, list_listeners, list_processes
from tests.helpers.workers import Held
from vulcan.errors import OptionError
from vulcan.parallel import ray_cluster as cluster_module
from vulcan.parallel.executors import Executor, WorkerLostError
from vulcan.parallel.pool import WorkerPool, choose_executor
from vulcan.parallel.ray_cluster import Ray


def test_a_cluster_that_vulcan_starts_listens_on_loopback_alone(ray_executor: Executor) -> None:
    """All that Ray starts, its workers too."""
    with WorkerPool(ray_executor, Held) as pool:
        pids = set(pool.map("pid", range(4)))
        processes = list_processes(os.getpid())
        listeners = list_listeners(processes)
    assert pids <= set(processes)
    assert {"gcs_server", "raylet"} <= set(processes.values())
    assert len(listeners) > 3
    for address, port in listeners:
        assert ipaddress.ip_address(address.removeprefix("::ffff:")).is_loopback, (address, port)


def test_listeners_beyond_loopback_would_be_found() -> None:
    pytest.importorskip("psutil")
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert ("0.0.0.0", server.getsockname()[1]) in list_listeners({os.getpid()})


def test_ray_that_would_listen_everywhere_is_not_started(ray_cluster, monkeypatch):
    from ray._private import ray_constants

    monkeypatch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", True)
    with pytest.raises(OptionError, match="bind it to loopback"):
        cluster_module._require_loopback()


def test_a_program_without_ray_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[ray\]'"):
        Ray()


def test_the_cluster_of_the_program_is_used(ray_cluster: Any) -> None:
    assert Ray() == Ray(workers=3)
    assert Ray("auto").workers == Ray(ray_cluster.address).workers == 3
    assert choose_executor("ray:1") == Ray(workers=1)


def test_more_workers_than_cores_are_refused(ray_cluster: Any) -> None:
    with pytest.raises(OptionError, match=r"4 workers need a core each.* has 3"):
        Ray(workers=4)
    with pytest.raises(OptionError, match="at least 1"):
        Ray(workers=0)


def test_another_cluster_than_the_program_has_is_refused(ray_cluster: Any) -> None:
    with pytest.raises(OptionError, match=r"connected to the Ray cluster at .*, not 127.0.0.1:9"):
        Ray("127.0.0.1:9")


def test_an_unreachable_address_is_refused_at_once() -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OptionError, match="there is no Ray cluster"):
        cluster_module._check_reachable(f"127.0.0.1:{port}")
    assert time.monotonic() - began < cluster_module.CONNECT_TIMEOUT


def test_a_machine_without_vulcan_is_no_lost_worker(ray_executor: Executor) -> None:
    """It would be lost again and again; what it lacks is said instead."""
    from ray.exceptions import ActorDiedError, RayTaskError

    worker = ray_executor.start_worker(Held)
    missing = ModuleNotFoundError("No module named 'vulcan'")
    cause = RayTaskError("VulcanWorker.__init__", "ModuleNotFoundError: no vulcan", missing)
    told = worker._explain(ActorDiedError(cause))
    worker.close()
    assert isinstance(told, OptionError)
    assert "need this Vulcan version" in str(told)
    assert str(told).endswith("ModuleNotFoundError: no vulcan")


def test_a_stop_reaches_calls_that_have_not_begun(ray_executor: Executor) -> None:
    worker = ray_executor.start_worker(Held)
    futures = [worker.call("search", 30.0), worker.call("search", 30.0)]
    worker.stop()
    later = worker.call("search", 0.0)
    assert [future.result(30) for future in (*futures, later)] == [True, True, False]
    worker.close()
    until = time.monotonic() + 20  # Ray kills in its own time
    while not isinstance(worker.call("add", 1).exception(30), WorkerLostError):
        assert time.monotonic() < until


def wait_for_cores(number: int) -> None:
    """Wait until the cluster has noticed that this number of its cores is free."""
    import ray

    until = time.monotonic() + 20
    while ray.available_resources().get("CPU", 0) != number:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_cores_that_others_have_are_waited_for_and_then_missed(ray_executor: Executor) -> None:
    with (
        WorkerPool(Ray(workers=3), Held) as first,
        WorkerPool(ray_executor, Held, start_timeout=0.5) as second,
    ):
        wait_for_cores(3)
        first.map("add", range(3))
        wait_for_cores(0)
        with pytest.raises(WorkerLostError, match=r"no worker could start within 0\.5 s"):
            second.map("add", [1])
    with WorkerPool(ray_executor, Held) as second:
        assert second.map("add", [1]) == [1]


def test_answers_larger_than_the_object_store_arrive(ray_executor: Executor) -> None:
    """Each is half of it, and all of them several times as much; Ray spills them to its disk."""
    with WorkerPool(ray_executor, Held) as pool:
        tasks = [pool.submit("zeros", STORE // 2) for _ in range(6)]
        assert sum(task.result().nbytes for task in pool.run()) == 3 * STORE
        assert all(task.ended for task in tasks)
        too_large = pool.submit("zeros", 2 * STORE)
        list(pool.run())
        assert too_large.error is None or "store" in str(too_large.error).lower()
        assert pool.map("add", [1]) == [1]
