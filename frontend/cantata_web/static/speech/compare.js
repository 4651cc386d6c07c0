// Where a take goes on when the listener switches to it from another.

/**
 * Seconds into `to` that correspond to `seconds` into `from`: the same word of the same text, else
 * the same share of its length. Takes have {text, words, seconds}.
 */
export function samePlace(from, to, seconds) {
  const word = from.words.findLast(({ start }) => start <= seconds);
  const same = from.text === to.text && to.words.find((other) => other.from === word?.from);
  if (same) return same.start;
  return Math.min(1, seconds / from.seconds) * to.seconds;
}
