"""RDDL problems as models, beside pyRDDLGym's own simulator."""

from __future__ import annotations

import math
import pickle
import random
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.oracles.hidden import enumerate_policies, start
from vulcan.errors import ModelError, OptionError
from vulcan.formats import open_model
from vulcan.testing import check_model

pytest.importorskip("vulcan_rddl", reason="vulcan-planner-rddl is not installed: make everything")
from vulcan_rddl.model import RDDLFiles, from_rddl

EXAMPLES = Path(__file__).parents[2] / "examples"
DOMAIN, INSTANCE = str(EXAMPLES / "courier.rddl"), str(EXAMPLES / "courier_instance.rddl")
SAMPLES = 1500

# Everything in one file, with a gap for the fluents and one for what becomes of them.
SMALL = """domain small {{
    types {{ item : object; tone : {{@low, @high}}; }};
    pvariables {{
        P(item) : {{ non-fluent, real, default = 0.25 }};
        lit(item) : {{ state-fluent, bool, default = false }};
        count : {{ state-fluent, int, default = 0 }};
        mood : {{ state-fluent, tone, default = @low }};
        {fluents}
        press(item) : {{ action-fluent, bool, default = false }};
    }};
    cpfs {{
        lit'(?i) = {lit};
        count' = {count};
        mood' = {mood};
        {cpfs}
    }};
    reward = {reward};
    {more}
}}
non-fluents things {{ domain = small; objects {{ item : {{a, b, c}}; }}; }}
instance now {{
    domain = small; non-fluents = things;
    init-state {{ lit(a); }};
    max-nondef-actions = {most}; horizon = {horizon}; discount = 1.0;
}}
"""
PLAIN = {
    "fluents": "", "lit": "lit(?i)", "count": "count", "mood": "mood", "cpfs": "",
    "reward": "count", "more": "", "most": "1", "horizon": "3",
}  # fmt: skip


def write_small(folder: Path, **parts: str) -> str:
    path = folder / "small.rddl"
    path.write_text(SMALL.format(**PLAIN | parts))
    return str(path)


load_simulator = cache(RDDLFiles.load)


def sample(model: Any, state: Any, action: str, count: int, seed: int = 0) -> Counter[Any]:
    """Return how often pyRDDLGym's simulator came to each next state, with each reward."""
    import numpy as np

    rddl, simulator = load_simulator(model.source)
    simulator.seed(seed)
    given = {}
    for part in action.split(", ") if action != "noop" else []:
        name, _, value = part.partition("=")
        base, _, objects = name.rstrip(")").partition("(")
        ground = rddl.ground_var(base, objects.split(",") if objects else None)
        known = {"": True, "True": True, "False": False}
        given[ground] = known.get(value, value)
        if value.lstrip("-").isdigit() and value not in rddl.object_to_type:
            given[ground] = int(value)
    acted = simulator.prepare_actions_for_sim(given)
    start, left = {}, list(state)
    for name in rddl.next_state:
        values = [left.pop(0) for _ in rddl.variable_groundings[name]]
        values = [rddl.object_to_index[v] if isinstance(v, str) else v for v in values]
        kind = np.asarray(simulator.init_values[name]).dtype
        array = np.array(values, dtype=kind)
        shape = np.shape(simulator.init_values[name])
        start[name] = array.reshape(shape) if shape else array[0]
    found: Counter[Any] = Counter()
    for _ in range(count):
        simulator.reset()
        simulator.subs.update(start)
        after, reward, _ = simulator.step(acted)
        values = tuple(str(v) if isinstance(v, str) else v for v in after.values())
        found[values, round(float(reward), 9)] += 1
    return found


def compare(model: Any, state: Any, action: str, count: int = SAMPLES) -> None:
    """Compare exact probabilities with frequencies, each within five standard deviations."""
    exact: dict[Any, float] = {}
    for outcome in model.outcomes(state, action):
        assert not outcome.fails
        exact[tuple(outcome.state), round(outcome.reward, 9)] = outcome.probability
    assert sum(exact.values()) == pytest.approx(1, abs=1e-12)
    found = sample(model, state, action, count)
    assert set(found) <= set(exact)
    for key, p in exact.items():
        assert abs(found[key] - count * p) <= 5 * math.sqrt(count * p * (1 - p)) + 1, (key, p)


