"""Return codes of kernels and their parts: one number for each meaning, the same everywhere.

A kernel returns when it is done or needs something from Python, and is then called again. Its parts
may return a verdict, a step or a need, so no two codes share a number.
"""

from typing import Final

# The forms of local tests.
SURVIVAL: Final = 0
SEQUENCE: Final = 1
SEQUENCE_BY_OUTCOME: Final = 2
UNCONSTRAINED: Final = 3

# Whether an action or a history passes the local test.
REFUSED: Final = 1
ADMITTED: Final = 2
UNDECIDED: Final = 3  # the table of the bound must be finer at test.refine_at

# Whether the rows of a state or an action are filled.
KNOWN: Final = 11
NO_ACTION: Final = 12  # the state has no such action

# The next step of a search.
GO_ON: Final = 21
END_SAMPLE: Final = 22
FINALISED: Final = 23
REJECT: Final = 24

# What a kernel returns to Python.
DONE: Final = 31
PAUSED: Final = 32  # the budget of histories or of work is used up
NODE_LIMIT: Final = 33  # the work limit of one node is reached
NEEDS_STATE: Final = 41  # the actions of a state of a Python model
NEEDS_ROWS: Final = 42  # longer arrays in the state graph
NEEDS_BOUND: Final = 43  # a finer table of the bound at test.refine_at
NEEDS_ROOM: Final = 44  # longer arrays in the tree
NEEDS_LIMITS: Final = 45  # upper bounds for the actions of a history
NEEDS_PLAN: Final = 47  # a longer array for the policy
NEEDS_POINTS: Final = 48  # more points of fronts
NEEDS_PARTS: Final = 49  # more parts of points
NEEDS_SCRATCH: Final = 50  # longer scratch arrays
BROKEN: Final = 51  # a compiled model violates a rule at source.state and source.action
