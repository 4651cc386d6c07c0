// 16-bit PCM as base64, which is how Realtime events carry it.

const PIECE = 8192; // a call takes only so many arguments

/** @param {Int16Array} samples */
export function encodePcm(samples) {
  const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += PIECE) {
    text += String.fromCharCode(...bytes.subarray(i, i + PIECE));
  }
  return btoa(text);
}

/** @returns {Int16Array} */
export function decodePcm(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  return new Int16Array(bytes.buffer);
}
