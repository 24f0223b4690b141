"""Limits of a search, its progress, and the monitor that stops it early.

A `Monitor` watches the clock, the limits and signals for one search. Ctrl-C and SIGTERM are
requests to finish; a worker gets them from its coordinator instead (`listen`).

Late answers. A search looks at the clock between two evaluations of the model. After the limit, an
evaluation is given up once it has taken a second, a tenth of the limit, and several times as long
as the slowest one before. A worker that does not answer is killed. A model in this process can be
interrupted only in the main thread, which alone receives signals, and only while it runs Python: an
alarm raises `TimeUp` inside it.

Memory. A search counts its arrays. The growth of the process covers what it can't count: Python
objects, libraries, and what a model keeps. Searches at the same time share the growth, and the sum
of their limits. A process may have less memory than the machine: a container (cgroups, of either
version) or a limit of its own (`ulimit -v`, `-d`) can be smaller.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeVar

from vulcan.errors import OptionError
from vulcan.parameters import knows_parameters

try:
    import resource
except ImportError:  # not every system has such limits
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from vulcan.certificate.certify import Judgement

LEAST_SECONDS: Final = 1.0
SHARE_OF_LIMIT: Final = 0.1
TIMES_THE_SLOWEST: Final = 3.0
"""Seconds, share of the time limit, and multiple of the slowest answer that an answer may take."""

ALARM_INTERVAL: Final = 0.25
"""Seconds between alarms: a model may catch the first one."""

LEAST_TIME: Final = 0.1
"""Seconds that a certificate has after a late search: small policies need no more."""

HOPELESS: Final = 5.0
"""A certificate expected to take more than this many times `LEAST_TIME` gets no such time."""

DEFAULT_SECONDS: Final = 20.0
"""Time of a search that samples or grows, without any limit."""

DELAY: Final = 0.5  # seconds before progress is shown where it was requested

OWN_GROUPS: Final = Path("/proc/self/cgroup")
GROUPS: Final = Path("/sys/fs/cgroup")


class TimeUp(BaseException):
    """No time is left, not even for a certificate (`check_time`), or an answer is late.

    It is no `Exception`, so that handlers of errors in models do not catch it.
    """


class StopReason(StrEnum):
    """What ended a search early; users see the text."""

    INTERRUPTED = "Ctrl-C"
    TERMINATED = "SIGTERM"
    TIME = "time limit"
    SAMPLES = "limit of samples"
    HISTORIES = "limit of histories"
    MEMORY = "limit of memory"
    GAP = "target gap"
    MODEL = "error in the model"

    @property
    def is_request(self) -> bool:
        """Whether the user ended the search, rather than a limit."""
        return self in (StopReason.INTERRUPTED, StopReason.TERMINATED)


@knows_parameters
@dataclass(frozen=True)
class Limits:
    """When to stop early; None for no limit.

    Attributes
    ----------
    time_limit
        Seconds.
    samples, histories
        Samples taken, and histories visited or kept in a tree.
    memory
        Bytes of the search: its arrays, and the growth of the process while it runs.
    gap
        Relative distance between the best policy and an upper bound.
    """

    time_limit: float | None = None
    samples: int | None = None
    histories: int | None = None
    memory: int | None = None
    gap: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            real = field.name in ("time_limit", "gap")
            proper = isinstance(value, Real if real else Integral)
            if value is not None and not (proper and value >= 0):
                kind = "number" if real else "whole number"
                raise OptionError(f"{field.name} must be a {kind} of at least 0, not {value!r}")

    @staticmethod
    def combine(limits: Limits | None, **shortcuts: float | None) -> Limits:
        """Return limits and the shortcuts given beside them; giving one twice is an error."""
        limits = Limits() if limits is None else limits
        if not isinstance(limits, Limits):
            raise OptionError(f"limits must be Limits(time_limit=..., ...), not {limits!r}")
        given = {name: value for name, value in shortcuts.items() if value is not None}
        for name in given:
            if getattr(limits, name) is not None:
                raise OptionError(f"{name} is given twice: as {name}= and in limits=")
        return replace(limits, **given)  # type: ignore[arg-type]

    def by_default(self, spent: float = 0.0) -> Limits:
        """Return these limits with a default of memory, at most 2 GiB, and of time.

        Time is limited if only a gap would end the search, and counted beyond what is spent.
        """
        time_limit, memory = self.time_limit, self.memory
        if self.keep(("time_limit", "samples", "histories")) == Limits():
            time_limit = spent + DEFAULT_SECONDS
        if memory is None:
            memory = min(2 << 30, find_default_memory() // 2)
        return replace(self, time_limit=time_limit, memory=memory)

    def keep(self, names: Collection[str]) -> Limits:
        """Return only the limits with these names."""
        return Limits(**{name: getattr(self, name) for name in names})

    def require_only(self, solver: str, allowed: tuple[str, ...]) -> None:
        """Raise an `OptionError` for a limit that a solver does not support."""
        for field in fields(self):
            if getattr(self, field.name) is not None and field.name not in allowed:
                raise OptionError(
                    f"{solver} has no limit {field.name!r}; it takes {', '.join(allowed)}"
                )


@dataclass(frozen=True)
class Progress:
    """The progress of a search or a simulation.

    Attributes
    ----------
    seconds
        Time since the search began.
    fraction
        Estimated share of the phase that is done, from 0 to 1; None where it is unknown.
    histories, evaluations
        Histories visited, or episodes played, and (state, action) pairs evaluated so far.
    reward
        Expected reward of the best policy so far, or mean reward of the episodes; None without one.
    samples
        Samples taken so far; 0 for a search without samples.
    memory
        Bytes of the search tree and the state graph.
    judgement
        The search's own judgement of its best policy so far; the result has a certificate of it.
    upper_bound, gap
        Upper bound on the reward of a policy within the risk bound, and the relative distance of
        `reward` to it; None where it is unknown.
    pairs
        State–step pairs of an exact solver; 0 for others.
    phase
        What is being done.
    note
        A remark, such as how many episodes are still needed.
    """

    seconds: float
    fraction: float | None
    histories: int
    evaluations: int
    reward: float | None
    samples: int = 0
    memory: int = 0
    judgement: Judgement | None = None
    upper_bound: float | None = None
    gap: float | None = None
    pairs: int = 0
    phase: Literal["searching", "certifying", "playing"] = "searching"
    note: str = ""


OnProgress = Callable[[Progress], None]


@contextmanager
def watch_progress(progress: bool | OnProgress | None) -> Iterator[OnProgress | None]:
    """Yield the function for progress reports: the user's, the terminal's for True, or None.

    None stands for the terminal or the notebook, if there is one, after two seconds.
    """
    delay = DELAY
    if progress is None and threading.current_thread() is threading.main_thread():
        progress = is_notebook() or (sys.stderr is not None and sys.stderr.isatty())
        delay = 2.0
    if callable(progress):
        yield progress
    elif progress:
        from vulcan.runtime.display import show_progress

        with show_progress(delay) as show:
            yield show
    else:
        yield None


def is_notebook() -> bool:
    """Return whether this is the kernel of a notebook, not IPython in a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


