"""What Storm says of a PRISM or JANI file, without any part of Vulcan.

Storm reads the file, builds its states, unrolls the steps and answers a multi-objective query by
itself: the most that any randomised policy gets, if it fails with at most some probability. In
Vulcan failure and goal end a mission. In a file they need not, so that questions have to say so:

    R{"reward"}max=? [C<=N]               where nothing is earned after failing
    Pmax=? [!failure U<=N goal]           to reach a goal, and not by way of a failure
    P<=d [!goal U<=N failure]             failures after the goal do not count
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["ask_storm"]

PRECISION = 1e-7


def ask_storm(
    path: Path, objective: str, limit: str, constants: Mapping[str, Any] | None = None
) -> float:
    """Return the best value of an objective within a limit."""
    import stormpy

    level = stormpy.developer.get_log_level()
    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    if path.suffix == ".jani":
        program = stormpy.parse_jani_model(path)[0]
    else:
        program = stormpy.parse_prism_program(path)
    program, _ = stormpy.instantiate_constants(program, dict(constants or {}))
    (query,) = stormpy.parse_properties(f"multi({objective}, {limit})", program)
    model = stormpy.build_model(program, query)
    environment = stormpy.environments.sound()
    settings = environment.modelchecker().multi()
    settings.method = stormpy.environments.MultiObjectiveMethod.PCAA
    settings.precision = stormpy.Rational(PRECISION)
    answer = stormpy.model_checking(model, query, environment=environment)
    stormpy.developer.set_log_level(level)
    return float(answer.get_value(model.initial_states[0]))
