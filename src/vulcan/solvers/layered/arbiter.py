"""Who decides whether a policy is acceptable where roundings leave that open: its certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vulcan.certificates.certificate import Certificate, certify
from vulcan.certificates.problem import Problem
from vulcan.policies.policy import Policy
from vulcan.solvers.layered.corners import Corner
from vulcan.solvers.layered.referee import Referee

__all__ = ["Arbiter"]

MOST_CASES: Final = 32
"""A guard only, for bounds so steep that almost every policy is in doubt."""


class Arbiter:
    """Decides on policies.

    Parameters
    ----------
    problem
        Model and bound.
    write_out
        What makes the policy of a corner.
    may_go_on
        Asked before each certificate.

    Attributes
    ----------
    doubtful
        Whether roundings left it open of any policy whether it is acceptable.
    """

    def __init__(
        self,
        problem: Problem,
        write_out: Callable[[Corner], Policy],
        may_go_on: Callable[[], bool],
    ) -> None:
        self._problem, self._write_out, self._may_go_on = problem, write_out, may_go_on
        self._decided: list[tuple[Corner, Certificate]] = []
        self.doubtful = False

    def accepts(self, referee: Referee, corner: Corner) -> bool:
        """Whether a policy is acceptable."""
        if referee.accepts(corner):
            return True
        if referee.refuses(corner):
            return False
        self.doubtful = True
        certificate = self.find_certificate(corner)
        if certificate is None and len(self._decided) < MOST_CASES and self._may_go_on():
            certificate = certify(self._problem, self._write_out(corner))
            self._decided.append((corner, certificate))
        return certificate is not None and certificate.safe

    def find_certificate(self, corner: Corner | None) -> Certificate | None:
        """Return the certificate of a policy, if it was in doubt; else None."""
        return next((found for known, found in self._decided if known is corner), None)
