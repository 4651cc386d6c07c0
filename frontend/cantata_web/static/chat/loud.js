// The voice of answers that come with their sound: 24 kHz, mono, as the API streams it.

import { Player } from "../player/player.js";

const SAMPLE_RATE = 24_000;
const RESERVE_SECONDS = 0.16;

/** Dispatches "state" when it begins or ceases to sound. */
export class Loud extends EventTarget {
  sounding = false;
  seconds = 0; // of sound that came for the answer
  #player = new Player();
  #begun = false;

  /** An answer is asked for. Call it from the click. */
  prepare() {
    this.stop();
    this.seconds = 0;
    this.#begun = false;
    this.#player.unlock(SAMPLE_RATE);
  }

  push(samples) {
    if (!this.#begun) {
      this.#begun = true;
      const ignore = () => {};
      const listener = { audible: ignore, report: ignore, ended: () => this.#set(false) };
      const sound = { sampleRate: SAMPLE_RATE, channels: 1, reserveSeconds: RESERVE_SECONDS };
      this.#player.begin({ ...sound, listener });
      this.#set(true);
    }
    this.seconds += samples.length / SAMPLE_RATE;
    this.#player.push(samples);
  }

  /** No more sound will come. */
  end() {
    if (this.#begun) this.#player.end();
  }

  stop() {
    this.#player.stop();
    this.#set(false);
  }

  #set(sounding) {
    if (sounding === this.sounding) return;
    this.sounding = sounding;
    this.dispatchEvent(new Event("state"));
  }
}
