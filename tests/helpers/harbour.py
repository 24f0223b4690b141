"""A small model, copied to where the tests of the command line run, and some bad ones."""

from dataclasses import dataclass

from vulcan import Outcome


@dataclass(frozen=True)
class Harbour:
    size: int = 2
    horizon: int = 3
    leak: float = 0.0

    def initial_state(self):
        return "quay"

    def actions(self, state):
        return ["wait", "sail"]

    def outcomes(self, state, action):
        if action == "sail":
            return [Outcome(0.95 - self.leak, 1.0, "sea"), Outcome.failure(0.05)]
        return [Outcome(1.0, 0.1, state)]


class Mistaken(Harbour):
    compiled = "soon"


class Talkative(Harbour):
    def outcomes(self, state, action):
        print("asked", state, action)
        return super().outcomes(state, action)


class Raising(Harbour):
    def outcomes(self, state, action):
        raise RuntimeError("no chart")


class Defective(Harbour):
    def __repr__(self):
        raise RuntimeError("no name")


class Escaping(Harbour):
    def action_label(self, action):
        return f"\x1b[31m{action}\x9b"
