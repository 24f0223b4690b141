"""What kernels leave behind, call by call: with a diary a slip in a kernel shows at once.

An answer says little of a kernel: most slips cost only time, or are made good by more samples. So
a diary has all that a kernel was given after each call, its scratch arrays too, and what it
returned. All of this depends on the problem alone, but for addresses. Numbers are rounded, since
compiled kernels and plain Python differ in the last digits of logarithms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from vulcan.solvers import fronts
from vulcan.solvers.layered import coins, sweeps

KERNELS = {
    "backward_induction": "sweep",
    "completion": "settle",
    "episodes": "count_all evaluate play spread",
    "extraction": "write_outline",
    "forward_search": "search",
    "layer_arrays": "evaluate_edges",
    "pareto_fronts": "extend find_least_reach",
    "plan_top": "estimate_stubs grow_top merge_tops value_layers",
    "plan_values": "evaluate",
    "plan_writing": "write_plan",
    "price_root": "judge open_top write_orders",
    "price_search": "sample",
    "price_tree": "move_values",
    "second_asking": "ask_again",
    "shared_decisions": "number_shared reach_level sweep_levels write_shared write_top",
    "thin_fronts": "extend mark prepare",
    "thin_plans": "close trace",
    "tree_bound": "bound_root",
    "tree_search": "sample",
    "unrolling": "find_following number_decisions",
    "value_bounds": "tighten",
}
"""What Python calls, by module."""

DIGITS = {8: 36, 4: 14}
"""How many binary digits count, by the bytes of a number."""


class Diary:
    """What kernels left behind."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self._digests: dict[str, Any] = {}

    def note(self, name: str, *left: Any) -> None:
        """Note what a call has left."""
        self.calls[name] = self.calls.get(name, 0) + 1
        digest = self._digests.setdefault(name, hashlib.sha256())
        for part in left:
            _write(part, digest)

    def close(self) -> dict[str, str]:
        """Return how often each kernel was called, and a digest of all that it left."""
        return {
            name: f"{calls} calls, {self._digests[name].hexdigest()[:12]}"
            for name, calls in sorted(self.calls.items())
        }


@contextmanager
def keep_diary() -> Iterator[Diary]:
    """Note every call of a kernel from Python meanwhile."""
    diary = Diary()
    _prepare()
    modules = {name: import_module(f"vulcan.kernels.{name}") for name in KERNELS}
    before = {name: dict(vars(module)) for name, module in modules.items()}
    for name, module in modules.items():
        for kernel in KERNELS[name].split():
            setattr(module, kernel, _watch(getattr(module, kernel), f"{name}.{kernel}", diary))
    try:
        with patch("vulcan.solvers.tree.price_planner.warm_up", lambda: None):
            yield diary
    finally:
        for name, module in modules.items():
            for kernel in KERNELS[name].split():
                setattr(module, kernel, before[name][kernel])


def _prepare() -> None:
    """Have all done that is done once in a process."""
    coins.load_kernels()
    fronts.load_kernels()
    sweeps.load_kernels()


def _watch(kernel: Any, name: str, diary: Diary) -> Any:
    @wraps(kernel)
    def run(*arguments: Any, **named: Any) -> Any:
        found = kernel(*arguments, **named)
        diary.note(name, found, *arguments, *named.values())
        return found

    run.py_func = kernel.py_func  # type: ignore[attr-defined]
    return run


def _write(value: Any, digest: Any) -> None:
    if isinstance(value, tuple):
        for part in value:
            _write(part, digest)
    elif value is not None:
        array = np.ascontiguousarray(value)
        raw = hashlib.blake2b(array.tobytes(), digest_size=16).digest()
        digest.update(_sum_up(array, (array.dtype, array.shape, raw)))


def _sum_up(array: NDArray[Any], key: Any) -> bytes:
    """Return a digest of an array; most are as they were after the call before."""
    if key not in _KNOWN:
        digest = hashlib.sha256(f"{array.dtype.kind}{array.shape}".encode())
        for column in _list_columns(array):
            digest.update(np.ascontiguousarray(column).tobytes())
        _KNOWN[key] = digest.digest()
    return _KNOWN[key]


_KNOWN: dict[Any, bytes] = {}
"""Digests of arrays, by what they are made of."""


def _list_columns(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the numbers of an array, field by field, but for addresses."""
    if array.dtype.names is None:
        yield round_off(array) if array.dtype.kind == "f" else array.astype(np.int64)
        return
    for name in array.dtype.names:
        column = array[name]
        if name == "random" or column.dtype != np.uint64:
            yield from _list_columns(column)


def round_off(array: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers with fewer digits; 0 and -0 are the same, and so is all that is none."""
    digits = DIGITS[array.dtype.itemsize]
    array = array.astype(np.float64)
    mantissa, exponent = np.frexp(np.where(np.isnan(array), 0.0, array))
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, digits)), exponent - digits) + 0.0
    return np.where(np.isnan(array), np.nan, rounded)
