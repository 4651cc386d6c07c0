"""The page as tests use it: one place for its locators and its `window.cantata`."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

LOAD_DEADLINE_MS = 30_000
SPEECH_DEADLINE_MS = 120_000
PICTURE_DEADLINE_MS = 120_000
POLL_MS = 50
"""Between two looks at what takes seconds. WHY not at each frame, Playwright's default: the browser
would make sixty frames a second for that alone, twice as many as the page draws."""

PLAYED_AS_BASE64 = """
() => {
  const bytes = new Uint8Array(window.cantata.capturedPcm().buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return btoa(text);
}
"""

# Each word as it is marked, with how much had been heard at that moment.
NOTE_MARKED_WORDS = """
() => {
  window.marked = [];
  window.noting?.disconnect();
  const shadow = document.querySelector("[data-role=shadow]");
  window.noting = new MutationObserver(() => {
    const { word } = shadow.dataset;
    if (word) window.marked.push([word, window.cantata.heardSeconds]);
  });
  window.noting.observe(shadow, { attributeFilter: ["data-word"] });
}
"""

PRESS_ONCE_PLAYING = """
(button) => {
  const look = () => {
    if (window.cantata.state === "playing") button.click();
    else requestAnimationFrame(look);
  };
  look();
}
"""


def turn_figures(metrics: Mapping[str, Any]) -> dict[str, str]:
    """`window.cantata.metrics` as cells of a row of the level's table."""
    return {
        "first packet": f"{1000 * metrics['ttfpSeconds']:.0f} ms",
        "first sound": f"{1000 * metrics['audibleSeconds']:.0f} ms",
        "RTF": f"{metrics['server']['rtf']:.2f}",
        "chunks": str(metrics["chunks"]),
        "starved frames": str(metrics["starvedFrames"]),
    }


@dataclass(frozen=True)
class SpeechPage:
    page: Page

    def __post_init__(self) -> None:
        self.page.set_default_timeout(LOAD_DEADLINE_MS)

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        self.page.wait_for_function(
            "document.querySelector('[data-role=server]')?.dataset.ready === 'true'",
            timeout=LOAD_DEADLINE_MS,
            polling=POLL_MS,
        )

    @property
    def text(self) -> Locator:
        return self.page.get_by_role("textbox", name="Text to speak")

    @property
    def streams(self) -> Locator:
        return self.page.get_by_role("spinbutton", name="Streams")

    def write(self, text: str) -> None:
        self.text.fill(text)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def choose_tab(self, name: str) -> None:
        """Clicks a tab. A server that does not answer leaves one that comes late empty."""
        self.page.get_by_role("tab", name=name, exact=True).click()

    def tab(self, name: str) -> None:
        """Opens a tab; what the browser fetches for it has come, or is said to be missing."""
        self.choose_tab(name)
        expect(self.page.get_by_role("tabpanel", name=name, exact=True)).not_to_be_empty()

    def open_settings(self) -> None:
        """Unfolds the controls that are rarely used."""
        settings = self.page.locator("details", has_text="Settings")
        if settings.get_attribute("open") is None:
            settings.locator("summary").click()

    def choose_speed(self, speed: float) -> None:
        self.open_settings()
        self.page.get_by_label("Speed").fill(str(speed))

    def chosen(self) -> dict[str, Any]:
        """The controls' values under the API's names, of a model whose seed has no effect."""
        return {
            "voice": self.page.get_by_label("Voice", exact=True).input_value(),
            "model": self.page.get_by_label("Model", exact=True).input_value(),
            "speed": float(self.page.get_by_label("Speed").input_value()),
        }

    def options(self, menu: str) -> list[str]:
        options = self.page.get_by_label(menu, exact=True).locator("option")
        return [str(value) for value in options.evaluate_all("all => all.map(o => o.value)")]

    def status(self, region: str = "Playback") -> Locator:
        return self.page.get_by_role("region", name=region).get_by_role("status")

    def wait_for_state(self, *states: str) -> str:
        reached = self.page.wait_for_function(
            "states => states.find((state) => state === window.cantata.state)",
            arg=[*states, "error"],
            timeout=SPEECH_DEADLINE_MS,
            polling=POLL_MS,
        )
        state = str(reached.json_value())
        assert state in states, f"{state}: {self.status().inner_text()}"
        return state

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The block begins a turn; returns when its sound has been played. A test that waits for
        "playing" instead may look too late, on a busy machine, and then waits for ever."""
        self.page.evaluate("window.before = window.cantata.metrics")  # every turn has its own
        yield
        self.page.wait_for_function("window.cantata.metrics !== window.before", polling=POLL_MS)
        self.wait_for_state("done")

    def press_once_playing(self, name: str) -> None:
        """The page itself presses a button as soon as sound plays: a click from here may come
        after the end of a short one."""
        button = self.page.get_by_role("button", name=name, exact=True)
        button.evaluate(PRESS_ONCE_PLAYING)

    def metrics(self) -> dict[str, Any]:
        return dict(self.page.evaluate("window.cantata.metrics"))

    def figures(self) -> dict[str, str]:
        """As `turn_figures`, of the last turn."""
        return turn_figures(self.metrics())

    def words(self) -> list[dict[str, Any]]:
        """The words of the turn: `text`, `start` and `end` in seconds, `from` and `to` in it."""
        return list(self.page.evaluate("window.cantata.words"))

    def note_marked_words(self) -> None:
        self.page.evaluate(NOTE_MARKED_WORDS)

    def marked_words(self) -> list[tuple[str, float]]:
        """Each word that was marked since, and the seconds of sound that had been heard then."""
        return [(word, seconds) for word, seconds in self.page.evaluate("window.marked")]

    def played(self) -> NDArray[np.int16]:
        """Exactly what the audio thread played, without the silence of waiting."""
        return np.frombuffer(base64.b64decode(self.page.evaluate(PLAYED_AS_BASE64)), dtype="<i2")

    def save_played(self, path: Path) -> None:
        if self.page.evaluate("window.cantata !== undefined"):
            played = self.played().reshape(-1, self.metrics()["channels"])
            soundfile.write(path, played, self.metrics()["sampleRate"])
