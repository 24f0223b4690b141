"""LocalVulcan, the paper's planner with a local test, improved; and `paper()`, as printed.

Samples are taken by `vulcan.kernels.paper_tree`. In each round the policy of the tree is finalised:
completed, or cleaned up as in the paper (`vulcan.sampling.paper_tree`). The best policy so far is
kept (`vulcan.sampling.incumbent`); the paper returns what the tree says last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from vulcan.certificate.certify import Judgement
from vulcan.errors import OptionError
from vulcan.model.reader import ModelReader
from vulcan.numerics import TOLERANCE
from vulcan.parameters import knows_parameters
from vulcan.problem import Problem
from vulcan.runtime.limits import Limits, Monitor
from vulcan.sampling.candidate import Candidate
from vulcan.sampling.incumbent import GROWTH, Incumbent, name_part, rank_within_bound
from vulcan.sampling.paper_tree import TreeRun
from vulcan.solvers.base import Option, Options, Solver, require_exploration
from vulcan.solvers.finding import Finding, Status, is_closed
from vulcan.solvers.local_tests import (
    CONSTRAINT,
    CREDIT,
    LocalConstraint,
    SequenceConstraint,
    SurvivalConstraint,
    make_local_test,
    require_local_test,
)


def search_tree(
    solver: LocalVulcan,
    problem: Problem,
    reader: ModelReader,
    monitor: Monitor,
    options: Options,
    name: object = None,
) -> Finding:
    """Sample and plan, in rounds, until there is a reason to stop.

    Policies name another solver if `name` is given.
    """
    # A checkpoint evaluates the model again, in the order in which the search itself did.
    known = options.graph if options.checkpoint is None else None
    tree = TreeRun(problem, reader, solver.local_test, monitor.limits.memory, known)
    settings: dict[str, object] = {
        "exploration": solver.exploration,
        "constraint": solver.local_test.letter,
        "credit": name_part(getattr(solver.local_test, "credit", None)),
        "default_policy": solver.default_policy,
        "complete": solver.complete,
        "as_printed": solver.as_printed,
    }
    rank = rank_within_bound if solver.local_test.constrains else rank_by_reward
    incumbent = Incumbent(tree, problem, monitor, options, name or solver, settings, rank)
    tree.prepare(solver, options.seed, monitor.limits.histories)
    if not monitor.started:
        monitor.start_clock()
    incumbent.resume()
    completes = solver.complete and not solver.as_printed  # the printed algorithm never does
    proved: Candidate | None = None  # the policy of a solved tree
    with incumbent.answering():
        ended = False
        while not ended:
            target, reserve = incumbent.next_target, incumbent.reserve
            while tree.can_sample(target) and not monitor.wants_stop(
                tree.histories, tree.samples, reserve
            ):
                tree.advance(target)
                monitor.report(incumbent.describe)
                incumbent.save_if_due()
            ended = incumbent.must_end()
            # Where no history passes the constraint, a policy may still be within the bound.
            merged = completes and tree.graph.merges
            if (merged if tree.exhausted else tree.samples) and not incumbent.hurried:
                proved = _plan(solver, tree, incumbent, completes, final=ended)
                if tree.solved and proved is None:
                    # Completion itself solved it, after it had chosen actions higher up.
                    proved = _plan(solver, tree, incumbent, completes, final=True)
            ended = ended or tree.exhausted or incumbent.error is not None
            incumbent.target *= GROWTH
    taken = incumbent.measure()
    tree.release()
    incumbent.certify(granted=True)
    return incumbent.conclude(
        *_explain(solver, tree, incumbent, monitor, proved),
        taken,
        credits=tree.credits(),
        estimate=tree.final_value if solver.as_printed else tree.estimate,
    )


def _plan(
    solver: LocalVulcan, tree: TreeRun, incumbent: Incumbent, completes: bool, final: bool
) -> Candidate | None:
    """Make policies of the tree, and keep the best; return the last one of a solved tree."""
    candidate, solved = None, tree.solved
    with incumbent.round(final) as until:
        for completed in tree.complete(until) if completes else ():
            # At once: the model may fail while the next one is planned.
            incumbent.offer(completed)
            candidate = completed
        if candidate is None and not tree.exhausted:
            # Without room or time for all of it, a part with its frontier is an answer, too.
            candidate = tree.plan(False, lambda: False)
            incumbent.offer(candidate)
        if solver.as_printed:
            incumbent.best = candidate
    return candidate if solved else None


def _explain(
    solver: LocalVulcan,
    tree: TreeRun,
    incumbent: Incumbent,
    monitor: Monitor,
    proved: Candidate | None,
) -> tuple[Status, str]:
    """Return how a search ended."""
    admits = f"that constraint {solver.local_test.letter} admits, proved"
    best = None if solver.as_printed else incumbent.best
    if tree.exhausted and best is not None and best.judgement.safe:
        # Completion on merged states looks at the bound itself, which is less strict.
        monitor.stopped_by = None
        return Status.DONE, f"best policy found within the bound; there is none {admits}"
    if tree.exhausted:
        return Status.INFEASIBLE, tree.explain_infeasible(solver.local_test)
    if proved is not None and best is not None and incumbent.error is None:
        monitor.stopped_by = None
        if not solver.local_test.constrains:
            return Status.SOLVED, "best policy without regard to risk, proved"
        more = not is_closed(proved.reward, best.reward, TOLERANCE)
        return Status.SOLVED, f"{'better than any' if more else 'best'} policy {admits}"
    return Status.STOPPED, incumbent.explain_stop("last" if solver.as_printed else "best")


def rank_by_reward(judgement: Judgement) -> tuple[bool, bool, float]:
    """Rank policies without regard to risk: complete ones first."""
    return judgement.complete, True, float(judgement.reward)


EXPLORATION: Final = Option(
    "exploration",
    float,
    "How much to try what looks worse, in units of the range of reward; as printed, in units "
    "of reward, and √2 by default.",
    default="0.1",
)
DEFAULT_POLICY: Final = Option(
    "default_policy",
    str,
    "Which untried action to sample first: the one with the largest expected reward, or any.",
    default="greedy; as printed, random",
    choices=("greedy", "random"),
)
PAPER: Final = Option(
    "paper",
    bool,
    "The algorithm as it was printed, with constraint A, counts instead of probabilities, and a "
    "literal constant.",
)
COMPLETE: Final = Option(
    "complete",
    bool,
    "Plan to the end what the samples left unexplored.",
    default="complete",
    negatable=True,
)


@knows_parameters
@dataclass(frozen=True)
class LocalVulcan(Solver):
    """The paper's planner, improved: sample histories, delete what a local test refuses.

    Parameters
    ----------
    exploration
        The constant of UCT, in units of the range of reward that samples have collected. Whatever
        it is, every action gets a twentieth of an even share of samples, unless as_printed.
    local_test
        The local test: `SurvivalConstraint()` or `SequenceConstraint(...)`.
    default_policy
        Which untried action of a history to try first: the "greedy" one with the largest expected
        reward (one that ends the mission only if it earns more than going on did so far), or a
        "random" one.
    as_printed
        Run algorithms 2 to 4 as the paper prints them (docs/theory/algorithms.md): a literal
        constant of UCT, failures sampled, values weighed by counts instead of probabilities,
        cleanup instead of completion, and the last policy instead of the best. Then nothing
        is ever proved.
    complete
        Plan to the end what the samples left unexplored. Without it a policy may have a frontier.
    """

    finds: ClassVar[str] = "the best policy found so far, within a local test"
    method: ClassVar[str] = "Monte Carlo tree search"
    limits: ClassVar[Sequence[str]] = ("time_limit", "samples", "histories", "memory")
    sampling: ClassVar[bool] = True
    endless: ClassVar[bool] = True
    options: ClassVar[Sequence[Option]] = (
        CONSTRAINT,
        CREDIT,
        PAPER,
        EXPLORATION,
        DEFAULT_POLICY,
        COMPLETE,
    )

    exploration: float = 0.1
    local_test: LocalConstraint = field(default_factory=SurvivalConstraint)
    default_policy: Literal["random", "greedy"] = "greedy"
    as_printed: bool = False
    complete: bool = True

    def __post_init__(self) -> None:
        require_local_test(self.local_test)
        require_exploration(self.exploration)
        if self.default_policy not in ("random", "greedy"):
            raise OptionError(
                f"default_policy must be 'random' or 'greedy', not {self.default_policy!r}"
            )

    @classmethod
    def paper(
        cls,
        exploration: float = math.sqrt(2),
        default_policy: Literal["random", "greedy"] = "random",
    ) -> LocalVulcan:
        """Return the algorithm as printed, with constraint A and f₁.

        Parameters
        ----------
        exploration
            The constant of UCT, in units of reward. The paper does not give its own; √2 is the
            theoretical value that it mentions.
        default_policy
            As in `LocalVulcan`; the paper leaves it open.
        """
        return cls(exploration, SequenceConstraint(), default_policy, as_printed=True)

    @classmethod
    def from_options(cls, given: Mapping[str, Any], limits: Limits) -> LocalVulcan:
        tuning = dict(given)
        if tuning.pop("paper", False):
            for name in ("local_test", "credit", "complete"):
                if name in tuning:
                    raise OptionError(f"--paper has its own --{name.replace('_', '-')}; omit that")
            return cls.paper(**tuning)
        return cls(local_test=make_local_test(tuning), **tuning)

    def search(
        self, problem: Problem, reader: ModelReader, monitor: Monitor, options: Options
    ) -> Finding:
        return search_tree(self, problem, reader, monitor, options)
