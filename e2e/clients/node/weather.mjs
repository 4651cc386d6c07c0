// The function of the weather, and the question about it, for each client.

import { readFile } from "node:fs/promises";

const FRAME_BYTES = 2400;

const [, , baseURL, file, told] = process.argv;
const { name, description, parameters, result } = JSON.parse(told);

export const KEY = "no-key-is-needed";
export const MODEL = "gpt-realtime";
export { baseURL, description, name, parameters };
export const asked = [];

// The function itself; notes with what it was called.
export function getWeather(given) {
  asked.push(given);
  return result;
}

// The question as a microphone gives it: base64 of s16le at 24 kHz.
export async function* readFrames() {
  const sound = await readFile(file);
  for (let start = 0; start < sound.length; start += FRAME_BYTES) {
    yield sound.subarray(start, start + FRAME_BYTES).toString("base64");
  }
}

export function print(text, pieces) {
  const sound = Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64")));
  console.log(JSON.stringify({ asked, text, sound: sound.toString("base64") }));
}
