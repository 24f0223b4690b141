"""Verification of certificates by Storm, an independent model checker.

Storm (https://www.stormchecker.org, GPL) is an optional dependency, imported on first use:

    pip install 'vulcan-planner[storm]'

`vulcan.formats.prism` also uses it, to read models in PRISM, JANI and DRN.

The policy turns the model into a Markov chain without cycles. Its states are the places of the
policy's histories, level by level, after a start that draws the member of a randomised policy.
Histories end in one of three sinks,

    ended    after the last decision, or in a safe terminal
    failed   in failure
    left     where an incomplete policy has no decision

A place earns γ^t R̄ when it is left. Storm computes the expected reward of this chain and the
probabilities of "failed" and "left", which must agree with the certificate. For a cost places earn
what they are charged; an event is what fails, and its histories are followed no further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from vulcan.certificate.certify import Certificate, certify
from vulcan.certificate.sums import find_mean_ahead
from vulcan.certificate.walk import Chain, follow_policy
from vulcan.constraints import Cost, RiskAhead
from vulcan.errors import OptionError
from vulcan.model.reader import ModelReader
from vulcan.numerics import END, FAILED, Number
from vulcan.policy.policy import AnyPolicy, Policy
from vulcan.problem import Problem
from vulcan.runtime.limits import pause_collection


def load_storm() -> Any:
    """Return stormpy; if it is missing, the error says how to install it."""
    try:
        import stormpy
        import stormpy.environments
        import stormpy.results
    except ImportError as error:
        raise OptionError(
            "Storm is not installed, or older than 2.0: pip install 'vulcan-planner[storm]'"
        ) from error
    return stormpy


@contextmanager
def quiet_storm() -> Iterator[Any]:
    """Yield stormpy with its logging switched off."""
    stormpy = load_storm()
    level = stormpy.developer.get_log_level()
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    try:
        yield stormpy
    finally:
        stormpy.developer.set_log_level(level)


AGREEMENT: Final = 1e-9  # allowed difference of two correct sums, relative to the sum or 1

SINKS: Final = ("ended", "failed", "left")


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Storm's numbers for a policy, beside its certificate.

    Attributes
    ----------
    certificate
        The certificate.
    reward, risk, frontier
        Storm's expected reward, probability of failure, and probability of reaching a history
        without a planned action.
    states, transitions
        Size of the Markov chain.
    tool
        Name and version of the model checker.
    constraints
        Storm's value of what each further constraint of the problem limits.
    """

    certificate: Certificate
    reward: float
    risk: float
    frontier: float
    states: int
    transitions: int
    tool: str
    constraints: tuple[float, ...] = ()

    @property
    def difference(self) -> float:
        """The largest difference, relative to the larger of 1 and the number."""
        theirs = (self.reward, self.risk, self.frontier, *self.constraints)
        certificate = self.certificate
        values = [limited.value for limited in certificate.constraints]
        ours = map(float, (certificate.reward, certificate.risk, certificate.frontier, *values))
        pairs = zip(theirs, ours, strict=True)
        return max(float(abs(x - y) / max(1.0, abs(y))) for x, y in pairs)

    @property
    def agrees(self) -> bool:
        """Whether all numbers agree, to 1e-9."""
        return self.difference <= AGREEMENT


