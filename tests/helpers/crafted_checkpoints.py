"""Crafted checkpoints: their contents are changed, and their seals are right.

    python -m tests.helpers.crafted_checkpoints FIRST COUNT [KIND ...]

resumes from COUNT of them of each kind, in a process of its own, since it looks for crashes. Before
each it says which one it is, and in the end how many were refused, and how many searched on.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

import vulcan
from tests.helpers.plain_models import PlainBandit
from vulcan.domains import Bandit
from vulcan.sampling import price_search as price_run
from vulcan.sampling.checkpoint import SEAL, Snapshot

CURVED: Final = vulcan.parse("(1 - exp(-0.1*x)) * 0.02")

TAKEN: Final = 1100
MORE: Final = 200
"""Samples of the search that is kept, a round among them, and of one that goes on."""

EARLIER: Final = {"merged": 900}
"""What would be solved by its first round is kept before."""

KINDS: Final[dict[str, tuple[Any, Any]]] = {
    "prices": (PlainBandit(5, merges=False), vulcan.Vulcan()),
    "merged": (PlainBandit(9), vulcan.Vulcan()),
    "compiled": (Bandit(5, merges=False), vulcan.Vulcan()),
    "local": (PlainBandit(8), vulcan.LocalVulcan()),
    "local compiled": (Bandit(8, merges=False), vulcan.LocalVulcan()),
    "random": (PlainBandit(8), vulcan.LocalVulcan(default_policy="random")),
    "paper": (PlainBandit(4), vulcan.Vulcan.paper()),
    "neutral": (PlainBandit(8), vulcan.baselines.UCT()),
}

WHOLE: Final = (-1, 0, 1, -2, 7, 63, 1000, 1 << 20, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1)
REAL: Final = (0.0, -1.0, 1.0, 1e-300, 1e30, -1e300, np.inf, -np.inf, np.nan)


def make_snapshot(kind: str) -> Snapshot:
    """Search a little, and return what was kept."""
    return msgspec.msgpack.decode(_make_content(kind), type=Snapshot)


@cache
def _make_content(kind: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search"
        solve(kind, -MORE, checkpoint=path)
        return SEAL.read(path)


def solve(kind: str, more: int = 0, **given: Any) -> vulcan.Result:
    """Search with as many samples as one that goes on, and this many more."""
    model, solver = KINDS[kind]
    samples = EARLIER.get(kind, TAKEN) + MORE + more
    return vulcan.solve(vulcan.Problem(model, CURVED), solver, samples=samples, **given)


def change(random: Random, snapshot: Snapshot) -> tuple[str, Snapshot]:
    """Return a snapshot in which something is changed, and what."""
    changed = msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot), type=Snapshot)
    if random.random() < 0.1:
        return _change_number(random, changed)
    places: list[tuple[dict[str, bytes], str]] = [
        (packed, name)
        for packed in (changed.arrays, changed.arrays, changed.graph, changed.best or {})
        for name in packed
    ]
    packed, name = random.choice(places)
    if random.random() < 0.03:
        packed.pop(name)
        return f"{name}: gone", changed
    how, packed[name] = _change_bytes(random, name, packed[name])
    return f"{name}: {how}", changed


def _change_bytes(random: Random, name: str, data: bytes) -> tuple[str, bytes]:
    """Return bytes of another length or order, or with another number somewhere."""
    kind = np.dtype(random.choice(["u1", "i2", "i4", "i4", "i8", "f4", "f8", "f8"]))
    size = kind.itemsize
    whole = len(data) - len(data) % size
    ways: list[tuple[str, bytes]] = [
        ("cut by a byte", data[:-1]),
        (f"cut by {size} bytes", data[:-size]),
        (f"{size} bytes more", data + data[:size]),
        ("empty", b""),
        ("turned round", np.frombuffer(data[:whole], kind)[::-1].tobytes() + data[whole:]),
    ]
    if not whole or random.random() < 0.15:
        return random.choice(ways)
    array = np.frombuffer(data[:whole], kind).copy()
    rows = range(len(array)) if random.random() < 0.1 else [random.randrange(len(array))]
    value = _choose(random, array)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array[rows] = value
    where = "all" if len(rows) > 1 else rows[0]
    return f"{where} as {kind} is {value!r}", array.tobytes() + data[whole:]


def _choose(random: Random, array: NDArray[Any]) -> Any:
    """Return a number that an array can hold: any, or one beside its own."""
    own = array[random.randrange(len(array))].item()
    if array.dtype.kind == "f":
        return random.choice([*REAL, own, own * (1 + 1e-7), -own])
    limits = np.iinfo(array.dtype)
    fitting = [value for value in WHOLE if limits.min <= value <= limits.max]
    value = random.choice([*fitting, own, own + 1, own - 1])
    return min(max(value, int(limits.min)), int(limits.max))


def _change_number(random: Random, snapshot: Snapshot) -> tuple[str, Snapshot]:
    number = random.choice([*WHOLE, (1 << 64) - 1])
    real = random.choice(REAL)
    capacities = {name: random.choice([0, -1, number]) for name in snapshot.capacities}
    field, value = random.choice(
        [
            ("target", number),
            ("capacities", capacities),
            ("capacities", {**snapshot.capacities, "graph": 3}),
            ("credits", [(real, real)]),
            ("credits", [*snapshot.credits, *snapshot.credits]),
            ("best", None),
            ("local", number),
            ("proved_for", number),
            ("proof", [(real, number)]),
        ]
    )
    return f"{field} is {value!r}", msgspec.structs.replace(snapshot, **{field: value})


def resume(kind: str, numbers: range) -> Counter[str]:
    """Resume from crafted checkpoints, and return how often which answer was given."""
    answers: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "search"
        kept = make_snapshot(kind)
        for number in numbers:
            random, crafted = Random(number), kept
            for _ in range(random.choice([1, 1, 1, 2, 4])):
                how, crafted = change(random, crafted)
                print(f"{kind} {number}: {how}", flush=True)
            crafted.write(path)
            try:
                solve(kind, checkpoint=vulcan.Checkpoint(path, resume=True))
            except vulcan.VulcanError as error:
                answers[type(error).__name__] += 1
                print(f"  {error}", flush=True)
            else:
                answers["searched on"] += 1
    return answers


def main() -> None:
    first, count, *kinds = sys.argv[1:]
    warnings.simplefilter("ignore")
    price_run.FEWEST_TO_SPLIT = 64  # type: ignore[misc]
    for kind in kinds or KINDS:
        answers = resume(kind, range(int(first), int(first) + int(count)))
        print(f"{kind}: {dict(answers)}")


if __name__ == "__main__":
    main()
