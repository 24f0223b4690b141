"""Numbers that stand for something in arrays, the same in every room.

They are negative where a row number is expected, so that none of them is ever a row.
"""

from typing import Final

# What comes after an outcome, instead of the number of a decision.
END: Final = -1
"""The history ends there."""
FAILED: Final = -2
"""The mission failed."""
UNPLANNED: Final = -3
"""Nothing is planned yet: the frontier of an incomplete policy."""

# What is known of a state, instead of how many actions it has.
UNASKED: Final = -1
"""Its actions were never asked."""
RELEASED: Final = -2
"""They were asked, and dropped since."""

# Where an outcome leads, instead of the number of a state.
FAILURE_STATE: Final = -1
"""To failure."""
NO_STATE: Final = -2
"""To a state that nobody needs."""

NONE: Final = -1
"""No row at all: nothing chosen, nothing opened, nothing stored."""
