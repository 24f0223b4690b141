"""Explorer pages in a real browser: what is on them, and what clicks and keys do.

They need a Chromium and playwright; `CHROMIUM` may name another browser of that kind.
"""

from __future__ import annotations

import os
import re
import shutil

import pytest

import vulcan
from examples.treatment import Treatment
from tests.helpers.tables import Table
from tests.helpers.wide_trees import make_wide_plan
from vulcan import Outcome, Start
from vulcan.domains import Bandit, Exploration, Tiger

PLAYWRIGHT = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")

GO_DOWN = """async () => {
    for (let k = 0; k < 8; k++) {
        const rows = [...document.querySelectorAll('.row')];
        const at = rows.findIndex((row) => row.getAttribute('aria-selected') === 'true');
        rows[at + 2].click();
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    }
}"""
"""Eight clicks, each on the first outcome."""

MISSION_BOUND = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"


@pytest.fixture(scope="module")
def browser():
    with PLAYWRIGHT.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def treatment(folder):
    result = vulcan.solve(vulcan.Problem(Treatment(), 0.0115))
    page = result.explore()
    page.save(folder / "treatment.html")
    return result, page, folder / "treatment.html"


@pytest.fixture(scope="module")
def mission(folder):
    """The narrow mission, shorter and with few samples: the gaps are within reach all the same."""
    problem = vulcan.Problem(Exploration(horizon=5), MISSION_BOUND)
    result = vulcan.solve(problem, samples=20_000)
    page = result.explore(what_if=0.5, scales=[0.5])
    page.save(folder / "mission.html")
    return result, page, folder / "mission.html"


@pytest.fixture(scope="module")
def large(folder):
    problem, policy = make_wide_plan()
    assert len(policy) == 87_381
    vulcan.explore(problem, policy, what_if=None).save(folder / "large.html")
    return folder / "large.html"


@pytest.fixture
def visit(browser):
    """Open a page; whatever it says on its console is a failure."""
    opened = []

    def open_page(path, width=1360, height=900, **options):
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        opened.append((page, said))
        return page

    yield open_page
    for page, said in opened:
        page.close()
        assert said == []


def read(page, selector):
    return page.inner_text(selector).replace("\xa0", " ")


def make_drawn():
    """Return a model that begins north or south, and is discounted."""
    start = Start.draw([Outcome(0.5, 0.0, "north"), Outcome(0.5, 0.0, "south")])
    table = {
        place: {
            "go": [Outcome(0.98, 2.0, f"{place}!"), Outcome.failure(0.02)],
            "stay": [Outcome(1.0, 1.0, place)],
        }
        for place in (f"{side}{'!' * k}" for side in ("north", "south") for k in range(3))
    }
    return Table(table, 3, 0.9, start)


def find_outcome(policy, node, label):
    return next(row for row in policy.outcomes(node) if policy.labels[policy.label[row]] == label)


def find_told_risk(answer):
    return re.search(r"from there on (.*?) fail", answer.detail)[1]


@pytest.mark.parametrize("which", ["treatment", "mission"])
def test_the_five_answers_are_seen_and_lead_there(which, request, visit):
    result, answers, path = request.getfixturevalue(which)
    page = visit(path)
    cards = page.locator(".answer")
    assert cards.count() == 5
    for number, answer in enumerate(answers.answers):
        text = cards.nth(number).inner_text().replace("\xa0", " ")
        assert answer.question in text
        assert answer.words in text
        assert answer.detail in text
    policy = result.policy
    cards.nth(0).click()
    assert read(page, ".do") == f"Do {policy.labels[policy.action[0]]}"
    cards.nth(1).click()
    assert read(page, ".do") == f"Do {answers.answers[1].words}"
    assert "Step 2 of" in read(page, ".where")
    cards.nth(2).click()
    assert answers.answers[2].words.startswith(page.inner_text(".do strong"))
    assert "fails at once with" in read(page, ".fails")
    cards.nth(4).click()
    assert f"risk still ahead\n{find_told_risk(answers.answers[4])}" in read(page, ".here dl")


def test_what_would_be_done_with_less_risk_can_be_looked_at(treatment, visit):
    page = visit(treatment[2])
    page.click(".row:has-text('moderate, strain 0 → tablets')")
    assert page.inner_text(".do strong") == "tablets"
    page.select_option(".pick select", "1")
    page.wait_for_selector(".notice")
    assert page.inner_text(".do strong") == "infusion"  # the same history in the other plan
    assert "0.5 times the allowed risk" in page.inner_text(".notice")
    half = vulcan.solve(vulcan.Problem(Treatment(), 0.0115 / 2)).certificate
    assert f"reward {half.reward:.3f}" in read(page, ".others li.open")


