// A turn as a listener heard it, in cells of equal length: the peaks of its sound, with the silences
// in which it waited for more at their places.

/** @returns {(number | null)[]} peaks of `cellSeconds` each; null where the sound was waited for */
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
  return [].concat(...parts, peaks.slice(from));
}

/**
 * @param {number} group cells that share a column
 * @returns {{peak: number, waited: boolean, played: boolean}[]} `waited` where any of its cells did
 */
export function columns(cells, group, playedCells) {
  const found = [];
  let sounding = 0; // cells of sound before the column
  for (let from = 0; from < cells.length; from += group) {
    const column = { peak: 0, waited: false, played: sounding < playedCells };
    for (let i = from; i < Math.min(from + group, cells.length); i += 1) {
      if (cells[i] === null) {
        column.waited = true;
      } else {
        column.peak = Math.max(column.peak, cells[i]);
        sounding += 1;
      }
    }
    found.push(column);
  }
  return found;
}
