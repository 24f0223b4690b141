"""Write the table of docs/howto/rddl.md: which problems of rddlrepository load, by trying all.

python rddl/table.py --seconds 1

Each instance is opened in a process of its own, and its states are listed level by level until none
is new, or the seconds (of processor time) are over. The model and the answers about its first state
may take `PATIENCE` times as long.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import re
import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time
from typing import Any, Final

from vulcan.errors import VulcanError
from vulcan_rddl import from_rddl

PAGE: Final = Path(__file__).parents[1] / "docs" / "howto" / "rddl.md"
TABLE: Final = re.compile(r"(<!-- problems -->\n).*?(<!-- end of problems -->)", re.DOTALL)
PATIENCE: Final = 10
MEMORY: Final = 3 << 30


@dataclass(frozen=True)
class Trial:
    """What became of one instance.

    Attributes
    ----------
    loads
        Whether the model was made and answered about its first state.
    whole
        Whether all its states were listed.
    states, pairs
        How many states were seen, and how many pairs of state and action asked.
    reason
        Why it does not load; empty if it does.
    """

    loads: bool = False
    whole: bool = False
    states: int = 0
    pairs: int = 0
    reason: str = ""


def walk(model: Any, seconds: float) -> Iterator[Trial]:
    """Yield what is known after the first state, and after all that could be listed."""
    start = model.initial_state()
    seen, level, pairs = {start}, [start], 0
    for _ in range(model.horizon):
        following = []
        for state in level:
            for action in model.actions(state):
                pairs += 1
                for outcome in model.outcomes(state, action):
                    if not outcome.fails and outcome.state not in seen:
                        seen.add(outcome.state)
                        following.append(outcome.state)
                if process_time() > seconds and state is not start:
                    yield Trial(True, False, len(seen), pairs, "")
                    return
            if state is start:
                yield Trial(True, False, len(seen), pairs, "")
        level = following
    yield Trial(True, True, len(seen), pairs, "")


def attempt(pipe: Connection, domain: str, instance: str, seconds: float) -> None:
    """Open one instance, and tell what became of it."""
    begin = process_time()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    longest = math.ceil(begin + PATIENCE * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (longest, longest))
    try:
        for trial in walk(from_rddl(domain, instance), begin + seconds):
            pipe.send(trial)
    except VulcanError as error:
        pipe.send(Trial(reason=shorten_reason(str(error))))
    except MemoryError:
        pipe.send(Trial(reason=f"its first state takes more than {MEMORY >> 30} GB"))


def shorten_reason(text: str) -> str:
    """Return what a message says, without the places that differ between instances."""
    for pattern, reason in REASONS.items():
        if found := re.search(pattern, text):
            return reason.format(*found.groups())
    return re.sub(r"\S*/(\w+\.rddl)", r"\1", text).splitlines()[0][:150]


REASONS: Final = {
    r"it may read actions and fluents": "an observation reads something else",
    r"action fluent .* is real and": "actions are real numbers",
    r"action fluent .* is int and": "actions are whole numbers without narrow bounds",
    r"(\w+)\(.*has infinitely many values": "{} is not finite",
    r"combinations of actions are too many": "too many combinations of actions",
    r"too many to list": "too many outcomes of one action",
}


def try_instance(domain: str, instance: str, seconds: float) -> Trial:
    """Return what becomes of an instance within a time."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=attempt, args=(there, domain, instance, seconds))
    process.start()
    there.close()
    trial = Trial(reason=f"its first state takes longer than {PATIENCE * seconds:g} s")
    try:
        while True:
            trial = here.recv()
    except EOFError:  # it is done, or out of time
        process.join()
    return trial


def describe(domain: str, trials: Sequence[Trial]) -> str:
    """Return the line of a problem."""
    loading, whole = [t for t in trials if t.loads], [t for t in trials if t.whole]
    reasons = Counter(trial.reason for trial in trials if not trial.loads)
    sizes = sorted(trial.states for trial in whole)
    states = f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 1 else f"{sum(sizes):,}"
    cells = [
        domain,
        f"{len(loading)} of {len(trials)}",
        str(len(whole) or ""),
        states if sizes else "",
        "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common()),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run over all problems and write the table."""
    import pyRDDLGym  # noqa: F401  # once, and not in each process
    from rddlrepository.core.manager import RDDLRepoManager

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--problems", default="", help="only those whose names contain this")
    options = parser.parse_args()
    lines, everything = [], []
    for domain, about in sorted(RDDLRepoManager().archiver_dict.items()):
        if options.problems in domain:
            trials = [try_instance(domain, i, options.seconds) for i in about["instances"]]
            everything += trials
            lines.append(describe(domain, trials))
            print(lines[-1], flush=True)
    loading, whole = (sum(getattr(t, part) for t in everything) for part in ("loads", "whole"))
    summary = (
        f"{loading} of {len(everything)} instances load, and all states of {whole} were listed in "
        f"{options.seconds:g} s (`python rddl/table.py --seconds {options.seconds:g}`).\n\n"
        "| problem | load | whole | states of those | why the others don't load |\n"
        "|---|---|---|---|---|"
    )
    table = "\n".join([summary, *lines]) + "\n"
    if not options.problems:
        page = PAGE.read_text(encoding="utf-8")
        page = TABLE.sub(lambda found: found[1] + table + found[2], page)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
