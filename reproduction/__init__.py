"""The paper's experiments, run again: every table and figure, in one report.

`reproduce` runs what has no record yet of all parts (`reproduction.parts`), and writes the
report. What a part is, is in `part`; `store` keeps raw data, `runner` runs tasks on all
cores, `report` makes the page, and `paper` has the paper's own numbers.
"""

from reproduction.part import Claim, Figure, Part, Record, Section, Table, Task, Verdict
from reproduction.reproduction import Report, reproduce

__all__ = [
    "Claim",
    "Figure",
    "Part",
    "Record",
    "Report",
    "Section",
    "Table",
    "Task",
    "Verdict",
    "reproduce",
]
