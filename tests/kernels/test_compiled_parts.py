"""What compiles kernels, and what they call models by, at work on the smallest kernels."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from tests.helpers.fresh_modules import import_again

KERNELS = """
from vulcan.kernels.compilation import answer, borrow, kernel, part, routine

@part
def double(number):
    return 2 * number

@routine
def divide(one, other):
    return one / other

@kernel
def last(array):
    return double(borrow(array)[-1])

@kernel
def lend(array):
    return borrow(array)

@kernel
def quotient(one, other):
    return divide(one, other)

@answer("f8(f8)")
def halve(number):
    return number / 2
"""


@pytest.fixture
def compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What compiles kernels, with a cache of its own."""
    monkeypatch.setenv("VULCAN_CACHE_DIR", str(tmp_path / "cache"))
    return import_again("vulcan.kernels.compilation", monkeypatch)


@pytest.fixture
def kernels(compilation: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package with the smallest kernels."""
    folder = tmp_path / "glider"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("glider", "glider.kernels"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield import_module("glider.kernels")
    for name in ("glider", "glider.kernels"):
        sys.modules.pop(name, None)


def test_kernels_are_compiled_and_cached(
    compilation: ModuleType, kernels: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not kernels.last.signatures
    with caplog.at_level(logging.WARNING):
        compilation.announce_compilation(kernels.last)
        compilation.announce_compilation(kernels.quotient)
    assert caplog.text.count("compiling the search kernels") == 1  # once in a process
    array = np.arange(4.0)
    before = sys.getrefcount(array)
    assert kernels.last(array) == 6.0
    assert sys.getrefcount(array) == before
    assert len(kernels.last.signatures) == 1
    [file] = (tmp_path / "cache").glob("kernels-*/*/kernels.last-*.nbc")
    assert file.is_relative_to(compilation.cache_directory("glider.kernels"))
    compilation._announce.cache_clear()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        compilation.announce_compilation(kernels.last)  # it has been compiled
    assert not caplog.text
    assert kernels.last.targetoptions["nogil"]  # so that threads work at once


def test_divisions_by_zero_are_no_errors(kernels: Any) -> None:
    assert kernels.quotient(1.0, 0.0) == np.inf
    assert kernels.divide.targetoptions["error_model"] == "numpy"
    assert kernels.double.targetoptions["error_model"] == "numpy"
    assert kernels.double.targetoptions["forceinline"]
    assert "forceinline" not in kernels.divide.targetoptions


def test_answers_are_called_by_their_address(kernels: Any, tmp_path: Path) -> None:
    assert kernels.halve.ctypes(5.0) == 2.5
    assert len(list((tmp_path / "cache").glob("kernels-*/*/kernels.halve-*.nbc"))) == 1


def test_a_borrowed_array_belongs_to_nobody(kernels: Any) -> None:
    array = np.arange(3.0)
    lent = kernels.lend(array)
    assert lent.ctypes.data == array.ctypes.data
    assert lent.tolist() == array.tolist()
    assert lent is not array  # its owner is not known,
    assert lent.base is None  # and neither is what counts references to it


def test_numba_keeps_its_own_cache_for_others(compilation: ModuleType, kernels: Any) -> None:
    from numba.core import caching, config

    before = config.CACHE_DIR, caching.IndexDataCacheFile
    with compilation._own_cache("glider.kernels"):
        assert str(compilation.cache_directory("glider.kernels")) == config.CACHE_DIR
        assert caching.IndexDataCacheFile is compilation.KernelFile
    assert (config.CACHE_DIR, caching.IndexDataCacheFile) == before


def test_models_are_called_by_their_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    expansion: Any = import_again("vulcan.kernels.expansion", monkeypatch)
    call_outcomes, call_bound, call_value_bound = (
        expansion.call_outcomes,
        expansion.call_bound,
        expansion.call_value_bound,
    )

    @numba.cfunc("i8(u8, u8, i8, u8, u8)")
    def outcomes(parameters, state, action, answers, following):
        return parameters + 10 * state - 100 * action + 1000 * answers + 10000 * following

    @numba.cfunc("f8(u8, u8, i8)")
    def bound(parameters, state, step):
        return parameters + 10 * state - 100 * step + 0.5

    @numba.cfunc("f8(u8, u8, i8, f8)")
    def value_bound(parameters, state, step, price):
        return parameters + 10 * state - 100 * step + price

    @numba.njit
    def ask(addresses, numbers, price):
        one, two, three, four = numbers
        return (
            call_outcomes(addresses[0], one, two, np.int64(3), three, four),
            call_bound(addresses[1], one, two, np.int64(3)),
            call_value_bound(addresses[2], one, two, np.int64(3), price),
        )

    addresses = np.array([outcomes.address, bound.address, value_bound.address], np.uint64)
    numbers = tuple(np.uint64(number) for number in (1, 2, 4, 5))
    assert ask(addresses, numbers, 0.25) == (53721, -278.5, -278.75)
