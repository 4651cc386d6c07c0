// What to put into each block of sound: the player's decisions, without any browser API, so that
// node can test them. One Playback plays one utterance.

import { SampleRing } from "./ring.js";

export const Phase = Object.freeze({
  FILLING: "filling", // collecting the start reserve; silence goes out
  PLAYING: "playing",
  STARVED: "starved", // ran dry before the end was announced; collecting the reserve again
  STOPPING: "stopping", // fading out because the listener asked
  ENDED: "ended",
});

const AUDIBLE_LEVEL = 1e-3; // -60 dBFS: above dither and a decoder's idle noise
const LEAST_RESERVE_SECONDS = 0.08;
const MOST_RESERVE_SECONDS = 1.28;
const FILLER_DECAY = 0.97; // per sample: a held level fades within 5 ms and does not click

export class Playback {
  /**
   * @param {number} sampleRate Hz
   * @param {number} reserveSeconds sound to collect before it starts; doubled by every underrun
   * @param {number} fadeSeconds length of the fade on stop
   */
  constructor({ sampleRate, reserveSeconds, fadeSeconds }) {
    const fadeFrames = Math.round(fadeSeconds * sampleRate);
    this.ring = new SampleRing();
    this.sampleRate = sampleRate;
    this.reserveSeconds = reserveSeconds;
    this.fadeFrames = fadeFrames;
    this.fadeLeft = fadeFrames;
    this.phase = Phase.FILLING;
    this.complete = false;
    this.level = 0; // the last sample that went out
    this.playedFrames = 0;
    this.starvedFrames = 0;
    this.starvedNow = 0; // the part of starvedFrames that belongs to the underrun under way
    this.underruns = 0;
    this.audible = false;
  }

  write(samples) {
    this.ring.write(samples);
  }

  /** No more samples will come: what is left plays without waiting for the reserve. */
  end() {
    this.complete = true;
    if (this.phase !== Phase.STARVED || this.ring.length > 0) return;
    // The last sample had been played when the end was announced: nobody missed anything.
    this.underruns -= 1;
    this.starvedFrames -= this.starvedNow;
    this.#finish();
  }

  stop() {
    if (this.phase === Phase.PLAYING) this.phase = Phase.STOPPING;
    else if (this.phase !== Phase.STOPPING) this.#finish();
  }

  /**
   * Fills one block (Float32Array) and returns how many of its frames, from the first, are the
   * utterance itself. The rest is filler: silence, or the glide to and from silence that keeps an
   * underrun from clicking.
   */
  render(block) {
    if (this.phase === Phase.FILLING || this.phase === Phase.STARVED) {
      if (!this.#ready()) return this.#fill(block, 0);
      const resumed = this.phase === Phase.STARVED;
      this.phase = Phase.PLAYING;
      if (resumed) return this.#glideIn(block);
    }
    if (this.phase === Phase.ENDED) return this.#fill(block, 0);

    const stopping = this.phase === Phase.STOPPING;
    const wanted = stopping ? Math.min(block.length, this.fadeLeft) : block.length;
    const taken = this.ring.read(block, wanted);
    if (stopping) this.#fade(block, taken);
    if (taken > 0) this.level = block[taken - 1];
    this.playedFrames += taken;
    this.audible ||= isAudible(block, taken);
    if (taken < block.length) this.#runDry(stopping);
    return this.#fill(block, taken);
  }

  #ready() {
    return this.complete || this.ring.length >= this.reserveSeconds * this.sampleRate;
  }

  #fill(block, from) {
    for (let i = from; i < block.length; i += 1) {
      this.level *= FILLER_DECAY;
      block[i] = this.level;
    }
    this.#countStarved(block.length - from);
    return from;
  }

  #glideIn(block) {
    const target = this.ring.peek();
    const origin = this.level;
    for (let i = 0; i < block.length; i += 1) {
      block[i] = origin + ((target - origin) * i) / block.length;
    }
    this.starvedFrames += block.length;
    return 0;
  }

  #fade(block, taken) {
    for (let i = 0; i < taken; i += 1) block[i] *= (this.fadeLeft - i) / this.fadeFrames;
    this.fadeLeft -= taken;
  }

  #runDry(stopping) {
    if (stopping || this.complete) {
      this.#finish();
      return;
    }
    this.phase = Phase.STARVED;
    this.underruns += 1;
    this.starvedNow = 0;
    this.reserveSeconds = Math.min(MOST_RESERVE_SECONDS, 2 * this.reserveSeconds);
  }

  #countStarved(frames) {
    if (this.phase !== Phase.STARVED) return;
    this.starvedNow += frames;
    this.starvedFrames += frames;
  }

  #finish() {
    this.phase = Phase.ENDED;
    this.ring.clear();
  }
}

/**
 * The reserve for the next utterance: what underruns made of it, so that a slow server or link is
 * met with patience, and brought back a little by each utterance that played through.
 */
export function nextReserveSeconds(current, underruns) {
  const next = underruns > 0 ? current * 2 ** underruns : current * 0.75;
  return Math.min(MOST_RESERVE_SECONDS, Math.max(LEAST_RESERVE_SECONDS, next));
}

function isAudible(block, count) {
  for (let i = 0; i < count; i += 1) if (Math.abs(block[i]) > AUDIBLE_LEVEL) return true;
  return false;
}
