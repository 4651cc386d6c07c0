// What to put into each block of sound: the player's decisions, without any browser API, so that
// node can test them. One Playback plays one turn: an utterance, or several one after the other.

import { SampleQueue } from "./queue.js";

export const Phase = Object.freeze({
  FILLING: "filling", // collecting the start reserve; silence goes out
  PLAYING: "playing",
  STARVED: "starved", // ran dry before the end was announced; collecting the reserve again
  RESTING: "resting", // played all there was between two utterances; collecting the reserve again
  STOPPING: "stopping", // fading out because the listener asked
  ENDED: "ended",
});

export const AUDIBLE_LEVEL = 1e-3; // -60 dBFS: above dither and a decoder's idle noise
const MIN_RESERVE_SECONDS = 0.08;
const MAX_RESERVE_SECONDS = 1.28;
const FILLER_DECAY = 0.97; // per sample: a held level fades within 5 ms and does not click
const SILENT_LEVEL = 1e-6;

export class Playback {
  /**
   * @param {number} sampleRate Hz
   * @param {number} channels of the interleaved samples
   * @param {number} reserveSeconds sound to collect before it starts; doubled by every underrun
   * @param {number} fadeSeconds length of the fade on stop
   */
  constructor({ sampleRate, channels = 1, reserveSeconds, fadeSeconds }) {
    const fadeFrames = Math.round(fadeSeconds * sampleRate);
    this.queue = new SampleQueue(channels);
    this.sampleRate = sampleRate;
    this.channels = channels;
    this.reserveSeconds = reserveSeconds;
    this.fadeFrames = fadeFrames;
    this.fadeLeft = fadeFrames;
    this.phase = Phase.FILLING;
    this.complete = false;
    this.between = false; // no utterance is playing
    this.levels = new Array(channels).fill(0); // the last frame that went out
    this.playedFrames = 0;
    this.gaps = []; // underruns: {atFrame, frames}, the silence that each put before a frame
    this.audible = false;
  }

  get underruns() {
    return this.gaps.length;
  }

  /** Frames of silence that the listener heard inside an utterance. */
  get starvedFrames() {
    return this.gaps.reduce((sum, { frames }) => sum + frames, 0);
  }

  write(samples) {
    this.queue.write(samples);
  }

  /** No more samples will come: what is left plays without waiting for the reserve. */
  end() {
    this.complete = true;
    if (this.phase === Phase.RESTING && this.queue.frames === 0) this.#finish();
    if (this.phase !== Phase.STARVED || this.queue.frames > 0) return;
    this.#forgive();
    this.#finish();
  }

  /** An utterance is complete, and another may follow some time: until then silence is no fault. */
  rest() {
    this.between = true;
    if (this.phase !== Phase.STARVED || this.queue.frames > 0) return;
    this.#forgive();
    this.phase = Phase.RESTING;
  }

  /** The stream broke: what has arrived is played, and then silence until `wake`, `end` or `stop`. */
  halt() {
    this.between = true;
    if (this.phase === Phase.STARVED && this.queue.frames === 0) this.phase = Phase.RESTING;
  }

  /** The next utterance begins. */
  wake() {
    this.between = false;
  }

  /** Collect so much before it goes on, where it waits for sound. */
  reserve(seconds) {
    this.reserveSeconds = seconds;
  }

  stop() {
    if (this.phase === Phase.PLAYING) this.phase = Phase.STOPPING;
    else if (this.phase !== Phase.STOPPING) this.#finish();
  }

  /**
   * Fills one block (a Float32Array per channel) and returns how many of its frames, from the
   * first, are the turn's own. The rest is filler: silence, or the glide to and from silence that
   * keeps an underrun from clicking.
   */
  render(block) {
    const length = block[0].length;
    if (this.#collecting) {
      if (!this.#ready()) return this.#fill(block, 0);
      const resumed = this.phase === Phase.STARVED;
      this.phase = Phase.PLAYING;
      if (resumed) return this.#glideIn(block);
    }
    if (this.phase === Phase.ENDED) return this.#fill(block, 0);

    const stopping = this.phase === Phase.STOPPING;
    const taken = this.queue.read(block, stopping ? Math.min(length, this.fadeLeft) : length);
    if (stopping) this.#fade(block, taken);
    if (taken > 0) block.forEach((out, channel) => (this.levels[channel] = out[taken - 1]));
    this.playedFrames += taken;
    this.audible ||= isAudible(block, taken);
    if (taken < length) this.#runDry(stopping);
    return this.#fill(block, taken);
  }

  get #collecting() {
    return [Phase.FILLING, Phase.STARVED, Phase.RESTING].includes(this.phase);
  }

  #ready() {
    if (this.complete) return true;
    const { frames } = this.queue;
    return this.between ? frames > 0 : frames >= this.reserveSeconds * this.sampleRate;
  }

  #fill(block, from) {
    block.forEach((out, channel) => {
      let level = this.levels[channel];
      for (let i = from; i < out.length; i += 1) {
        level *= FILLER_DECAY;
        out[i] = level;
      }
      this.levels[channel] = Math.abs(level) < SILENT_LEVEL ? 0 : level;
    });
    this.#countStarved(block[0].length - from);
    return from;
  }

  #glideIn(block) {
    block.forEach((out, channel) => {
      const target = this.queue.peek(channel);
      const origin = this.levels[channel];
      for (let i = 0; i < out.length; i += 1) {
        out[i] = origin + ((target - origin) * i) / out.length;
      }
    });
    this.gaps.at(-1).frames += block[0].length;
    return 0;
  }

  #fade(block, taken) {
    for (const out of block) {
      for (let i = 0; i < taken; i += 1) out[i] *= (this.fadeLeft - i) / this.fadeFrames;
    }
    this.fadeLeft -= taken;
  }

  #runDry(stopping) {
    if (stopping || this.complete) {
      this.#finish();
    } else if (this.between) {
      this.phase = Phase.RESTING;
    } else {
      this.phase = Phase.STARVED;
      this.gaps.push({ atFrame: this.playedFrames, frames: 0 });
      this.reserveSeconds = Math.min(MAX_RESERVE_SECONDS, 2 * this.reserveSeconds);
    }
  }

  #countStarved(frames) {
    if (this.phase === Phase.STARVED) this.gaps.at(-1).frames += frames;
  }

  // The last sample had been played when the end was announced: no sound was missing.
  #forgive() {
    this.gaps.pop();
  }

  #finish() {
    this.phase = Phase.ENDED;
    this.queue.clear();
  }
}

/**
 * The reserve for the next turn: doubled by each underrun, for a slow server or link, and reduced
 * a little by each turn without one.
 */
export function nextReserveSeconds(current, underruns) {
  const next = underruns > 0 ? current * 2 ** underruns : current * 0.75;
  return Math.min(MAX_RESERVE_SECONDS, Math.max(MIN_RESERVE_SECONDS, next));
}

function isAudible(block, count) {
  return block.some((out) => {
    for (let i = 0; i < count; i += 1) if (Math.abs(out[i]) > AUDIBLE_LEVEL) return true;
    return false;
  });
}
