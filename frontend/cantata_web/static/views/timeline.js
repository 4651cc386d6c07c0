// A turn as a listener heard it, in cells of equal length: the peaks of its sound, with the silences
// in which it waited for more at their places.

/** The peaks of a sound that arrives in pieces: of its left channel and of its right one. */
export class Peaks {
  #cells = [];
  #cellFrames;
  #channels;
  #partial = [0, 0];
  #samples = 0; // in the cell that is not complete

  constructor(sampleRate, channels, cellSeconds) {
    this.#cellFrames = Math.round(sampleRate * cellSeconds);
    this.#channels = channels;
  }

  /** @returns {[number, number][]} left and right, 0..1; the same of a single channel */
  get cells() {
    return this.#cells;
  }

  /** @param {Int16Array} samples interleaved */
  append(samples) {
    for (const sample of samples) {
      const side = this.#samples % this.#channels === 0 ? 0 : 1;
      this.#partial[side] = Math.max(this.#partial[side], Math.abs(sample) / 32768);
      this.#samples += 1;
      if (this.#samples === this.#cellFrames * this.#channels) {
        const [left, right] = this.#partial;
        this.#cells.push([left, this.#channels === 1 ? left : right]);
        this.#partial = [0, 0];
        this.#samples = 0;
      }
    }
  }
}

/** @returns {([number, number] | null)[]} peaks of `cellSeconds` each; null where the sound was waited for */
export function withGaps(peaks, gaps, cellSeconds) {
  if (gaps.length === 0) return peaks;
  const parts = [];
  let from = 0;
  for (const { at, seconds } of gaps) {
    const to = Math.min(peaks.length, Math.round(at / cellSeconds));
    const silent = Math.max(1, Math.round(seconds / cellSeconds));
    parts.push(peaks.slice(from, to), new Array(silent).fill(null));
    from = to;
  }
  return [...parts, peaks.slice(from)].flat();
}

/** @returns {number} how many of the cells before `place` have sound */
export function soundBefore(cells, place) {
  return cells.slice(0, place).filter((cell) => cell !== null).length;
}

/**
 * @param {number} group cells that share a column
 * @returns {{peaks: [number, number], waited: boolean, played: boolean}[]} `waited` where any of its
 *     cells did
 */
export function columns(cells, group, playedCells) {
  const found = [];
  let sounding = 0; // cells of sound before the column
  for (let from = 0; from < cells.length; from += group) {
    const column = { peaks: [0, 0], waited: false, played: sounding < playedCells };
    for (let i = from; i < Math.min(from + group, cells.length); i += 1) {
      if (cells[i] === null) {
        column.waited = true;
      } else {
        column.peaks = column.peaks.map((peak, side) => Math.max(peak, cells[i][side]));
        sounding += 1;
      }
    }
    found.push(column);
  }
  return found;
}
