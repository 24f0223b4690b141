"""The checks: each holds something that Vulcan does against what is true.

A check is given a case, the truth and the means to call Vulcan (`case`), and yields faults. Every
problem gets `answer`; the others are rarer: `forms` of a model, `opinions` of others on a policy,
`missions` that are played, `files` that are damaged, and `hostility`: models that lie, processes
that are killed, memory that is short. `registry` says how often each is made.
"""
