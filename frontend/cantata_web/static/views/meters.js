// The moving parts beneath the text: the waveform, the word that is heard, and the readings.

import { State } from "../speech/states.js";
import { Animation } from "./animation.js";
import { counted } from "./plural.js";

const MARKED = new Set([State.PLAYING, State.STARVED, State.PAUSED]); // the word heard last stays
const FULL_SECONDS = 5; // of buffered speech fill the level

export class Meters {
  #speaker;
  #waveform;
  #highlight;
  #readings = {};
  #level;
  #animation = new Animation(() => this.#frame());

  constructor(root, speaker, waveform, highlight) {
    this.#speaker = speaker;
    this.#waveform = waveform;
    this.#highlight = highlight;
    this.#level = root.querySelector("[data-role='level']");
    for (const element of root.querySelectorAll("[data-meter]")) {
      this.#readings[element.dataset.meter] = element;
    }
    speaker.addEventListener("begin", () => waveform.clear());
    speaker.addEventListener("state", () => this.#follow());
    speaker.addEventListener("samples", ({ detail }) => {
      const { sampleRate, channels } = speaker.metrics;
      waveform.append(detail, sampleRate, channels);
    });
    speaker.addEventListener("metrics", () => {
      if (!this.#animation.running) this.#read();
    });
  }

  #follow() {
    this.#read();
    this.#animation.start();
  }

  #frame() {
    this.#read();
    const speaker = this.#speaker;
    const { gaps, sampleRate } = speaker.metrics;
    this.#waveform.draw(speaker.playedSeconds, inSeconds(gaps, sampleRate));
    const speaks = MARKED.has(speaker.state);
    this.#highlight.show(speaks ? speaker.words.at(speaker.heardSeconds) : null);
    return speaker.busy;
  }

  #read() {
    const { metrics } = this.#speaker;
    const { sampleRate, bufferedSeconds } = metrics;
    const starved = metrics.starvedFrames / sampleRate;
    this.#level.style.width = `${Math.min(100, (100 * bufferedSeconds) / FULL_SECONDS)}%`;
    this.#write({
      ttfp: milliseconds(metrics.ttfpSeconds),
      audible: milliseconds(metrics.audibleSeconds),
      rtf: metrics.server?.rtf?.toFixed(2) ?? "–",
      received:
        `${(metrics.playedFrames / sampleRate).toFixed(1)} of ` +
        `${(metrics.receivedFrames / sampleRate).toFixed(1)} s`,
      buffer: `${bufferedSeconds.toFixed(1)} s`,
      chunks: String(metrics.chunks),
      underruns:
        metrics.underruns === 0
          ? "none"
          : `${counted(metrics.underruns, "time")}, ${starved.toFixed(2)} s`,
    });
  }

  #write(values) {
    for (const [name, value] of Object.entries(values)) {
      const element = this.#readings[name];
      if (element.textContent !== value) element.textContent = value;
    }
  }
}

function inSeconds(gaps, sampleRate) {
  return gaps.map(({ atFrame, frames }) => ({
    at: atFrame / sampleRate,
    seconds: frames / sampleRate,
  }));
}

export function milliseconds(seconds) {
  return seconds === null ? "–" : `${Math.round(seconds * 1000)} ms`;
}