def walk(model: Any, steps: int, seed: int) -> list[tuple[Any, str]]:
    """Return states and actions on a random way through a model."""
    draw = random.Random(seed)
    state, way = model.initial_state(), []
    for _ in range(steps):
        actions = model.actions(state)
        if not actions:
            break
        way.append((state, draw.choice(actions)))
        outcomes = [o for o in model.outcomes(*way[-1]) if not o.fails]
        state = draw.choice(outcomes).state
    return way


def test_the_example_beside_the_simulator() -> None:
    model = from_rddl(DOMAIN, INSTANCE)
    for state, action in walk(model, 4, seed=1):
        compare(model, state, action)


@pytest.mark.parametrize(
    "parts",
    [
        {"lit": "if (press(?i)) then Bernoulli(P(?i)) else KronDelta(lit(?i))"},
        {"lit": "Bernoulli(0.3) ^ (lit(?i) | Bernoulli(0.4))"},
        {"lit": "exists_{?j : item} [Bernoulli(0.2)]"},
        {"lit": "if (Bernoulli(0.3)) then press(?i) else ~lit(?i)"},
        {"lit": "lit(?i) => press(?i)", "count": "sum_{?i : item} [Bernoulli(0.3)]"},
        {"count": "min[count + Binomial(3, 0.4), 5]"},
        {"count": "(sum_{?i : item} lit'(?i)) - 2", "lit": "Bernoulli(0.5)"},
        {"count": "max_{?i : item} [2 * lit(?i)] + div[7, 2] * mod[5, 3] + round[2.5]"},
        {"mood": "Discrete(tone, @low : 0.2, @high : 0.8)", "reward": "mood' == @high"},
        {"mood": "UnnormDiscrete(tone, @low : 1, @high : 3 + count)"},
        {"mood": "Discrete_{?l : tone} [0.5]", "reward": "[sum_{?l : tone} (mood' == ?l)] * 2.5"},
        {"count": "switch (mood) { case @low : 1, default : 2 }"},
        {
            "fluents": "extra : { interm-fluent, bool };",
            "cpfs": "extra = Bernoulli(0.5);",
            "lit": "lit(?i) ^ extra",
            "count": "if (extra) then 1 else 0",
            "reward": "extra * 3 - sum_{?i : item} press(?i)",
        },
        {"reward": "Bernoulli(0.25) + 0.5"},
        {"reward": "(avg_{?i : item} [lit(?i)]) + (prod_{?i : item} [1 + P(?i)]) - (-2 / 4)"},
        {"lit": "lit(?i) <=> forall_{?j : item} [lit(?j) | press(?j)]", "most": "2"},
    ],
)
def test_expressions_beside_the_simulator(tmp_path: Path, parts: dict[str, str]) -> None:
    model = from_rddl(write_small(tmp_path, **parts))
    for state, action in {*walk(model, 3, seed=2), *walk(model, 3, seed=3)}:
        compare(model, state, action, 400)


@pytest.mark.parametrize(
    "name", ["Navigation_MDP_ippc2011", "TriangleTireworld_MDP_ippc2014", "Blackjack_arcade"]
)
def test_problems_of_the_competitions_beside_the_simulator(name: str) -> None:
    model = from_rddl(name, 0 if name.endswith("arcade") else 1)
    for state, action in walk(model, 4, seed=4):
        compare(model, state, action, 500)


def test_a_model_is_sound_and_solved_within_its_bound() -> None:
    model = from_rddl(DOMAIN, INSTANCE, failure="crashed")
    assert not check_model(model).violations
    bold, careful = (vulcan.solve(vulcan.Problem(model, bound)) for bound in (0.2, 0.01))
    assert careful.safe
    assert bold.safe
    assert careful.certificate.risk <= 0.01 < bold.certificate.risk
    assert careful.certificate.reward < bold.certificate.reward


