"""The scores by module, and the mutants that survived."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from mutation.mutants import Mutant
from mutation.trials import Verdict

EXPLAINED = Path(__file__).parent / "explained.toml"


@dataclass
class Score:
    """How the mutants of a module fared.

    Attributes
    ----------
    name
        The module, or the subject.
    mutants
        How many there are.
    caught, explained, survivors
        Of those that were tried: how many the tests caught, how many survived because they behave
        like the original, and the others.
    """

    name: str
    mutants: int = 0
    caught: int = 0
    explained: int = 0
    survivors: list[tuple[Mutant, Verdict]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """How many mutants were tried."""
        return self.caught + self.explained + len(self.survivors)

    def add(self, other: Score) -> None:
        """Count the mutants of another module in."""
        self.mutants += other.mutants
        self.caught += other.caught
        self.explained += other.explained
        self.survivors += other.survivors

    def __str__(self) -> str:
        able = self.caught + len(self.survivors)
        share = f"{100 * self.caught / able:.1f} %" if able else "-"
        raw = f"{100 * self.caught / self.tried:.1f} %" if self.tried else "-"
        cells = (self.name, self.mutants, self.tried, self.caught, self.explained)
        return " | ".join(map(str, ("", *cells, len(self.survivors), share, raw, ""))).strip()


HEAD = """\
| | mutants | tried | caught | explained | survived | score | of all tried |
|---|---|---|---|---|---|---|---|"""


def read_explanations() -> dict[tuple[str, str, str, str], str]:
    """Return the mutants that no test can catch, by what they are, and the reason."""
    document = tomllib.loads(EXPLAINED.read_text(encoding="utf-8"))
    found = {}
    for entry in document["mutant"]:
        for change in entry["changes"]:
            found[entry["module"], entry["function"], entry["text"], change] = entry["why"]
    return found


def is_explained(mutant: Mutant, explanations: dict[tuple[str, str, str, str], str]) -> bool:
    """Whether it is said why a mutant behaves like the original."""
    place = (mutant.module, mutant.function, mutant.text)
    names = (mutant.change, f"{mutant.change} #{mutant.count}")
    return any((*place, name) in explanations for name in names)


def write_report(scores: dict[str, list[Score]]) -> str:
    """Return a table of all scores, with a line for each subject, and a list of survivors."""
    lines = [HEAD]
    survivors: list[tuple[Mutant, Verdict]] = []
    for subject, modules in scores.items():
        whole = Score(f"**{subject}**")
        for score in modules:
            whole.add(score)
        lines += [str(whole), *map(str, modules)]
        survivors += whole.survivors
    lines += ["", f"Survivors: {len(survivors)}", ""]
    for mutant, verdict in survivors:
        place = f"{mutant.module}:{mutant.line} {mutant.function}"
        lines.append(f"- {place}: `{mutant.text}`: {mutant.change} ({verdict.how})")
    return "\n".join(lines) + "\n"
