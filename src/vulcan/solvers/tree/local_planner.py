"""One run of LocalVulcan: a tree whose histories must pass a local constraint.

Samples are taken by `vulcan.kernels.tree_search`. In each round the policy of the tree is settled:
completed (`vulcan.solvers.tree.whole`), or cleaned up as in the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vulcan.certificates.certificate import Judgement
from vulcan.certificates.problem import Problem
from vulcan.errors import OptionError
from vulcan.graphs.compiled_graph import find_compiled
from vulcan.model.reader import ModelReader
from vulcan.runtime.limits import StopReason
from vulcan.runtime.monitor import Monitor
from vulcan.solvers.base import Options
from vulcan.solvers.constraints import NoConstraint
from vulcan.solvers.finding import Status, find_gap
from vulcan.solvers.tree.draft import Draft
from vulcan.solvers.tree.rounds import Rounds, name_part
from vulcan.solvers.tree.sampling import TreeRun
from vulcan.solvers.tree.whole import plan_whole
from vulcan.tolerance import TOLERANCE

if TYPE_CHECKING:
    from vulcan.solvers.tree.local import LocalVulcan

__all__ = ["LocalPlanner"]


class LocalPlanner(Rounds):
    """One search."""

    def __init__(
        self,
        solver: LocalVulcan,
        problem: Problem,
        reader: ModelReader,
        monitor: Monitor,
        options: Options,
        name: object = None,
    ) -> None:
        self._solver = solver
        if monitor.limits.gap is not None and not solver.bounded:
            raise OptionError("a target gap needs upper bounds: use LocalVulcan(bounded=True)")
        if solver.bounded and not hasattr(problem.model, "reward_to_go_bound"):
            raise OptionError("bounded needs a model with reward_to_go_bound(state, step)")
        # A checkpoint asks the model again, in the order in which the search itself asked.
        known = options.graph if options.checkpoint is None else None
        # A function of the user gets the model's own states, and so does a bound in Python.
        asked = callable(solver.default_policy)
        form = None if asked else find_compiled(reader)
        compiled = form is not None and not (solver.bounded and form.bound is None)
        self._run = TreeRun(
            problem, reader, solver.constraint, monitor.limits.memory, known, compiled
        )
        super().__init__(self._run, problem, monitor, options, name or solver)
        self._complete = options.complete and not solver.as_printed  # the paper's are never

    def _prepare(self) -> None:
        solver = self._solver
        self._run.prepare(
            seed=self._options.seed,
            exploration=solver.exploration,
            default_policy=solver.default_policy,
            as_printed=solver.as_printed,
            bounded=solver.bounded,
        )

    def _is_worth_a_round(self) -> bool:
        # Where no history passes, a policy may be within the bound all the same.
        run = self._run
        return self._complete and run.graph.merges if run.exhausted else run.samples > 0

    def _make_policies(self, until: float, final: bool) -> Draft | None:
        run, draft = self._run, None
        for whole in plan_whole(run, until) if self._complete else ():
            # At once: the model may fail while the next one is planned.
            self._keep_better(whole)
            draft = whole
        if draft is None and not run.exhausted:
            # Without room or time for all of it, a part with its frontier is an answer, too.
            draft = run.plan(False, lambda: False)
            self._keep_better(draft)
        return draft

    def _make_known_policy(self) -> None:
        self._keep_better(self._run.plan(False, lambda: False))

    def _keep_better(self, draft: Draft | None) -> None:
        if self._solver.as_printed:
            self._best = draft  # the paper returns what the tree says last
        else:
            super()._keep_better(draft)

    def _rank(self, judgement: Judgement) -> tuple[bool, bool, float]:
        if isinstance(self._solver.constraint, NoConstraint):
            return judgement.complete, True, float(judgement.reward)
        return super()._rank(judgement)

    def _release_tree(self) -> None:
        self._run.release()

    def _identify_solver(self) -> dict[str, object]:
        solver = self._solver
        return {
            "exploration": solver.exploration,
            "constraint": solver.constraint.letter,
            "credit": name_part(getattr(solver.constraint, "credit", None)),
            "default_policy": name_part(solver.default_policy),
            "bounded": solver.bounded,
            "as_printed": solver.as_printed,
        }

    @property
    def _estimate(self) -> float | None:
        return self._run.settled_value if self._solver.as_printed else self._run.estimate

    def _reached_gap(self) -> bool:
        target = self._monitor.limits.gap
        if target is None or self._best is None or self._run.solved:
            return False
        if not self._best.judgement.safe:
            return False
        reward = float(self._best.judgement.reward)
        if find_gap(reward, self._run.bound_reward()) > target:
            return False
        self._monitor.stopped_by = StopReason.GAP
        return True

    def _explain(self) -> tuple[Status, str]:
        run, constraint = self._run, self._solver.constraint
        admits = f"that constraint {constraint.letter} admits, proved"
        best = None if self._solver.as_printed else self._best
        if run.exhausted and best is not None and best.judgement.safe:
            # Completion on merged states looks at the bound itself, which is less strict.
            self._monitor.stopped_by = None
            return Status.DONE, f"best policy found within the bound; there is none {admits}"
        if run.exhausted:
            return Status.INFEASIBLE, run.explain_infeasible(constraint)
        if self._proved is not None and best is not None:
            self._monitor.stopped_by = None
            if isinstance(constraint, NoConstraint):
                return Status.SOLVED, "best policy without regard to risk, proved"
            more = best.reward > self._proved.reward + TOLERANCE
            return Status.SOLVED, f"{'better than any' if more else 'best'} policy {admits}"
        kind = "last" if self._solver.as_printed else "best"
        found = "no policy yet" if self._best is None else f"{kind} policy so far"
        cause = f" ({self._error})" if self._error else ""
        return Status.STOPPED, (
            f"stopped by {self._monitor.stopped_by} after {run.samples:,} samples: {found}{cause}"
        )
