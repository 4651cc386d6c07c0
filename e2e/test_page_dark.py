"""Every text on the page can be read, in the light and in the dark scheme."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

MIN_CONTRAST = 4.5  # WCAG 2, level AA, small text
TABS = ("Speak", "Read", "Talk", "Listen", "Voices", "Your voice", "Lab")

# Of each visible text: its contrast with what lies behind it, below the least.
TOO_FAINT = """
(least) => {
  const parsed = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [x, y, z]) =>
    [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  const behind = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      layers.push(parsed(getComputedStyle(at).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reduceRight((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one) => {
    const ground = behind(one);
    const ink = luminance(over(parsed(getComputedStyle(one).color), ground));
    const [low, high] = [ink, luminance(ground)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const hasText = (one) =>
    one.matches("input:not([type=checkbox], [type=range]), textarea, select") ||
    [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
  return [...document.querySelectorAll(".cantata *")]
    .filter((one) => one.checkVisibility() && hasText(one))
    .filter((one) => !one.closest("[aria-hidden=true], svg, option, :disabled"))
    .map((one) => [one, contrast(one)])
    .filter(([, ratio]) => ratio < least)
    .map(([one, ratio]) => `${ratio.toFixed(2)}: ${one.outerHTML.slice(0, 120)}`);
}
"""


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out(browser: Browser, server: Server, scheme: str) -> None:
    with browser.new_context(color_scheme="dark" if scheme == "dark" else "light") as context:
        page = context.new_page()
        speech_page = SpeechPage(page)
        speech_page.open(f"{server.url}?voice=nobody")
        expect(page.locator("[data-role=link-notice]")).to_be_visible()
        speech_page.write("One.")
        speech_page.press("Speak")
        speech_page.wait_for_state("done")
        expect(page.locator(".takes strong")).to_have_count(1)
        for folded in page.locator("#cantata-speak summary").all():
            folded.click()
        drawn = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
        assert scheme in drawn, "the browser's own controls follow the scheme"
        for tab in TABS:
            speech_page.tab(tab)
            if tab == "Your voice":
                speech_page.press("Save voice")  # for an error's colour
            assert page.evaluate(TOO_FAINT, MIN_CONTRAST) == [], tab
        speech_page.tab("Speak")
        speech_page.press("Clear the takes")
        assert page.evaluate(TOO_FAINT, MIN_CONTRAST) == [], "the question before deletion"
