"""Compiled models: models in machine code, which the search kernels call directly.

Python evaluates a model some tens of thousands of times a second; kernels call a Numba function
some millions of times. A model offers it as an attribute `compiled`, beside its plain methods, and
both must agree. Searches use the compiled form, while policies are written out and certified with
the plain one, so that an error in the compiled form raises `ModelError`.

A state is a record of fixed size, of any dtype. The functions are made with `numba.cfunc`, so that
their machine code is cached and has an address:

    outcomes(parameters, state, action, answers, following) -> count
    bound(parameters, state, step) -> reward                             (may be omitted)
    value_bound(parameters, state, step, price) -> value                 (may be omitted)
    last_value(parameters, state, step, price) -> value                  (may be omitted)

`outcomes` writes the outcomes of an action, given by its number, into `answers` (of dtype `ANSWER`)
and the state after each safe one into `following`, safe outcomes first. It returns their number,
0 if the state has no such action; a state without actions is a safe terminal. Actions are numbered
in the order in which the plain model lists them. `bound` is the model's `reward_to_go_bound`, and
`value_bound` its `value_to_go_bound`. `last_value` is what the best policy attains, exactly: the
largest expected reward to come less the price times the risk to come. It is called where at most
`last_steps` steps are left, so that proofs of upper bounds end that many steps early; models can
find it for all outcomes of those steps at once.

Numba functions see pointers: `numba.carray(pointer, length)` makes an array of one. The parameters
are copied for each search, so that the functions may use part of them as scratch space.
`outcomes_signature`, `bound_signature` and `value_bound_signature` give the types for
`numba.cfunc`; `last_value` has that of `value_bound`. A complete example is `examples/glider.py`
in the repository.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.errors import OptionError

ANSWER: Final = np.dtype([("probability", "f8"), ("reward", "f8"), ("fails", "i8")])
"""An outcome as `outcomes` writes it; `fails` is 1 for a failure, else 0."""


Tabulate = Callable[[Any, float | None], Callable[[NDArray[Any]], None] | None]


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """The compiled form of a model.

    Parameters
    ----------
    initial
        The record of the initial state: an array of one element, whose dtype is that of states.
    parameters
        An array that is passed to the functions.
    actions
        The label of each action, by number.
    most_outcomes
        The largest number of outcomes of an action.
    outcomes, bound, value_bound, last_value
        The functions, made with `numba.cfunc`.
    last_steps
        How many steps before the end `last_value` can evaluate a state; 0 without it.
    tabulate
        Computes values of many histories at once on a GPU, at a price: `tabulate(arrays, price)`,
        with CuPy as `arrays`, returns a function that shows them to those above, by writing into
        the parameters that it gets; None if it can't. `value_bound` is exact where it finds them.
        Without a price (None) it only loads what it needs.
    """

    initial: NDArray[Any]
    parameters: NDArray[Any]
    actions: Sequence[str]
    most_outcomes: int
    outcomes: Any
    bound: Any = None
    value_bound: Any = None
    last_value: Any = None
    last_steps: int = 0
    tabulate: Tabulate | None = None

    def __post_init__(self) -> None:
        for name in ("initial", "parameters"):
            if not isinstance(getattr(self, name), np.ndarray):
                raise OptionError(f"{name} of a compiled model must be a numpy array")
        objects = self.initial.dtype.hasobject or self.parameters.dtype.hasobject
        if self.initial.size != 1 or objects:
            raise OptionError("a compiled model has one initial state, and no Python objects in it")
        labels = {label for label in self.actions if isinstance(label, str)}
        if isinstance(self.actions, str) or not labels or len(labels) < len(self.actions):
            raise OptionError("actions of a compiled model must be distinct labels")
        if type(self.most_outcomes) is not int or self.most_outcomes < 1:
            raise OptionError("most_outcomes of a compiled model must be at least 1")
        if type(self.last_steps) is not int or (self.last_steps > 0) != bool(self.last_value):
            raise OptionError(
                "last_steps of a compiled model must be a whole number, at least 1 if there is a "
                "last_value, else 0"
            )
        for name, function, signature in (
            ("outcomes", self.outcomes, outcomes_signature),
            ("bound", self.bound, bound_signature),
            ("value_bound", self.value_bound, value_bound_signature),
            ("last_value", self.last_value, value_bound_signature),
        ):
            if function is None and name != "outcomes":
                continue
            # Calling a function of any other type could do anything.
            wanted = signature(self.initial.dtype, self.parameters.dtype)
            if getattr(function, "_sig", None) != wanted or not hasattr(function, "address"):
                raise OptionError(
                    f"{name} of a compiled model must be made with "
                    f"numba.cfunc({signature.__name__}(state, parameters)), with the dtypes of "
                    "`initial` and `parameters`"
                )


def outcomes_signature(state: Any, parameters: Any) -> Any:
    """Return the type of `outcomes` for `numba.cfunc`, from the dtypes of states and parameters."""
    from numba import types

    places = (_point_to(parameters), _point_to(state))
    return types.int64(*places, types.int64, _point_to(ANSWER), _point_to(state))


def bound_signature(state: Any, parameters: Any) -> Any:
    """Return the type of `bound` for `numba.cfunc`, from the dtypes of states and parameters."""
    from numba import types

    return types.float64(_point_to(parameters), _point_to(state), types.int64)


def value_bound_signature(state: Any, parameters: Any) -> Any:
    """Return the type of `value_bound` and `last_value` for `numba.cfunc`, likewise."""
    from numba import types

    places = (_point_to(parameters), _point_to(state))
    return types.float64(*places, types.int64, types.float64)


def _point_to(dtype: Any) -> Any:
    """Return the type of a pointer to an element."""
    import numba

    return numba.types.CPointer(  # type: ignore[no-untyped-call]
        numba.from_dtype(np.dtype(dtype))
    )


def forget_compiled(model: Any) -> Any:
    """Return a copy of a model without its cached compiled form: machine code can't be pickled."""
    if "compiled" not in getattr(model, "__dict__", ()) or not hasattr(type(model), "compiled"):
        return model
    other = copy(model)
    other.__dict__.pop("compiled", None)
    return other