SIGNALS: Final[dict[int, tuple[Any, StopReason]]] = {
    signal.SIGINT: (signal.default_int_handler, StopReason.INTERRUPTED),
    signal.SIGTERM: (signal.SIG_DFL, StopReason.TERMINATED),
}
"""The default handler of each signal, and the reason that it stands for."""

_stop_request: ContextVar[Callable[[], bool] | None] = ContextVar("stop_request", default=None)


@contextmanager
def listen(requested: Callable[[], bool]) -> Iterator[None]:
    """Let a function request the end of searches begun inside, in this thread; calls may nest."""
    outer = _stop_request.get()
    token = _stop_request.set(requested if outer is None else lambda: requested() or outer())
    try:
        yield
    finally:
        _stop_request.reset(token)


class Interruption:
    """While entered, the first Ctrl-C or SIGTERM is a request; a second one ends as usual.

    Only Python's main thread receives signals; elsewhere this does nothing. Signals with a handler
    of the application are left to it.
    """

    def __init__(self) -> None:
        self._reason: StopReason | None = None
        self._requested_at: float | None = None
        self._requested = _stop_request.get()
        self._taken: list[int] = []

    @property
    def requested(self) -> bool:
        """Whether it is time to finish."""
        return self._reason is not None or (self._requested is not None and self._requested())

    @property
    def reason(self) -> StopReason:
        """The kind of request, Ctrl-C by default."""
        return self._reason or StopReason.INTERRUPTED

    @property
    def overdue(self) -> bool:
        """Whether the request to finish came more than a second ago."""
        if not self.requested:
            return False
        if self._requested_at is None:  # the request came from a function
            self._requested_at = time.perf_counter()
        return time.perf_counter() - self._requested_at > 1.0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._taken = [n for n, (usual, _) in SIGNALS.items() if signal.getsignal(n) is usual]
        for number in self._taken:
            signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number in self._taken:
            signal.signal(number, SIGNALS[number][0])

    def _handle(self, number: int, frame: FrameType | None) -> None:
        usual, self._reason = SIGNALS[number]
        self._requested_at = time.perf_counter()
        signal.signal(number, usual)


