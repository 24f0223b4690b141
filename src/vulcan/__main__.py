"""`python -m vulcan`, for where the `vulcan` script is not on the path."""

import os
import sys

# Python puts the current directory first, where a file called numba.py would be taken for Numba.
if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]

from vulcan.cli import main

main()
