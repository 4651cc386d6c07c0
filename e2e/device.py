"""Records what the sound device gets, behind everything in the page that makes sound.

A script that runs before the page's own puts a recorder of this module between any node and the
device. The page's report of what it played is not asked.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Page

DEADLINE_MS = 30_000
BLOCKS = 16
"""Number of blocks of 128 frames in one message."""

_RECORDER = """
registerProcessor("device-recorder", class extends AudioWorkletProcessor {
  #blocks = [];
  process([input], [output]) {
    const silence = new Float32Array(128);
    const channels = [0, 1].map((n) => (input[n] ?? input[0] ?? silence).slice());
    output.forEach((out, n) => out.set(channels[n]));
    this.#blocks.push(...channels);
    if (this.#blocks.length >= 2 * BLOCKS) {
      this.port.postMessage(this.#blocks);
      this.#blocks = [];
    }
    return true;
  }
});
"""

INSTALL = """
(() => {
  const device = { left: [], right: [], rate: 0, firstSoundAt: null };
  const recorder = URL.createObjectURL(new Blob([%r], { type: "text/javascript" }));
  const { addModule } = AudioWorklet.prototype;
  AudioWorklet.prototype.addModule = async function (...given) {
    await addModule.call(this, recorder);
    return addModule.apply(this, given);
  };
  const { connect } = AudioNode.prototype;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (!(target instanceof AudioDestinationNode)) return connect.call(this, target, ...rest);
    const { context } = this;
    const tap = new AudioWorkletNode(context, "device-recorder", { outputChannelCount: [2] });
    device.rate = context.sampleRate;
    tap.port.onmessage = ({ data: blocks }) => {
      blocks.forEach((block, n) => (n %% 2 ? device.right : device.left).push(block));
      const audible = blocks.some((block) => block.some((level) => Math.abs(level) > 1e-4));
      if (audible) device.firstSoundAt ??= Date.now();
    };
    connect.call(this, tap);
    return connect.call(tap, target, ...rest);
  };
  device.clear = () => {
    device.left = [];
    device.right = [];
    device.firstSoundAt = null;
  };
  window.device = device;
})();
""" % _RECORDER.replace("BLOCKS", str(BLOCKS))  # noqa: UP031

_READ = """
() => {
  const { left, right } = window.device;
  const whole = new Float32Array((left.length + right.length) * 128);
  [...left, ...right].forEach((block, n) => whole.set(block, n * 128));
  const bytes = new Uint8Array(whole.buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return btoa(text);
}
"""
_SILENT_AGAIN = """
(frames) => {
  const { left, right } = window.device;
  const count = Math.ceil(frames / 128);
  const silent = (block) => block.every((level) => level === 0);
  return left.length > count && [left, right].every((all) => all.slice(-count).every(silent));
}
"""
_HOLD_MESSAGES = """
window.WebSocket = class extends WebSocket {
  #held = [];
  #passing = false;

  constructor(...given) {
    super(...given);
    this.addEventListener("message", (event) => {
      if (this.#passing) return;
      event.stopImmediatePropagation();
      const { data } = event;
      this.#held.push(data);
      const answered = this.#held.some((one) => typeof one !== "string");
      if (answered && !String(data).includes('"input.spoken"')) return;
      this.#passing = true;
      for (const one of this.#held.splice(0)) {
        this.dispatchEvent(new MessageEvent("message", { data: one }));
      }
      this.#passing = false;
    });
  }
};
"""


def deliver_whole(page: Page) -> None:
    """Give the page the server's messages at once when the last is there, so that no machine is too
    slow to play them without a gap. Before the page is opened."""
    page.add_init_script(_HOLD_MESSAGES)


@dataclass(frozen=True)
class Device:
    """The recorder of a page; `install` before the page is opened."""

    page: Page

    @classmethod
    def install(cls, page: Page) -> Device:
        page.add_init_script(INSTALL)
        return cls(page)

    @property
    def rate(self) -> int:
        return int(self.page.evaluate("window.device.rate"))

    def clear(self) -> None:
        """Forget what was recorded."""
        self.page.evaluate("window.device?.clear()")

    def wait_for_silence(self, seconds: float = 0.25) -> None:
        """Returns when the device has had nothing but zeros for so long."""
        frames = round(seconds * self.rate)
        self.page.wait_for_function(_SILENT_AGAIN, arg=frames, timeout=DEADLINE_MS)

    def channels(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Left and right, with the silence around the sound."""
        both = np.frombuffer(base64.b64decode(self.page.evaluate(_READ)), dtype="<f4")
        left, right = both.reshape(2, -1)
        return left, right

    def sound(self) -> NDArray[np.float32]:
        """One channel, from its first sample that is not zero to its last."""
        left, _ = self.channels()
        loud = np.flatnonzero(left)
        return left[loud[0] : loud[-1] + 1] if len(loud) else left[:0]

    def first_sound_at_s(self) -> float:
        """When the page got the recorder's first message with sound, by `time.time()`: up to the
        length of a message (43 ms) late, and never early. WHY not reckoned by the audio clock: on a
        busy machine it runs ahead for moments."""
        return float(self.page.evaluate("window.device.firstSoundAt")) / 1000
