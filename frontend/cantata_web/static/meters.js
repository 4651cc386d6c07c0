// The moving parts of the page: the waveform and the readings beneath it.

import { State } from "./speaker.js";

export class Meters {
  #speaker;
  #waveform;
  #readings = {};
  #playedFrames = 0;
  #reportedAt = 0;
  #drawing = false;

  constructor(root, speaker, waveform) {
    this.#speaker = speaker;
    this.#waveform = waveform;
    for (const element of root.querySelectorAll("[data-meter]")) {
      this.#readings[element.dataset.meter] = element;
    }
    speaker.addEventListener("samples", ({ detail }) => waveform.append(detail));
    speaker.addEventListener("state", () => this.#follow());
    speaker.addEventListener("metrics", () => this.#read());
  }

  #follow() {
    if (this.#speaker.state === State.WAITING) this.#waveform.clear(this.#speaker.sampleRate);
    this.#read();
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => this.#frame());
  }

  #frame() {
    this.#waveform.draw(this.#playhead());
    this.#drawing = this.#speaker.busy;
    if (this.#drawing) requestAnimationFrame(() => this.#frame());
  }

  // The worklet reports a dozen times a second; between reports the playhead moves by the clock.
  #playhead() {
    const { state, metrics } = this.#speaker;
    if (metrics.playedFrames !== this.#playedFrames) {
      this.#playedFrames = metrics.playedFrames;
      this.#reportedAt = performance.now();
    }
    if (state !== State.PLAYING) return metrics.playedFrames;
    const since = (performance.now() - this.#reportedAt) / 1000;
    const ahead = Math.min(since, metrics.bufferedSeconds) * metrics.sampleRate;
    return metrics.playedFrames + ahead;
  }

  #read() {
    const { metrics } = this.#speaker;
    const { sampleRate } = metrics;
    const starved = metrics.starvedFrames / sampleRate;
    this.#write({
      ttfp: milliseconds(metrics.ttfpSeconds),
      audible: milliseconds(metrics.audibleSeconds),
      rtf: metrics.server?.rtf?.toFixed(2) ?? "–",
      received:
        `${(metrics.playedFrames / sampleRate).toFixed(1)} / ` +
        `${(metrics.receivedFrames / sampleRate).toFixed(1)} s`,
      buffer: `${metrics.bufferedSeconds.toFixed(1)} s`,
      underruns:
        metrics.underruns === 0 ? "none" : `${metrics.underruns} (${starved.toFixed(2)} s)`,
    });
  }

  #write(values) {
    for (const [name, value] of Object.entries(values)) {
      const element = this.#readings[name];
      if (element.textContent !== value) element.textContent = value;
    }
  }
}

function milliseconds(seconds) {
  return seconds === null ? "–" : `${Math.round(seconds * 1000)} ms`;
}
