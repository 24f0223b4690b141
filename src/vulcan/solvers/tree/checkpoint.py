"""Checkpoints: a tree search on disk, to be resumed.

Everything that a search needs to go on is in arrays, but for the state objects of the model, which
are nobody's to serialise. So a checkpoint keeps the order in which states were asked, and resuming
asks the model again in that order: the same answers give the same rows, which a digest confirms. A
compiled model has no such objects: its rows are kept, and compared with what it answers now.
Then the search goes on in the middle of the very sample in which it was, and ends bit for bit where
an uninterrupted one would have ended.

A checkpoint is a sealed file (`vulcan.runtime.files`), replaced at once. The seal shows damage; it
does not say who wrote the file. Kernels follow the numbers in their arrays without a look at their
lengths, so everything is checked before they see it (`vulcan.solvers.tree.soundness`): a file that
somebody has made up is refused, or gives a search that ends. What it says of values is believed: it
can lead a search astray, and no further, since certificates ask the model alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from vulcan.errors import CheckpointError
from vulcan.runtime.files import Seal, find_target
from vulcan.runtime.leftovers import remove_leftovers
from vulcan.runtime.packing import require

__all__ = [
    "Repetition",
    "Snapshot",
    "read_snapshot",
    "require_free",
]

SEAL: Final = Seal("checkpoint", b"VULCKPT\n", 8, CheckpointError, oldest=8)

MODEL: Final = "model"
"""What an identity calls the model's fingerprint."""


class Repetition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a resumed search does once more, since that is easier than to keep what came of it.

    Attributes
    ----------
    proof
        The work on upper bounds: prices, and how many histories were opened; see `PriceProof`.
    proved_for
        Samples that this work was done for.
    local
        Samples under a local constraint that the best policy was found with; 0 if it was not.
    """

    proof: list[tuple[float, int]] = []
    proved_for: int = 0
    local: int = 0

    def check(self, samples: int) -> None:
        """Refuse more work than a search does for so many samples."""
        opened = [histories for _, histories in self.proof]
        least = min([self.proved_for, self.local, *opened])
        most = max(self.proved_for, self.local, sum(opened))
        within = least >= 0 and most <= max(1, samples)
        require(within, "more is to be done again than samples were taken for")
        prices = [price for price, _ in self.proof]
        require(all(0 <= price < math.inf for price in prices), "a price is not a number from 0 on")


class Snapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a checkpoint holds.

    Attributes
    ----------
    identity
        What was searched, and how, by name; a search resumes only its own checkpoints.
    graph
        What is known of the model; see `StateGraph.pack`.
    credits
        Where the risk bound was evaluated, and its values there.
    capacities
        Lengths of the arrays that grow.
    arrays
        The arrays of the search, as far as they are filled.
    target
        The sample count of the next round.
    best
        The best policy so far; see `Draft.pack`.
    repetition
        What is not here, and must be done once more.
    """

    identity: dict[str, str]
    graph: dict[str, bytes]
    credits: list[tuple[float, float]]
    capacities: dict[str, int]
    arrays: dict[str, bytes]
    target: int
    best: dict[str, bytes] | None
    repetition: Repetition = Repetition()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Replace a checkpoint file."""
        SEAL.write(path, msgspec.msgpack.encode(self))


def read_snapshot(path: str | os.PathLike[str], identity: Mapping[str, str]) -> Snapshot | None:
    """Return the snapshot in a file; None if there is no file yet.

    Raises
    ------
    CheckpointError
        If the file is damaged, or belongs to another search.
    """
    if not Path(path).exists():
        return None
    try:
        snapshot = msgspec.msgpack.decode(SEAL.read(path), type=Snapshot)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: the content is not a checkpoint: {error}") from error
    if differences := _list_differences(snapshot.identity, identity):
        listed = "".join(f"\n  {line}" for line in differences)
        raise CheckpointError(f"{path} belongs to another search; what differs:{listed}")
    return snapshot


def _list_differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Return what two searches differ in, a line each."""
    differences = []
    for name in {**there, **here}:
        theirs, ours = there.get(name, "not known"), here.get(name, "not known")
        if theirs == ours:
            continue
        # A fingerprint says nothing to people.
        text = f"{theirs} there, {ours} here" if name != MODEL else "it answers otherwise here"
        differences.append(f"{name}: {text}")
    return differences


def require_free(path: str | os.PathLike[str], *, resume: bool, overwrite: bool) -> None:
    """Refuse a checkpoint file that can't be written or is not ours, before the search.

    What killed searches left of checkpoints that they were writing there is removed.

    Parameters
    ----------
    path
        The file.
    resume, overwrite
        Whether a search that is there goes on, or is lost.
    """
    try:
        target = find_target(path)
    except OSError as error:
        raise CheckpointError(f"{path}: no file can be written there: {error.strerror}") from error
    if Path(path).exists() and not (resume or overwrite):
        raise CheckpointError(
            f"{path} exists already: resume goes on with the search in it, overwrite replaces it"
        )
    remove_leftovers(target)
