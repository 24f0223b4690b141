"""Runtime: what any long computation needs.

`limits` has the limits of a search, its progress and its monitor, `display` shows progress,
`memory` measures memory, `arrays` has growing arrays, checkpointed arrays and blocks for threads,
`files` writes and reads files, `formatting` turns numbers and tables into text, and `markup` into
HTML. May import: the root.
"""
