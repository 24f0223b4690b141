"""Risk bounds: how much probability of failure is acceptable for how much expected reward.

`base` is what every bound offers; `straight` and `concave` are the kinds; `parsing` reads them from
strings. `table` is a bound as kernels see it, and `shape` checks that it is concave and
nondecreasing. May import: the root.
"""
