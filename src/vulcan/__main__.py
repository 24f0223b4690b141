"""`python -m vulcan`, for where the `vulcan` script is not on the path."""

from vulcan.cli import main

main()
