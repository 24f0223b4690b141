"""Work on the machines of a Ray cluster.

A worker is a Ray actor with a core of its own. Ray moves calls and answers, places actors, and
notices when they or their machines die. What goes to an actor and back is pickled by Ray, and a
cluster runs whatever its users send to it: see docs/howto/scale.md for whom it trusts.

Without an address there is one machine, this one, and all of Ray's ports are bound to loopback. A
cluster that the program is connected to already is used, whatever it is.

Arguments and answers are pickled here, and are bytes for Ray: so they are what they are elsewhere
too (arrays that may be written to), and what can't be sent is told in the same way.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, Final

from vulcan.errors import OptionError
from vulcan.executors.base import (
    Executor,
    Line,
    Maker,
    Worker,
    WorkerLostError,
    require_workers,
)
from vulcan.executors.faults import pack_fault, refuse_cargo, unpack_fault
from vulcan.runtime.interruption import listen
from vulcan.runtime.modules import list_loaded_modules

__all__ = ["Ray"]

WIDE: Final = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's name for listening on other addresses than loopback; it looks at it when it is imported."""

LONGEST_GREETING: Final = 5.0
"""Seconds until nobody answers at an address; Ray itself waits for minutes."""

BETWEEN_NOTES: Final = 0.5
"""Seconds until a worker is asked again how far it is."""


@dataclass(frozen=True)
class Ray(Executor):
    """The machines of a Ray cluster.

    Parameters
    ----------
    address
        Of a running cluster, or "auto" for the one that this machine belongs to. By default a
        cluster of this machine alone is started, and ends with the program.
    workers
        How many workers, with a core each; as many as the cluster has cores by default.
    """

    name: ClassVar[str] = "ray"
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
            _greet(self.address)
            options["address"] = self.address
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            message = f"no Ray cluster at {self.address!r} takes this program: {error}"
            raise OptionError(f"{message} (if it wants a token, see RAY_AUTH_MODE)") from error
        return ray

    def hire(self, maker: Maker, *arguments: Any) -> Worker:
        return _ActorWorker(self._connect(), maker, arguments)

    def has_room(self) -> bool:
        # An actor that no machine has a core for would wait for ever. The core of one that died is
        # free after a moment, and that of a machine that died never.
        return bool(self._connect().available_resources().get("CPU", 0.0) >= 1.0)


def _is_near(address: str | None) -> bool:
    """Return whether a cluster is bound to loopback, and knows its machines by that name."""
    if address is None:
        return True
    host = address.rpartition(":")[0]
    return host == "localhost" or host.startswith("127.")


