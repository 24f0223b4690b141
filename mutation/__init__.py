"""How much of what could go wrong in the sources the tests would notice.

`python -m mutation` changes one thing in one module at a time (`mutants.py`: a mutant), and runs
the tests that reach the place until one fails. `subjects.py` says which modules, and which tests
may speak for them; `traces.py` finds out which of these reach which lines; `trials.py` tries a
mutant in a forked process (`processes.py`), so that no file is changed and libraries are loaded
once. Kernels are plain Python meanwhile (`plain_kernels.py`): to compile each of their mutants
would take days; diaries of what they leave in their arrays (tests/helpers/diaries.py) speak for
them. `report.py` writes the scores. Mutants that no test can tell from the original are
in `explained.toml`, with the reason.
"""
