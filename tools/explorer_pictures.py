"""Make the pictures of docs/howto/explore.md again: explorer pages in a real Chromium.

    python tools/explorer_pictures.py

Needs the `dev` extra and a Chromium; takes about a minute, most of it planning the mission.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import vulcan
from vulcan.domains import Exploration

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs" / "images"
MISSION_BOUND: Final = "(1 - exp(-0.4*x)) * (0.015 + 0.001*x)"
SETTLED: Final = 700
"""Milliseconds after which what scrolls has come to rest."""


def main() -> None:
    """Plan both missions, open their pages, and take the pictures."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = _write_pages(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])

        def open_page(name: str, width: int, height: int) -> Any:
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(pages[name].as_uri())
            page.wait_for_selector("html[data-ready]")
            return page

        _take(open_page("treatment", 1360, 1130), "explore-treatment.png")
        mission = open_page("mission", 1360, 1250)
        mission.click(".answer >> nth=2")
        mission.wait_for_timeout(SETTLED)
        mission.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
        _take(mission, "explore-mission.png")
        mission.click("text=⟲ Start")
        mission.click("text=share of the risk")
        _take(mission, "explore-risk.png", ".left .panel >> nth=0")
        phone = open_page("mission", 390, 844)
        phone.click(".row >> nth=3")
        top = phone.evaluate("document.querySelector('.bar').offsetTop - 8")
        phone.evaluate(f"scrollTo({{ top: {top}, behavior: 'instant' }})")
        _take(phone, "explore-phone.png")
        browser.close()


def _write_pages(folder: Path) -> dict[str, Path]:
    sys.path.insert(0, str(ROOT))
    from examples.treatment import Treatment

    results = {
        "treatment": vulcan.solve(vulcan.Problem(Treatment(), 0.0115)),
        "mission": vulcan.solve(vulcan.Problem(Exploration(), MISSION_BOUND), samples=1 << 18),
    }
    for name, result in results.items():
        result.explore().save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in results}


def _take(page: Any, name: str, part: str | None = None) -> None:
    from PIL import Image

    page.wait_for_timeout(SETTLED)
    content = page.screenshot() if part is None else page.locator(part).screenshot()
    image = Image.open(io.BytesIO(content)).convert("RGB")
    # By octree: flat colours stay what they are, and the file has a third of the size.
    flat = image.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    flat.save(DOCS / name, optimize=True)


if __name__ == "__main__":
    main()
