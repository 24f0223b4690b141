"""Dynamic programs on a device: the same as on the processor, with numpy in place of the GPU."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vulcan
from tests.helpers.tables import bounds, tables
from vulcan.errors import OptionError
from vulcan.exact import device
from vulcan.exact.device import SWEEP, DeviceSweeps, sweep_level
from vulcan.exact.sweeps import Sweeps
from vulcan.graph.levels import build_levels
from vulcan.graph.states import open_graph
from vulcan.model.reader import ModelReader
from vulcan.runtime import devices
from vulcan.runtime.limits import Limits, Monitor
from vulcan.solvers.base import Options

SOLVERS = (vulcan.Lagrangian(randomised=True), vulcan.Pareto())
PRICES = [(1.0, 0.0), (0.0, 1.0), (1.0, 3.0), (1.0, 30.0), (0.25, 1.0)]


def unroll(table):
    return build_levels(open_graph(ModelReader(table)))


def compare(sweeps, levels):
    """Compare all that sweeps find with what the processor finds, bit for bit."""
    own = Sweeps(levels)
    for price, many in zip(PRICES, sweeps.follow_many(PRICES), strict=True):
        alone, wanted = sweeps.find_best(*price), own.find_best(*price)
        assert (alone.reward, alone.risk) == (wanted.reward, wanted.risk)
        assert np.array_equal(sweeps.choose(*price), own.choose(*price))
        given = (sweeps.follow(*price), many, own.follow(*price))
        for found, together, expected in zip(*given, strict=True):
            assert np.array_equal(found, expected)
            assert np.array_equal(together, expected)


@settings(max_examples=12, deadline=None)
@given(table=tables())
def test_array_operations_find_what_kernels_find(table):
    levels = unroll(table)
    if len(levels):
        compare(DeviceSweeps(levels, np), levels)


@pytest.fixture(scope="module")
def compiled_source(tmp_path_factory):
    """The kernel for the GPU, compiled for the processor."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    folder = tmp_path_factory.mktemp("device")
    source, library = folder / "sweep.cpp", folder / "sweep.so"
    source.write_text(SWEEP, encoding="utf-8")
    flags = ["-O1", "-ffp-contract=off", "-shared", "-fPIC", "-Wall", "-Wno-unused"]
    subprocess.run([compiler, *flags, "-o", library, source], check=True)
    sweep = ctypes.CDLL(str(library)).sweep

    def run(arrays, model, weights, after, here, asked, discount, begin, end):
        given = (*model, weights, after, here, *asked)
        pointers = [None if a is None else ctypes.c_void_p(a.ctypes.data) for a in given]
        ends = ctypes.c_longlong(begin), ctypes.c_longlong(end)
        sweep(*pointers, ctypes.c_double(discount), *ends, ctypes.c_int(weights.shape[1]))

    return run


def test_the_source_for_the_gpu_finds_what_kernels_find(compiled_source):
    @settings(max_examples=12, deadline=None)
    @given(table=tables())
    def check(table):
        levels = unroll(table)
        if not len(levels):
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device, "sweep_level", compiled_source)
            compare(DeviceSweeps(levels, np), levels)

    check()


@settings(max_examples=8, deadline=None)
@given(table=tables(), bound=bounds(), solver=st.sampled_from(SOLVERS))
def test_solvers_find_the_same_on_a_device(table, bound, solver):
    found, used = [], []

    def note(*given: Any) -> None:
        used.append(True)
        sweep_level(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "open_arrays", lambda: np)
        patch.setattr(device, "sweep_level", note)
        for name in ("cpu", "cuda"):
            problem, monitor = vulcan.Problem(table, bound), Monitor(Limits())
            options = Options(device=name)
            finding = solver.search(problem, ModelReader(table), monitor, options)
            found.append(finding)
            assert bool(used) == (name == "cuda" and bool(finding.statistics.nodes))
    assert found[0].status == found[1].status
    for name in ("reward", "upper_bound"):
        own, other = (getattr(finding, name) for finding in found)
        assert own == pytest.approx(other, rel=1e-9)


def test_what_is_missing_is_said(monkeypatch):
    problem = vulcan.Problem(vulcan.domains.Bandit(horizon=2), "0.002*x")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(OptionError, match=r"pip install 'vulcan-planner\[cuda\]'"):
        vulcan.solve(problem, device="cuda")
    with pytest.raises(OptionError, match="'cpu' or 'cuda', not 'gpu'"):
        vulcan.solve(problem, device="gpu")
    with pytest.raises(OptionError, match="Growth computes on no GPU; Automatic"):
        vulcan.solve(problem, vulcan.Growth(), device="cuda")


class Arrays:
    """A stand-in for CuPy on a machine of which something is wrong."""

    __name__ = "numpy"

    def __init__(self, count, fault=None):
        self.count, self.fault, self.cuda = count, fault, self
        self.runtime = self

    def __getattr__(self, name):
        if self.fault and name in ("zeros", "asarray"):
            raise self.fault
        return getattr(np, name)

    def getDeviceCount(self):
        return self.count


@pytest.mark.parametrize(
    ("arrays", "message"),
    [(Arrays(0), "there is none"), (Arrays(1, RuntimeError("no libnvrtc")), "no libnvrtc")],
)
def test_a_machine_without_a_gpu_is_told(monkeypatch, arrays, message):
    monkeypatch.setitem(sys.modules, "cupy", arrays)
    with pytest.raises(OptionError, match=message):
        devices.open_arrays()


def test_a_gpu_that_is_too_small_is_told():
    levels = unroll(vulcan.domains.Bandit(horizon=2))
    with pytest.raises(OptionError, match="memory of the GPU is too small"):
        DeviceSweeps(levels, Arrays(1, MemoryError()))
