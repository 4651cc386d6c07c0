// Sound at one rate from sound at another, block by block: band-limited interpolation with a
// windowed sinc (J. O. Smith, "Digital Audio Resampling").

const HALF_TAPS = 16; // on each side of a sample
const PHASES = 256; // positions between two samples that the table holds; between them it is linear
const SOURCE_FRAMES = 128;
const PASS_BAND = 0.95; // of the lower rate's band, so that the filter may fall off before its end

export class Resampler {
  #step;
  #taps;
  #table;
  #held; // per channel: the input around the position
  #heldFrames;
  #position;
  #blocks;

  /**
   * @param {number} fromRate Hz
   * @param {number} toRate Hz
   * @param {number} channels
   */
  constructor(fromRate, toRate, channels) {
    this.#step = fromRate / toRate;
    // Going down, the filter is as much longer as its band is narrower.
    this.#taps = Math.ceil(HALF_TAPS * Math.max(1, this.#step));
    this.#table = sincTable(this.#taps, Math.min(1, 1 / this.#step) * PASS_BAND);
    const room = 2 * this.#taps + 2 * SOURCE_FRAMES;
    this.#held = Array.from({ length: channels }, () => new Float32Array(room));
    this.#blocks = Array.from({ length: channels }, () => new Float32Array(SOURCE_FRAMES));
    this.#heldFrames = this.#taps; // silence before the first sample
    this.#position = this.#taps;
  }

  /** Fills `targets` (a Float32Array per channel); `source` fills blocks of the input like them. */
  render(targets, source) {
    for (let i = 0; i < targets[0].length; i += 1) {
      const whole = Math.floor(this.#position);
      if (whole + this.#taps >= this.#heldFrames) {
        this.#pull(source);
        i -= 1;
        continue;
      }
      const phase = (this.#position - whole) * PHASES;
      for (let channel = 0; channel < targets.length; channel += 1) {
        targets[channel][i] = this.#interpolate(this.#held[channel], whole, phase);
      }
      this.#position += this.#step;
    }
  }

  #interpolate(held, whole, phase) {
    const row = Math.floor(phase);
    const blend = phase - row;
    const width = 2 * this.#taps;
    const from = row * width;
    let sum = 0;
    for (let tap = 0; tap < width; tap += 1) {
      const near = this.#table[from + tap];
      const weight = near + blend * (this.#table[from + width + tap] - near);
      sum += weight * held[whole - this.#taps + 1 + tap];
    }
    return sum;
  }

  #pull(source) {
    const drop = Math.max(0, Math.floor(this.#position) - this.#taps);
    source(this.#blocks);
    for (let channel = 0; channel < this.#held.length; channel += 1) {
      const held = this.#held[channel];
      held.copyWithin(0, drop, this.#heldFrames);
      held.set(this.#blocks[channel], this.#heldFrames - drop);
    }
    this.#position -= drop;
    this.#heldFrames += SOURCE_FRAMES - drop;
  }
}

// Row p holds the weights of the 2 * taps samples around a position p / PHASES past a sample. Each
// row sums to one, so that a constant level stays the same level.
function sincTable(taps, cutoff) {
  const width = 2 * taps;
  const table = new Float32Array((PHASES + 1) * width);
  for (let row = 0; row <= PHASES; row += 1) {
    let sum = 0;
    for (let tap = 0; tap < width; tap += 1) {
      const away = tap - taps + 1 - row / PHASES;
      const value = sinc(cutoff * away) * blackman(away / taps);
      table[row * width + tap] = value;
      sum += value;
    }
    for (let tap = 0; tap < width; tap += 1) table[row * width + tap] /= sum;
  }
  return table;
}

function sinc(x) {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** @param {number} x -1 to 1 */
function blackman(x) {
  return 0.42 + 0.5 * Math.cos(Math.PI * x) + 0.08 * Math.cos(2 * Math.PI * x);
}
