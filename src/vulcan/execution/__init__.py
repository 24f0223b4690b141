"""Execution: what happens after planning.

`replan` finds better plans for a run that is under way, within what was promised at its start:
`account` says what that allows, and `rest` is what is left of a mission as a model of its own. Runs
themselves live with policies. May import: everything but domains, formats, testing and cli.
"""