Function = TypeVar("Function", bound=Callable[..., Any])

_model_calls: Final[set[CodeType]] = set()


def model_call(function: Function) -> Function:
    """Mark a function that calls a model, and has its start (`perf_counter`) in a local `began`.

    An alarm may raise `TimeUp` in what this function calls, and nowhere else.
    """
    _model_calls.add(function.__code__)
    return function


_current: ContextVar[Monitor | None] = ContextVar("monitor", default=None)


def note_answer(seconds: float) -> None:
    """Tell the monitor of this thread, if there is one, how long an answer took."""
    monitor = _current.get()
    if monitor is not None:
        monitor.slowest = max(monitor.slowest, seconds)


def is_late(began: float) -> bool:
    """Return whether the monitor of this thread gives up an answer that began at this time."""
    monitor = _current.get()
    return monitor is not None and monitor.is_late(began)


def must_answer() -> bool:
    """Return whether a last plan must end: a request is a second old, or the memory is full."""
    monitor = _current.get()
    return monitor is not None and (monitor.overdue or monitor.exceeds_memory())


def check_time() -> None:
    """Raise `TimeUp` if the search of this thread has no time left, overtime included.

    Every model call and every long loop of a certificate checks this.
    """
    monitor = _current.get()
    if monitor is not None and monitor.is_over:
        raise TimeUp


class Monitor(Interruption):
    """Watches the clock, the limits and signals for a search, and passes its progress on."""

    _entered: ClassVar[int] = 0
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, limits: Limits, on_progress: OnProgress | None = None) -> None:
        super().__init__()
        self.limits = limits
        self.stopped_by: StopReason | None = None  # why the search had to stop, if it had to
        self.slowest = 0.0  # seconds of the slowest answer of the model
        self.started = False  # whether the clock runs: the search is ready to begin
        self._on_progress = on_progress
        self._began = self._reported = time.perf_counter()
        self._granted = 0.0
        self._yields = False  # whether a request to finish ends what is under way
        self._whole: tuple[float | None, float] | None = None  # limit and time spent before a part
        self._resident = 0  # bytes of this process when the clock started
        self._measured = 0.0
        self._has_alarm = False
        self._token: Token[Monitor | None] | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        self._token = _current.set(self)
        with self._lock:
            Monitor._entered += 1
        # Timers and handlers of the application are left alone.
        self._has_alarm = (
            hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
            and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        )
        if self._has_alarm:
            signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(self, *error: object) -> None:
        if self._has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        with self._lock:
            Monitor._entered -= 1
        assert self._token is not None
        _current.reset(self._token)
        super().__exit__(*error)

    def start_clock(self) -> None:
        """Count time and memory from now on: the search is ready to begin."""
        self._began = self._reported = time.perf_counter()
        self._resident = read_resident_memory()
        self.started = True
        self._set_alarm()

    @contextmanager
    def clock_stopped(self) -> Iterator[None]:
        """Do not count time and memory inside, where kernels are loaded."""
        began, resident = time.perf_counter(), read_resident_memory()
        try:
            yield
        finally:
            self._began += time.perf_counter() - began
            self._resident += max(0, read_resident_memory() - resident)
            self._set_alarm()

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return time.perf_counter() - self._began

    @property
    def grown(self) -> int:
        """Bytes by which this process has grown since the search began; 0 where it is unknown."""
        return max(0, read_resident_memory() - self._resident) if self.started else 0

    @contextmanager
    def ended_by_request(self) -> Iterator[None]:
        """Let a request to finish end a certificate inside, unless it was there before."""
        self._yields = not self.requested
        try:
            yield
        finally:
            self._yields = False

    @property
    def is_over(self) -> bool:
        """Whether the time limit and the overtime have passed; never before the clock starts."""
        if self._yields and self.requested:
            return True
        limit, spent = (self.limits.time_limit, 0.0) if self._whole is None else self._whole
        if limit is None or not self.started:
            return False
        ends = limit + max(0.15, 0.08 * limit)  # by which a certificate may exceed the limit
        return time.perf_counter() > self._granted and spent + self.seconds > ends

    def grant_certificate(self, expected: float = 0.0) -> None:
        """Leave a moment to write out and certify a policy after a late answer.

        Where the certificate is `expected` to take far longer, time limits are not exceeded for it.
        """
        if expected <= HOPELESS * LEAST_TIME:
            self._granted = time.perf_counter() + LEAST_TIME

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """Give a search inside this share of the time that is left, counted from its own start.

        Its time counts for the whole, except before it starts the clock. A certificate inside may
        use what is left of the whole.
        """
        limits, spent = self.limits, self.seconds
        if limits.time_limit is not None:
            left = share * (limits.time_limit - spent)
            self.limits = replace(limits, time_limit=max(0.0, left))
        self._whole = limits.time_limit, spent
        self._began, self.started = time.perf_counter(), False
        try:
            yield
        finally:
            self.limits, self.started, self._whole = limits, True, None
            self._began -= spent
            self._set_alarm()

    def wants_stop(self, histories: int, samples: int = 0, reserve: float = 0.0) -> bool:
        """Return whether to stop now, `reserve` seconds before a limit, and set `stopped_by`."""
        limits = self.limits
        if self.requested:
            self.stopped_by = self.reason
        elif limits.time_limit is not None and self.seconds + reserve >= limits.time_limit:
            self.stopped_by = StopReason.TIME
        elif limits.histories is not None and histories >= limits.histories:
            self.stopped_by = StopReason.HISTORIES
        elif limits.samples is not None and samples >= limits.samples:
            self.stopped_by = StopReason.SAMPLES
        elif self.exceeds_memory(0.9):
            self.stopped_by = StopReason.MEMORY
        return self.stopped_by is not None

    def is_late(self, began: float) -> bool:
        """Return whether to give up an answer that began at this time (`perf_counter`).

        Before the clock starts no answer is late: kernels may be compiling somewhere.
        """
        limit = self.limits.time_limit
        if limit is None or not self.started:
            return False
        timeout = max(LEAST_SECONDS, SHARE_OF_LIMIT * limit, TIMES_THE_SLOWEST * self.slowest)
        return self.seconds > limit + timeout and time.perf_counter() - began > timeout

    def report(self, describe: Callable[[], Progress]) -> None:
        """Pass the progress on if the last report is a tenth of a second ago."""
        now = time.perf_counter()
        if self._on_progress is not None and now - self._reported >= 0.1:
            self._reported = now
            self._on_progress(describe())

    def exceeds_memory(self, share: float = 1.0) -> bool:
        """Return whether memory exceeds this share of the limit, or of the default.

        It is measured at most every twentieth of a second; 16 MiB may have other causes.
        """
        now = time.perf_counter()
        if not self.started or now - self._measured < 0.05:
            return False
        self._measured = now
        memory = self.limits.memory
        most = find_default_memory() if memory is None else memory
        return self.grown > share * max(1, self._entered) * most + (16 << 20)

    def _set_alarm(self) -> None:
        if self._has_alarm and self.limits.time_limit is not None and self.started:
            left = self.limits.time_limit - self.seconds
            signal.setitimer(signal.ITIMER_REAL, max(ALARM_INTERVAL, left), ALARM_INTERVAL)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        """Interrupt a model call that is late."""
        if frame is None or frame.f_code in _model_calls:
            return  # the call has just returned
        caller = frame.f_back
        while caller is not None and caller.f_code not in _model_calls:
            caller = caller.f_back
        if caller is not None and self.is_late(caller.f_locals.get("began", time.perf_counter())):
            raise TimeUp


