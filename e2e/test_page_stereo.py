"""Models that speak in stereo: each loudspeaker gets its channel, and the page draws both.

MOSS-TTS with random weights: what it says is noise, but the same noise for the same seed.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page

from cantata.config.plugins import load_plugins
from served import served

from .device import Device, deliver_whole
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

TEXT = "Hello there, all of you."
SEED = 1
# How far the waveform reaches up and down from its middle, by column, in the colour of speech.
REACH = """
(canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const parts = getComputedStyle(canvas).getPropertyValue("--wave-played").match(/[0-9a-f]{2}/gi);
  const [r, g, b] = parts.map((part) => parseInt(part, 16));
  const count = (x, from, to) => {
    let found = 0;
    for (let y = from; y < to; y += 1) {
      const i = 4 * (y * width + x);
      if (data[i] === r && data[i + 1] === g && data[i + 2] === b) found += 1;
    }
    return found;
  };
  const middle = Math.floor(height / 2);
  return Array.from({ length: width }, (_, x) => [count(x, 0, middle), count(x, middle, height)]);
}
"""


@pytest.fixture(scope="module", params=["moss-tts-nano", "moss-tts-local"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp(request.param)
    write = load_plugins()[request.param].write_random_checkpoint
    assert write is not None
    write(folder)
    with served(folder, tmp_path_factory.mktemp("voices"), pages=True) as url:
        yield url


def sent(url: str) -> NDArray[np.int16]:
    """[N, 2]: what the server sends for the same request."""
    body = {"input": TEXT, "seed": SEED, "response_format": "pcm"}
    answer = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=60).raise_for_status()
    assert (answer.headers["x-sample-rate"], answer.headers["x-channels"]) == ("48000", "2")
    return np.frombuffer(answer.content, dtype="<i2").reshape(-1, 2)


@pytest.mark.thorough(every=2)
def test_each_loudspeaker_gets_its_channel_and_both_are_drawn(browser_page: Page, url: str) -> None:
    device = Device.install(browser_page)
    deliver_whole(browser_page)
    speech_page = SpeechPage(browser_page)
    speech_page.open(url)
    speech_page.write(TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    device.wait_for_silence()
    assert device.rate == 48_000

    expected = sent(url)
    heard = np.round(np.stack(device.channels(), axis=1) * 32768).astype(np.int16)
    begins = int(np.flatnonzero(heard.any(axis=1))[0] - np.flatnonzero(expected.any(axis=1))[0])
    np.testing.assert_array_equal(heard[begins:][: len(expected)], expected)
    assert (expected[:, 0] != expected[:, 1]).any()

    reach = np.array(browser_page.get_by_role("img", name="Waveform").evaluate(REACH))
    drawn = reach[reach.sum(axis=1) > 0]
    bars = expected[: len(expected) // 960 * 960].astype(float).reshape(-1, 960, 2)
    loudest = np.sqrt(np.abs(bars).max(axis=1) / 32768)
    assert drawn[:, 0].max() / drawn[:, 1].max() == pytest.approx(
        loudest[:, 0].max() / loudest[:, 1].max(), rel=0.1
    )
    assert (drawn[:, 0] != drawn[:, 1]).any()
