"""The clock of a search: when questions end, and what counts."""

from __future__ import annotations

import pytest

from tests.conftest import Clock
from vulcan.runtime.limits import Limits, Monitor, TimeUp, check_time


def test_questions_end_with_the_time_and_a_little_more(clock: Clock) -> None:
    check_time()
    with Monitor(Limits(time_limit=10)) as monitor:
        clock.now += 100
        check_time()  # kernels may be compiled before the search begins
        monitor.start_clock()
        clock.now += 10
        check_time()
        with monitor.clock_stopped():
            clock.now += 100
        check_time()
        clock.now += 1
        with pytest.raises(TimeUp):
            check_time()
        monitor.grant_certificate()
        check_time()
        clock.now += 1
        with pytest.raises(TimeUp):
            check_time()
        monitor.grant_certificate(expected=10)  # a moment would not do
        with pytest.raises(TimeUp):
            check_time()
    check_time()


def test_a_part_of_the_time(clock: Clock) -> None:
    with Monitor(Limits(time_limit=10)) as monitor:
        monitor.start_clock()
        clock.now += 2
        with monitor.part(0.5):
            clock.now += 100  # kernels
            monitor.start_clock()
            clock.now += 3
            assert not monitor.wants_stop(0)
            clock.now += 1
            assert monitor.wants_stop(0)
            clock.now += 4
            check_time()  # a certificate may take what is left of the whole
            clock.now += 1
            with pytest.raises(TimeUp):
                check_time()
        assert monitor.seconds == 11
