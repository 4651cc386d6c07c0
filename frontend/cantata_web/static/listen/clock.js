// Times in a recording.

/** Seconds for a reader: `0:07`, `1:02:03`. */
export function shortClock(seconds) {
  const [hours, minutes, rest] = inUnits(Math.floor(seconds));
  const tail = padded(rest);
  return hours > 0 ? `${hours}:${padded(minutes)}:${tail}` : `${minutes}:${tail}`;
}

/** To the millisecond: `00:00:07.250`. @param {string} mark before the milliseconds */
export function exactClock(seconds, mark) {
  const milliseconds = Math.round(seconds * 1000);
  const whole = inUnits(Math.floor(milliseconds / 1000)).map((unit) => padded(unit)).join(":");
  return `${whole}${mark}${padded(milliseconds % 1000, 3)}`;
}

function inUnits(seconds) {
  return [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
}

function padded(number, digits = 2) {
  return String(number).padStart(digits, "0");
}
