// Passages of a recording as files of subtitles.

import { exactClock } from "./clock.js";

/** @param {Part[]} passages @returns {string} SubRip */
export function writeSrt(passages) {
  const cues = passages.map(
    ({ text, start, end }, place) =>
      `${place + 1}\n${exactClock(start, ",")} --> ${exactClock(end, ",")}\n${inLine(text)}\n`,
  );
  return cues.join("\n");
}

/** @param {Part[]} passages @returns {string} WebVTT, where markup is read as such */
export function writeVtt(passages) {
  const cues = passages.map(
    ({ text, start, end }) =>
      `${exactClock(start, ".")} --> ${exactClock(end, ".")}\n${escapeMarkup(inLine(text))}\n`,
  );
  return ["WEBVTT\n", ...cues].join("\n");
}

// An empty line would end the cue.
function inLine(text) {
  return text.replace(/\s+/g, " ").trim();
}

function escapeMarkup(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
