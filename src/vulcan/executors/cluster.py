"""Work on the machines of a Ray cluster.

A worker is a Ray actor with a core of its own. Ray moves calls and answers, places actors, and
notices when they or their machines die. What goes to an actor and back is pickled by Ray, and a
cluster runs whatever its users send to it: see docs/howto/scale.md for whom it trusts.

Without an address there is one machine, this one, and all of Ray's ports are bound to loopback. A
cluster that the program is connected to already is used, whatever it is.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from concurrent.futures import Future
from dataclasses import dataclass
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
from vulcan.executors.processes import THREADS
from vulcan.runtime.interruption import listen
from vulcan.runtime.modules import list_loaded_modules

__all__ = ["Ray"]

WIDE: Final = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's name for listening on other addresses than loopback; it looks at it when it is imported."""

LONGEST_VACANCY: Final = 2.0
"""Seconds until nobody takes the place of a worker that was lost."""

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
        ray = self._connect()
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        if self.workers is None:
            object.__setattr__(self, "workers", cores)
        elif self.address is None and self.workers > cores:  # others may grow, but not this one
            raise OptionError(
                f"the Ray cluster has {cores} cores, too few for workers={self.workers}"
            )

    def _connect(self) -> Any:
        """Return Ray, connected to the cluster."""
        ray = _import_ray()
        if ray.is_initialized():
            return ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address is None:
            _require_loopback()
            options |= {"address": "local", "include_dashboard": False, "num_cpus": self.workers}
        else:
            options["address"] = self.address
        try:
            ray.init(**options)
        except (ConnectionError, ValueError) as error:
            message = f"there is no Ray cluster at {self.address!r}: {error}"
            raise OptionError(message) from error
        return ray

    def hire(self, maker: Maker, *arguments: Any) -> Worker:
        return _ActorWorker(self._connect(), maker, arguments)

    def replace(self, maker: Maker, *arguments: Any) -> Worker | None:
        # An actor that no machine has a core for would wait for ever. That of one which died is
        # free after a moment, and that of a machine which died never.
        ray, until = self._connect(), time.monotonic() + LONGEST_VACANCY
        while ray.available_resources().get("CPU", 0.0) < 1.0:
            if time.monotonic() > until:
                return None
            time.sleep(0.1)
        return self.hire(maker, *arguments)


def _import_ray() -> Any:
    """Return the module. A cluster that is started after this listens on loopback alone."""
    if "ray" not in sys.modules:
        os.environ.setdefault(WIDE, "0")
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

    note: Any = None

    def tell(self, note: Any) -> None:
        self.note = note


class _Actor:
    """What Ray makes an actor of."""

    def __init__(self, maker: Maker, arguments: tuple[Any, ...]) -> None:
        self._line = _KeptLine()
        self._held = maker(self._line, *arguments)

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        self._line.note = None
        with listen(lambda: self._line.stopped):
            return getattr(self._held, name)(*arguments)

    def look(self) -> Any:
        return self._line.note

    def stop(self) -> None:
        self._line.stopped = True


class _ActorWorker(Worker):
    """An actor, seen from the one who hired it."""

    def __init__(self, ray: Any, maker: Maker, arguments: tuple[Any, ...]) -> None:
        self._ray = ray
        for module in list_loaded_modules():  # files that other machines may not have
            _send_by_value(ray, module)
        look = ray.method(concurrency_group="line")(_Actor.look)
        stop = ray.method(concurrency_group="line")(_Actor.stop)
        kind = type("VulcanWorker", (_Actor,), {"look": look, "stop": stop})
        variables = dict.fromkeys(THREADS, "1")
        actor = ray.remote(
            num_cpus=1,
            max_restarts=0,
            concurrency_groups={"line": 1},
            runtime_env={"env_vars": variables},
        )(kind)
        self._actor = actor.remote(maker, arguments)
        self._looked, self._asked = time.monotonic(), None

    def call(self, name: str, *arguments: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        self._last = self._asked = None  # what is said of earlier work

        def pass_on(told: Future[Any]) -> None:
            error = told.exception()
            if error is None:
                answer.set_result(told.result())
            else:
                answer.set_exception(self._explain(error))

        try:
            told = self._actor.call.remote(name, arguments)
        except TypeError as error:  # Ray found something in the arguments that can't be pickled
            message = f"workers need what can be pickled: {str(error).splitlines()[0]}"
            answer.set_exception(OptionError(message))
            return answer
        told.future().add_done_callback(pass_on)
        return answer

    def _explain(self, error: BaseException) -> BaseException:
        """Return what an actor raised, or that it is gone."""
        errors = self._ray.exceptions
        if isinstance(error, errors.RayTaskError):
            raised: BaseException = error.cause or error
            return raised
        if isinstance(
            error, errors.RayActorError | errors.ObjectLostError | errors.OutOfMemoryError
        ):
            return WorkerLostError(str(error).splitlines()[0])
        return error

    @property
    def note(self) -> Any:
        """What it told last."""
        now = time.monotonic()
        if self._asked is not None and self._asked.done():
            self._last = None if self._asked.exception() else self._asked.result()
            self._asked = None
        if self._asked is None and now - self._looked >= BETWEEN_NOTES:
            self._looked, self._asked = now, self._actor.look.remote().future()
        return self._last

    _last: Any = None

    def stop(self) -> None:
        self._actor.stop.remote()

    def close(self) -> None:
        self._ray.kill(self._actor)


def _send_by_value(ray: Any, module: ModuleType) -> None:
    """Let objects of a module go to machines that can't import it."""
    if module.__name__ in sys.modules:
        ray.cloudpickle.register_pickle_by_value(module)
