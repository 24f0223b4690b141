"""Errors come home as what they were, or at least with their words."""

from __future__ import annotations

import pickle

from tests.helpers.workers import OddError
from vulcan.errors import ModelError
from vulcan.executors.faults import pack_fault, unpack_fault
from vulcan.model.rules import Rule, Violation


def carry(error: Exception) -> BaseException:
    """Raise an error, and return what arrives of it."""
    try:
        raise error
    except Exception as raised:
        return unpack_fault(pickle.loads(pickle.dumps(pack_fault(raised, pickle))))


def test_an_error_arrives_with_the_place_where_it_was_raised() -> None:
    arrived = carry(KeyError("word"))
    assert type(arrived) is KeyError
    assert arrived.args == ("word",)
    assert "In a worker" in arrived.__notes__[0]
    assert "in carry" in arrived.__notes__[0]


def test_errors_of_models_keep_what_they_say() -> None:
    violation = Violation(Rule.ANSWERS, "wrong", (1, 2), "go")
    arrived = carry(ModelError(violation))
    assert isinstance(arrived, ModelError)
    assert arrived.violation == violation


def test_what_cannot_be_made_again_is_told_in_words() -> None:
    class LocalError(Exception):
        pass

    assert str(carry(OddError("place", 3))) == "OddError: odd place 3"
    assert str(carry(LocalError("inside"))) == "LocalError: inside"
