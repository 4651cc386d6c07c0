"""The page's tab that listens, as tests use it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from .read_page import DROP_FOLDER
from .speech_page import POLL_MS, SpeechPage

HEARD_MS = 120_000

# Each state of the text, each word that is marked, and where playing was sent.
NOTE = """
() => {
  window.texts = [];
  window.marked = [];
  window.sought = [];
  const words = document.querySelector("[data-role=words]");
  new MutationObserver(() => window.texts.push(words.textContent))
    .observe(words, { childList: true });
  new MutationObserver(() => {
    const word = words.querySelector("[aria-current]");
    if (word !== null) window.marked.push(word.textContent);
  }).observe(words, { attributeFilter: ["aria-current"], subtree: true });
  const audio = document.querySelector("[data-role=listen-audio]");
  audio.addEventListener("seeking", () => window.sought.push(audio.currentTime));
}
"""
PRESS_ONCE_HEARD = """
(button) => {
  const words = document.querySelector("[data-role=words]");
  const seen = new MutationObserver(() => {
    if (words.textContent === "") return;
    seen.disconnect();
    button.click();
  });
  seen.observe(words, { childList: true });
}
"""
DROP = """
(panel, { base64, name }) => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  for (const type of ["dragover", "drop"]) {
    panel.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
  }
}
"""
# `pull` takes the microphone away, as its cable does.
WATCH_MICROPHONE = """
const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (asked) => {
  const stream = await open(asked);
  window.pull = () => {
    for (const track of stream.getTracks()) {
      track.stop();
      track.dispatchEvent(new Event("ended"));
    }
  };
  return stream;
};
"""
GONE = "The microphone is gone. Connect it again or choose another one, and start again."
IS_OVER = "window.cantata.transcription?.over === true"


@dataclass(frozen=True)
class ListenPage:
    page: Page

    def open(self, url: str) -> None:
        SpeechPage(self.page).open(url)
        self.show()

    def show(self) -> None:
        SpeechPage(self.page).tab("Listen")

    def press(self, name: str) -> None:
        SpeechPage(self.page).press(name)

    @property
    def file(self) -> Locator:
        return self.page.get_by_label("Drop a recording here")

    @property
    def status(self) -> Locator:
        return self.page.get_by_role("region", name="The recording").get_by_role("status")

    @property
    def transcript(self) -> Locator:
        return self.page.get_by_role("group", name="Transcript")

    @property
    def text(self) -> Locator:
        return self.page.locator("[data-role=words]")

    @property
    def audio(self) -> Locator:
        return self.page.locator("[data-role=listen-audio]")

    def word(self, place: int) -> Locator:
        """One of the transcript's words."""
        return self.text.locator("span").nth(place)

    def drop(self, file: Path) -> None:
        """Drop a file beside the box that takes it."""
        panel = self.page.locator("#cantata-listen")
        data = base64.b64encode(file.read_bytes()).decode()
        panel.evaluate(DROP, {"base64": data, "name": file.name})

    def drop_folder(self) -> None:
        self.page.locator("#cantata-listen").evaluate(DROP_FOLDER)

    def hear(self, file: Path) -> None:
        """Choose a file; returns when it has been heard to its end."""
        self.file.set_input_files(file)
        self.wait_until_done()

    def wait_until_done(self) -> None:
        """Fails if the request did."""
        self.page.wait_for_function(IS_OVER, timeout=HEARD_MS, polling=POLL_MS)
        state = self.page.evaluate("window.cantata.transcription.state")
        assert state == "done", self.status.inner_text()

    def press_once_heard(self, name: str) -> None:
        """The page itself presses a button as soon as there are words."""
        self.page.get_by_role("button", name=name, exact=True).evaluate(PRESS_ONCE_HEARD)

    def note(self) -> None:
        """Note from now on what `texts`, `marked` and `sought` return."""
        self.page.evaluate(NOTE)

    def noted(self, what: str) -> list[Any]:
        """`texts`: each state of the text; `marked`: each word that was marked; `sought`: seconds
        that playing was sent to."""
        return list(self.page.evaluate(f"window.{what}"))

    def words(self) -> list[dict[str, Any]]:
        """`text`, `start` and `end` in seconds."""
        return list(self.page.evaluate("window.cantata.transcription.words"))

    def save(self, kind: str) -> tuple[str, str]:
        """The name and the text of a file that is saved."""
        with self.page.expect_download() as download:
            self.press(f"Save as {kind}")
        text = Path(download.value.path()).read_text(encoding="utf-8")
        return download.value.suggested_filename, text
