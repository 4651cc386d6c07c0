// What was measured of a turn, once somebody wants to see it.

import { decimal, t } from "../texts.js";
import { milliseconds } from "./units.js";

const FULL_SECONDS = 5; // of buffered speech fill the level

export class FiguresView {
  #speaker;
  #level;
  #readings = {};

  constructor(panel, { speaker }) {
    this.#speaker = speaker;
    this.#level = panel.querySelector("[data-role='level']");
    for (const element of panel.querySelectorAll("[data-meter]")) {
      this.#readings[element.dataset.meter] = element;
    }
    for (const type of ["begin", "state", "metrics"]) {
      speaker.addEventListener(type, () => this.#read());
    }
    this.#read();
  }

  #read() {
    const { metrics } = this.#speaker;
    const { sampleRate, bufferedSeconds } = metrics;
    const rtf = metrics.server?.rtf ?? undefined;
    this.#level.style.width = `${Math.min(100, (100 * bufferedSeconds) / FULL_SECONDS)}%`;
    this.#write({
      ttfp: milliseconds(metrics.ttfpSeconds),
      audible: milliseconds(metrics.audibleSeconds),
      rtf: rtf === undefined ? "–" : decimal(rtf, 2),
      received: t("{played} of {received} s", {
        played: decimal(metrics.playedFrames / sampleRate, 1),
        received: decimal(metrics.receivedFrames / sampleRate, 1),
      }),
      buffer: `${decimal(bufferedSeconds, 1)} s`,
      chunks: String(metrics.chunks),
      underruns: this.#underruns,
    });
  }

  get #underruns() {
    const { underruns, starvedFrames, sampleRate } = this.#speaker.metrics;
    if (underruns === 0) return t("none");
    return t({ one: "{count} time, {seconds} s", other: "{count} times, {seconds} s" }, {
      count: underruns,
      seconds: decimal(starvedFrames / sampleRate, 2),
    });
  }

  #write(values) {
    for (const [name, value] of Object.entries(values)) {
      const element = this.#readings[name];
      if (element.textContent !== value) element.textContent = value;
    }
  }
}
