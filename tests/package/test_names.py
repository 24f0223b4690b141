"""The public names: sorted, described, and with examples that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re

import pytest

import vulcan
from tests.helpers.sources import LIBRARY, REPRODUCTION


def test_public_names_are_sorted_and_exist() -> None:
    assert vulcan.__all__ == sorted(vulcan.__all__)
    assert {"domains", "formats", "plotting", "testing"} <= set(vulcan.__all__)
    for name in vulcan.__all__:
        assert getattr(vulcan, name).__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", vulcan.__all__)
def test_public_names_describe_their_parameters(name: str) -> None:
    thing = getattr(vulcan, name)
    if inspect.isfunction(thing):
        parameters = list(inspect.signature(thing).parameters)
        assert "Parameters\n" in inspect.getdoc(thing)
        for parameter in parameters:
            assert re.search(rf"^{parameter}\b", inspect.getdoc(thing), re.MULTILINE), parameter
        assert "Returns\n" in inspect.getdoc(thing)


def test_no_module_is_hidden_by_a_name() -> None:
    for name in LIBRARY:
        importlib.import_module(name)
    for name in LIBRARY:
        parent, _, leaf = name.rpartition(".")
        if parent:
            found = getattr(importlib.import_module(parent), leaf)
            assert inspect.ismodule(found), f"{name} is hidden by {found!r}"


@pytest.mark.parametrize("module", [*LIBRARY, *REPRODUCTION])
def test_examples_in_docstrings(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0
