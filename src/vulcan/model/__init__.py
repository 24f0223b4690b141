"""Models: what users write, and how Vulcan asks it.

`interface` is what a user writes (`Model`, `Outcome`, `Start`), `rules` what every answer must
keep, `reader` the only way in which the rest of Vulcan asks a model, `workers` the same in several
processes, `compiled` models whose answers are machine code, and `checker` everything that is wrong
with a model, in a `report`. May import: the root, runtime.
"""
