// Renders one Playback after another, keeps an exact copy of what it played, and reports.
//
// In:  {type: "begin", turn, sampleRate, reserveSeconds, fadeSeconds},
//      {type: "pcm", turn, samples}, {type: "end", turn}, {type: "stop", turn}
// Out: {type: "audible", turn, contextTime}, {type: "report", turn, played, ended, ...counters}
// `turn` numbers utterances, so that a message which crossed a newer utterance is dropped.

import { Phase, Playback } from "./playback.js";

const REPORT_FRAMES = 2048; // 85 ms at 24 kHz: often enough for meters, rare enough to be free

export class Renderer {
  #post;
  #playback = null;
  #turn = 0;
  #captured = new Int16Array(2 * REPORT_FRAMES); // a report can be one block late
  #capturedLength = 0;
  #sinceReport = 0;

  /** @param {(message, transfer) => void} post */
  constructor(post) {
    this.#post = post;
  }

  receive(message) {
    if (message.type === "begin") {
      const level = this.#playback?.level ?? 0;
      this.#turn = message.turn;
      this.#playback = new Playback(message);
      this.#playback.level = level; // what was cut off glides to silence
      this.#capturedLength = 0;
      this.#sinceReport = 0;
      return;
    }
    if (this.#playback === null || message.turn !== this.#turn) return;
    if (message.type === "pcm") this.#playback.write(message.samples);
    else if (message.type === "end") this.#playback.end();
    else if (message.type === "stop") this.#playback.stop();
  }

  /** Fills `block` (Float32Array), which starts to sound at `contextTime`. */
  render(block, contextTime) {
    if (this.#playback === null) {
      block.fill(0);
      return;
    }
    const wasAudible = this.#playback.audible;
    const played = this.#playback.render(block);
    this.#capture(block, played);
    if (this.#playback.audible && !wasAudible) {
      this.#post({ type: "audible", turn: this.#turn, contextTime }, []);
    }
    this.#sinceReport += block.length;
    const ended = this.#playback.phase === Phase.ENDED;
    if (ended || this.#sinceReport >= REPORT_FRAMES) this.#report(ended);
  }

  // Reads back the floats that leave for the sound card, not the ring: x / 32768 is exact in a
  // float, so rounding restores each 16-bit sample, and a fault in between would show.
  #capture(block, count) {
    for (let i = 0; i < count; i += 1) {
      this.#captured[this.#capturedLength + i] = Math.round(block[i] * 32768);
    }
    this.#capturedLength += count;
  }

  #report(ended) {
    const { playedFrames, starvedFrames, underruns, ring } = this.#playback;
    const played = this.#captured.slice(0, this.#capturedLength);
    const counters = { playedFrames, starvedFrames, underruns, bufferedFrames: ring.length };
    this.#post({ type: "report", turn: this.#turn, played, ended, ...counters }, [played.buffer]);
    this.#capturedLength = 0;
    this.#sinceReport = 0;
    if (ended) this.#playback = null;
  }
}