def _greet(address: str) -> None:
    """Refuse an address where nobody answers."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        return  # Ray knows what it means
    try:
        socket.create_connection((host, int(port)), LONGEST_GREETING).close()
    except OSError as error:
        raise OptionError(f"there is no Ray cluster at {address!r}: {error}") from error


def _require_same(address: str | None, connected: str) -> None:
    """Refuse another cluster than the one that the program is connected to."""
    if address is None or ":" not in address or "/" in address:
        return
    with suppress(OSError):
        if _resolve(address) != _resolve(connected):
            message = f"this program is connected to the Ray cluster at {connected}, not {address}"
            raise OptionError(message)


def _resolve(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    return socket.gethostbyname(host), port


def _import_ray() -> Any:
    """Return the module."""
    try:
        import ray
    except ImportError as error:
        message = "Ray is not installed; pip install 'vulcan-planner[ray]'"
        raise OptionError(message) from error
    return ray


def _require_loopback() -> None:
    """Refuse to start a cluster that everybody could reach."""
    from ray._private.ray_constants import ENABLE_RAY_CLUSTER

    if ENABLE_RAY_CLUSTER:
        raise OptionError(
            "Ray was imported before Vulcan could bind it to loopback: call ray.init() yourself, "
            f"or set {WIDE}=0 before Ray is imported"
        )


class _KeptLine(Line):
    """The line of an actor: it keeps the last note until it is asked for."""

    _told: tuple[int, Any] = (0, None)

    def tell(self, note: Any) -> None:
        self._told = self._begun, note

    def look(self) -> tuple[int, Any]:
        """Return the number of the call that a note was about, and the note."""
        return self._told


class _Actor:
    """What Ray makes an actor of."""

    def __init__(self) -> None:
        self._line = _KeptLine()
        self._held: Any = None
        self._fault: BaseException | None = None

    def make(self, told: bytes) -> None:
        """Make what it holds; what goes wrong is told with the first answer."""
        try:
            maker, arguments = _unpickle(told)
            self._held = maker(self._line, *arguments)
        except BaseException as error:
            self._fault = error

    def call(self, number: int, name: str, told: bytes) -> tuple[bool, bytes]:
        """Return whether all went well, and an answer or a fault."""
        cloudpickle = _import_ray().cloudpickle
        try:
            if self._fault is not None:
                raise self._fault
            self._line.begin(number)
            arguments = _unpickle(told)
            with listen(lambda: self._line.stopped):
                return True, _pickle(getattr(self._held, name)(*arguments))
        except BaseException as error:
            return False, cloudpickle.dumps(pack_fault(error, cloudpickle))

    def look(self) -> tuple[int, Any]:
        """Return the number of the present call, and its last note."""
        return self._line.look()

    def stop(self, number: int) -> None:
        """Bring calls up to a number to an end."""
        self._line.stop(number)


def _pickle(thing: Any) -> bytes:
    try:
        return bytes(_import_ray().cloudpickle.dumps(thing))
    except Exception as error:
        raise refuse_cargo(error) from error


def _unpickle(message: bytes) -> Any:
    try:
        return _import_ray().cloudpickle.loads(message)
    except Exception as error:
        raise refuse_cargo(error) from error


@cache
def _declare_actor() -> Any:
    """Return the class of actors, as Ray knows it."""
    ray = _import_ray()
    aside = ray.method(concurrency_group="line")  # heard while a call is under way
    methods = {"look": aside(_Actor.look), "stop": aside(_Actor.stop)}
    # With one core Ray gives it one thread for algebra too.
    return ray.remote(num_cpus=1, max_restarts=0, concurrency_groups={"line": 1})(
        type("VulcanWorker", (_Actor,), methods)
    )


class _ActorWorker(Worker):
    """An actor, seen from the one who hired it."""

    def __init__(self, ray: Any, maker: Maker, arguments: tuple[Any, ...]) -> None:
        self._ray = ray
        for module in list_loaded_modules():  # files that other machines may not have
            _send_by_value(ray, module)
        told = _pickle((maker, arguments))
        self._actor = _declare_actor().remote()
        self._actor.make.remote(told)
        self._first: Future[Any] = self._actor.look.remote().future()
        self._looked, self._asked = time.monotonic(), self._first
        self._calls = 0

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        self._calls += 1
        try:
            told = self._actor.call.remote(self._calls, name, _pickle(arguments))
        except Exception as error:
            answer.set_exception(error)
        else:
            told.future().add_done_callback(self._pass_to(answer))
        return answer

    def _pass_to(self, answer: Future[Any]) -> Callable[[Future[Any]], None]:
        """Return what passes on what Ray says, as it would be said elsewhere."""

        def pass_on(told: Future[Any]) -> None:
            try:
                well, content = told.result()
                thing = _unpickle(content)
            except BaseException as error:
                answer.set_exception(self._explain(error))
                return
            if well:
                answer.set_result(thing)
            else:
                answer.set_exception(unpack_fault(thing))

        return pass_on

    def _explain(self, error: BaseException) -> BaseException:
        """Return what went wrong on the way, or that the actor is gone."""
        errors = self._ray.exceptions
        if isinstance(error, errors.RayTaskError):
            raised: BaseException = error.cause or error
            return raised
        if getattr(error, "actor_init_failed", False):  # before anything was made
            last = str(error).strip().splitlines()[-1]
            return OptionError(f"the machines of a cluster need the Vulcan that is here: {last}")
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
        """What it told last about its present work, as far as that is known here."""
        asked, now = self._asked, time.monotonic()
        if asked.done():
            if asked.exception() is None:
                self._last = asked.result()
            if now - self._looked >= BETWEEN_NOTES:
                self._looked, self._asked = now, self._actor.look.remote().future()
        number, note = self._last
        return note if number == self._calls else None

    _last: tuple[int, Any] = (0, None)

    def stop(self) -> None:
        self._actor.stop.remote(self._calls)

    def close(self) -> None:
        with suppress(Exception):  # a cluster that is gone has let it go
            self._ray.kill(self._actor)


def _send_by_value(ray: Any, module: ModuleType) -> None:
    """Let objects of a module go to machines that can't import it."""
    if module.__name__ in sys.modules:
        ray.cloudpickle.register_pickle_by_value(module)