def test_exact_outcomes_of_the_example() -> None:
    model = from_rddl(DOMAIN, INSTANCE, failure="crashed")
    outcomes = model.outcomes(model.initial_state(), "fly(isle)")
    (failing,) = [o for o in outcomes if o.fails]
    assert (failing.probability, failing.reward) == (pytest.approx(0.01), 0.0)
    safe = {str(o.state): (o.probability, o.reward) for o in outcomes if not o.fails}
    assert safe == {
        f"at(isle), waiting(farm), waiting(mill), weather={wind}": (pytest.approx(0.99 * p), 3.0)
        for wind, p in (("calm", 0.3), ("breeze", 0.4), ("storm", 0.3))
    }


def test_actions_keep_preconditions_and_their_number(tmp_path: Path) -> None:
    model = from_rddl(DOMAIN, INSTANCE)
    assert model.actions(model.initial_state()) == ["noop", "fly(farm)", "fly(isle)"]
    path = write_small(
        tmp_path, most="2", more="action-preconditions { (sum_{?i : item} press(?i)) ~= 1; };"
    )
    actions = from_rddl(path).actions(from_rddl(path).initial_state())
    assert actions == ["noop", "press(a), press(b)", "press(a), press(c)", "press(b), press(c)"]


def test_a_problem_ends_where_it_says(tmp_path: Path) -> None:
    path = write_small(tmp_path, count="count + 1", more="termination { count >= 1; };")
    model = from_rddl(path)
    (outcome,) = model.outcomes(model.initial_state(), "noop")
    assert model.actions(outcome.state) == []


@pytest.mark.parametrize(
    ("failure", "fails"),
    [
        ("lit(b)", {"noop": 0.0, "press(b)": 0.25}),
        ("~lit(a) ^ count == 0", {"noop": 0.0, "press(a)": 0.75}),
        ("forall_{?i : item} [~lit(?i)]", {"noop": 0.0, "press(a)": 0.75}),
    ],
)
def test_failures_are_fluents_or_conditions(
    tmp_path: Path, failure: str, fails: dict[str, float]
) -> None:
    given = "if (press(?i)) then Bernoulli(P(?i)) else KronDelta(lit(?i))"
    path = write_small(tmp_path, lit=given)
    model = from_rddl(path, failure=failure)
    for action, risk in fails.items():
        outcomes = model.outcomes(model.initial_state(), action)
        assert sum(o.probability for o in outcomes if o.fails) == pytest.approx(risk)


def test_a_violated_invariant_is_a_failure(tmp_path: Path) -> None:
    path = write_small(tmp_path, count="Binomial(2, 0.5)", more="state-invariants { count <= 1; };")
    model = from_rddl(path)
    outcomes = model.outcomes(model.initial_state(), "noop")
    assert {(o.fails, o.probability) for o in outcomes} == {
        (True, 0.25),
        (False, 0.25),
        (False, 0.5),
    }


def test_unread_fluents_make_no_outcomes(tmp_path: Path) -> None:
    path = write_small(tmp_path, fluents="idle(item) : { interm-fluent, bool };",
                       cpfs="idle(?i) = Bernoulli(0.5);")  # fmt: skip
    model = from_rddl(path)
    (outcome,) = model.outcomes(model.initial_state(), "noop")
    assert outcome.probability == 1.0


def test_rounded_probabilities_are_never_above_one(tmp_path: Path) -> None:
    """Of eight parts of a whole, with 0.2 and 0.8, the sum is 1.0000000000000002."""
    model = from_rddl(write_small(tmp_path, lit="Bernoulli(0.2)", count="1"), failure="count == 1")
    (outcome,) = model.outcomes(model.initial_state(), "noop")
    assert (outcome.fails, outcome.probability) == (True, 1.0)


