"""Looks for barriers on the page with axe: `python -m e2e.axe URL` opens every tab that the server
has, on a phone and on a desktop, in both colour schemes, and prints the findings as JSON.

axe-core is a package of `e2e/clients/node`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from .chromium import launch_chromium
from .read_page import ReadPage
from .speech_page import PICTURE_DEADLINE_MS, SpeechPage

AXE = Path(__file__).parent / "clients" / "node" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS: dict[str, ViewportSize] = {
    "phone": {"width": 390, "height": 844},
    "desktop": {"width": 1440, "height": 900},
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
BOOK = "# The mill\n\nTwo brothers kept the mill.\n\nEach of them thought that it was his own."

# What axe finds: the rule, what it asks for, and the elements.
FINDINGS = """
async () => {
  const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
  const told = ({ html, failureSummary }) => `${html.slice(0, 160)} (${failureSummary})`;
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(told).join("; ")}`);
}
"""
PANEL_IS_THERE = "document.querySelector('[role=tabpanel]:not([hidden]) section') !== null"


def unfold(page: Page) -> None:
    """Everything that is folded, also what comes only then."""
    for _ in range(2):
        for folded in page.locator("[role=tabpanel]:visible details:not([open]) > summary").all():
            if folded.is_visible():
                folded.click()
        page.wait_for_load_state("networkidle")


def use(page: Page, tab: str) -> None:
    """What brings in the rest of a tab."""
    if tab == "Speak":
        SpeechPage(page).press("Speak")
        SpeechPage(page).wait_for_state("done")
    elif tab == "Read":
        ReadPage(page).paste(BOOK)
    elif tab == "Draw":
        page.get_by_label("Prompt").fill("red apple")
        # Pictures are loaded last.
        draw = page.get_by_role("button", name="Draw", exact=True)
        draw.click(timeout=PICTURE_DEADLINE_MS)
        page.get_by_role("button", name="Download: red apple").first.wait_for(
            timeout=PICTURE_DEADLINE_MS
        )


def look_at(browser: Browser, url: str, screen: str) -> Iterator[str]:
    """The findings, each with where it is."""
    # bypass_csp: axe runs beside the page's scripts.
    with browser.new_context(
        viewport=SCREENS[screen], reduced_motion="reduce", bypass_csp=True
    ) as context:
        page = context.new_page()
        page.add_init_script(path=AXE)
        speech_page = SpeechPage(page)
        speech_page.open(url)
        for tab in page.get_by_role("tab").all_inner_texts():
            speech_page.tab(tab)
            page.wait_for_function(PANEL_IS_THERE)
            use(page, tab)
            unfold(page)
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                for finding in page.evaluate(FINDINGS):
                    yield f"{tab}, {screen}, {scheme}: {finding}"


def main(url: str) -> None:
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        found = [finding for screen in SCREENS for finding in look_at(browser, url, screen)]
        browser.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
