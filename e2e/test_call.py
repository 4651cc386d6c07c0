"""A spoken conversation over WebRTC in a real browser, by the code that the documents show."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page

from cantata_bench.asr import word_error_rate

from .judges.speech import transcribe

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

DOCUMENT = Path(__file__).parents[1] / "docs" / "realtime.md"
WORST_WER = 0.35
"""Of one short answer."""
TIMES = 3
MAX_CONCEALED_S = 0.04
"""What the browser made up where packets came too late: a busy machine's, not the server's."""
# The server has sent everything: the browser may still hold the end of it back.
CONVERSE = """
async () => {
  const quiet = (stream) => new Promise((resolve) => {
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    let since = performance.now();
    const look = () => {
      analyser.getFloatTimeDomainData(samples);
      if (samples.some((sample) => Math.abs(sample) > 0.01)) since = performance.now();
      if (performance.now() - since > 500) resolve();
      else setTimeout(look, 20);
    };
    look();
  });
  const told = [];
  const heard = new Promise((resolve) => {
    const chunks = [];
    const audio = document.querySelector("audio");
    const record = () => {
      const recorder = new MediaRecorder(audio.srcObject);
      recorder.ondataavailable = ({ data }) => chunks.push(data);
      recorder.onstop = async () => {
        const bytes = new Uint8Array(await new Blob(chunks).arrayBuffer());
        resolve(btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")));
      };
      recorder.start();
      window.stopped = async () => {
        await quiet(audio.srcObject);
        recorder.stop();
      };
    };
    if (audio.srcObject) record();
    else audio.onloadstart = record;
  });
  const wait = (type) => new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`no ${type} after ${told}`)), 30000);
    const look = ({ data }) => {
      const event = JSON.parse(data);
      told.push(event.type);
      if (event.type !== type) return;
      events.removeEventListener("message", look);
      resolve(event);
    };
    events.addEventListener("message", look);
  });
  await wait("session.created");
  const send = (event) => events.send(JSON.stringify(event));
  send({ type: "session.update",
         session: { type: "realtime", audio: { input: { turn_detection: null } } } });
  await wait("session.updated");
  const content = [{ type: "input_text", text: "The children walk along the river." }];
  send({ type: "conversation.item.create", item: { type: "message", role: "user", content } });
  send({ type: "response.create" });
  const [done] = await Promise.all([
    wait("response.output_audio_transcript.done"), wait("output_audio_buffer.stopped")]);
  window.stopped();
  const sound = await heard;
  const [received] = [...(await peer.getStats()).values()].filter(
    ({ type, kind }) => type === "inbound-rtp" && kind === "audio");
  const concealed = received.concealedSamples - received.silentConcealedSamples;
  return { told, text: done.transcript, sound, concealedSeconds: concealed / 48000 };
}
"""


def read_example() -> str:
    """The document's code, with its constants as globals."""
    (code,) = re.findall(r"```js\n(const peer = .*?)```", DOCUMENT.read_text(), re.DOTALL)
    return f"async () => {{ {code}; Object.assign(window, {{ peer, events }}); }}"


def decode(recording: str) -> tuple[NDArray[np.float32], int]:
    """What `MediaRecorder` made."""
    with av.open(io.BytesIO(base64.b64decode(recording)), "r") as file:
        frames = [frame.to_ndarray()[0] for frame in file.decode(audio=0)]
        return np.concatenate(frames).astype(np.float32), file.streams.audio[0].rate or 0


@pytest.mark.thorough
def test_the_documents_example_holds_a_conversation(page: Page) -> None:
    for _ in range(TIMES):
        answer = converse(page)
        assert "output_audio_buffer.started" in answer["told"]
        assert "response.output_audio.delta" not in answer["told"]
        heard = transcribe(*decode(answer["sound"]))
        wrong = word_error_rate([answer["text"]], [heard])
        if wrong <= WORST_WER or answer["concealedSeconds"] <= MAX_CONCEALED_S:
            break
    assert wrong <= WORST_WER, (answer["text"], heard, answer["concealedSeconds"])


def converse(page: Page) -> dict[str, Any]:
    """Call once, by the document's code."""
    page.reload()
    page.evaluate("document.body.append(Object.assign(new Audio(), { autoplay: true }))")
    page.evaluate(read_example())
    answer: dict[str, Any] = page.evaluate(CONVERSE)
    return answer
