"""The page's requests as code: run for real, they make what the page played."""

from __future__ import annotations

import base64
import io
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from .page_code import code_in, open_code, speak_awkward_text
from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

RUN_AS_MODULE = """
async (code) => {
  const made = /new Int16Array/.test(code) ? "samples" : "file";
  const url = URL.createObjectURL(
    new Blob([code + "\\nexport { " + made + " as made };"], { type: "text/javascript" }));
  const { made: sound } = await import(url);
  const bytes = new Uint8Array(made === "file" ? await sound.arrayBuffer() : sound.buffer);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
"""


def read_samples(wav: bytes) -> NDArray[np.int16]:
    return np.asarray(soundfile.read(io.BytesIO(wav), dtype="int16")[0])


@pytest.fixture
def spoken(browser_page: Page, server: Server) -> SpeechPage:
    speech_page = SpeechPage(browser_page)
    speak_awkward_text(speech_page, server.url)
    return speech_page


def test_the_code_makes_what_the_page_played(spoken: SpeechPage, tmp_path: Path) -> None:
    page = spoken.page
    played = spoken.played()
    assert len(played) > 24_000
    shell = {**os.environ, "HOME": str(tmp_path), "no_proxy": "*"}
    done = subprocess.run(
        ["bash", "-euc", code_in(page, "curl")],
        cwd=tmp_path,
        env=shell,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    np.testing.assert_array_equal(read_samples((tmp_path / "cantata.wav").read_bytes()), played)

    file = base64.b64decode(page.evaluate(RUN_AS_MODULE, code_in(page, "fetch")))
    np.testing.assert_array_equal(read_samples(file), played)
    pcm = base64.b64decode(page.evaluate(RUN_AS_MODULE, code_in(page, "websocket")))
    np.testing.assert_array_equal(np.frombuffer(pcm, dtype="<i2"), played)


def test_the_code_follows_the_settings_and_is_copied(browser_page: Page, server: Server) -> None:
    page = browser_page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    open_code(page)
    speech_page.write("One.")
    page.get_by_text("Settings", exact=True).click()
    page.get_by_label("Download as").select_option("opus")
    code = code_in(page, "python")
    assert 'input="One."' in code
    assert 'response_format="opus"' in code
    assert "seed" not in code, "a seed that has no effect is not set"
    speech_page.press("Copy the code")
    expect(page.locator("[data-role=code-status]")).to_have_text("The code is copied.")
    assert page.evaluate("navigator.clipboard.readText()") == code
