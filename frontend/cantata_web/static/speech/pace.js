// How fast the sound of a turn comes, and how much of it to collect where that is too slow.

const SLOW_AFTER_SECONDS = 1; // before that, one late chunk says nothing about the server's speed
const MARGIN = 1.1; // rates vary
const MAX_WAIT_SECONDS = 60; // nobody waits longer: rather one more stop

/** Seconds of sound that came in a second, if that is slower than speech; else null. */
export function slowRate({ receivedFrames, sampleRate, receivingSeconds }) {
  if (receivingSeconds === null || receivingSeconds < SLOW_AFTER_SECONDS) return null;
  const rate = receivedFrames / sampleRate / receivingSeconds;
  return rate < 1 ? rate : null;
}

/**
 * Seconds of a text's sound that have not come, by the pace of the words that have; null if their
 * times are unknown.
 * @param {string} text
 * @param {{to, end}[]} words so far
 */
export function restOf(text, words, receivedSeconds) {
  const last = words.at(-1);
  if (last === undefined || last.to === 0) return null;
  return Math.max(0, (text.length * last.end) / last.to - receivedSeconds);
}

/**
 * What to collect before a slow stream goes on, so that the rest plays without a stop: while that
 * comes at `rate` seconds a second, what is there must last.
 * @returns {{reserveSeconds, waitSeconds}}
 */
export function planReserve(restSeconds, rate) {
  const needed = Math.min(restSeconds, restSeconds * (1 - rate) * MARGIN);
  const reserveSeconds = Math.min(needed, MAX_WAIT_SECONDS * rate);
  return { reserveSeconds, waitSeconds: reserveSeconds / rate };
}
