// A first-in, first-out buffer of 16-bit samples.
//
// It runs on the audio thread, so reading never allocates. Writing allocates only when a sentence
// arrives so far ahead of its playback that the ring has to double.

export class SampleRing {
  constructor(capacity = 1 << 16) {
    this.samples = new Int16Array(capacity);
    this.start = 0;
    this.length = 0;
  }

  /** Appends all of `samples` (Int16Array). */
  write(samples) {
    const needed = this.length + samples.length;
    if (needed > this.samples.length) this.#grow(needed);
    const at = (this.start + this.length) % this.samples.length;
    const head = Math.min(samples.length, this.samples.length - at);
    this.samples.set(samples.subarray(0, head), at);
    this.samples.set(samples.subarray(head), 0);
    this.length += samples.length;
  }

  /** Moves up to `count` samples to the front of `target` as floats in [-1, 1). Returns how many. */
  read(target, count) {
    const taken = Math.min(count, this.length);
    for (let i = 0; i < taken; i += 1) {
      target[i] = this.samples[(this.start + i) % this.samples.length] / 32768;
    }
    this.start = (this.start + taken) % this.samples.length;
    this.length -= taken;
    return taken;
  }

  /** The next sample to be read, as a float; 0 if there is none. */
  peek() {
    return this.length === 0 ? 0 : this.samples[this.start] / 32768;
  }

  clear() {
    this.start = 0;
    this.length = 0;
  }

  #grow(needed) {
    let capacity = this.samples.length;
    while (capacity < needed) capacity *= 2;
    const larger = new Int16Array(capacity);
    for (let i = 0; i < this.length; i += 1) {
      larger[i] = this.samples[(this.start + i) % this.samples.length];
    }
    this.samples = larger;
    this.start = 0;
  }
}
