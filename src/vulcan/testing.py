"""Checks that any model can be run through before it is planned with.

`check_model` walks a model breadth first, one distinct state after the other, and reports every
rule that it breaks. The rules are those of `vulcan.reader`, at the first of which a planner gives
up, and some that no planner has the time to check:

    answers repeat          asked twice, a model gives the same answer, and at the end of the walk
                            its root still answers as it did at first
    states stay the same    no call changes a state that was met before
    hashes stay the same    nor its hash
    states compare          states with the same hash can be compared
    merges                  two histories reach equal states only where `merges` is not False

Examples
--------
>>> from vulcan.domains import Bandit
>>> report = check_model(Bandit(horizon=4))
>>> report.ok, report.states, report.evaluations
(True, 211, 336)
"""

from __future__ import annotations

from typing import Any

from vulcan.errors import OptionError
from vulcan.model_walk import ModelReport, Walk

__all__ = ["ModelReport", "check_model"]


def check_model(model: Any, *, most_states: int = 100_000) -> ModelReport:
    """Walk a model up to its horizon and report every rule that it breaks.

    The walk goes on after a violation wherever it can. Each question is asked twice.

    Parameters
    ----------
    model
        Any object that is meant to be a model; see `vulcan.Model`.
    most_states
        Stop when there are more distinct states than this.

    Returns
    -------
    ModelReport
        Its `ok` says whether the model may be planned with; printed, it says why not.

    Raises
    ------
    OptionError
        If `most_states` is not a whole number of at least 1.

    Examples
    --------
    In a test of your own model:

    >>> from vulcan.domains import Bandit
    >>> report = check_model(Bandit(horizon=3))
    >>> assert report.ok, report
    """
    if type(most_states) is not int or most_states < 1:
        raise OptionError(f"most_states must be a whole number of at least 1, not {most_states!r}")
    walk = Walk(model, most_states)
    walk.run()
    return walk.report()
