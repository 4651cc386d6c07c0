// A first-in, first-out buffer of interleaved 16-bit samples.
//
// It runs on the audio thread, so reading never allocates and nothing is ever copied: the chunks
// stay as they came, however far ahead of its playback a text arrives.

const LEAST_TO_DROP = 64;

export class SampleQueue {
  #chunks = [];
  #first = 0; // chunks before it have been read
  #at = 0; // in the first chunk
  #samples = 0;

  constructor(channels = 1) {
    this.channels = channels;
  }

  /** Whole frames that wait. */
  get frames() {
    return Math.floor(this.#samples / this.channels);
  }

  /** Appends all of `samples` (Int16Array, interleaved) without copying them. */
  write(samples) {
    if (samples.length === 0) return;
    this.#chunks.push(samples);
    this.#samples += samples.length;
  }

  /**
   * Moves up to `count` frames to the front of `targets`, one Float32Array per channel, as floats
   * in [-1, 1). Returns how many.
   */
  read(targets, count) {
    const taken = Math.min(count, this.frames);
    for (let i = 0; i < taken; i += 1) {
      for (let channel = 0; channel < this.channels; channel += 1) {
        targets[channel][i] = this.#chunks[this.#first][this.#at] / 32768;
        this.#advance();
      }
    }
    this.#samples -= taken * this.channels;
    return taken;
  }

  /** The next sample to be read in `channel`, as a float; 0 if there is none. */
  peek(channel = 0) {
    if (this.frames === 0) return 0;
    let [index, at] = [this.#first, this.#at + channel];
    while (at >= this.#chunks[index].length) {
      at -= this.#chunks[index].length;
      index += 1;
    }
    return this.#chunks[index][at] / 32768;
  }

  clear() {
    this.#chunks = [];
    this.#first = 0;
    this.#at = 0;
    this.#samples = 0;
  }

  #advance() {
    this.#at += 1;
    if (this.#at < this.#chunks[this.#first].length) return;
    this.#chunks[this.#first] = null;
    this.#first += 1;
    this.#at = 0;
    if (this.#first < LEAST_TO_DROP || 2 * this.#first < this.#chunks.length) return;
    this.#chunks.splice(0, this.#first);
    this.#first = 0;
  }
}
