"""A page needs nothing but itself, is small, and answers what people ask."""

from __future__ import annotations

import hashlib
import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import vulcan
from examples.treatment import Treatment
from tests.certificate.test_beyond import Coast, make_plan
from tests.helpers.plans import edit
from tests.helpers.tables import Table, one_action
from vulcan import Outcome
from vulcan.domains import Bandit
from vulcan.errors import OptionError, PolicyError
from vulcan.model.reader import ModelReader
from vulcan.numerics import UNPLANNED
from vulcan.pages.arrays import collect_arrays
from vulcan.policy.walk import find_decision_points

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
    choice = vulcan.explain(result.problem, policy).choices[0]
    assert (choice.action, choice.state) == ("rest", "moderate, strain 0")
    assert risk.words == "rest in moderate, strain 0"
    assert f"{100 * choice.accepted / result.certificate.risk:.3g} % of all risk" in risk.detail
    half = vulcan.solve(vulcan.Problem(Treatment(), 0.0115 / 2))
    assert less.words.startswith(f"reward {half.certificate.reward:.3f} instead of")
    assert "and first infusion" in less.detail
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


def test_what_was_rejected_stands_where_it_was(treatment):
    result, page = treatment
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', page.html)[1])
    numbers = [risky["place"] for risky in facts["riskiest"]]
    assert len(numbers) > 5
    points = find_decision_points(result.policy, ModelReader(result.problem.model))
    explained = vulcan.explain(result.problem, result.policy, places=len(numbers)).places
    assert [(points.rows["level"][n], points.rows["reach"][n]) for n in numbers] == [
        (place.step, place.reach) for place in explained
    ]


def test_a_page_loads_nothing_from_elsewhere(treatment):
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


def test_licences_of_what_is_bundled_are_there():
    text = (ASSETS / "LICENCES.txt").read_text(encoding="utf-8")
    for library in ("preact", "d3-scale", "d3-shape"):
        assert re.search(rf"^{library} [\d.]+, (MIT|ISC)$", text, re.MULTILINE), library


def test_texts_of_a_model_stay_texts():
    class Hostile(Table):
        def __repr__(self):
            return "</title><script>alert(3)</script>"

    start = "</script><script>alert(1)</script>"
    ways = {"<b>bold & 'bad'</b>": [Outcome(1.0, 1.0, "end", "</script><img onerror=alert(2)>")]}
    result = vulcan.solve(vulcan.Problem(Hostile({start: ways}, start=start), 0.1))
    html = result.explore(what_if=None).html
    assert "alert(1)</script>" not in html
    assert "<img onerror" not in html
    assert "<script>alert" not in html
    assert "<b>bold" not in html
    assert html.count("</script>") == 3  # facts, one plan, the program


def test_a_plan_that_is_not_complete_is_not_called_acceptable():
    result = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "0.002*x"))
    page = vulcan.explore(result.problem, edit(result.policy, first_child=-3), what_if=None)
    assert "✗ not acceptable" in page.html
    assert "not complete" in page.html


def test_a_plan_with_a_bounded_frontier_shows_what_is_claimed_there():
    model = Coast(4, discount=0.9)
    problem, policy = vulcan.Problem(model, 0.9), make_plan(model, 2, bits=5)
    page = vulcan.explore(problem, policy, what_if=None)
    assert '"beyond": "default action"' in page.html
    assert page.answers[2].words == "beyond the frontier"
    reader, certificate = ModelReader(model), vulcan.certify(problem, policy)
    places = collect_arrays(find_decision_points(policy, reader), reader)
    frontier = places.child == UNPLANNED
    claims = np.stack((places.later_risk, places.later_reward))
    assert np.array_equal(claims[:, frontier], policy.beyond[1:])
    assert not claims[:, ~frontier].any()
    owner = np.repeat(np.arange(len(places)), np.diff(places.first))
    claimed = places.reach[owner] * places.chance @ places.later_risk
    assert places.reach @ places.fails + claimed == pytest.approx(certificate.risk)


def test_what_can_not_be_explored_is_refused():
    problem = vulcan.Problem(Bandit(horizon=3), "0.002*x")
    result = vulcan.solve(problem)
    with pytest.raises(OptionError, match="number of seconds"):
        result.explore(what_if=-1)
    nothing = vulcan.solve(vulcan.Problem(Bandit(horizon=3), "0.002*x - 9"))
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
        patch.setattr("vulcan.certificate.certify.MOST_WAYS", 0)
        assert "✗ too close to say" in vulcan.explore(problem, policy).html
