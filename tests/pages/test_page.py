"""A page needs nothing but itself, is small, and answers what people ask."""

from __future__ import annotations

import hashlib
import json
import re
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

import vulcan
from examples.treatment import Treatment
from tests.helpers.tables import one_action
from vulcan import Outcome
from vulcan.certificates.steps import follow_steps
from vulcan.domains import Bandit, Grid
from vulcan.errors import OptionError, PolicyError
from vulcan.model.reader import ModelReader
from vulcan.pages.maps import PageMap

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "src" / "vulcan" / "pages" / "assets"


@pytest.fixture(scope="module")
def treatment():
    result = vulcan.solve(vulcan.Problem(Treatment(), 0.0115))
    return result, result.explore()


def test_the_five_answers_are_what_the_plan_does(treatment):
    result, page = treatment
    policy = result.policy
    first, bad, risk, less, worst = page.answers
    assert first.words == policy.labels[policy.action[0]] == "infusion"
    # The poorest outcome is also the riskiest: as ill and as strained as one can be after a week.
    rows = {policy.labels[policy.label[row]]: row for row in policy.outcomes(0)}
    row = rows["severe, strain 2"]
    assert "“severe, strain 2”" in bad.detail
    assert "“severe, strain 2”" in worst.detail
    assert bad.words == policy.labels[policy.action[policy.child[row]]] == "infusion"
    assert worst.words == "0.05 %" == f"{100 * policy.probability[row]:.3g} %"
    # `explain` adds the same risks up in its own way, over all states by their names.
    choice = vulcan.explain(result.problem, policy, places=0).choices[0]
    assert (choice.action, choice.state) == ("rest", "moderate, strain 0")
    assert risk.words == "rest in moderate, strain 0"
    assert f"{100 * choice.risk / result.certificate.risk:.3g} % of all risk" in risk.detail
    half = vulcan.solve(vulcan.Problem(Treatment(), 0.0115 / 2))
    assert f"reward {half.certificate.reward:.3f} instead of" in less.detail
    assert less.words == "infusion instead of tablets"
    shown = unescape(page.html).replace("\xa0", " ")
    for answer in page.answers:
        assert f"<strong>{answer.words}</strong><span>{answer.detail}</span>" in shown


def test_answers_about_a_randomised_plan_are_about_what_is_done_after_the_draw():
    problem = vulcan.Problem(Bandit(horizon=4), 0.004)
    result = vulcan.solve(problem, vulcan.Lagrangian(randomised=True))
    likeliest = max(zip(result.policy.weights, result.policy.members, strict=True))
    first, bad, *_ = result.explore().answers
    assert first.words == likeliest[1].labels[likeliest[1].action[0]]
    assert f"a draw chose this plan of 2, with {100 * likeliest[0]:.3g} %" in first.detail
    assert "draw" not in bad.detail


class Gates:
    """Two of three gates are equally dangerous, and all must be passed."""

    horizon = 2

    def initial_state(self):
        return "road"

    def actions(self, state):
        return ["ride"]

    def outcomes(self, state, action):
        if state == "road":
            return [Outcome(0.3, 0, "east"), Outcome(0.2, 0, "west"), Outcome(0.5, 0, "south")]
        fails = 0.01 if state == "south" else 0.04
        return [Outcome(1 - fails, 5.0, "home"), Outcome.failure(fails)]


def test_the_worst_branch_is_all_outcomes_that_are_alike():
    worst = vulcan.solve(vulcan.Problem(Gates(), 0.1)).explore(what_if=None).answers[4]
    assert worst.words == "50 %"
    assert worst.detail.startswith("“east” or “west” after ride: from there on 4 % fail")


def test_what_was_rejected_stands_where_it_was(treatment):
    result, page = treatment
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page.html)[1])
    numbers = [risky["place"] for risky in facts["riskiest"]]
    assert len(numbers) > 5
    levels = follow_steps(result.policy, ModelReader(result.problem.model))
    steps = [step for level in levels for step in level.steps]
    explained = vulcan.explain(result.problem, result.policy, places=len(numbers)).places
    assert [(steps[n].action, steps[n].level, steps[n].reach) for n in numbers] == [
        (place.action, place.step, place.reach) for place in explained
    ]


def test_a_page_asks_for_nothing_from_elsewhere(treatment):
    html = treatment[1].html
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", html))
    assert all(address.startswith("http://www.w3.org/") for address in addresses), addresses
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|importScripts|sendBeacon)\b", html)
    assert set(re.findall(r"(?:src|href)=\"([^\"]*)\"", html)) <= {"data:,", "#"}


def test_a_page_without_data_is_below_400_kilobytes(treatment):
    html = treatment[1].html
    data = sum(map(len, re.findall(r'<script type="text/plain"[^>]*>(.*?)</script>', html)))
    assert len(html.encode()) - data < 400_000


def test_the_program_was_built_from_its_sources():
    digest = hashlib.sha256()
    for path in sorted((ROOT / "explorer" / "source").iterdir()):
        digest.update(path.read_bytes())
    first = (ASSETS / "explorer.js").read_text(encoding="utf-8").partition("\n")[0]
    assert digest.hexdigest() in first, "run make explorer"


