"""Settings for all tests."""

import os
import signal

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
