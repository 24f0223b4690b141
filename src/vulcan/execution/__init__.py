"""What becomes of a policy after planning: it is simulated.

`simulation` plays episodes of a policy, compiled (`played`) or in a world of its own (`world`), and
`estimates` says what they show beside the exact values. May import: planning and everything below
it.
"""