def test_a_fluent_fails_for_any_of_its_objects(tmp_path: Path) -> None:
    path = write_small(tmp_path, fluents="out(item) : { state-fluent, bool, default = false };",
                       cpfs="out'(?i) = Bernoulli(0.5);")  # fmt: skip
    model = from_rddl(path, failure="out")
    outcomes = model.outcomes(model.initial_state(), "noop")
    assert {(o.fails, o.probability) for o in outcomes} == {(True, 0.875), (False, 0.125)}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"count": "count + ;"}, r"small.rddl, line 13: Incorrect use of symbol or keyword: ;"),
        ({"count": "count § 1"}, r"small.rddl, line 13: .*illegal character"),
        ({"count": "cuont"}, r"small.rddl: Variable <cuont> is not defined"),
        ({"count": "Normal(0, 1)"}, r"line 13: count': Normal\(0, 1\) has infinitely many values; "
                                    r"allowed are KronDelta, .*Bernoulli"),
        ({"count": "Poisson(3)"}, "Poisson"),
        ({"count": "count / 2"}, r"count' must evaluate to .*int.*, got 0.0(.|\n)*count / 2"),
        ({"lit": "count"}, r"small.rddl: lit' must evaluate to .*bool.*, got .* of type int"),
        ({"lit": "count ^ lit(?i)"}, r"must evaluate to .*bool(.|\n)*count \^ lit"),
        ({"lit": "lit(mood)"}, "mood"),
        ({"count": "sine[count]"}, r"there are abs\[x\].*pow\[x, y\]"),
        ({"cpfs": "ghost = 3;"}, "ghost"),
        ({"fluents": "push : { action-fluent, real, default = 0.0 };"},
         "action fluent push is real .* allowed are bool, enumerated types, and int with bounds"),
        ({"fluents": "seen : { observ-fluent, bool }; half : { interm-fluent, bool };",
          "cpfs": "half = Bernoulli(0.5); seen = half;"},
         "the observation seen reads half; it may read actions and fluents of the next state"),
        ({"horizon": "-1"}, "small.rddl"),
        ({"more": "termination { Bernoulli(0.5); };"}, "termination must not be random"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_where(
    tmp_path: Path, parts: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        from_rddl(write_small(tmp_path, **parts))


HIDDEN = {
    "fluents": "seen : { observ-fluent, bool };",
    "lit": "if (press(?i)) then Bernoulli(0.5) else lit(?i)",
    "count": "if (exists_{?i : item} [press(?i)]) then 1 else 0",
    "cpfs": "seen = if ((sum_{?i : item} [lit'(?i)]) > 1) then Bernoulli(0.9) else Bernoulli(0.2);",
    "reward": "(sum_{?i : item} [lit(?i)]) - count",
    "horizon": "2",
}


@pytest.mark.parametrize("bound", [0.0, 0.3, 1.0])
def test_observation_fluents_hide_the_state(tmp_path: Path, bound: float) -> None:
    model = from_rddl(write_small(tmp_path, **HIDDEN), failure="lit(a) ^ lit(b)")
    assert isinstance(model, vulcan.BeliefModel)
    assert pickle.loads(pickle.dumps(model)).initial_state() == model.initial_state()
    worths = enumerate_policies(model.model, start(model.model), None, 2)
    best = max(float(reward) for reward, risk, _ in worths if risk <= bound)
    result = vulcan.solve(vulcan.Problem(model, bound), gap=0.0)
    assert result.certificate.reward == pytest.approx(best)
    found = {o.label: o.probability for o in model.outcomes(model.initial_state(), "press(c)")}
    assert found == pytest.approx({"seen": 0.55, "nothing holds": 0.45})


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ("lite", "'lite' is no state fluent of .*; did you mean 'lit'"),
        ("lit(", "failure="),
        ("glow(a)", "failure='glow.a.': there is no fluent or object 'glow'"),
        ("lit(q)", r"='lit.q.': there is no fluent or object 'q'\nobjects are item: a, b, c"),
        ("lit(?i)", r"variable \?i is not bound: write exists_\{\?i : type\}"),
        ("exists_{?i : item} lit(?j)", r"variable \?j is not bound; known here are \?i: write"),
        ("exists_{?i : itme} lit(?i)", r"no type 'itme'; did you mean 'item'.\nthere are item"),
        ("count", "must be a condition on state fluents"),
        ("lit(a); lit(b)", "failure="),
        ("press(a)", "must be a condition on state fluents"),
        ("lit", r"initial state is a failure already: lit\(a\)"),
    ],
)
def test_failures_that_are_none_say_why(tmp_path: Path, failure: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        from_rddl(write_small(tmp_path), failure=failure)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        ("if (Bernoulli(0.5 + count + 1)) then 1 else 0", r"Bernoulli takes .* not 1.5"),
        ("round[1 / count]", "division by zero"),
        ("if (~Bernoulli(0.000001)) then 1 else count / 2", "it must be int, not 0.0"),
        ("round[pow[9, 387420489]]", "result out of range|Result too large"),  # no endless digits
    ],
)
def test_what_has_no_value_names_fluent_state_and_action(
    tmp_path: Path, count: str, message: str
) -> None:
    model = from_rddl(write_small(tmp_path, count=count))
    with pytest.raises(ModelError, match=f"count' has no value: .*{message}.*lit") as caught:
        model.outcomes(model.initial_state(), "noop")
    assert caught.value.violation.action == "noop"


