"""What a policy is worth according to somebody else: the model checker Storm.

The policy turns the model into a Markov chain without cycles. Its states are the places that the
policy's histories can be in, level by level, from a start that draws the member of a randomised
policy; histories end in one of three sinks,

    ended    after the last decision, or in a safe terminal
    failed   in failure
    left     where an incomplete policy has no decision

A place earns γ^t R̄ when it is left. Storm gets the chain and computes for itself the expected
reward and the probabilities of "failed" and "left", which have to be those of the certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vulcan.certificates.certificate import Certificate, certify, follow_policy
from vulcan.certificates.chain import Chain
from vulcan.certificates.problem import Problem
from vulcan.certificates.storm import build_matrix, load_storm, quiet_storm
from vulcan.model.reader import ModelReader
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.garbage import pause_collection

__all__ = ["Verification", "verify"]

AGREEMENT: Final = 1e-9
"""How far two correct sums may be from each other, in shares of the largest of 1 and the sum."""

SINKS: Final = ("ended", "failed", "left")


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What Storm says of a policy, beside its certificate.

    Attributes
    ----------
    certificate
        What Vulcan says.
    reward, risk, frontier
        What Storm says: expected reward, probability of failure, and probability of a history that
        is not planned.
    states, transitions
        Size of the chain that Storm was given.
    tool
        Its name and version.
    """

    certificate: Certificate
    reward: float
    risk: float
    frontier: float
    states: int
    transitions: int
    tool: str

    @property
    def difference(self) -> float:
        """The largest difference between the two, in shares of the largest of 1 and the number."""
        pairs = [
            (getattr(self, name), float(getattr(self.certificate, name)))
            for name in ("reward", "risk", "frontier")
        ]
        return float(max(abs(theirs - ours) / max(1.0, abs(ours)) for theirs, ours in pairs))

    @property
    def agrees(self) -> bool:
        """Whether both say the same, to 1e-9."""
        return self.difference <= AGREEMENT


def verify(problem: Problem, policy: AnyPolicy) -> Verification:
    """Let Storm compute what a policy earns and risks.

    Parameters
    ----------
    problem
        Model and risk bound.
    policy
        Any policy for it, deterministic or randomised.

    Returns
    -------
    Verification
        It may say that the two disagree, which is a defect of one of them; look at `agrees`.

    Raises
    ------
    OptionError
        If Storm is not installed.
    MismatchError
        If the model is not the one that the policy was made for, or no longer answers the same.
    """
    load_storm()
    certificate = certify(problem, policy)
    with pause_collection():
        places, _ = follow_policy(policy, ModelReader(problem.model))
    with quiet_storm() as stormpy:
        chain = _build_chain(stormpy, places, policy.weights)
        environment = stormpy.environments.default(chain)
        # The chain has no cycles: state by state, from the end, nothing has to converge.
        backwards = stormpy.environments.EquationSolverType.TOPOLOGICAL
        environment.solver().set_linear_equation_solver_type(backwards)
        queries = ('R{"reward"}=? [C]', 'P=? [F "failed"]', 'P=? [F "left"]')
        reward, risk, frontier = (_ask(stormpy, chain, query, environment) for query in queries)
    return Verification(
        certificate=certificate,
        reward=reward,
        risk=risk,
        frontier=frontier,
        states=chain.nr_states,
        transitions=chain.nr_transitions,
        tool=f"Storm (stormpy {stormpy.__version__})",
    )


def _ask(stormpy: Any, chain: Any, query: str, environment: Any) -> float:
    (formula,) = stormpy.parse_properties(query)
    answer = stormpy.model_checking(chain, formula, environment=environment)
    return float(answer.get_value(chain.initial_states[0]))


def _build_chain(stormpy: Any, places: Chain, weights: Sequence[float]) -> Any:
    """Return the Markov chain of a policy: the start, its places, and the sinks."""
    count = 1 + len(places)
    sinks = {name: count + k for k, name in enumerate(SINKS)}
    members = np.array(weights if len(places) else [])
    parts: list[tuple[NDArray[Any], ...]] = [
        (np.zeros(len(members), int), 1 + np.arange(len(members)), members)
    ]
    here = 1 + np.arange(len(places))
    parts.append((here, np.full(len(here), sinks["failed"]), places.risk))
    parts.append((here, np.full(len(here), sinks["left"]), places.unplanned))
    onward = places.target >= 0
    ways = (1 + places.source[onward], 1 + places.target[onward], places.probability[onward])
    parts.append(ways)
    rewards = np.zeros(count + len(SINKS))
    rewards[here] = places.weights * places.gather(places.probability * places.reward)
    parts.append(_end(parts, count, sinks["ended"]))
    own = np.array(list(sinks.values()))
    parts.append((own, own, np.ones(len(own))))
    row, column, chance = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    likely = chance > 0
    labels = stormpy.models.StateLabeling(len(rewards))
    for label, state in (("init", 0), *sinks.items()):
        labels.add_label(label)
        labels.add_label_to_state(label, state)
    model = stormpy.models.SparseRewardModel(optional_state_reward_vector=rewards.tolist())
    return stormpy.models.SparseDtmc(
        stormpy.models.SparseModelComponents(
            transition_matrix=build_matrix(
                row[likely], column[likely], chance[likely], size=len(rewards)
            ),
            state_labeling=labels,
            reward_models={"reward": model},
        )
    )


def _end(
    parts: Sequence[tuple[NDArray[Any], ...]], count: int, ended: int
) -> tuple[NDArray[Any], ...]:
    """Return the ways of places to the end: what is left of their probabilities."""
    gone = np.zeros(count)
    for row, _, chance in parts:
        np.add.at(gone, row, chance)
    rest = 1.0 - gone
    ends = np.flatnonzero(rest > 0)
    return ends, np.full(len(ends), ended), rest[ends]
