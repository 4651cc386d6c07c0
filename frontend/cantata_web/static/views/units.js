// Measurements in words.

export function milliseconds(seconds) {
  return seconds === null ? "–" : `${Math.round(seconds * 1000)} ms`;
}
