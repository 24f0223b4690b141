"""What a part of the report is: the runs that it needs, and what it shows of them.

A part has *tasks*, each of which a worker process runs by itself: what it is, is a JSON object, and
so is what it found. Both are kept as a *record*. From its records alone, a part makes its *section*
of the report, so that figures can be drawn again without running anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

__all__ = [
    "Claim",
    "Figure",
    "Part",
    "Record",
    "Section",
    "Table",
    "Task",
    "Verdict",
    "leave_open",
    "weigh",
]

Task = Mapping[str, Any]
"""What to run: names and values that JSON knows."""


@dataclass(frozen=True)
class Record:
    """What one task found.

    Attributes
    ----------
    task
        What was run.
    found
        What it found, as JSON knows it.
    seconds
        How long it took.
    made
        When, from which commit and with which versions: names and texts. Empty if it was not kept.
    """

    task: dict[str, Any]
    found: dict[str, Any]
    seconds: float
    made: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table of the report.

    Attributes
    ----------
    name
        Name of its file, without an ending.
    caption
        What it shows.
    header
        The names of the columns.
    rows
        The cells: texts and numbers, which the report rounds and the files don't; None is left
        empty.
    brief
        Whether it belongs beside the text, in the short page of the documents, too.
    rewards
        The columns of rewards, which that page shows with four decimals, as the paper does.
    """

    name: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    brief: bool = False
    rewards: Sequence[str] = ()


@dataclass(frozen=True)
class Figure:
    """A figure of the report.

    Attributes
    ----------
    name
        Name of its file, without an ending.
    caption
        What it shows.
    draw
        Draws it and returns its axes, with functions of `vulcan.plotting`; nothing where the
        records lack what it shows.
    """

    name: str
    caption: str
    draw: Callable[[], Any]


class Verdict(StrEnum):
    """Whether a claim holds."""

    HOLDS = "holds"
    PARTLY = "holds in part"
    FAILS = "does not hold"
    OPEN = "left open"

    @property
    def mark(self) -> str:
        """A sign that is told apart without colours, too."""
        return MARKS[self]

    @property
    def badge(self) -> str:
        """The verdict in HTML: in its colours, with its sign for those who see none."""
        ink, paper = COLOURS[self]
        style = f"color:{ink};background:{paper};border-radius:0.6em;padding:0.05em 0.5em"
        return f'<b style="{style};white-space:nowrap">{self.mark} {self}</b>'

    @property
    def meaning(self) -> str:
        """What the verdict says, in a sentence."""
        return MEANINGS[self]


MARKS: Mapping[Verdict, str] = {
    Verdict.HOLDS: "✓",
    Verdict.PARTLY: "◐",
    Verdict.FAILS: "✗",
    Verdict.OPEN: "○",
}

COLOURS: Mapping[Verdict, tuple[str, str]] = {
    Verdict.HOLDS: ("#00466e", "#cfe8f7"),
    Verdict.PARTLY: ("#5c4300", "#fdf0c8"),
    Verdict.FAILS: ("#7a2e00", "#f9d8c0"),
    Verdict.OPEN: ("#333333", "#e6e6e6"),
}
"""Of the text and behind it: blue to orange, which the colour-blind tell apart."""

MEANINGS: Mapping[Verdict, str] = {
    Verdict.HOLDS: "we measure what the paper says, as far as it prints it",
    Verdict.PARTLY: "true in some of the cases that the words cover, or with another number",
    Verdict.FAILS: "we measure something else",
    Verdict.OPEN: (
        "what was run can't decide it: the paper's own program, seconds or budgets would be "
        "needed, or the run was quick or was broken off; what we did measure stands beside it"
    ),
}


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, and whether it is so.

    Attributes
    ----------
    text
        What the paper says.
    found
        What we found, in a few words.
    verdict
        Whether it holds.
    paper, ours
        The paper's number and ours, for a table with one number to a cell; empty where the text
        has it or there is none.
    """

    text: str
    found: str
    verdict: Verdict
    paper: str = ""
    ours: str = ""


def weigh(holds: bool, otherwise: Verdict = Verdict.FAILS) -> Verdict:
    """Return that a claim holds, or else another verdict."""
    return Verdict.HOLDS if holds else otherwise


def leave_open(claims: Iterable[Claim], quick: bool) -> list[Claim]:
    """Return claims with what does not hold left open, if that may be for want of budgets only."""
    return [
        replace(claim, verdict=Verdict.OPEN)
        if quick and claim.verdict is not Verdict.HOLDS
        else claim
        for claim in claims
    ]


@dataclass(frozen=True)
class Section:
    """A part, as the report shows it.

    Attributes
    ----------
    paper
        What the paper reports.
    measured
        What we measured.
    meaning
        What the difference means, in one honest sentence.
    claims
        The paper's claims, one by one.
    tables, figures
        In the order in which they are shown.
    numbers
        The numbers that the text speaks of, for the JSON document.
    """

    paper: str
    measured: str
    meaning: str
    claims: Sequence[Claim] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


class Part(Protocol):
    """One result of the paper, or one of ours beyond it.

    Attributes
    ----------
    name
        A short word, for files and for `--only`.
    title
        The heading of its section.
    version
        Raised when what a task finds changes its meaning: old records are then run again.
    """

    name: str
    title: str
    version: int

    def tasks(self, quick: bool) -> Sequence[Task]:
        """Return what has to be run; fewer and smaller runs if it has to be quick."""

    def estimate(self, task: Task) -> float:
        """Return about how many seconds a task takes."""

    def run(self, task: Task) -> dict[str, Any]:
        """Run a task, in a worker process."""

    def show(self, records: Sequence[Record], quick: bool) -> Section:
        """Return the section; some records may be missing."""
