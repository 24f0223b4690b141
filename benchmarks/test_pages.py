"""The explorer page of a large plan in a real browser: how soon it is there, what a click costs.

87,381 decisions, as a mission of nine moves has. The limit is two seconds to the first paint, in a
headless Chromium on the machine at hand. Run with `make bench`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vulcan
from tests.helpers.wide_trees import make_wide_plan
from tests.pages.test_browser import CHROMIUM, GO_DOWN, PLAYWRIGHT

SECONDS = 2.0
CLICKS = 8


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_a_large_plan_is_painted_soon_and_stays_smooth(tmp_path: Path, report: Any) -> None:
    problem, policy = make_wide_plan()
    path = tmp_path / "large.html"
    vulcan.explore(problem, policy, what_if=None).save(path)
    with PLAYWRIGHT.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        paints = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        paint = page.evaluate(paints) / 1000
        ready = int(page.get_attribute("html", "data-ready")) / 1000
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = measure_tasks(session)
        page.evaluate(GO_DOWN)
        click = (measure_tasks(session) - before) / CLICKS
        browser.close()
    report("explorer, 87,381 decisions: megabytes", f"{path.stat().st_size / 1e6:.2f}")
    report("  seconds to first paint, to ready", f"{paint:.2f}, {ready:.2f}")
    report("  seconds of the processor for a click", f"{click:.3f}")
    assert paint < SECONDS
    assert click < 0.1


def measure_tasks(session: Any) -> float:
    """Return the seconds of the processor that the page's main thread took."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")
