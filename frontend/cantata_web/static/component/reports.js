// Turns what a Speaker does into events: the first packet, each word as it is heard, the end.

import { State } from "../speech/states.js";
import { Animation } from "../views/animation.js";

export class Reports {
  #speaker;
  #trigger;
  #first = true; // the first packet has been reported
  #words = 0; // as many have been
  #animation = new Animation(() => this.#follow());

  /** @param {(event, data) => void} trigger */
  constructor(speaker, trigger) {
    this.#speaker = speaker;
    this.#trigger = trigger;
  }

  start() {
    this.#speaker.addEventListener("begin", () => {
      this.#first = false;
      this.#words = 0;
    });
    this.#speaker.addEventListener("metrics", () => this.#measure());
    this.#speaker.addEventListener("state", () => this.#enter());
  }

  #measure() {
    const { ttfpSeconds } = this.#speaker.metrics;
    if (this.#first || ttfpSeconds === null) return;
    this.#first = true;
    this.#trigger("first_packet", { seconds: ttfpSeconds });
  }

  #enter() {
    const { state, metrics, error } = this.#speaker;
    if (state === State.ERROR) {
      this.#trigger("failed", { message: error });
    } else if (state === State.DONE || state === State.STOPPED) {
      const stopped = state === State.STOPPED;
      // Frames of animation may come late, or not at all while the page is hidden.
      this.#tell(stopped ? this.#speaker.heardSeconds : Infinity);
      const { playedFrames, sampleRate, underruns } = metrics;
      this.#trigger("done", { seconds: playedFrames / sampleRate, underruns, stopped });
    } else {
      this.#animation.start();
    }
  }

  #follow() {
    const { busy, heardSeconds } = this.#speaker;
    if (busy) this.#tell(heardSeconds);
    return busy;
  }

  #tell(seconds) {
    const words = this.#speaker.words.all;
    for (; words[this.#words]?.start <= seconds; this.#words += 1) {
      const { text, start, end } = words[this.#words];
      this.#trigger("word", { text, start, end });
    }
  }
}
