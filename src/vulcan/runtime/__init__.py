"""Runtime: what any long computation needs.

`limits` has the limits of a search, its progress and its monitor, `display` shows progress,
`memory` measures memory, `arrays` has growing arrays, checkpointed arrays and blocks for threads,
`files` writes and reads files, and `formatting` turns numbers and tables into text and HTML. May
import: the root.
"""
