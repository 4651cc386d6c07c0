"""The page's requests as code, of a text that is hard to quote.

`python -m e2e.page_code URL LANGUAGE FOLDER` writes the code and what the page played for it, for
tests in an environment without a browser.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from .chromium import launch_chromium
from .speech_page import SpeechPage

TEXT = (
    'It\'s "quoted", `ticked` and $HOME, $(id) or %s; \\n is no line break.\n'
    "JSON\nEOF\n'''three''' \"\"\"more\"\"\" ${x} </script> !! caf\u00e9 \U0001f3b5 \u2028 done."
)


def speak_awkward_text(speech_page: SpeechPage, url: str) -> None:
    """Speak to the end, with settings of its own and the code unfolded."""
    page = speech_page.page
    speech_page.open(url)
    speech_page.write(TEXT)
    page.get_by_label("Voice", exact=True).select_option("ben")
    page.get_by_text("Settings", exact=True).click()
    page.get_by_label("Speed").fill("3.65")
    open_code(page)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")


def open_code(page: Page) -> None:
    page.get_by_text("This request as code").click()
    page.get_by_label("Language").wait_for()


def code_in(page: Page, language: str) -> str:
    page.get_by_label("Language").select_option(language)
    return str(page.locator("[data-role=code-text]").evaluate("code => code.textContent"))


def main(url: str, language: str, folder: Path) -> None:
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        speech_page = SpeechPage(browser.new_page())
        speak_awkward_text(speech_page, url)
        code = code_in(speech_page.page, language)
        (folder / "code").write_text(code, encoding="utf-8")
        np.save(folder / "played.npy", speech_page.played())
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
