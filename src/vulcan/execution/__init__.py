"""Execution: what happens after planning.

`replan` finds better plans for a run that is under way, within what was promised at its start:
`account` says what that allows, and `evidence` takes what was measured into account. Runs
themselves live with policies. `simulation` plays episodes of a policy, compiled (`played`) or in
another model or environment (`world`), and `estimates` says what they show beside the exact values.
May import: everything but domains, plotting, formats, testing and cli.
"""
