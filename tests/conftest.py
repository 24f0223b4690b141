"""Settings for all tests."""

import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Assertions of helpers tell as much as those of tests.
pytest.register_assert_rewrite("tests.helpers", "tests.oracles", "tests.golden")

# Examples are drawn afresh each time on a developer's machine, and always the same ones in CI.
settings.register_profile(
    "default",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell that runs tests in the background has them ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Ray looks at it when it is imported, by whichever test: no cluster listens beyond loopback.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


# Whole programs and experiments, several processes or threads, figures, and what needs a cluster.
SLOW_PLACES = (
    "cli/test_compare",
    "cli/test_process",
    "docs/test_snippets",
    "examples/",
    "parallel/",
    "kernels/",
    "model/test_workers",
    "package/test_examples",
    "package/test_notebooks",
    "planning/test_sweeps",
    "plotting/",
    "reproduction/",
    "runtime/test_answer_timeout",
    "exact/test_threads",
    "sampling/test_crafted_checkpoints",
    "sampling/test_distributed",
)
SLOW_TESTS = {
    "cli/test_solve": "a_search_is_resumed the_readme_shows",
    "cli/test_application": "a_built_in_model_imports a_module_from_here_does_not",
    "domains/exploration/test_model": "model_keeps_all",
    "package/test_package": "nothing_that_reads nothing_is_evaluated no_connection the_hook",
    "runtime/test_files": "two_processes_write threads_of_one a_search_that_can_not",
    "runtime/test_memory": "fat_states_come",
    "sampling/test_checkpoint": "a_seed_repeats a_run_limited threads_ a_resumed_search_ends_"
    "where_an_unbroken_one_ends[",
    "sampling/test_limits": "ctrl_c_ a_model_that_raises_late",
    "sampling/test_vulcan": "earns_",
}
"""How the names of other slow tests begin, after `test_`, by file."""

SLOW_FIXTURES = {"ray_cluster", "ray_executor"}

# With CI=true every other skipped test fails: `.ci/run` installs what tests need.
SKIPS_IN_CI = (
    "only root gives directories away",
    "git knows which files are ours",
)


def _fail_if_skipped(report):
    """Turn a skipped test, or a skipped file of tests, into a failure unless it is listed."""
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        path, line, reason = report.longrepr
        if reason.removeprefix("Skipped: ") not in SKIPS_IN_CI:
            report.outcome = "failed"
            report.longrepr = (
                f"{path}:{line}: skipped although CI=true ({reason}); install what it needs, or "
                "add the reason to SKIPS_IN_CI in tests/conftest.py"
            )
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Fail on tests that CI must not skip."""
    return _fail_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Fail on files of tests that CI must not skip."""
    return _fail_if_skipped((yield))


def pytest_collection_modifyitems(items):
    """Leave what takes long by its nature to `make slow`."""
    here = Path(__file__).parent
    for item in items:
        if not item.path.is_relative_to(here):
            continue
        place = item.path.relative_to(here).as_posix()
        chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
        on_ray = SLOW_FIXTURES & {*item.fixturenames} or any(c == "ray" for c in map(str, chosen))
        begun = SLOW_TESTS.get(place.removesuffix(".py"), "").split()
        named = item.name.removeprefix("test_").startswith(tuple(begun))
        if on_ray or named or place.startswith(SLOW_PLACES):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def ray_cluster():
    """Return a local Ray cluster of three cores, to which tests add nodes that they take away.

    Each process that runs tests has one of its own, if it has such tests.
    """
    pytest.importorskip("ray")
    from tests.helpers.cluster import open_cluster

    with open_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ray_executor(ray_cluster):
    """Return the executor of two workers on it."""
    from vulcan.parallel.ray_cluster import Ray

    return Ray(workers=2)


class Clock:
    """A clock that only tests and their models move."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


@pytest.fixture
def processor_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time limits be of processor time, which other processes do not take part of."""
    monkeypatch.setattr(time, "perf_counter", time.process_time)
