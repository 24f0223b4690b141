"""Work on the machines of a Ray cluster.

A worker is a Ray actor with a core of its own. Ray moves calls and answers, places actors, and
detects the death of actors and machines. A cluster runs whatever its users send to it:
docs/howto/scale.md describes what that means for security.

Without an address, Ray runs on this machine alone, with all of its ports bound to loopback. If the
program is already connected to a cluster, that one is used.

Arguments and answers are pickled here and are bytes to Ray. So arrays are writable as on other
executors, and objects that can't be sent give the same errors.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from vulcan.errors import OptionError
from vulcan.parallel.executors import (
    Channel,
    Executor,
    Maker,
    Worker,
    WorkerLostError,
    dump,
    load,
    pack_fault,
    require_workers,
    unpack_fault,
)
from vulcan.runtime.files import list_loaded

# The environment variable by which Ray listens beyond loopback; read when Ray is imported.
WIDE: Final = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
CONNECT_TIMEOUT: Final = 5.0  # seconds to wait for a connection; Ray itself waits for minutes
BETWEEN_NOTES: Final = 0.5  # seconds between two requests for a worker's report


@dataclass(frozen=True)
class Ray(Executor):
    """The machines of a Ray cluster.

    Parameters
    ----------
    address
        Address of a running cluster, or "auto" for the one that this machine belongs to. By
        default a cluster of this machine alone is started, and ends with the program.
    workers
        Number of workers, with a core each; by default the number of the cluster's cores.
    """

    address: str | None = None
    workers: int = None  # type: ignore[assignment]  # as many as there are cores

    def __post_init__(self) -> None:
        if self.workers is not None:
            require_workers(self.workers)
        cores = int(self._connect().cluster_resources().get("CPU", 0))
        if self.workers is None:
            object.__setattr__(self, "workers", max(1, cores))
        elif self.workers > cores:
            message = f"{self.workers} workers need a core each, and the Ray cluster has {cores}"
            raise OptionError(message)

    def _connect(self) -> Any:
        """Return Ray, connected to the cluster."""
        if "ray" not in sys.modules and _is_near(self.address):
            os.environ.setdefault(WIDE, "0")
        ray = _import_ray()
        if ray.is_initialized():
            _require_same(self.address, ray.get_runtime_context().gcs_address)
            return ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address is None:
            _require_loopback()
            options |= {"address": "local", "include_dashboard": False, "num_cpus": self.workers}
        else:
            _check_reachable(self.address)
            options["address"] = self.address
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            message = f"no Ray cluster at {self.address!r} takes this program: {error}"
            raise OptionError(f"{message} (if it wants a token, see RAY_AUTH_MODE)") from error
        return ray

    def start_worker(self, maker: Maker, *arguments: Any) -> Worker:
        return _ActorWorker(self._connect(), maker, arguments)

    def has_room(self) -> bool:
        # An actor without a core would wait for ever. The core of an actor that died is free again
        # after a moment, that of a machine that died never.
        return bool(self._connect().available_resources().get("CPU", 0.0) >= 1.0)


def _is_near(address: str | None) -> bool:
    """Return whether a cluster is bound to loopback, and knows its machines by that address."""
    if address is None:
        return True
    host = address.rpartition(":")[0]
    return host == "localhost" or host.startswith("127.")


def _check_reachable(address: str) -> None:
    """Refuse an address where nothing answers."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        return  # left to Ray
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()
    except OSError as error:
        raise OptionError(f"there is no Ray cluster at {address!r}: {error}") from error


def _require_same(address: str | None, connected: str) -> None:
    """Refuse another cluster than the one that the program is connected to."""

    def resolve(text: str) -> tuple[str, str]:
        host, _, port = text.rpartition(":")
        return socket.gethostbyname(host), port

    if address is not None and ":" in address and "/" not in address:
        with suppress(OSError):
            if resolve(address) == resolve(connected):
                return
            raise OptionError(
                f"this program is connected to the Ray cluster at {connected}, not {address}"
            )


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        message = "Ray is not installed; pip install 'vulcan-planner[ray]'"
        raise OptionError(message) from error
    return ray


def _require_loopback() -> None:
    """Refuse to start a cluster that other machines could reach."""
    from ray._private.ray_constants import ENABLE_RAY_CLUSTER

    if ENABLE_RAY_CLUSTER:
        raise OptionError(
            "Ray was imported before Vulcan could bind it to loopback: call ray.init() yourself, "
            f"or set {WIDE}=0 before Ray is imported"
        )


