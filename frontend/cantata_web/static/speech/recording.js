// Samples in the pieces in which they came.

export class Recording {
  #parts = [];

  add(samples) {
    if (samples.length > 0) this.#parts.push(samples);
  }

  /** All of them, as one Int16Array. */
  get samples() {
    const total = this.#parts.reduce((sum, part) => sum + part.length, 0);
    const whole = new Int16Array(total);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}
