// What a microphone hears, at the rate that the server hears, in packets of equal length. Runs on
// the audio thread; no browser API here, so that node can test it.

import { Resampler } from "../player/resampler.js";

export const TALK_RATE = 24_000; // Hz
export const PACKET_FRAMES = 960; // 40 ms

const SLACK_FRAMES = 512; // what the resampler may read ahead of its output: its filter and a block

export class Capture {
  #post;
  #resampler;
  #need; // frames of input with which a packet is complete
  #waiting;
  #frames = 0;
  #packet = new Float32Array(PACKET_FRAMES);

  /**
   * @param {number} contextRate Hz, of what is pushed
   * @param {(samples: Int16Array) => void} post is given each packet
   */
  constructor(contextRate, post) {
    this.#post = post;
    this.#resampler = new Resampler(contextRate, TALK_RATE, 1);
    this.#need = Math.ceil((PACKET_FRAMES * contextRate) / TALK_RATE) + SLACK_FRAMES;
    this.#waiting = new Float32Array(2 * this.#need);
  }

  /** @param {Float32Array} heard one channel; at most as long as a packet */
  push(heard) {
    this.#waiting.set(heard, this.#frames);
    this.#frames += heard.length;
    while (this.#frames >= this.#need) this.#send();
  }

  #send() {
    let read = 0;
    this.#resampler.render([this.#packet], ([block]) => {
      block.set(this.#waiting.subarray(read, read + block.length));
      read += block.length;
    });
    this.#waiting.copyWithin(0, read, this.#frames);
    this.#frames -= read;
    this.#post(Int16Array.from(this.#packet, toSample));
  }
}

function toSample(level) {
  return Math.round(Math.max(-1, Math.min(1, level)) * 32767);
}
