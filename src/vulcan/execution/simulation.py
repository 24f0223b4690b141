"""Simulating a policy: many episodes, what they came to, and whether that is what was promised.

Exact values need no simulation: a certificate has them. A simulation is the check that needs no
theory, it shows what single episodes are like, and it is the only judge of a world that is not the
policy's model.

A policy carries the answers of its model, so episodes in that model are played from the policy's
arrays, compiled (`vulcan.execution.played`). If a model is given, a certificate compares its
answers with those first. Where they differ, and in environments, episodes are played step by step
in Python (`vulcan.execution.world`).
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vulcan.certificates.certificate import certify
from vulcan.certificates.problem import Problem
from vulcan.errors import MismatchError, OptionError, PolicyError, SimulationWarning
from vulcan.execution.estimates import Simulation, judge
from vulcan.execution.played import PlayedPolicy
from vulcan.execution.world import describe_world, is_environment, play_in_world
from vulcan.model.reader import ModelReader
from vulcan.policies.randomised import AnyPolicy
from vulcan.runtime.limits import Limits
from vulcan.runtime.monitor import Monitor
from vulcan.runtime.progress import OnProgress, Phase, Progress, watch_progress

__all__ = ["simulate"]


def simulate(
    policy: AnyPolicy,
    model: Any = None,
    *,
    episodes: int = 100_000,
    seed: int = 0,
    workers: int | None = None,
    confidence: float = 0.95,
    on_progress: OnProgress | None = None,
    progress: bool = False,
) -> Simulation:
    """Play episodes of a policy, and compare them with its exact values.

    Parameters
    ----------
    policy
        Any policy: deterministic or randomised, complete or not.
    model
        Where to play. Without one, or with the model that the policy was made for (a certificate
        tells, which asks it for all that the policy does), episodes are compiled. Any other model,
        or an environment with Gymnasium's `reset` and `step`, is played in Python, and the policy
        is followed by what is observed; `vulcan.execution.world` says how that is recognised.
    episodes
        How many.
    seed
        Of the random numbers. The same seed gives the same numbers, on any number of cores.
    workers
        How many threads play compiled episodes; by default one for each core.
    confidence
        Of the intervals around the estimates.
    on_progress
        Called several times a second with a `Progress`.
    progress
        Show the progress in the terminal.

    Returns
    -------
    Simulation
        Estimates with their intervals beside the exact values, survival over the steps, a histogram
        of rewards, and what disagrees. After Ctrl-C, of the episodes that were played by then.

    Raises
    ------
    OptionError
        If there are no episodes to play, or an environment's actions are not known.
    PolicyError
        If a discounted policy is given without its model, and its file is too old to say whether
        the first decision is discounted.

    Warns
    -----
    SimulationWarning
        If the episodes are not what the exact values say. If they are, this happens with a
        probability of at most 1e-6.

    Examples
    --------
    >>> import vulcan
    >>> from vulcan.domains import Bandit
    >>> policy = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "0.002*x")).policy
    >>> simulation = vulcan.simulate(policy, episodes=20_000, seed=1)
    >>> simulation.agrees
    True
    >>> simulation.reward.low < simulation.reward.exact < simulation.reward.high
    True
    """
    _check(episodes, workers, confidence)
    began = time.perf_counter()
    threads = workers or _count_cores()
    elsewhere = model is not None and is_environment(model)
    own, certified = _recognise(policy, None if elsewhere else model)
    played = PlayedPolicy(policy, _find_discounts(policy, own)[0])
    exact = replace(played.expected, **certified)
    with watch_progress(on_progress, progress) as tell, Monitor(Limits(), tell) as monitor:
        go_on = partial(_go_on, monitor, episodes)
        if model is None or certified:
            engine, found = "compiled", played.play(episodes, seed, threads, go_on)
        else:
            engine, threads = "Python", 1
            discounts = _find_discounts(policy, own if elsewhere else ModelReader(model))
            found = play_in_world(policy, model, episodes, seed, discounts, go_on)
    simulation = Simulation(
        model=policy.about.model if model is None else describe_world(model),
        engine=engine,
        seed=seed,
        workers=threads,
        seconds=time.perf_counter() - began,
        interrupted=monitor.requested,
        **judge(found, exact, confidence),
    )
    if simulation.disagreements:
        warnings.warn("; ".join(simulation.disagreements), SimulationWarning, stacklevel=2)
    return simulation


def _go_on(monitor: Monitor, episodes: int, played: int, reward: float) -> bool:
    """Tell how far it is, and return whether nobody wants it to stop."""
    monitor.report(
        lambda: Progress(monitor.seconds, played / episodes, played, 0, reward, phase=Phase.PLAYING)
    )
    return not monitor.wants_stop(played)


def _check(episodes: int, workers: int | None, confidence: float) -> None:
    if episodes < 1:
        raise OptionError(f"episodes must be at least 1, not {episodes!r}")
    if workers is not None and workers < 1:
        raise OptionError(f"workers must be at least 1, not {workers!r}")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must be between 0 and 1, not {confidence!r}")


def _count_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _recognise(policy: AnyPolicy, model: Any) -> tuple[ModelReader | None, dict[str, Any]]:
    """Return the policy's own model, if it is known, and what a certificate by it says.

    The certificate is empty without a model, and if this model is not the policy's own.
    """
    bound = policy.members[0].reader
    if model is None:
        return bound, {}
    try:
        certificate = certify(Problem(model, 1.0), policy)
    except MismatchError:
        return bound, {}
    names = ("reward", "risk", "frontier")
    return ModelReader(model), {name: float(getattr(certificate, name)) for name in names}


def _find_discounts(policy: AnyPolicy, reader: ModelReader | None) -> Sequence[float]:
    """Return what follows the first decision, and any later one, is multiplied with."""
    if reader is not None:
        return (float(reader.discount_after(0)), float(reader.discount))
    about = policy.about
    if math.isnan(about.first_discount):
        raise PolicyError(
            f"this policy has the discount {about.discount!r}, and only its model says whether the "
            "first decision is discounted: give the model, or bind the policy to it"
        )
    return (about.first_discount, about.discount)
