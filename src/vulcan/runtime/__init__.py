"""Runtime: what a long computation needs, whatever it computes.

`limits` say when to stop, `monitor` watches them, the clock and Ctrl-C (`interruption`), `progress`
is what a search tells, `display` shows it, `formatting` turns numbers and tables into strings,
`files` are written at once or not at all, `texts` are read, `packing` makes arrays of bytes,
`garbage` keeps Python's collector out of the way, and a
`team` of threads shares levels.
May import: the root.
"""
