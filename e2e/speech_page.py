"""The page as tests use it: one place for its locators and its `window.cantata`."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Page

LOAD_DEADLINE_MS = 30_000
SPEECH_DEADLINE_MS = 120_000

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


@dataclass(frozen=True)
class SpeechPage:
    page: Page

    def __post_init__(self) -> None:
        self.page.set_default_timeout(LOAD_DEADLINE_MS)

    def wait_until_ready(self) -> None:
        self.page.wait_for_function(
            "document.querySelector('[data-role=server]')?.dataset.ready === 'true'",
            timeout=LOAD_DEADLINE_MS,
        )

    def write(self, text: str) -> None:
        self.page.get_by_role("textbox", name="Text to speak").fill(text)

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def choose(self, *, speed: float, seed: int) -> None:
        self.page.get_by_label("Speed").fill(str(speed))
        self.page.get_by_label("Seed", exact=True).fill(str(seed))

    def chosen(self) -> dict[str, Any]:
        """The controls' values under the API's names."""
        voice = self.page.get_by_label("Voice")
        return {
            "voice": voice.input_value(),
            "model": voice.evaluate("menu => menu.selectedOptions[0].dataset.model"),
            "speed": float(self.page.get_by_label("Speed").input_value()),
            "seed": int(self.page.get_by_label("Seed", exact=True).input_value()),
        }

    def voices(self) -> list[str]:
        options = self.page.get_by_label("Voice").locator("option")
        return [str(value) for value in options.evaluate_all("all => all.map(o => o.value)")]

    def status(self) -> str:
        return self.page.get_by_role("region", name="Playback").get_by_role("status").inner_text()

    def wait_for_state(self, *states: str) -> str:
        self.page.wait_for_function(
            "states => states.includes(window.cantata.state)",
            arg=[*states, "error"],
            timeout=SPEECH_DEADLINE_MS,
        )
        state = str(self.page.evaluate("window.cantata.state"))
        assert state in states, f"{state}: {self.status()}"
        return state

    def metrics(self) -> dict[str, Any]:
        return dict(self.page.evaluate("window.cantata.metrics"))

    def played(self) -> NDArray[np.int16]:
        """Exactly what the audio thread played, without the silence of waiting."""
        return np.frombuffer(base64.b64decode(self.page.evaluate(PLAYED_AS_BASE64)), dtype="<i2")

    def save_played(self, path: Path) -> None:
        if self.page.evaluate("window.cantata !== undefined"):
            soundfile.write(path, self.played(), self.metrics()["sampleRate"])
