"""How much memory there is: of the machine, of the container, of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vulcan.runtime import memory
from vulcan.runtime.memory import MemoryGrowth, find_default_memory, find_resident

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

    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
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
        "from vulcan.runtime.memory import find_default_memory; print(find_default_memory())"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(answer.stdout) <= GIGABYTE // 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it")
def test_growth_is_noticed():
    growth = MemoryGrowth()
    growth.start()
    assert find_resident() > 1 << 20
    assert not growth.exceeds(0)
    with growth.stopped():
        kept = bytearray(40 << 20)
    growth._looked = 0.0
    assert not growth.exceeds(0)
    more = bytearray(40 << 20)
    growth._looked = 0.0
    assert growth.exceeds(0)
    growth._looked = 0.0
    assert not growth.exceeds(60 << 20)
    del kept, more
