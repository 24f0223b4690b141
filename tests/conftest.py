"""Settings for all tests."""

import importlib.util
import os
import signal
import sys

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


@pytest.fixture(scope="session")
def ray():
    """A Ray cluster of this machine alone, started by Vulcan, with two cores."""
    import vulcan

    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    yield vulcan.Ray(workers=2)
    sys.modules["ray"].shutdown()
