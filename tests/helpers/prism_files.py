"""Small files for model checkers."""

from pathlib import Path

COURIER = Path(__file__).parents[2] / "examples" / "courier.prism"

WALK = """mdp
const int length;
const double slip = 0.1;
module walker
    x : [0..length] init 0;
    fell : bool init false;
    [run]  !fell & x < length -> 1 - slip : (x' = min(x + 2, length)) + slip : (fell' = true);
    [walk] !fell & x < length -> (x' = x + 1);
    []     !fell & x < length -> true;
    []     !fell & x = 1 -> (x' = 0);
endmodule
label "arrived" = x = length;
rewards "haste"
    x > 0 : 0.5;
    [run] true : 2;
endrewards
rewards "steps"
    [walk] true : 1;
endrewards
"""
"""A walk of some length: running may fail, walking does not, and the rest has no name."""
