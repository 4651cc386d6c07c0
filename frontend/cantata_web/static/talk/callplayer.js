// Plays what comes over a call: the browser does, and this listens to it. In the place of a Player,
// which plays what it is given.

import { Phase } from "../player/playback.js";
import { Packets } from "./packets.js";

const AUDIBLE = 33; // of 32768, -60 dBFS
const QUIET_PACKETS = 3; // after the last one that is not, the answer has been heard
const MAX_TRAILING_PACKETS = 50; // two seconds: more than browsers hold back

export class CallPlayer {
  outputLatencySeconds = 0; // what it hears is what leaves the loudspeaker
  #audio = Object.assign(new Audio(), { autoplay: true });
  #packets = null;
  #sounding = false; // an answer is heard
  #listener = null;
  #frames = 0;
  #audible = false;
  #trailing = null; // {quiet, left, over} once no more is sent

  /** The id of the loudspeaker; empty: the system's choice. One that is gone changes nothing. */
  set device(id) {
    this.#audio.setSinkId?.(id).catch(() => {});
  }

  /**
   * @param {MediaStream} stream of the call
   * @param {(samples: Int16Array) => void} sound is given an answer as it is heard
   */
  async listen(stream, sound) {
    this.close();
    this.#audio.srcObject = stream;
    const packets = new Packets();
    this.#packets = packets;
    await packets.open(stream, (samples) => this.#hear(samples, sound));
  }

  /** The server begins to send an answer. */
  start() {
    this.#rest();
    this.#audio.muted = false;
    this.#sounding = true;
  }

  /** It has sent all of it. Resolves when that has been heard. */
  finish() {
    if (!this.#sounding) return Promise.resolve();
    return new Promise((resolve) => {
      this.#trailing = { quiet: 0, left: MAX_TRAILING_PACKETS, over: resolve };
    });
  }

  close() {
    this.#rest();
    this.#packets?.close();
    this.#packets = null;
    this.#audio.srcObject = null;
  }

  unlock() {}

  begin({ listener }) {
    this.#listener = listener;
    this.#frames = 0;
    this.#audible = false;
  }

  /** It has been heard already. */
  push(samples) {
    this.#frames += samples.length;
    if (!this.#audible && isAudible(samples)) {
      this.#audible = true;
      this.#listener.audible(performance.now() / 1000);
    }
    const playedFrames = this.#frames;
    const phase = Phase.PLAYING;
    this.#listener.report({ played: samples, playedFrames, bufferedFrames: 0, gaps: [], phase });
  }

  end() {
    this.#listener.ended(null);
  }

  /** Silence at once; the server is told by others. */
  stop() {
    this.#audio.muted = true;
    this.#rest();
  }

  #rest() {
    this.#sounding = false;
    this.#trailing?.over();
    this.#trailing = null;
  }

  #hear(samples, sound) {
    if (!this.#sounding) return;
    sound(samples);
    const trailing = this.#trailing;
    if (trailing === null) return;
    trailing.quiet = isAudible(samples) ? 0 : trailing.quiet + 1;
    trailing.left -= 1;
    if (trailing.quiet === QUIET_PACKETS || trailing.left === 0) this.#rest();
  }
}

function isAudible(samples) {
  return samples.some((sample) => Math.abs(sample) > AUDIBLE);
}