# Memory of this process.


def find_default_memory() -> int:
    """Return the default memory limit of a search in bytes: half of what this process may have."""
    limits = [
        int(text)
        for path in _find_group_limits(OWN_GROUPS, GROUPS)
        if (text := _read_text(path)).isdecimal()
    ]
    with suppress(AttributeError, OSError, ValueError):  # not every system tells
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if resource is not None:
        limits += [resource.getrlimit(k)[0] for k in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    finite = [limit for limit in limits if limit > 0]  # -1 stands for no limit
    return int(0.5 * min(finite, default=8 << 30))  # where no limit is known, half of 8 GiB


def read_resident_memory() -> int:
    """Return the bytes of this process that are in memory; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@cache
def _find_group_limits(own_groups: Path, groups: Path) -> list[Path]:
    """Return the files with the limits of this process's groups and of those around them.

    Limits may change, but a process stays in its groups.
    """
    found: list[Path] = []
    for line in _read_text(own_groups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top = groups / "memory" if controllers else groups
        inner = top / path.lstrip("/")
        # In a container, the path may exist only on the machine around it.
        for folder in (inner, *inner.parents):
            names = ("memory.max", "memory.high", "memory.limit_in_bytes")
            found += filter(Path.exists, (folder / name for name in names))
            if folder == top:
                break
    return found


def _read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause the garbage collector while millions of objects are created that all stay.

    It would traverse them again and again in vain: a third of the time of a certificate of 90,000
    decisions.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