def _make(channel: Channel, made: bytes) -> Any:
    """Return the object that a worker holds."""
    maker, arguments = load(made, _import_ray().cloudpickle)
    return maker(channel, *arguments)


class _Actor(Channel):
    """The channel that Ray makes an actor of."""

    def __init__(self) -> None:
        super().__init__(self._keep)
        self._last_report: tuple[int, Any] = (0, None)

    def _keep(self, note: Any) -> None:
        self._last_report = self.current, note

    def call(self, number: int, name: str, message: bytes) -> tuple[bool, bytes]:
        """Return whether a call succeeded, and its answer or fault."""
        cloudpickle = _import_ray().cloudpickle
        try:
            arguments = load(message, cloudpickle)
            return True, dump(self.run(number, name, arguments), cloudpickle)
        except BaseException as error:
            return False, cloudpickle.dumps(pack_fault(error, cloudpickle))

    def last_report(self) -> tuple[int, Any]:
        """Return the number of a call, and its last note."""
        return self._last_report


@cache
def _declare_actor() -> Any:
    """Return the actor class, as Ray declares it."""
    ray = _import_ray()
    aside = ray.method(concurrency_group="channel")  # served while a call runs
    methods = {"last_report": aside(_Actor.last_report), "stop": aside(_Actor.stop)}
    # With one core, Ray also gives it one thread for algebra.
    return ray.remote(num_cpus=1, max_restarts=0, concurrency_groups={"channel": 1})(
        type("VulcanWorker", (_Actor,), methods)
    )


class _ActorWorker(Worker):
    """An actor, as its coordinator sees it."""

    def __init__(self, ray: Any, maker: Maker, arguments: tuple[Any, ...]) -> None:
        self._ray = ray
        for module in list_loaded().values():  # other machines may not have these files
            if module.__name__ in sys.modules:
                ray.cloudpickle.register_pickle_by_value(module)
        made = dump((maker, arguments), ray.cloudpickle)
        self._actor = _declare_actor().remote()
        self._actor.make.remote(_make, made)
        self._first: Future[Any] = self._actor.last_report.remote().future()
        self._requested, self._request = time.monotonic(), self._first
        self._report: tuple[int, Any] = (0, None)  # the number of a call, and its last note
        self._calls = 0

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        self._calls += 1
        try:
            message = dump(arguments, self._ray.cloudpickle)
            reply = self._actor.call.remote(self._calls, name, message)
        except Exception as error:
            answer.set_exception(error)
        else:
            reply.future().add_done_callback(partial(self._complete, answer))
        return answer

    def _complete(self, answer: Future[Any], reply: Future[Any]) -> None:
        """Complete a future as other executors would."""
        try:
            succeeded, message = reply.result()
            content = load(message, self._ray.cloudpickle)
        except BaseException as error:
            answer.set_exception(self._explain(error))
            return
        if succeeded:
            answer.set_result(content)
        else:
            answer.set_exception(unpack_fault(*content))

    def _explain(self, error: BaseException) -> BaseException:
        """Return the error of a call that Ray could not deliver."""
        errors = self._ray.exceptions
        if isinstance(error, errors.RayTaskError):
            raised: BaseException = error.cause or error
            return raised
        if getattr(error, "actor_init_failed", False):  # nothing was made yet
            last = str(error).strip().splitlines()[-1]
            return OptionError(f"all machines of the cluster need this Vulcan version: {last}")
        gone = errors.RayActorError | errors.ObjectLostError | errors.OutOfMemoryError
        if isinstance(error, gone):
            return WorkerLostError(str(error).splitlines()[0])
        return error

    @property
    def started(self) -> bool:
        """Whether it found a core."""
        return self._first.done()

    @property
    def note(self) -> Any:
        """Its last report on the current call, as far as that has arrived here."""
        now = time.monotonic()
        if self._request.done():
            if self._request.exception() is None:
                self._report = self._request.result()
            if now - self._requested >= BETWEEN_NOTES:
                self._requested = now
                self._request = self._actor.last_report.remote().future()
        number, note = self._report
        return note if number == self._calls else None

    def stop(self) -> None:
        self._actor.stop.remote(self._calls)

    def close(self) -> None:
        with suppress(Exception):  # the cluster may be gone
            self._ray.kill(self._actor)
