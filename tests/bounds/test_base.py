"""What all risk bounds share: parameters, values, strings, copies and factors."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from tests.helpers.risk_bounds import straight
from vulcan import BoundError, Concave, Constant, Linear, PiecewiseLinear, RiskBound

# Parameters.


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Constant("0.1"), "level must be a finite number, not '0.1'"),
        (lambda: Constant(None), "level must be a finite number, not None"),
        (lambda: Constant(True), "level must be a finite number, not True"),
        (lambda: Constant(math.nan), "level must be a finite number, not nan"),
        (lambda: Constant(math.inf), "level must be a finite number, not inf"),
        (lambda: Constant(1j), "level must be a finite number, not 1j"),
        (lambda: Constant(10**400), "level must be a finite number; this is too large"),
        (lambda: Constant(10**5000), "level must be a finite number; this is too large"),
        (lambda: Constant([0.1]), r"level must be a finite number, not \[0.1\]"),
        (lambda: Linear("x"), "slope must be a finite number, not 'x'"),
        (lambda: Linear(math.nan), "slope must be a finite number, not nan"),
        (lambda: Linear(-math.inf), "slope must be a finite number, not -inf"),
        (lambda: Linear(-1e-9), "must not decrease: slope must be at least 0, not -1e-09"),
        (lambda: Linear(0.1, math.nan), "offset must be a finite number, not nan"),
        (lambda: Linear(0.1, None), "offset must be a finite number, not None"),
        (lambda: PiecewiseLinear(3), r"points must be a list of pairs .*, not 3"),
        (lambda: PiecewiseLinear(None), "points must be a list of pairs"),
        (lambda: PiecewiseLinear([1, 2]), "points must be a list of pairs"),
        (lambda: PiecewiseLinear([(0, 0), (1,)]), "points must be a list of pairs"),
        (lambda: PiecewiseLinear([(0, 0), (1, 2, 3)]), "points must be a list of pairs"),
        (lambda: PiecewiseLinear({0: 0.1, 1: 0.2}), "points must be a list of pairs"),
        (lambda: PiecewiseLinear(["ab", "cd"]), "a point's reward must be a finite number"),
        (lambda: PiecewiseLinear([(0, 0), (1, "a")]), "a point's risk must be a finite number"),
        (lambda: PiecewiseLinear([(0, 0), (math.nan, 1)]), "reward must be a finite number"),
        (lambda: PiecewiseLinear([(0, -math.inf), (1, 1)]), "risk must be a finite number"),
        (lambda: PiecewiseLinear([]), "at least two points"),
        (lambda: PiecewiseLinear([(0, 0)]), "at least two points"),
        (lambda: PiecewiseLinear([(1, 0), (0, 1)]), r"must increase: 1\.0 is followed by 0\.0"),
        (lambda: PiecewiseLinear([(1, 0), (1, 1)]), r"must increase: 1\.0 is followed by 1\.0"),
        (lambda: PiecewiseLinear([(0, 1), (1, 0)]), r"not decrease: 1\.0 at 0\.0, 0\.0 at 1\.0"),
        (
            lambda: PiecewiseLinear([(0, 0), (1, 0.01), (2, 0.05)]),
            r"not concave: 0\.01 at 1\.0 lies below the line from 0\.0 at 0\.0 to 0\.05 at 2\.0",
        ),
        (lambda: PiecewiseLinear([(0, 0), (5e-324, 1)]), "slope .* this is too large"),
        (lambda: Concave(0.1), "needs a function, not 0.1"),
        (lambda: Concave("x"), "needs a function, not 'x'"),
        (lambda: Concave(abs, derivative=1), "derivative must be a function, not 1"),
    ],
)
def test_a_bad_parameter_is_named(make, problem):
    with pytest.raises(BoundError, match=problem):
        make()


def test_numbers_of_other_types_are_floats_inside():
    assert Constant(np.float32(0.5)).text == "0.5"
    assert Linear(np.float64(0.25), np.int64(1)).text == "0.25 * x + 1.0"
    assert Linear(Fraction(1, 4)).slope == 0.25
    assert type(Linear(Fraction(1, 4)).slope) is float
    assert PiecewiseLinear(np.array([[0, 0], [1, 0.5]])).points == ((0.0, 0.0), (1.0, 0.5))
    assert PiecewiseLinear((k, k) for k in range(2)).points == ((0.0, 0.0), (1.0, 1.0))


def test_a_risk_bound_itself_is_abstract():
    with pytest.raises(TypeError):
        RiskBound()


# Values.


def test_values():
    assert Constant(0.0125)(-5.0) == Constant(0.0125)(1e9) == 0.0125
    assert Linear(0.002, 0.5)(10.0) == 0.52
    bound = PiecewiseLinear([(0, 0), (1, 0.5), (3, 1)])
    assert [bound(x) for x in (-2, 0, 0.5, 1, 2, 3, 4, 1e300)] == [-1, 0, 0.25, 0.5, 0.75, 1, 1, 1]


def test_texts_and_equality():
    assert Constant(0.5) == Linear(0, 0.5)
    assert Constant(0.5) != Constant(0.25)
    assert Linear(1.0) != PiecewiseLinear([(0, 0), (1, 1)])
    assert PiecewiseLinear([(0, 0), (1, 1)]) == PiecewiseLinear(((0.0, 0.0), (1.0, 1.0)))
    assert len({Constant(0.5), Linear(0.0, 0.5), Linear(0.5)}) == 2
    assert [str(Constant(0.5)), str(Linear(0.5)), str(Linear(1, -1))] == [
        "0.5",
        "0.5 * x",
        "1.0 * x + -1.0",
    ]
    assert str(PiecewiseLinear([(0, 0), (1, 1)])) == "piecewise((0.0, 0.0), (1.0, 1.0))"
    assert repr(Constant(0.5)) == "Constant(0.5)"
    assert Concave(math.sqrt).text is None
    assert str(Concave(math.sqrt)) == "Concave(sqrt)"
    assert str(Concave(math.sqrt, text="sqrt(x)")) == "sqrt(x)"
    assert Constant(0.5) != 0.5


@given(straight)
def test_bounds_can_be_copied_and_not_changed(bound):
    assert pickle.loads(pickle.dumps(bound)) == bound
    name = "points" if isinstance(bound, PiecewiseLinear) else "slope"
    with pytest.raises(AttributeError):
        setattr(bound, name, 1.0)


@pytest.mark.parametrize("factor", [0, -1.0, math.nan, math.inf, "2", True, None])
@pytest.mark.parametrize(
    "bound", [Constant(0.1), Linear(0.1), PiecewiseLinear([(0, 0), (1, 1)]), Concave(math.sqrt)]
)
def test_a_factor_is_a_positive_number(bound, factor):
    with pytest.raises(BoundError, match="the factor of a bound must be"):
        bound.scale(factor)


def test_a_factor_that_is_too_large_for_a_bound():
    with pytest.raises(BoundError, match="must be a finite number, not inf"):
        Linear(1e300).scale(1e300)
