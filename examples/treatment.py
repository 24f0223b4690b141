"""A course of treatment, in which a stronger drug helps sooner and strains the liver.

Each week a doctor sees how severe the illness is and how strained the liver, and chooses between
rest, tablets and an infusion. A week is worth what the patient can do in it. The patient dies if
the illness gets worse than severe or the liver fails.

Several things can happen in one week that end in the same state: a patient who is well can't get
better, so that a good week and a usual week look the same. The model lists them as they happen and
gives them no labels; what leads to the same state is one observation. Run it with
`python examples/treatment.py`, or

    vulcan solve examples/treatment.py:Treatment --bound 0.0115
"""

from __future__ import annotations

from typing import NamedTuple

import vulcan
from vulcan import Outcome

SEVERITIES = ("well", "mild", "moderate", "severe")
WORTH = (1.0, 0.95, 0.8, 0.5)  # of a week that ends so
MOST_STRAIN = 4

COST = {"rest": 0.0, "tablets": 0.4, "infusion": 1.0}  # what the week loses by it

CHANGES = {  # of severity and of strain, with their probabilities
    "rest": ({-1: 0.2, 0: 0.6, 1: 0.19, 2: 0.01}, {-1: 0.5, 0: 0.5}),
    "tablets": ({-2: 0.1, -1: 0.35, 0: 0.5, 1: 0.05}, {0: 0.7, 1: 0.3}),
    "infusion": ({-2: 0.4, -1: 0.4, 0: 0.195, 1: 0.005}, {0: 0.3, 1: 0.6, 2: 0.1}),
}


class Patient(NamedTuple):
    """What the doctor sees at the end of a week."""

    severity: int
    strain: int

    def __str__(self) -> str:
        return f"{SEVERITIES[self.severity]}, strain {self.strain}"


class Treatment:
    """Some weeks of treatment, from a severity on, with a healthy liver."""

    def __init__(self, weeks: int = 12, severity: str = "moderate") -> None:
        self.horizon, self.severity = weeks, severity

    def __repr__(self) -> str:
        return f"Treatment(weeks={self.horizon}, severity={self.severity!r})"

    def initial_state(self) -> Patient:
        """Return how the patient comes in."""
        return Patient(SEVERITIES.index(self.severity), 0)

    def actions(self, patient: Patient) -> list[str]:
        """Return the treatments that there are, for everybody."""
        return list(CHANGES)

    def outcomes(self, patient: Patient, treatment: str) -> list[Outcome]:
        """Return every change of the illness with every side effect."""
        illness, side_effects = CHANGES[treatment]
        outcomes = []
        for change, chance in illness.items():
            for strained, share in side_effects.items():
                severity = max(0, patient.severity + change)
                strain = max(0, patient.strain + strained)
                if severity >= len(SEVERITIES) or strain > MOST_STRAIN:
                    outcomes.append(Outcome.failure(chance * share))
                else:
                    worth = WORTH[severity] - COST[treatment]
                    outcomes.append(Outcome(chance * share, worth, Patient(severity, strain)))
        return outcomes


if __name__ == "__main__":
    problem = vulcan.Problem(Treatment(), risk_bound=vulcan.Constant(0.0115))
    result = vulcan.solve(problem)
    print(result)
    print(result.policy)
