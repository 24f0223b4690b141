"""Settings for all tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Assertions of helpers tell as much as those of tests.
pytest.register_assert_rewrite("tests.helpers", "tests.oracles", "tests.golden")

# Examples are drawn afresh each time on a developer's machine, and always the same ones in CI.
settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
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
    "cli/test_draw",
    "cli/test_frontier",
    "cli/test_path",
    "cli/test_process",
    "docs/test_snippets",
    "domains/exploration/drawing/",
    "domains/exploration/test_counting",
    "domains/exploration/test_model",
    "executors/",
    "kernels/test_cache.py",
    "kernels/test_compilation",
    "model/test_workers",
    "package/test_examples",
    "package/test_notebooks",
    "package/test_security",
    "planning/test_sweeps",
    "plotting/",
    "reproduction/",
    "runtime/test_hardship",
    "runtime/test_patience",
    "runtime/test_sizes",
    "solvers/layered/test_threads",
    "solvers/tree/test_crafted_checkpoints",
    "solvers/tree/test_forest",
    "solvers/tree/test_interruption",
    "solvers/tree/test_never_worse",
    "solvers/tree/test_split_search",
    "solvers/tree/test_vulcan_repeats",
)
SLOW_FIXTURES = {"ray_cluster", "ray_executor"}


def pytest_collection_modifyitems(items):
    """Leave what takes long by its nature to `make slow`."""
    for item in items:
        place = item.path.relative_to(Path(__file__).parent).as_posix()
        chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
        on_ray = SLOW_FIXTURES & {*item.fixturenames} or any(c == "ray" for c in map(str, chosen))
        if on_ray or place.startswith(SLOW_PLACES):
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
    from vulcan.executors.cluster import Ray

    return Ray(workers=2)