def test_colours_of_risk_differ_in_lightness():
    source = (ROOT / "explorer" / "source" / "show.js").read_text(encoding="utf-8")
    colours = re.findall(r"#([0-9a-f]{6})", re.search(r"RAMP = \[(.*?)\]", source)[1])
    parts = [[int(colour[k : k + 2], 16) / 255 for k in (0, 2, 4)] for colour in colours]
    light = [0.2126 * r**2.2 + 0.7152 * g**2.2 + 0.0722 * b**2.2 for r, g, b in parts]
    assert len(light) == 7
    # Whatever colours one sees, each is a step darker than the one before.
    assert all(dark + 0.05 < 0.9 * (pale + 0.05) for pale, dark in pairwise(light))


def test_licences_of_what_is_bundled_are_there():
    text = (ASSETS / "LICENCES.txt").read_text(encoding="utf-8")
    for library in ("preact", "d3-scale", "d3-shape"):
        assert re.search(rf"^{library} [\d.]+, (MIT|ISC)$", text, re.MULTILINE), library


def test_texts_of_a_model_stay_texts():
    class Hostile:
        horizon = 1

        def initial_state(self):
            return "</script><script>alert(1)</script>"

        def actions(self, state):
            return ["<b>bold & 'bad'</b>"]

        def outcomes(self, state, action):
            return [Outcome(1.0, 1.0, "end", "</script><img onerror=alert(2)>")]

        def __repr__(self):
            return "</title><script>alert(3)</script>"

    result = vulcan.solve(vulcan.Problem(Hostile(), 0.1))
    html = result.explore(what_if=None).html
    assert "alert(1)</script>" not in html
    assert "<img onerror" not in html
    assert "<script>alert" not in html
    assert "<b>bold" not in html
    assert html.count("</script>") == 3  # facts, one plan, the program


def test_other_plans_may_be_given():
    problem = vulcan.Problem(Bandit(horizon=4), "0.002*x")
    policy = vulcan.solve(problem).policy
    other = vulcan.solve(vulcan.Problem(Bandit(horizon=4), "0.001*x")).policy
    page = vulcan.explore(problem, policy, what_if=None, others=[other])
    ours, theirs = (p.labels[p.action[0]] for p in (policy, other))
    assert page.answers[3].words == f"{theirs} instead of {ours}"
    assert ours != theirs
    assert "Δ(x) = 0.001 * x" in page.html.replace("\\u0394", "Δ")


def test_without_other_plans_the_price_of_risk_answers():
    problem = vulcan.Problem(Bandit(horizon=4), "0.002*x")
    page = vulcan.explore(problem, vulcan.solve(problem).policy, what_if=None)
    assert "by the price of risk" in page.answers[3].detail


def test_a_plan_that_is_not_complete_is_not_called_acceptable():
    result = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "0.002*x"))
    policy = result.policy
    child = policy.child.copy()
    child[0] = -3
    arrays = {name: getattr(policy, name) for name in policy.ARRAYS} | {"child": child}
    broken = vulcan.Policy(policy.about, policy.labels, **arrays)
    page = vulcan.explore(result.problem, broken, what_if=None)
    assert "✗ not acceptable" in page.html
    assert "not complete" in page.html


def test_maps_drawn_with_characters_have_walls_and_marks():
    area = Grid(map="S.#\n.X1").page_map()
    assert (area.columns, area.rows) == (3, 2)
    assert area.walls == [[(1.5, 0.5), (2.5, 0.5), (2.5, 1.5), (1.5, 1.5)]]
    assert set(area.marks) == {(0.0, 1.0, "S"), (1.0, 0.0, "X"), (2.0, 0.0, "1")}
    assert isinstance(area, PageMap)
    assert Grid(map="S.#\n.X1").page_position((1, 2)) == (2, 0)


def test_what_can_not_be_explored_is_refused():
    problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    result = vulcan.solve(problem)
    with pytest.raises(OptionError, match="number of seconds"):
        result.explore(what_if=-1)
    nothing = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "-1"))
    assert nothing.policy is None
    with pytest.raises(PolicyError, match="no plan to explore"):
        nothing.explore()


def test_a_page_is_saved_and_shown_in_notebooks(tmp_path, treatment):
    page = treatment[1]
    page.save(tmp_path / "plan.html")
    assert (tmp_path / "plan.html").read_text(encoding="utf-8") == page.html
    assert page._repr_html_().startswith("<iframe srcdoc=")
    assert repr(page).startswith("<Page of ")


def test_a_page_calls_nothing_safe_that_its_certificate_does_not():
    # Added up in floating point, these rewards allow a risk of 0.112; in truth it is 0.084.
    rewards = [9.802687914432584e16, -2.535195672637561e16, -7.267492241795019e16]
    outcomes = [Outcome(0.3, reward, k) for k, reward in enumerate(rewards, 1)]
    outcomes.append(Outcome.failure(0.1))
    problem = vulcan.Problem(one_action(*outcomes), vulcan.Linear(0.007))
    policy = vulcan.solve(vulcan.Problem(problem.model, 1.0)).policy
    page = vulcan.explore(problem, policy)
    assert "✗ not acceptable" in page.html
    assert "✓ acceptable" not in page.html
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vulcan.certificates.certificate.MOST_WAYS", 0)
        assert "✗ too close to say" in vulcan.explore(problem, policy).html
