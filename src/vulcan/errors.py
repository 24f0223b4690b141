"""The exceptions and warnings of Vulcan.

No admissible policy and a reached limit are results, not errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vulcan.model.rules import Violation


class VulcanError(Exception):
    """Any error that Vulcan raises on purpose."""


class ModelError(VulcanError):
    """The model broke a rule.

    Parameters
    ----------
    violation
        What was wrong and where: `rule`, `message`, `state`, `action` and `value`.
    """

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation

    def __str__(self) -> str:
        """Return what was wrong, and where."""
        return str(self.violation)

    def __reduce__(self) -> tuple[type[ModelError], tuple[Violation]]:
        """Keep the violation when a worker process raises this error."""
        return (ModelError, (self.violation,))


class BoundError(VulcanError):
    """The risk bound is not concave and nondecreasing where it was used, or can't be parsed."""


class BoundWarning(UserWarning):
    """The risk bound is above 1 wherever it was used: it accepts every policy."""


class SimulationWarning(UserWarning):
    """Simulated episodes contradict the exact values of the policy."""


class CheckpointError(VulcanError):
    """A checkpoint is damaged, or belongs to another search."""


class OptionError(VulcanError):
    """An option that does not exist, or a value that it does not take."""


class PolicyError(VulcanError):
    """A policy was used in a way that it does not allow."""


class PolicyFileError(PolicyError):
    """A file is damaged, was written by a newer version, or holds no policy."""


class MismatchError(PolicyError):
    """A policy and a model that do not belong together."""


class DisagreementError(VulcanError):
    """The search and the certificate give different numbers for one policy: a defect in Vulcan."""
