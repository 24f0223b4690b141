"""Execution: what happens after planning.

`replan` finds better plans for a run that is under way, within what was promised at its start:
`account` says what that allows, and `rest` is what is left of a mission as a model of its own. Runs
themselves live with policies. `simulation` plays episodes of a policy, compiled (`played`) or in a
world of its own (`world`), and `estimates` says what they show beside the exact values. May import:
everything but domains, plotting, formats, testing and cli.
"""
