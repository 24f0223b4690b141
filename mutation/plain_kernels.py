"""Kernels as plain Python, for the tests of their mutants.

Numba reads fields of records as attributes, and so do the records here. Compiled models are asked
at the same addresses. Sorting is Numba's, so that equals come out in the same order. What stays
different is the arithmetic of mixed types: NumPy keeps single precision where Numba goes over to
double. A test that notices doesn't take part.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any

import numpy as np
from numba.misc.quicksort import make_py_quicksort

WORD, NUMBER, REAL = ctypes.c_uint64, ctypes.c_int64, ctypes.c_double


def install() -> None:
    """Let all kernels that are imported from now on be plain Python."""
    compilation = import_module("vulcan.kernels.compilation")
    compile_part = compilation.part

    def part(function: Callable[..., Any]) -> Any:
        """Compile what belongs to a compiled model."""
        ours = function.__module__.startswith("vulcan.kernels.")
        return function if ours else compile_part(function)

    vars(compilation).update(
        kernel=kernel,
        routine=part,
        part=part,
        borrow=lambda array: array,
        announce_compilation=lambda function: None,
    )
    expansion = import_module("vulcan.kernels.expansion")
    vars(expansion).update(
        call_outcomes=call(NUMBER, WORD, WORD, NUMBER, WORD, WORD),
        call_bound=call(REAL, WORD, WORD, NUMBER),
        call_value_bound=call(REAL, WORD, WORD, NUMBER, REAL),
    )
    np.argsort = sort_as_compiled(np.argsort)


def sort_as_compiled(argsort: Callable[..., Any]) -> Callable[..., Any]:
    """Return what sorts as Numba does, unless it is asked for a certain way of sorting."""
    order = make_py_quicksort(is_argsort=True).run_quicksort  # type: ignore[no-untyped-call]

    @wraps(argsort)
    def sort(array: Any, *options: Any, **named: Any) -> Any:
        if options or named or np.ndim(array) != 1:
            return argsort(array, *options, **named)
        return order(array)

    return sort


class Record(np.void):  # type: ignore[misc]
    """An element of an array, with its fields for attributes, whatever they are called."""

    def __getattribute__(self, name: str) -> Any:
        try:
            return np.void.__getitem__(self, name)
        except (ValueError, KeyError):
            return np.void.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        np.void.__setitem__(self, name, value)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that reads records as Numba does, and divides by zero without a word."""

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        opened = {name: open_records(argument) for name, argument in named.items()}
        with np.errstate(all="ignore"):
            return function(*map(open_records, arguments), **opened)

    run.py_func = function  # type: ignore[attr-defined]
    return run


def open_records(value: Any) -> Any:
    """Return the same arrays, with fields that are attributes of their elements."""
    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        return value.view(np.dtype((Record, value.dtype)))
    if isinstance(value, tuple):
        parts = map(open_records, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def call(result: Any, *kinds: Any) -> Callable[..., Any]:
    """Return a function that calls the machine code at an address."""
    prototype = ctypes.CFUNCTYPE(result, *kinds)
    find = cache(prototype)

    def run(address: Any, *arguments: Any) -> Any:
        return find(int(address))(*(argument.item() for argument in map(np.asarray, arguments)))

    return run
