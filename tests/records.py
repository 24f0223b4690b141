"""Records of reproductions that were broken off, for the tests of the report."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from vulcan.reproduce import Part, Record


def show_any(part: Part, records: Sequence[Record]) -> None:
    """Show some records of a part: a run may be broken off at any moment."""
    rng = random.Random(part.name)
    for _ in range(30):
        some = rng.sample(list(records), rng.randrange(len(records) + 1))
        section = part.show(some, quick=rng.random() < 0.5)
        assert section.paper
        json.dumps(dict(section.numbers))
        for table in section.tables:
            assert all(len(row) == len(table.header) for row in table.rows)
        assert all(claim.text and claim.found for claim in section.claims)
