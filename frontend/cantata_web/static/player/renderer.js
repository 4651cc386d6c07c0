// Renders one Playback after another, keeps an exact copy of what it played, and reports.
//
// In:  {type: "begin", turn, sampleRate, channels, reserveSeconds, fadeSeconds, rate},
//      {type: "pcm", turn, samples}, {type: "reserve", turn, seconds}, {type: "rate", turn, rate},
//      {type: "rest" | "halt" | "wake" | "end" | "stop", turn}
// Out: {type: "audible", turn, contextTime},
//      {type: "report", turn, played, ended, phase, contextTime, ...counters}
// `turn` numbers turns, so that a message which crossed a newer turn is dropped.

import { AUDIBLE_LEVEL, Phase, Playback } from "./playback.js";
import { Resampler } from "./resampler.js";
import { Stretch } from "./stretch.js";

const REPORT_FRAMES = 2048; // 85 ms at 24 kHz: often enough for meters, rare enough to be free

export class Renderer {
  #post;
  #contextRate;
  #playback = null;
  #resampler = null; // only where the device does not run at the sound's own rate
  #stretch = null; // from when the turn is first heard at another speed
  #turn = 0;
  #captured = new Int16Array(0);
  #capturedLength = 0;
  #sinceReport = 0;
  #over = true; // the end has been reported
  #heard = true; // the first frame that can be heard has been reported

  /**
   * @param {(message, transfer) => void} post
   * @param {number} contextRate Hz, of the blocks to render
   */
  constructor(post, contextRate) {
    this.#post = post;
    this.#contextRate = contextRate;
  }

  receive(message) {
    if (message.type === "begin") {
      this.#begin(message);
      return;
    }
    if (this.#playback === null || message.turn !== this.#turn) return;
    if (message.type === "pcm") this.#playback.write(message.samples);
    else if (message.type === "rate") this.#setRate(message.rate);
    else this.#playback[message.type](message.seconds);
  }

  /** Fills `block` (a Float32Array per output channel), which starts to sound at `contextTime`. */
  render(block, contextTime) {
    if (this.#playback === null) {
      for (const out of block) out.fill(0);
      return;
    }
    const { channels } = this.#playback;
    const own = block.slice(0, channels);
    if (this.#resampler === null) this.#fill(own);
    else this.#resampler.render(own, (source) => this.#fill(source));
    for (const out of block.slice(channels)) out.set(own[0]);

    if (this.#playback.audible && !this.#heard) this.#reportAudible(own, contextTime);
    const ended = this.#playback.phase === Phase.ENDED;
    if (this.#over || (!ended && this.#sinceReport < REPORT_FRAMES)) return;
    this.#report(ended, contextTime + block[0].length / this.#contextRate);
  }

  #begin(message) {
    const levels = this.#playback?.levels ?? [];
    this.#turn = message.turn;
    const playback = new Playback(message);
    // Interrupted sound fades to silence.
    playback.levels = playback.levels.map((_, channel) => levels[channel] ?? 0);
    this.#playback = playback;
    this.#stretch = null;
    this.#setRate(message.rate);
    const same = playback.sampleRate === this.#contextRate;
    this.#resampler = same
      ? null
      : new Resampler(playback.sampleRate, this.#contextRate, playback.channels);
    this.#captured = new Int16Array(8 * REPORT_FRAMES * playback.channels);
    this.#capturedLength = 0;
    this.#sinceReport = 0;
    this.#over = false;
    this.#heard = false;
  }

  // A resampler holds frames back, so that the first one may leave in a later block.
  #reportAudible(own, contextTime) {
    const audible = (_, i) => own.some((out) => Math.abs(out[i]) > AUDIBLE_LEVEL);
    const first = own[0].findIndex(audible);
    if (first < 0) return;
    this.#heard = true;
    const at = contextTime + first / this.#contextRate;
    this.#post({ type: "audible", turn: this.#turn, contextTime: at }, []);
  }

  // Once it stretches it does so to the turn's end, even at the usual rate: it holds a little sound.
  #setRate(rate = 1) {
    const { sampleRate, channels } = this.#playback;
    if (rate !== 1) this.#stretch ??= new Stretch(sampleRate, channels);
    if (this.#stretch !== null) this.#stretch.rate = rate;
  }

  #fill(block) {
    if (this.#stretch === null) this.#play(block);
    else this.#stretch.render(block, (source) => this.#play(source));
  }

  #play(block) {
    const played = this.#playback.render(block);
    this.#capture(block, played);
    this.#sinceReport += block[0].length;
  }

  // Reads back the floats that leave for the sound card, not the queue: x / 32768 is exact in a
  // float, so rounding restores each 16-bit sample, and a fault in between would show.
  #capture(block, count) {
    for (let i = 0; i < count; i += 1) {
      for (const out of block) {
        this.#captured[this.#capturedLength] = Math.round(out[i] * 32768);
        this.#capturedLength += 1;
      }
    }
  }

  #report(ended, contextTime) {
    const { phase, playedFrames, starvedFrames, underruns, gaps, queue } = this.#playback;
    const played = this.#captured.slice(0, this.#capturedLength);
    const silence = { starvedFrames, underruns, gaps: gaps.map((gap) => ({ ...gap })) };
    const counters = { playedFrames, bufferedFrames: queue.frames, ...silence };
    const state = { turn: this.#turn, ended, phase, contextTime, played };
    this.#post({ type: "report", ...state, ...counters }, [played.buffer]);
    this.#capturedLength = 0;
    this.#sinceReport = 0;
    this.#over = ended;
  }
}
