"""Sections of the report, drawn and checked."""

from __future__ import annotations

import json

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from reproduction.part import Section


def check_section(section: Section) -> None:
    for table in section.tables:
        assert all(len(row) == len(table.header) for row in table.rows)
    for figure in section.figures:
        assert figure.draw().get_xlabel()
    json.dumps(dict(section.numbers))
    assert section.paper


TIMES = {"seconds"}


def without_times(found):
    runs = [{k: v for k, v in one.items() if k not in TIMES} for one in found.get("runs", [])]
    return {k: v for k, v in found.items() if k not in (*TIMES, "runs")} | {"runs": runs}


def check_drawn(section):
    for figure in section.figures:
        canvas = FigureCanvasAgg(figure.draw().get_figure(root=True))
        canvas.draw()
        assert np.asarray(canvas.buffer_rgba()).std() > 0
    for table in section.tables:
        assert all(len(row) == len(table.header) for row in table.rows)
    json.dumps(dict(section.numbers))