def test_files_that_are_missing_or_half() -> None:
    with pytest.raises(OptionError, match=r"absent\.rddl: can't be read: No such file"):
        from_rddl("absent.rddl")
    with pytest.raises(OptionError, match=r"courier\.rddl [^$]*--set instance="):
        from_rddl(DOMAIN)


def test_models_by_strings() -> None:
    settings = [f"instance={INSTANCE}", "failure=crashed", "horizon=3"]
    model = open_model(DOMAIN, settings).model
    assert repr(model) == "RDDLModel('courier_day', failure='crashed', horizon=3)"
    with pytest.raises(OptionError, match="no parameter 'goal'"):
        open_model(DOMAIN, ["goal=3"])


def test_problems_of_rddlrepository_by_names() -> None:
    model = open_model("rddl:Navigation_MDP_ippc2011/1").model
    assert (model.horizon, len(model.fluents)) == (40, 12)
    with pytest.raises(OptionError, match="it has Navigation_Continuous, Navigation_MDP_ippc2011"):
        open_model("rddl:Navigation/1")
    with pytest.raises(OptionError, match=r"has no instance '77'.* one of 1, 2"):
        open_model("rddl:Navigation_MDP_ippc2011/77")


def test_an_index_of_rddlrepository_that_is_half_written_is_not_read() -> None:
    manager = pytest.importorskip("rddlrepository.core.manager")
    index = Path(manager.__file__).parent / manager.manifest
    index.write_text("name,description\n")
    assert open_model("rddl:Navigation_MDP_ippc2011/1").model.horizon == 40


def test_models_and_states_pass_between_processes() -> None:
    model = from_rddl(DOMAIN, INSTANCE, failure="crashed", horizon=4)
    other = pickle.loads(pickle.dumps(model))
    assert other.horizon == 4
    assert other.fingerprint == model.fingerprint
    state = pickle.loads(pickle.dumps(model.initial_state()))
    assert state == other.initial_state()
    assert str(state) == str(model.initial_state())
    assert from_rddl(DOMAIN, INSTANCE).fingerprint != model.fingerprint


def test_lines_are_those_of_the_files() -> None:
    assert RDDLFiles(DOMAIN, INSTANCE).locate("weather'").endswith("courier.rddl, line 34")


@pytest.mark.parametrize("most", ["pos-inf", "3"])
def test_many_combinations_are_searched_as_they_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    more = """action-preconditions {
        (sum_{?i : item} [2 * press(?i) + pull(?i)]) <= 3 + count;
        forall_{?i : item} [press(?i) => (lit(?i) ^ turn ~= @high)];
        turn == @high => exists_{?i : item} pull(?i);
        (if (forall_{?i : item} [lit(?i)]) then dial - 1 else 0) >= 0;
        -1 <= dial; dial <= 2;
    };"""
    fluents = """pull(item) : { action-fluent, bool, default = false };
        turn : { action-fluent, tone, default = @low };
        dial : { action-fluent, int, default = 0 };"""
    lit = "Bernoulli(0.5)"
    path = write_small(tmp_path, fluents=fluents, more=more, most=most, lit=lit, count="-count")
    listed = from_rddl(path)
    monkeypatch.setattr("vulcan_rddl.model.FEW_ACTIONS", 0)
    searched = from_rddl(path)
    first = listed.initial_state()
    states = {first} | {
        o.state for a in listed.actions(first)[:3] for o in listed.outcomes(first, a)
    }
    assert len(states) == 8
    for state in states:
        assert 0 < len(listed.actions(state)) < 512
        assert searched.actions(state) == listed.actions(state)


