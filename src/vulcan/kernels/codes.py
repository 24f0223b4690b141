"""What kernels and their parts return: one number for each meaning, in all of them.

A kernel returns when it is done or needs something that only Python can give, and is then called
again. Its parts return verdicts and steps, some of them beside a need, so that no two codes may be
the same number.
"""

from typing import Final

# Whether an action or a history passes the local constraint.
REFUSED: Final = 1
ADMITTED: Final = 2
UNDECIDED: Final = 3  # the table of the bound must be finer at test.asked

# Whether something is known of a state or an action.
KNOWN: Final = 11
NO_ACTION: Final = 12  # the state has no such action

# How a search goes on.
GO_ON: Final = 21
END_SAMPLE: Final = 22
SETTLED: Final = 23
REJECT: Final = 24

# What a kernel returns to Python.
DONE: Final = 31
PAUSED: Final = 32  # the budget of histories or of work is used up
IMPATIENT: Final = 33  # one node takes long
NEEDS_STATE: Final = 41  # the actions of a state: Python must ask for them
NEEDS_ROWS: Final = 42  # longer arrays in the state graph
NEEDS_BOUND: Final = 43  # a finer table of the bound at test.asked
NEEDS_ROOM: Final = 44  # longer arrays in the tree
NEEDS_LIMITS: Final = 45  # upper bounds for the actions of a history
NEEDS_CHOICE: Final = 46  # the user's choice at a history
NEEDS_PLAN: Final = 47  # a longer array for the policy
NEEDS_POINTS: Final = 48  # more points of fronts
NEEDS_PARTS: Final = 49  # more parts of points
NEEDS_SCRATCH: Final = 50  # longer scratch arrays
NEEDS_PIECE: Final = 52  # what others find out from a history on
BROKEN: Final = 51  # a compiled model broke a rule, at source.state and source.action
