"""Randomised policies: drawn, certified, saved and shown."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings

import vulcan
from tests.brute_force import Plan, enumerate_plans
from tests.tables import SEEDS, Table, bounds, random_bound, random_table, tables
from tests.test_certificate import about, build
from vulcan import Outcome, Policy
from vulcan.cli import main
from vulcan.domains import Bandit
from vulcan.files import HEADER
from vulcan.policy import END, FAILED, UNPLANNED, PolicyBuilder
from vulcan.policy_file import RANDOMISED_SEAL, SEAL, RandomisedContent
from vulcan.randomised import RandomisedPolicy
from vulcan.reader import ModelReader

# Either take 1 for sure, or 10 with a chance of 0.2 to fail.
CHOICE = Table(
    {0: {"rest": [Outcome(1.0, 1.0, 1)], "leap": [Outcome(0.8, 10.0, 1), Outcome.failure(0.2)]}}
)


def take(name: str) -> Policy:
    (plan,) = [plan for plan in enumerate_plans(CHOICE) if plan.choice[0] == name]
    return build(CHOICE, plan)


def mix(weight: float = 0.25) -> RandomisedPolicy:
    """Return the policy that leaps with a probability, and else rests."""
    return RandomisedPolicy([take("leap"), take("rest")], [weight, 1 - weight])


@pytest.fixture(scope="module")
def bandit() -> RandomisedPolicy:
    members = [
        vulcan.solve(vulcan.Problem(Bandit(3), bound), vulcan.ForwardSearch()).policy
        for bound in (vulcan.Linear(0.002), vulcan.Linear(0.001))
    ]
    return RandomisedPolicy(members, [0.6, 0.4])


@pytest.fixture
def saved(bandit: RandomisedPolicy, tmp_path: Path) -> Path:
    path = tmp_path / "plan.vulcan"
    bandit.save(path)
    return path


# What it is


def test_it_looks_like_a_policy(bandit: RandomisedPolicy) -> None:
    first, second = bandit.members
    assert len(bandit) == len(first) + len(second) == 14
    assert bandit.about == first.about
    assert bandit.complete
    assert repr(bandit) == "<RandomisedPolicy for Bandit(horizon=3): 2 members, 14 decision nodes>"
    assert "1 member, 7 decision nodes" in repr(RandomisedPolicy([first], [1.0]))
    assert first.members == (first,)
    assert first.weights == (1.0,)


def test_equality_is_about_members_and_weights(bandit: RandomisedPolicy) -> None:
    first, second = bandit.members
    assert bandit == RandomisedPolicy([first, second], [0.6, 0.4])
    assert bandit != RandomisedPolicy([first, second], [0.4, 0.6])
    assert bandit != RandomisedPolicy([second, first], [0.6, 0.4])
    assert bandit != first
    assert first != RandomisedPolicy([first], [1.0])


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([1.0], "members and weights differ in number: 2 and 1"),
        ([0.5, 0.25, 0.25], "members and weights differ in number: 2 and 3"),
        ([1.0, 0.0], r"the weight 0\.0 is not positive"),
        ([1.5, -0.5], r"the weight -0\.5 is not positive"),
        ([0.5, math.nan], "the weight nan is not positive"),
        ([0.5, math.inf], "the weights sum to inf, not to 1"),
        ([0.5, 0.5 + 2e-12], r"the weights sum to 1\.000000000002\d*, not to 1"),
        ([0.5, 0.25], r"the weights sum to 0\.75, not to 1"),
    ],
)
def test_weights_are_probabilities(weights: list[float], problem: str) -> None:
    with pytest.raises(vulcan.PolicyError, match=problem):
        RandomisedPolicy([take("leap"), take("rest")], weights)


def test_members_are_policies_of_one_model(bandit: RandomisedPolicy) -> None:
    with pytest.raises(vulcan.PolicyError, match="at least one member"):
        RandomisedPolicy([], [])
    with pytest.raises(vulcan.PolicyError, match="must be a deterministic policy, not <Randomised"):
        RandomisedPolicy([bandit, bandit], [0.5, 0.5])
    other = vulcan.solve(
        vulcan.Problem(Bandit(2), vulcan.Constant(0)), vulcan.ForwardSearch()
    ).policy
    with pytest.raises(
        vulcan.PolicyError,
        match=r"members 1 and 2 .* different models: Bandit\(horizon=3\) and Bandit\(horizon=2\)",
    ):
        RandomisedPolicy([bandit.members[0], other], [0.5, 0.5])


def test_each_member_is_drawn_under_its_weight(bandit: RandomisedPolicy) -> None:
    assert bandit.draw(depth=1).splitlines() == [
        "member 1 of 2, drawn with probability 60.0 %",
        *bandit.members[0].draw(depth=1).splitlines(),
        "",
        "member 2 of 2, drawn with probability 40.0 %",
        *bandit.members[1].draw(depth=1).splitlines(),
    ]
    assert str(bandit) == bandit.draw()


def test_drawings_keep_to_the_number_of_lines(bandit: RandomisedPolicy) -> None:
    whole = len(bandit.draw(depth=9, most_lines=1000).splitlines())
    for most in range(12, whole + 3):
        lines = bandit.draw(depth=9, most_lines=most).splitlines()
        assert len(lines) <= most
        assert "member 2 of 2, drawn with probability 40.0 %" in lines
        assert any("decision nodes" in line for line in lines) == (len(lines) < whole)
    many = RandomisedPolicy([bandit.members[0]] * 50, [0.02] * 50).draw(depth=9, most_lines=20)
    assert len(many.splitlines()) <= 24
    assert many.splitlines()[-1].startswith("… (and 4")


# Following it


def test_draws_follow_the_weights() -> None:
    policy = RandomisedPolicy([take("leap"), take("rest"), take("leap")], [0.1, 0.7, 0.2])
    runs = [policy.start(seed) for seed in range(4000)]
    drawn = Counter(
        next(k for k, m in enumerate(policy.members) if m is run.policy) for run in runs
    )
    for k, weight in enumerate(policy.weights):
        # Four standard deviations; the seeds, and so the draws, are always the same.
        assert drawn[k] / 4000 == pytest.approx(weight, abs=4 * math.sqrt(weight / 4000))


def test_a_seed_draws_the_same_member_again() -> None:
    policy = mix(0.5)
    drawn = [policy.start(seed).action for seed in range(50)]
    assert set(drawn) == {"leap", "rest"}
    assert [policy.start(seed).action for seed in range(50)] == drawn
    assert [policy.attach(ModelReader(CHOICE)).start(k).action for k in range(50)] == drawn


def test_without_a_seed_every_start_draws_afresh() -> None:
    policy = mix(0.5)
    assert {policy.start().action for _ in range(200)} == {"leap", "rest"}


def test_a_run_follows_the_member_that_was_drawn(bandit: RandomisedPolicy) -> None:
    for seed in range(20):
        run = bandit.start(seed)
        member = run.policy.start()
        while not run.finished:
            assert run.action == member.action
            run.observe(0)
            member.observe(0)
        assert member.finished


def test_bound_policies_give_the_models_own_actions(bandit: RandomisedPolicy, saved: Path) -> None:
    loaded = Policy.load(saved)
    model = Bandit(3)
    bound = loaded.bind(model)
    assert bound == loaded
    for seed in range(20):
        label, action = loaded.start(seed).action, bound.start(seed).action
        assert isinstance(label, str)
        assert action in model.actions(model.initial_state())
    with pytest.raises(vulcan.MismatchError, match=r"made for Bandit\(horizon=3\).*differently"):
        loaded.bind(Bandit(4))


# Certificates


def test_certificate_by_hand() -> None:
    certificate = vulcan.certify(vulcan.Problem(CHOICE, vulcan.Constant(0.1)), mix())
    assert certificate.reward == pytest.approx(0.25 * 8 + 0.75 * 1, abs=1e-15)
    assert certificate.risk == pytest.approx(0.05, abs=1e-15)
    assert certificate.margin == pytest.approx(2, rel=1e-6)
    assert certificate.safe
    assert certificate.frontier == 0
    assert certificate.evaluations == 2


def test_a_mixture_may_pass_although_a_member_does_not() -> None:
    problem = vulcan.Problem(CHOICE, vulcan.Constant(0.05))
    assert not vulcan.certify(problem, take("leap")).passes
    assert vulcan.certify(problem, mix(0.25)).safe
    assert not vulcan.certify(problem, mix(0.26)).passes


def test_margin_of_a_mixture_has_a_closed_form() -> None:
    # 0.05 κ of risk, for a reward of 0.75 + 0.25 · 10 (1 - 0.2 κ).
    certificate = vulcan.certify(vulcan.Problem(CHOICE, vulcan.Linear(0.03)), mix())
    assert certificate.margin == pytest.approx(0.03 * 3.25 / (0.05 + 0.03 * 0.5), rel=1e-6)
    refused = vulcan.certify(vulcan.Problem(CHOICE, vulcan.Constant(0.01)), mix())
    assert refused.margin == pytest.approx(0.2, rel=1e-6)


def mixtures(table: Table, random: Random) -> tuple[list[int], list[float]]:
    """Return which plans to mix, of all, and their weights."""
    count = len(enumerate_plans(table))
    numbers = [random.randrange(count) for _ in range(random.choice([1, 2, 2, 3]))]
    shares = [random.random() + 1e-3 for _ in numbers]
    return numbers, [share / math.fsum(shares) for share in shares]


def weigh(plans: list[Plan], weights: list[float]) -> tuple[float, float]:
    """Return reward and risk from all histories of the plans."""
    pairs = list(zip(weights, plans, strict=True))
    return math.fsum(w * p.reward for w, p in pairs), math.fsum(w * p.risk for w, p in pairs)


@settings(max_examples=150)
@given(table=tables(), bound=bounds(), seed=SEEDS)
def test_reward_and_risk_are_weighted_sums(
    table: Table, bound: vulcan.RiskBound, seed: int
) -> None:
    plans = enumerate_plans(table)
    numbers, weights = mixtures(table, Random(seed))
    chosen = [plans[number] for number in numbers]
    policy = RandomisedPolicy([build(table, plan) for plan in chosen], weights)
    problem = vulcan.Problem(table, bound)
    reward, risk = weigh(chosen, weights)
    certificate = vulcan.certify(problem, policy)
    assert certificate.reward == pytest.approx(reward, abs=1e-12)
    assert certificate.risk == pytest.approx(risk, abs=1e-12)
    assert certificate.allowed == bound(certificate.reward)
    assert certificate.slack == certificate.allowed - certificate.risk
    assert certificate.complete
    alone = [vulcan.certify(problem, member) for member in policy.members]
    if all(member.passes for member in alone):
        assert certificate.slack >= -1e-11  # because the bound is concave
    exact = vulcan.certify(problem, policy, exact=True)
    assert isinstance(exact.risk, Fraction)
    assert float(exact.reward) == pytest.approx(reward, abs=1e-12)
    assert float(exact.risk) == pytest.approx(risk, abs=1e-12)
    least, most = min(member.risk for member in alone), max(member.risk for member in alone)
    assert least - 1e-12 <= exact.risk <= most + 1e-12


@given(table=tables(), seed=SEEDS)
def test_one_member_is_certified_like_the_policy_itself(table: Table, seed: int) -> None:
    policy = build(table, Random(seed).choice(enumerate_plans(table)))
    problem = vulcan.Problem(table, random_bound(Random(seed)))
    alone = RandomisedPolicy([policy], [1.0])
    for exact in (False, True):
        assert vulcan.certify(problem, alone, exact=exact) == vulcan.certify(
            problem, policy, exact=exact
        )


def test_exact_weights_sum_to_one() -> None:
    problem = vulcan.Problem(CHOICE, vulcan.Constant(0.5))
    leap = vulcan.certify(problem, take("leap"), exact=True)
    assert sum(map(Fraction, [0.1] * 10)) != 1
    tenths = vulcan.certify(problem, RandomisedPolicy([take("leap")] * 10, [0.1] * 10), exact=True)
    assert (tenths.reward, tenths.risk) == (leap.reward, leap.risk)
    parts = vulcan.certify(problem, mix(0.3), exact=True)
    assert parts.risk == Fraction(0.3) * Fraction(0.2)
    assert parts.reward == Fraction(0.3) * 10 * Fraction(0.8) + (1 - Fraction(0.3))


def test_exact_weights_stay_positive() -> None:
    # Together the weights are more than 1, by less than is tolerated and more than the last.
    weights = [0.5, 0.5 + 5e-13, 1e-13]
    policy = RandomisedPolicy([take("rest"), take("rest"), take("leap")], weights)
    certificate = vulcan.certify(vulcan.Problem(CHOICE, vulcan.Constant(0.5)), policy, exact=True)
    assert certificate.risk == Fraction(1e-13) * Fraction(0.2)


def scale(table: Table, factor: float) -> Table:
    """Return the model with every immediate risk times a factor, at most 1."""

    def change(outcomes: list[Outcome]) -> list[Outcome]:
        risk = math.fsum(o.probability for o in outcomes if o.fails)
        scaled = min(1.0, factor * risk)
        more = scaled / risk if risk else 0.0
        less = (1 - scaled) / (1 - risk) if risk < 1 else 0.0
        return [
            Outcome.failure(more * o.probability, o.reward, label=o.label)
            if o.fails
            else Outcome(less * o.probability, o.reward, o.state, o.label)
            for o in outcomes
        ]

    changed = {s: {n: change(o) for n, o in a.items()} for s, a in table.table.items()}
    return Table(changed, table.horizon, table.discount)


@settings(max_examples=150)
@given(seed=SEEDS)
def test_margin_against_models_of_scaled_risks(seed: int) -> None:
    random = Random(seed)
    # Where an action always fails, smaller risks leave something that nobody shares.
    table = random_table(random, [0.0, 0.1, 0.5, 1.0, 3.0], sure_failure=False)
    assume(table.table[0])
    bound = random_bound(random)
    numbers, weights = mixtures(table, random)
    plans = enumerate_plans(table)
    policy = RandomisedPolicy([build(table, plans[number]) for number in numbers], weights)
    margin = vulcan.certify(vulcan.Problem(table, bound), policy).margin

    def excess(factor: float) -> float:
        scaled = enumerate_plans(scale(table, factor))
        reward, risk = weigh([scaled[number] for number in numbers], weights)
        return risk - bound(reward)

    if margin == math.inf:
        assert max(excess(factor) for factor in (1.0, 1.5, 3.0, 10.0, 100.0, 1e6)) <= 1e-11
    elif margin == 0:
        assert excess(0.0) > 0
    else:
        assert excess(margin * (1 - 1e-6)) <= 1e-11
        assert excess(margin * (1 + 1e-6)) > -1e-11


def test_frontier_is_weighted() -> None:
    table = Table(
        {
            0: {"go": [Outcome(0.5, 1.0, 1), Outcome(0.3, 2.0, 2), Outcome.failure(0.2)]},
            1: {"on": [Outcome(1.0, 5.0, 2)]},
        },
        horizon=2,
    )

    def begin(child: int) -> PolicyBuilder:
        builder = PolicyBuilder(about(table))
        rows = (["1", "2", "failure"], [0.5, 0.3, 0.2], [1.0, 2.0, 0.0], [child, END, FAILED])
        builder.add("go", *rows)
        return builder

    part, whole = begin(UNPLANNED), begin(1)
    whole.add("on", ["2"], [1.0], [5.0], [END])
    policy = RandomisedPolicy([part.build(), whole.build()], [0.2, 0.8])
    assert not policy.complete
    certificate = vulcan.certify(vulcan.Problem(table, vulcan.Constant(0.5)), policy)
    assert not certificate.complete
    assert not certificate.safe
    assert certificate.passes
    assert certificate.frontier == pytest.approx(0.2 * 0.5, abs=1e-15)
    assert certificate.reward == pytest.approx(1.1 + 0.8 * 0.5 * 5, abs=1e-15)


def walk(table: Table, choice: Any, state: int) -> set[tuple[int, str]]:
    """Return where a plan takes which action."""
    if choice is None:
        return set()
    name, below = choice
    safe = [outcome for outcome in table.table[state][name] if not outcome.fails]
    further = [walk(table, c, o.state) for c, o in zip(below, safe, strict=True)]
    return {(state, name)}.union(*further)


@given(table=tables(), seed=SEEDS)
def test_the_model_is_asked_once_over_all_members(table: Table, seed: int) -> None:
    random = Random(seed)
    plans = [random.choice(enumerate_plans(table)) for _ in range(3)]
    policy = RandomisedPolicy([build(table, plan) for plan in plans], [0.25, 0.25, 0.5])
    problem = vulcan.Problem(table, vulcan.Constant(0.5))
    table.calls.clear()
    together = vulcan.certify(problem, policy)
    assert set(table.calls.values()) == {1}
    taken = {pair for plan in plans for pair in walk(table, plan.choice, 0)}
    assert together.evaluations == len(taken)
    # The fingerprint asks about the other actions at the start.
    assert set(table.calls) == taken | {(0, name) for name in table.table[0]}


def test_certificate_refuses_other_models_and_members_that_do_not_fit(
    bandit: RandomisedPolicy,
) -> None:
    with pytest.raises(
        vulcan.MismatchError, match=r"made for Bandit\(horizon=3\).*Bandit\(horizon=4\)"
    ):
        vulcan.certify(vulcan.Problem(Bandit(4), vulcan.Linear(0.002)), bandit)
    problem = vulcan.Problem(CHOICE, vulcan.Constant(1))
    nothing = PolicyBuilder(about(CHOICE)).build()
    for members in ([take("leap"), nothing], [nothing, take("leap")]):
        with pytest.raises(vulcan.MismatchError, match="ends in state 0, which has actions"):
            vulcan.certify(problem, RandomisedPolicy(members, [0.5, 0.5]))
    fly = PolicyBuilder(about(CHOICE))
    fly.add("fly", ["1"], [1.0], [1.0], [END])
    with pytest.raises(vulcan.MismatchError, match="takes 'fly' in state 0"):
        vulcan.certify(problem, RandomisedPolicy([take("rest"), fly.build()], [0.5, 0.5]))


def test_nothing_to_decide() -> None:
    table = Table({}, 1)
    policy = vulcan.solve(vulcan.Problem(table, vulcan.Constant(0)), vulcan.ForwardSearch()).policy
    certificate = vulcan.certify(
        vulcan.Problem(table, vulcan.Constant(0)), RandomisedPolicy([policy] * 2, [0.5, 0.5])
    )
    assert (certificate.reward, certificate.risk, certificate.margin) == (0, 0, math.inf)
    assert certificate.safe


# Files


def seal(content: bytes, version: int = RANDOMISED_SEAL.version) -> bytes:
    data = HEADER.pack(SEAL.magic, version, len(content)) + content
    return data + hashlib.sha256(data).digest()


def open_content(path: Path) -> dict[str, Any]:
    return msgspec.msgpack.decode(path.read_bytes()[HEADER.size : -32])


def test_round_trip(bandit: RandomisedPolicy, saved: Path) -> None:
    loaded = Policy.load(saved)
    assert isinstance(loaded, RandomisedPolicy)
    assert loaded == bandit
    assert [m.about for m in loaded.members] == [m.about for m in bandit.members]
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    assert vulcan.certify(problem, loaded) == vulcan.certify(problem, bandit)
    before = saved.read_bytes()
    loaded.save(saved)
    assert saved.read_bytes() == before
    assert HEADER.unpack_from(before)[1] == 2


def test_file_changed_or_cut_anywhere(saved: Path) -> None:
    data = saved.read_bytes()
    for place in range(0, len(data), 5):
        changed = bytearray(data)
        changed[place] ^= 0x41
        for damaged in (bytes(changed), data[:place]):
            saved.write_bytes(damaged)
            with pytest.raises(vulcan.PolicyFileError):
                Policy.load(saved)


def test_sealed_damage_is_refused_or_harmless(bandit: RandomisedPolicy, saved: Path) -> None:
    """Whoever can compute a checksum still gets a checked policy or the one error."""
    content = saved.read_bytes()[HEADER.size : -32]
    random = Random(0)
    refused = 0
    for _ in range(600):
        changed = bytearray(content)
        for _ in range(random.choice([1, 1, 2, 8])):
            changed[random.randrange(len(changed))] = random.randrange(256)
        saved.write_bytes(seal(bytes(changed)))
        try:
            loaded = Policy.load(saved)
        except vulcan.PolicyFileError:
            refused += 1
        else:
            assert isinstance(loaded, RandomisedPolicy)
            assert math.fsum(loaded.weights) == pytest.approx(1, abs=1e-12)
            assert loaded.draw()
    assert 100 < refused < 600


def change_weights(content: dict[str, Any], *weights: Any) -> None:
    content["weights"] = list(weights)


def change_array(content: dict[str, Any], name: str, kind: str, value: float) -> None:
    array = np.frombuffer(content["members"][1]["arrays"][name], kind).copy()
    array[0] = value
    content["members"][1]["arrays"][name] = array.tobytes()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda c: change_weights(c, 0.6, 0.5), r"weights sum to 1\.1, not to 1"),
        (lambda c: change_weights(c, 1.4, -0.4), r"the weight -0\.4 is not positive"),
        (lambda c: change_weights(c, math.nan, 0.4), "the weight nan is not positive"),
        (lambda c: change_weights(c, 1.0), "differ in number: 2 and 1"),
        (lambda c: change_weights(c, 0.6, "0.4"), r"Expected `float`, got `str`.*weights"),
        (lambda c: c.update(members=[], weights=[]), "at least one member"),
        (lambda c: c.update(members=[1, 2]), r"Expected `object`, got `int`.*members"),
        (lambda c: c.update(members={}), r"Expected `array`, got `object`.*members"),
        (lambda c: c.update(more=1), "unknown field `more`"),
        (lambda c: c.pop("weights"), "missing required field `weights`"),
        (
            lambda c: c["members"].__setitem__(1, {"weights": [1.0]}),
            r"unknown field `weights`.*members",
        ),
        (lambda c: c["members"][1]["arrays"].pop("child"), "member 2: it has other arrays"),
        (lambda c: c["members"][0]["arrays"].update(child=b"123"), "member 1: buffer size"),
        (lambda c: change_array(c, "child", "<i4", 0), "member 2: a child is neither"),
        (lambda c: change_array(c, "probability", "<f8", 2), "member 2: a probability is not"),
        (lambda c: c["members"][1]["about"].update(fingerprint="f"), r"different models.*'f'"),
        (
            lambda c: c["members"][1]["about"].update(horizon=4),
            r"different models.*horizon 3 and 4",
        ),
        (lambda c: c["members"][1]["about"].update(discount=0.5), r"discount 1\.0 and 0\.5"),
    ],
)
def test_sealed_nonsense_is_refused(saved: Path, change: Any, problem: str) -> None:
    content = open_content(saved)
    change(content)
    saved.write_bytes(seal(msgspec.msgpack.encode(content)))
    with pytest.raises(vulcan.PolicyFileError, match=r"plan.vulcan: the content is not a policy: "):
        Policy.load(saved)
    with pytest.raises(vulcan.PolicyFileError, match=problem):
        Policy.load(saved)


def test_deep_nonsense_is_refused(saved: Path) -> None:
    for content in (
        b"\x82\xa7weights\x91\xcb?\xf0" + b"\x00" * 6 + b"\xa7members" + b"\x91" * 100_000,
        b"\x81\xa7members" + b"\x81\xa7members" * 50_000 + b"\xc0",
    ):
        saved.write_bytes(seal(content))
        with pytest.raises(vulcan.PolicyFileError, match="not a policy"):
            Policy.load(saved)


def test_content_of_a_file_is_what_the_format_says(saved: Path, bandit: RandomisedPolicy) -> None:
    content = msgspec.msgpack.decode(saved.read_bytes()[HEADER.size : -32], type=RandomisedContent)
    assert content.weights == [0.6, 0.4]
    assert [member.about for member in content.members] == [m.about for m in bandit.members]


# Command line


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ending:
            main([str(argument) for argument in arguments])
        return ending.value.code or 0, capsys.readouterr().out

    return run


MODEL = ("bandit", "--set", "horizon=3")


def test_show(run: Any, saved: Path, bandit: RandomisedPolicy) -> None:
    code, shown = run("show", saved, "--depth", "1")
    assert code == 0
    assert "  members      2, of which one is drawn at the start: 60.0 %, 40.0 %\n" in shown
    outcomes = [len(member.label) for member in bandit.members]
    assert f"  decisions    14, with {sum(outcomes)} outcomes\n" in shown
    assert "  member 2 of 2, drawn with probability 40.0 %\n" in shown
    code, shown = run("show", saved, "--json", "--depth", "2")
    document = json.loads(shown)["policy"]
    assert code == 0
    assert document["randomised"] is True
    assert (document["nodes"], document["outcomes"]) == (14, sum(outcomes))
    assert document["decisions"] == []
    assert [m["weight"] for m in document["members"]] == [0.6, 0.4]
    assert [m["nodes"] for m in document["members"]] == [7, 7]
    assert [m["outcomes"] for m in document["members"]] == outcomes
    assert all(m["complete"] for m in document["members"])
    assert [m["decisions"][0]["action"] for m in document["members"]] == ["play 1", "play 2"]


def test_show_still_knows_deterministic_policies(
    run: Any, bandit: RandomisedPolicy, tmp_path: Path
) -> None:
    path = tmp_path / "single.vulcan"
    bandit.members[0].save(path)
    assert "member" not in run("show", path)[1]
    document = json.loads(run("show", path, "--json")[1])["policy"]
    assert document["randomised"] is False
    assert document["members"] == []
    assert document["decisions"][0]["action"] == "play 1"


def test_certify(run: Any, saved: Path, bandit: RandomisedPolicy) -> None:
    problem = vulcan.Problem(Bandit(3), vulcan.Linear(0.002))
    certificate = vulcan.certify(problem, bandit)
    code, shown = run("certify", saved, *MODEL)
    assert code == 0
    assert shown.startswith("✓ safe")
    assert "  members       2, of which one is drawn at the start: 60.0 %, 40.0 %\n" in shown
    assert f"  reward        {certificate.reward:.6f}\n" in shown
    code, shown = run("certify", saved, *MODEL, "--json", "--exact")
    document = json.loads(shown)
    assert code == 0
    assert document["safe"] is document["policy"]["randomised"] is True
    assert document["certificate"]["risk"] == pytest.approx(certificate.risk, abs=1e-15)
    assert [m["weight"] for m in document["policy"]["members"]] == [0.6, 0.4]
    code, shown = run("certify", saved, *MODEL, "--bound", "0.0001")
    assert code == 1
    assert shown.startswith("✗ not safe")
