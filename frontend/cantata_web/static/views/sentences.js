// What the status says about sound that came late.

import { counted } from "./plural.js";

const SLOW_AFTER_SECONDS = 1; // before that, one late chunk says nothing about the server's speed

/** While no sound is left to play. */
export function waitingSentence({ receivedFrames, sampleRate, receivingSeconds }) {
  if (receivingSeconds === null || receivingSeconds < SLOW_AFTER_SECONDS) {
    return "Waiting for sound.";
  }
  const rate = receivedFrames / sampleRate / receivingSeconds;
  if (rate >= 1) return "Waiting for sound.";
  return `Waiting for sound: the server is slower than speech, ${rate.toFixed(2)} s a second.`;
}

export function doneSentence({ underruns, starvedFrames, sampleRate, server }) {
  if (underruns === 0) return "Done.";
  const silence = `${(starvedFrames / sampleRate).toFixed(2)} s`;
  const waited = `waited for sound ${counted(underruns, "time")}, ${silence} in all`;
  const slow = server !== null && server.rtf > 1;
  return slow ? `Done. The server is slower than speech: you ${waited}.` : `Done. You ${waited}.`;
}
