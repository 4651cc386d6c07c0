// The sound of a conversation: what the microphone heard, and what was played of the answers, in the
// time of the microphone. Two channels: the user on the left, the server on the right.

import { TALK_RATE } from "./capture.js";

const MAX_FRAMES = 30 * 60 * TALK_RATE; // half an hour takes 170 MB

export class TalkRecording {
  #heard = []; // packets
  #frames = 0; // of them
  #answers = []; // {at, parts, frames}

  clear() {
    this.#heard = [];
    this.#answers = [];
    this.#frames = 0;
  }

  get seconds() {
    return this.#frames / TALK_RATE;
  }

  /** Whether it is too long for more. */
  get full() {
    return this.#frames >= MAX_FRAMES;
  }

  /** @param {Int16Array} samples of the microphone; they are copied */
  hear(samples) {
    if (this.full) return;
    this.#heard.push(samples.slice());
    this.#frames += samples.length;
  }

  /** An answer begins to sound. */
  begin() {
    this.#answers.push({ at: this.#frames, parts: [], frames: 0 });
  }

  /** More of it has come; what is not played by the next `begin` or `cut` was not heard. */
  answer(samples) {
    const last = this.#answers.at(-1);
    if (last === undefined || this.full) return;
    last.parts.push(samples.slice());
    last.frames += samples.length;
  }

  /** The answer was silenced. */
  cut() {
    const last = this.#answers.at(-1);
    if (last !== undefined) last.frames = Math.min(last.frames, this.#frames - last.at);
  }

  /** All of it, interleaved. */
  get samples() {
    const ends = this.#answers.map(({ at, frames }) => at + frames);
    const whole = new Int16Array(2 * Math.max(this.#frames, ...ends));
    let at = 0;
    for (const packet of this.#heard) {
      for (const sample of packet) whole[2 * at++] = sample;
    }
    for (const { at: from, parts, frames } of this.#answers) {
      let place = from;
      for (const part of parts) {
        for (const sample of part) if (place < from + frames) whole[2 * place++ + 1] = sample;
      }
    }
    return whole;
  }
}