def test_a_history_has_its_reward_and_its_risk(treatment, visit):
    policy = treatment[0].policy
    page = visit(treatment[2])
    page.click(".row:has-text('moderate, strain 0 → tablets')")
    page.click(".row[aria-level='3']:has-text('severe, strain 0')")
    row = find_outcome(policy, 0, "moderate, strain 0")
    then = find_outcome(policy, policy.child[row], "severe, strain 0")
    text = read(page, ".here dl")
    chance = policy.probability[row] * policy.probability[then]
    earned = policy.reward[row] + policy.reward[then]
    ahead = policy.node_values()["risk"][policy.child[then]]
    assert f"probability of this history\n{100 * chance:.3g} %" in text
    assert f"reward so far\n{earned:.3f}" in text
    assert f"risk still ahead\n{100 * ahead:.3g} %" in text
    assert page.get_attribute(".chart > svg", "aria-label").startswith("Here: reward")
    page.click("text=← Back")
    assert "Step 2 of 12" in read(page, ".where")


def test_the_plan_is_walked_by_keys_alone(treatment, visit):
    page = visit(treatment[2])
    page.focus("[role=tree]")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert "Step 3 of 12 · well, strain 0" in read(page, ".where")
    page.keyboard.press("Backspace")
    assert "Step 2 of 12 · well, strain 1" in read(page, ".where")
    page.keyboard.press("r")
    assert "fails at once" in read(page, ".fails")
    page.keyboard.press("/")
    page.keyboard.type("severe, strain 4")
    page.wait_for_selector("#found li.chosen")
    page.keyboard.press("Enter")
    assert "severe, strain 4" in read(page, ".where")
    page.keyboard.press("s")
    assert "Step 1 of 12" in read(page, ".where")


def test_the_map_moves_along(mission, visit):
    page = visit(mission[2])
    assert page.locator(".map polygon").count() == 3
    before = page.get_attribute(".map polyline.way >> nth=0", "points")
    page.click(".row >> nth=2")
    after = page.get_attribute(".map polyline.way >> nth=0", "points")
    assert len(before.split()) == 1
    assert len(after.split()) == 2
    page.fill("input[type=search]", "(9, 9)")
    assert "cell (9, 9)" in page.inner_text("#found li >> nth=0")


def test_a_phone_shows_all_of_it_without_scrolling_sideways(mission, visit):
    page = visit(mission[2], 390, 844, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.tap(".row >> nth=2")
    assert "Step 2 of" in read(page, ".where")
    page.tap("canvas")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("kind", ["randomised", "drawn", "empty"])
def test_odd_plans_are_shown_as_well(kind, folder, visit):
    problems = {
        "randomised": vulcan.Problem(Bandit(horizon=4), 0.004),
        "drawn": vulcan.Problem(make_drawn(), "0.01*x"),
        "empty": vulcan.Problem(Table({}), 0.01),
    }
    solver = vulcan.Lagrangian(randomised=True) if kind == "randomised" else None
    vulcan.solve(problems[kind], solver).explore().save(folder / f"{kind}.html")
    page = visit(folder / f"{kind}.html")
    if kind == "empty":
        assert page.inner_text("#explorer") == "There is nothing to decide."
        return
    page.click(".row >> nth=1")
    assert "Step 2 of" in read(page, ".where")
    assert page.locator(".notice").count() == 0


@pytest.mark.slow
def test_87_000_decisions_take_6_megabytes_and_are_gone_down(large, visit):
    """How long that takes is measured in `benchmarks/test_pages.py`."""
    assert large.stat().st_size < 6_000_000
    page = visit(large)
    assert "87,381 decisions" in page.inner_text(".verdict")
    page.evaluate(GO_DOWN)
    assert "Step 9 of 9" in read(page, ".where")
    page.fill("input[type=search]", "(3, 3, 3, 3)")
    assert "(3, 3, 3, 3)" in page.inner_text("#found li >> nth=0")


def test_a_belief_is_shown_as_bars(visit, folder):
    result = vulcan.solve(vulcan.Problem(vulcan.BeliefModel(Tiger(4)), 0.1))
    result.explore(what_if=None).save(folder / "tiger.html")
    page = visit(folder / "tiger.html")
    assert read(page, ".belief").split("\n")[:4] == ["left", "50 %", "right", "50 %"]
    page.click(".row >> nth=1")
    page.wait_for_selector(".belief b[style='width: 85%;']")
    assert read(page, ".belief").split("\n")[:4] == ["left", "85 %", "right", "15 %"]
    widths = [bar.bounding_box()["width"] for bar in page.query_selector_all(".belief b")]
    assert widths[1] / widths[0] == pytest.approx(15 / 85, abs=0.01)