SAIL = """domain d {{
  requirements = {{ reward-deterministic }};
  pvariables {{
    lost : {{ state-fluent, bool, default = false }};
    go : {{ action-fluent, bool, default = false }};
  }};
  cpfs {{ lost' = {}; }};
  reward = 1;
}}
non-fluents nf {{ domain = d; }}
instance i {{
  domain = d; non-fluents = nf; max-nondef-actions = 1; horizon = 1; discount = 1.0;
}}
"""


@pytest.mark.parametrize(
    "lost",
    [
        "Bernoulli(pow[0.1, 310])",
        "Bernoulli(pow[0.1, 200]) ^ Bernoulli(pow[0.1, 105])",
        "if (Bernoulli(pow[0.1, 200])) then Bernoulli(pow[0.1, 200]) else KronDelta(lost)",
    ],
)
def test_probabilities_that_are_too_small_are_refused(tmp_path: Path, lost: str) -> None:
    path = tmp_path / "sail.rddl"
    path.write_text(SAIL.format(lost))
    with pytest.raises(ModelError, match=r"at least 1e-300"):
        vulcan.solve(vulcan.Problem(from_rddl(str(path), failure="lost"), 0.5))


COUNTED = {"lit": "lit(?i) | press(?i)", "count": "count + sum_{?i : item} press(?i)"}


def test_fluents_are_costs_and_events_of_the_state_that_a_step_leads_to(tmp_path: Path) -> None:
    path = write_small(tmp_path, **COUNTED)
    model = from_rddl(
        path, failure="count >= 2", costs="lit,count", events={"wet": "lit(b)", "late": "lit(c)"}
    )
    first = model.initial_state()  # lit(a)
    (dry,) = model.outcomes(first, "noop")
    assert (dict(dry.costs), dry.event) == ({"lit": 1.0, "count": 0.0}, None)
    (wet,) = model.outcomes(first, "press(b)")
    assert (dict(wet.costs), wet.event) == ({"lit": 2.0, "count": 1.0}, "wet")
    (failed,) = model.outcomes(wet.state, "press(b)")
    assert (failed.fails, dict(failed.costs)["count"], failed.event) == (True, 2.0, "wet")
    with pytest.raises(ModelError, match="an outcome has one event, not wet and late"):
        model.outcomes(wet.state, "press(c)")
    assert pickle.loads(pickle.dumps(model)).outcomes(first, "press(b)") == [wet]
    assert model.fingerprint != from_rddl(path, failure="count >= 2").fingerprint
    assert check_model(from_rddl(path, costs="lit", events="lit")).costs == {"lit": (1.0, 3.0)}


def test_conditions_of_several_events_are_never_confused(tmp_path: Path) -> None:
    """Types of expressions were once remembered by ids, which are used again."""
    path = write_small(tmp_path, **COUNTED)
    events = {"wet": "lit(b)", "late": "lit(c)", "twice": "count >= 2 ^ ~lit(b)"}
    for _ in range(100):
        model = from_rddl(path, events=events)
        first = model.initial_state()
        found = {o.event for a in ("press(b)", "press(c)") for o in model.outcomes(first, a)}
        assert found == {"wet", "late"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": "coun"}, "cost 'coun' is no state fluent .*did you mean 'count'"),
        ({"costs": "mood"}, "cost 'mood' is no state fluent of .* with numbers"),
        ({"events": "lite"}, "event lite='lite' is no state fluent .*did you mean 'lit'"),
        ({"events": {"wet": "press(a)"}}, "event wet='press.a.' must be a condition on state"),
    ],
)
def test_fluents_that_can_not_be_costs_or_events_are_named(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        from_rddl(write_small(tmp_path), **options)


def test_constraints_on_fluents_limit_a_plan() -> None:
    settings = [f"instance={INSTANCE}", "failure=crashed", "events=crashed", "costs=waiting"]
    model = open_model(DOMAIN, settings).model
    limits = ["risk(crashed) <= 0.02"]
    limited = vulcan.solve(vulcan.Problem(model, constraints=limits), gap=0.01)
    bounded = vulcan.solve(vulcan.Problem(model, 0.02), gap=0.01)
    (crashed,) = limited.certificate.constraints
    assert crashed.value == pytest.approx(limited.certificate.risk)
    assert limited.certificate.reward == pytest.approx(bounded.certificate.reward, rel=0.02)
