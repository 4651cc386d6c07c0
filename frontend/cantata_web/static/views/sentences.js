// What the status says about sound that came late.

import { slowRate } from "../speech/pace.js";
import { counted } from "./plural.js";

/** While no sound is left to play. */
export function waitingSentence(metrics) {
  const rate = slowRate(metrics);
  if (rate === null) return "Waiting for sound.";
  const slow = `Waiting for sound: the server is slower than speech, ${rate.toFixed(2)} s a second.`;
  const { waitSeconds } = metrics;
  return waitSeconds === null ? slow : `${slow} It goes on in about ${Math.ceil(waitSeconds)} s.`;
}

export function doneSentence({ underruns, starvedFrames, sampleRate, server }) {
  if (underruns === 0) return "Done.";
  const silence = `${(starvedFrames / sampleRate).toFixed(2)} s`;
  const waited = `waited for sound ${counted(underruns, "time")}, ${silence} in all`;
  const slow = server !== null && server.rtf > 1;
  return slow ? `Done. The server is slower than speech: you ${waited}.` : `Done. You ${waited}.`;
}
