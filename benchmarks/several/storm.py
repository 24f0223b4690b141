"""Multi-objective queries over models by other people: the best randomised policy, and Storm's.

Storm reads a PRISM file, builds its states and answers the query by itself, with steps bounded:

    multi(Pmax=? [F<=N "goal"], R{"time"}<=c [C<=N], P<=d [F<=N "collision"])

Vulcan gets the same states as a plain model: reaching the goal for the first time pays 1, or a
reward structure is paid; other structures are costs, and labels that are reached are events.
Limits lie between the least value of a quantity and that of the best policy without limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import vulcan
from vulcan import Outcome
from vulcan.constraints import Constraint, Cost, Risk

__all__ = ["QUERIES", "Query", "ask_both"]

OWN = Path(__file__).parents[1] / "models"
PRECISION = 1e-8


class Query(NamedTuple):
    """What to read from a file: quantities are labels, or reward structures after "R "."""

    file: str
    steps: int
    objective: str
    limited: tuple[str, ...]
    shares: tuple[float, ...]  # of each limit, between least (0) and free (1)


QUERIES = (
    Query("coin2-2.nm", 40, "all_coins_equal_1", ("R steps", "finished"), (0.7, 0.5)),
    Query("coin2-2.nm", 80, "finished", ("R steps", "all_coins_equal_1"), (0.9, 0.5)),
    Query("zeroconf.prism", 60, "R machines", ("failed",), (0.4,)),
    Query("csma2-2.nm", 100, "all_delivered", ("R time", "collision_max_backoff"), (0.8, 0.5)),
    Query("csma2-2.nm", 150, "one_delivered", ("R time", "collision_max_backoff"), (0.5, 0.6)),
    Query("firewire3-0.5.nm", 60, "elected", ("R time", "R time_sending"), (0.8, 0.6)),
    Query("firewire3-0.5.nm", 90, "R time_sending", ("R time", "elected"), (0.6, 0.7)),
    Query("die_selection.nm", 8, "six", ("R coin_flips", "four"), (0.9, 0.5)),
    Query("die_selection.nm", 12, "one", ("R coin_flips", "two", "three"), (0.8, 0.5, 0.4)),
    Query("die_c1.nm", 10, "six", ("R coin_flips", "two"), (1.0, 1.0)),
    Query("die_c1.nm", 20, "done", ("R coin_flips", "six", "one"), (0.7, 0.5, 0.5)),
    Query("two_dice.nm", 16, "seven", ("R coinflips", "two"), (1.0, 1.0)),
    Query("two_dice.nm", 24, "done", ("R coinflips", "seven", "twelve"), (0.9, 0.8, 0.5)),
    Query("slipgrid.nm", 12, "target", ("R ", "pickup"), (0.7, 0.5)),
    Query("slipgrid.nm", 20, "goal", ("R ", "pickup"), (0.5, 0.6)),
    Query("maze_2_multigoal.nm", 12, "goal", ("R ", "goalalt1"), (0.7, 0.5)),
    Query("maze_2_multigoal.nm", 20, "goal", ("R ", "goalalt1", "goalalt2"), (0.6, 0.5, 0.5)),
    Query("gathering.prism", 30, "R gold", ("R gem", "failed"), (0.5, 0.5)),
    Query("gathering.prism", 100, "R gold", ("R gem", "failed"), (0.8, 0.2)),
    Query("gathering.prism", 60, "R gem", ("R gold", "failed"), (0.7, 0.4)),
)


class StormModel:
    """The states that Storm built from a file, as a plain model."""

    def __init__(self, model: Any, query: Query) -> None:
        self.horizon, self._model, self._query = query.steps, model, query
        self._labels = {
            name: set(model.labeling.get_states(name))
            for name in (query.objective, *query.limited)
            if not name.startswith("R ")
        }
        self._paid = {
            name: self._read_rewards(model.reward_models[name[2:]])
            for name in (query.objective, *query.limited)
            if name.startswith("R ")
        }
        goal = self._labels.get(query.objective, set())
        initial = model.initial_states[0]
        assert all(initial not in states for states in self._labels.values())
        self._goal, self._start = goal, (initial, False)

    def _read_rewards(self, paid: Any) -> list[float]:
        """Return what each choice pays."""
        found = []
        for state in self._model.states:
            here = paid.state_rewards[state.id] if paid.has_state_rewards else 0.0
            for row in self._list_rows(state.id):
                more = paid.state_action_rewards[row] if paid.has_state_action_rewards else 0.0
                found.append(here + more)
        return found

    def _list_rows(self, state: int) -> range:
        matrix = self._model.transition_matrix
        return range(matrix.get_row_group_start(state), matrix.get_row_group_end(state))

    def initial_state(self) -> tuple[int, bool]:
        """Return the initial state, and that the goal was not reached."""
        return self._start

    def actions(self, state: tuple[int, bool]) -> range:
        """Return the choices of a state."""
        return self._list_rows(state[0])

    def outcomes(self, state: tuple[int, bool], row: int) -> list[Outcome]:
        """Return where a choice leads."""
        reached = state[1]
        objective, limited = self._query.objective, self._query.limited
        pay = self._paid.get(objective, ())
        costs = {_name(name): self._paid[name][row] for name in limited if name in self._paid}
        found = []
        for entry in self._model.transition_matrix.get_row(row):
            after = entry.column
            events = [name for name in limited if after in self._labels.get(name, ())]
            assert len(events) <= 1, f"{events} at once"
            first = after in self._goal and not reached
            found.append(
                Outcome(
                    entry.value,
                    (pay[row] if pay else 0.0) + first,
                    (after, reached or first),
                    costs=costs,
                    event=events[0] if events else None,
                )
            )
        return found


def _name(quantity: str) -> str:
    return quantity[2:] or "cost"


def ask_both(query: Query) -> tuple[int, list[float], float | None, float | None]:
    """Return the number of states, the limits, Storm's value and Vulcan's; None for infeasible."""
    import stormpy
    from stormpy.examples import files

    stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)
    path = OWN / query.file
    if not path.exists():
        path = Path(files.__file__).parent / "files" / "mdp" / query.file
    program = stormpy.parse_prism_program(str(path))
    options = stormpy.BuilderOptions()
    options.set_build_all_reward_models()
    options.set_build_all_labels()
    model = stormpy.build_model(program, options=options)
    plain = StormModel(model, query)
    limits = _draw_limits(program, plain, query)
    storm = _ask(program, [_write(query.objective, query.steps, "max=?"), *limits[1]])
    problem = vulcan.Problem(plain, constraints=_constrain(query, limits[0]))
    result = vulcan.solve(problem, vulcan.Automatic(randomised=True), gap=0)
    found = result.certificate
    if found is None:
        assert result.status is vulcan.planning.Status.INFEASIBLE
    else:
        assert found.safe
    return model.nr_states, limits[0], storm, None if found is None else float(found.reward)


def _constrain(query: Query, limits: Sequence[float]) -> list[Constraint]:
    pairs = zip(query.limited, limits, strict=True)
    return [
        Cost(_name(name), limit) if name.startswith("R ") else Risk(limit, event=name)
        for name, limit in pairs
    ]


def _draw_limits(program: Any, plain: StormModel, query: Query) -> tuple[list[float], list[str]]:
    """Return the limits, and as Storm reads them."""
    free = vulcan.solve(vulcan.Problem(plain, 1.0)).policy
    loose = [1e9 if name.startswith("R ") else 1.0 for name in query.limited]
    certificate = vulcan.certify(vulcan.Problem(plain, constraints=_constrain(query, loose)), free)
    values, texts = [], []
    for name, share, limited in zip(
        query.limited, query.shares, certificate.constraints, strict=True
    ):
        least = _ask(program, [_write(name, query.steps, "min=?")])
        assert least is not None
        limit = math.ceil(1e6 * (least + share * (float(limited.value) - least))) / 1e6
        values.append(limit)
        texts.append(_write(name, query.steps, f"<={limit!r}"))
    return values, texts


def _write(quantity: str, steps: int, how: str) -> str:
    if not quantity.startswith("R "):
        return f'P{how} [F<={steps} "{quantity}"]'
    name = quantity[2:]
    return f"R{f'{{{chr(34)}{name}{chr(34)}}}' if name else ''}{how} [C<={steps}]"


def _ask(program: Any, parts: Sequence[str]) -> float | None:
    """Return the value of a query; None if its limits exclude each other."""
    import stormpy

    text = parts[0] if len(parts) == 1 else f"multi({', '.join(parts)})"
    (query,) = stormpy.parse_properties(text, program)
    model = stormpy.build_model(program, query)
    environment = stormpy.environments.sound()
    settings = environment.modelchecker().multi()
    settings.method = stormpy.environments.MultiObjectiveMethod.PCAA
    settings.precision = stormpy.Rational(PRECISION)
    answer = stormpy.model_checking(model, query, environment=environment)
    if not hasattr(answer, "get_value"):
        return None
    return float(answer.get_value(model.initial_states[0]))