def verify(problem: Problem, policy: AnyPolicy) -> Verification:
    """Compute reward, risk and further constraints with Storm, and compare the certificate.

    Parameters
    ----------
    problem
        Model and risk bound.
    policy
        Any policy for it, deterministic or randomised; compared up to its frontier.

    Returns
    -------
    Verification
        If the two disagree, one of them is wrong; check `agrees`.

    Raises
    ------
    OptionError
        If Storm is not installed.
    """
    load_storm()
    if isinstance(policy, Policy) and policy.beyond is not None:
        policy = policy.cut_off()  # Storm knows no claims
    certificate = certify(problem, policy)
    with pause_collection():
        places, _ = follow_policy(
            policy, ModelReader(problem.model), constraints=problem.constraints
        )
    earns, fails, leaves = 'R{"reward"}=? [C]', 'P=? [F "failed"]', 'P=? [F "left"]'
    with quiet_storm() as stormpy:

        def check(chain: Any, query: str) -> list[float]:
            """Return the value of a query at the start, and at each place."""
            environment = stormpy.environments.default(chain)
            # The chain has no cycles, so that the topological solver needs no iteration.
            backwards = stormpy.environments.EquationSolverType.TOPOLOGICAL
            environment.solver().set_linear_equation_solver_type(backwards)
            (formula,) = stormpy.parse_properties(query)
            answer = stormpy.model_checking(chain, formula, environment=environment)
            return [float(answer.get_value(k)) for k in range(1 + len(places))]

        chain = _build_chain(stormpy, places, places.start(policy.weights))
        found = [check(chain, query)[0] for query in (earns, fails, leaves)]
        limited = []
        for constraint, charges in zip(problem.constraints, places.charges, strict=True):
            if isinstance(constraint, RiskAhead):
                ahead = check(chain, fails)[1:]
                if places.sights is not None and ahead:
                    ahead = [find_mean_ahead(places, places.probability, np.array(ahead))[1]]
                limited.append(max(ahead, default=0.0))
                continue
            is_cost, target = isinstance(constraint, Cost), places.target
            if not is_cost:
                target = np.where(charges != 0, FAILED, np.where(target == FAILED, END, target))
            columns = (places.source, target, places.probability, charges)
            undiscounted = [1] * len(places.discounts)
            charged = Chain(places.sizes.tolist(), columns, undiscounted)
            other = _build_chain(stormpy, charged, places.start(policy.weights))
            limited.append(check(other, earns if is_cost else fails)[0])
    return Verification(
        certificate=certificate,
        **dict(zip(("reward", "risk", "frontier"), found, strict=True)),
        states=chain.nr_states,
        transitions=chain.nr_transitions,
        tool=f"Storm (stormpy {stormpy.__version__})",
        constraints=tuple(limited),
    )


def _build_chain(stormpy: Any, places: Chain, weights: Sequence[Number]) -> Any:
    """Return the Markov chain of a policy: the start, its places, and the sinks."""
    count = 1 + len(places)
    size = count + len(SINKS)
    sinks = np.arange(count, size)
    ended, failed, left = sinks.tolist()
    here, onward = 1 + np.arange(len(places)), places.target >= 0
    members = np.array(weights, float)
    parts = [
        (np.zeros(len(members), int), 1 + np.arange(len(members)), members),
        (here, np.full(len(here), failed), places.risk),
        (here, np.full(len(here), left), places.unplanned),
        (1 + places.source[onward], 1 + places.target[onward], places.probability[onward]),
        (sinks, sinks, np.ones(len(sinks))),
    ]
    gone = np.zeros(size)
    for row, _, chance in parts:
        np.add.at(gone, row, chance)
    ends = np.flatnonzero(gone < 1)
    parts.append((ends, np.full(len(ends), ended), 1 - gone[ends]))
    row, column, chance = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    likely = chance > 0
    # Storm requires strictly increasing columns.
    cells, which = np.unique((row * size + column)[likely], return_inverse=True)
    rows, columns = np.divmod(cells, size)
    builder = stormpy.datastructures.SparseMatrixBuilder(size, size, len(cells))
    values = np.bincount(which, chance[likely])
    builder.add_next_values(rows.tolist(), columns.tolist(), values.tolist(), [])
    labels = stormpy.models.StateLabeling(size)
    for label, state in (("init", 0), *zip(SINKS, sinks.tolist(), strict=True)):
        labels.add_label(label)
        labels.add_label_to_state(label, state)
    rewards = np.zeros(size)
    rewards[here] = places.weights * places.gather(places.probability * places.reward)
    model = stormpy.models.SparseRewardModel(optional_state_reward_vector=rewards.tolist())
    return stormpy.models.SparseDtmc(
        stormpy.models.SparseModelComponents(
            transition_matrix=builder.build(),
            state_labeling=labels,
            reward_models={"reward": model},
        )
    )
