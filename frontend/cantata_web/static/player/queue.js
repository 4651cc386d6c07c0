// A ring buffer of chunks of interleaved 16-bit samples.
//
// It runs on the audio thread, so reading never allocates and no sample is ever copied: the chunks
// stay as they came. The ring doubles when it is full, since a text may arrive as far ahead of its
// playback as the server chooses.

const FIRST_ROOM = 64; // chunks

export class SampleQueue {
  #ring = new Array(FIRST_ROOM).fill(null);
  #first = 0; // how many chunks have been read to their end
  #end = 0; // how many have been written
  #at = 0; // in the first of those between
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
    if (this.#end - this.#first === this.#ring.length) this.#grow();
    this.#ring[this.#end % this.#ring.length] = samples;
    this.#end += 1;
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
        targets[channel][i] = this.#chunk(this.#first)[this.#at] / 32768;
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
    while (at >= this.#chunk(index).length) {
      at -= this.#chunk(index).length;
      index += 1;
    }
    return this.#chunk(index)[at] / 32768;
  }

  clear() {
    this.#ring.fill(null);
    this.#first = this.#end;
    this.#at = 0;
    this.#samples = 0;
  }

  #chunk(index) {
    return this.#ring[index % this.#ring.length];
  }

  #advance() {
    this.#at += 1;
    if (this.#at < this.#chunk(this.#first).length) return;
    this.#ring[this.#first % this.#ring.length] = null;
    this.#first += 1;
    this.#at = 0;
  }

  #grow() {
    const room = 2 * this.#ring.length;
    const ring = new Array(room).fill(null);
    for (let i = this.#first; i < this.#end; i += 1) ring[i % room] = this.#chunk(i);
    this.#ring = ring;
  }
}
