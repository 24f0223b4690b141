"""Exploration missions, drawn on their map.

`follow_policy` finds all histories of a policy (`journeys`, `journey_walk`), `choose_outcomes` the
most telling ones (`routes`, `choice`), and then there is a figure for one of them (`mission`,
`animation`), for several side by side (`outcomes`) and for all (`visits`, `risk_reward`), all on
the same `terrain`. May import: what domains may, and plotting.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
