"""Lines: a request to stop is for the calls that were made before it."""

from __future__ import annotations

import pytest

from vulcan.errors import OptionError
from vulcan.executors.base import Line, require_workers


def test_a_line_begins_unstopped() -> None:
    line = Line()
    assert not line.stopped
    line.begin(1)
    assert not line.stopped


def test_a_request_reaches_calls_that_have_not_begun_and_no_later_ones() -> None:
    line = Line()
    line.begin(1)
    line.stop(2)
    assert line.stopped
    line.begin(2)
    assert line.stopped
    line.stop(1)  # late, and out of order
    assert line.stopped
    line.begin(3)
    assert not line.stopped


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True, None])
def test_numbers_of_workers_are_whole_and_positive(workers: object) -> None:
    with pytest.raises(OptionError, match="at least 1"):
        require_workers(workers)
