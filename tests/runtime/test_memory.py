"""How much memory there is, and what objects take of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vulcan
from vulcan import Outcome
from vulcan.runtime import limits as runtime_limits
from vulcan.runtime.limits import Limits, Monitor, find_default_memory, read_resident_memory

GIGABYTE = 1 << 30


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Write what the system says of groups."""

    def write(own: str, **limits: str) -> None:
        (tmp_path / "own").write_text(own)
        for place, text in limits.items():
            path = tmp_path / place.replace("__", "/").replace("_DOT_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    monkeypatch.setattr(runtime_limits, "GROUPS", tmp_path)
    monkeypatch.setattr(runtime_limits, "OWN_GROUPS", tmp_path / "own")
    return write


@pytest.mark.parametrize(
    ("own", "limits", "found"),
    [
        ("0::/\n", {"memory_DOT_max": "1000000\n"}, 500_000),
        ("0::/\n", {"memory_DOT_max": "max\n", "memory_DOT_high": "800000\n"}, 400_000),
        # The narrowest of the groups around it counts.
        ("0::/a/b\n", {"a__memory_DOT_max": "600000", "a__b__memory_DOT_max": "max"}, 300_000),
        # The first version of groups; the path may be known to the machine alone.
        (
            "4:memory:/docker/x\n1:cpu:/y\n",
            {"memory__memory_DOT_limit_in_bytes": "2000000\n", "memory_DOT_max": "1000"},
            1_000_000,
        ),
        ("3:cpu,memory:/x\n", {"memory__x__memory_DOT_limit_in_bytes": "4000"}, 2000),
    ],
)
def test_the_container_counts(groups, own, limits, found):
    groups(own, **limits)
    assert find_default_memory() == found


def test_without_any_group_the_machine_counts(groups):
    groups("0::/\n", memory_DOT_max="max\n")
    pages = Path("/proc/meminfo").read_text().split()[1]
    assert find_default_memory() <= 512 * int(pages) + 4096


def test_limits_of_the_process_count():
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from vulcan.runtime.limits import find_default_memory; print(find_default_memory())"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(answer.stdout) <= GIGABYTE // 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_growth_is_noticed():
    def exceeds(most: int) -> bool:
        monitor.limits, monitor._measured = Limits(memory=most), 0.0
        monitor.stopped_by = None
        return monitor.wants_stop(0) and monitor.stopped_by == "limit of memory"

    with Monitor(Limits()) as monitor:
        monitor.start_clock()
        assert read_resident_memory() > 1 << 20
        assert not exceeds(0)
        with monitor.clock_stopped():
            kept = bytearray(40 << 20)
        assert not exceeds(0)
        more = bytearray(40 << 20)
        assert exceeds(0)
        assert not exceeds(60 << 20)
    del kept, more


class Growing:
    """States of five kilobytes, of which there is no end."""

    horizon = 10_000

    def initial_state(self) -> Any:
        return (0, b"")

    def actions(self, state: Any) -> list[str]:
        return ["go"]

    def outcomes(self, state: Any, action: str) -> list[Outcome]:
        following = (2 * state[0] + 1, 2 * state[0] + 2)
        return [Outcome(0.5, 1.0, (to, to.to_bytes(8, "big") * 600)) for to in following]


def test_fat_states_come_to_the_limit():
    problem = vulcan.Problem(Growing(), vulcan.Constant(0.5))
    result = vulcan.solve(problem, vulcan.Lagrangian(), limits=vulcan.Limits(memory=30_000_000))
    assert result.stopped_by == "limit of memory"
    assert result.statistics.evaluations < 30_000  # memory is measured now and then
