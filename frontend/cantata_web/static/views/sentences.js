// What the status says about sound that came late.

import { slowRate } from "../speech/pace.js";
import { decimal, t } from "../texts.js";

/** While no sound is left to play. */
export function waitingSentence(metrics) {
  const rate = slowRate(metrics);
  if (rate === null) return t("Waiting for sound.");
  const values = { rate: decimal(rate, 2), wait: Math.ceil(metrics.waitSeconds) };
  return metrics.waitSeconds === null
    ? t("Waiting for sound: the server is slower than speech, {rate} s a second.", values)
    : t(
        "Waiting for sound: the server is slower than speech, {rate} s a second. " +
          "It goes on in about {wait} s.",
        values,
      );
}

export function doneSentence({ underruns, starvedFrames, sampleRate, server }) {
  if (underruns === 0) return t("Done.");
  const values = { count: underruns, silence: decimal(starvedFrames / sampleRate, 2) };
  const slow = server !== null && server.rtf > 1;
  return slow
    ? t({
        one: "Done. The server is slower than speech: you waited for sound {count} time, {silence} s in all.",
        other: "Done. The server is slower than speech: you waited for sound {count} times, {silence} s in all.",
      }, values)
    : t({
        one: "Done. You waited for sound {count} time, {silence} s in all.",
        other: "Done. You waited for sound {count} times, {silence} s in all.",
      }, values);
}
