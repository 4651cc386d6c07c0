// What models can do, in words. No DOM here.

import { counted } from "../views/plural.js";

const MODALITIES = { text: "text", audio: "sound", image: "pictures", video: "video" };
const CHANNELS = { 1: "mono", 2: "stereo" };
const ONLY = {
  speech: "Speech you hear while it is still being made.",
  answers: "Answers that arrive while they are still being made.",
  transcripts: "Transcripts you read while a recording is still being heard.",
  pictures: "Pictures you see while they are still being drawn.",
};

/**
 * The line under the page's name.
 * @param {{speech: boolean, answers: boolean, transcripts: boolean, pictures: boolean}} served
 */
export function tagline(served) {
  const kinds = Object.keys(ONLY).filter((kind) => served[kind]);
  if (kinds.length === 1) return ONLY[kinds[0]];
  const all = listed(kinds);
  return `${all.charAt(0).toUpperCase()}${all.slice(1)} while they are still being made.`;
}

/** @param {string[]} modalities of /v1/models */
export function modalityWords(modalities) {
  return listed(modalities.map((one) => MODALITIES[one] ?? one));
}

/**
 * What a model that speaks can do, as terms and what they mean.
 * @param {object} model an entry of /v1/audio/models
 * @param {object[]} voices the model's, of /v1/audio/voices
 * @returns {[string, string][]}
 */
export function speechFacts(model, voices) {
  const { capabilities: can, sample_rate: rate, channels } = model;
  const own = voices.filter(({ kind }) => kind === "stock").length;
  const sound = `${rate / 1000} kHz, ${CHANNELS[channels] ?? counted(channels, "channel")}`;
  const voice = `${own} of its own${can.references ? ", and any that you record" : ""}`;
  return [
    ["Sound", sound],
    ["Voices", can.instructions ? `${voice}; follows a description in words` : voice],
    ...(can.languages.length > 0 ? [["Languages", listed(can.languages.map(languageName))]] : []),
    ...(can.speaker_tag === "" ? [] : [["Speakers", speakers(can.speaker_tag)]]),
    ["Pace", pace(can.paces)],
    ["Text", `Up to ${model.max_input_characters.toLocaleString("en")} characters at a time`],
  ];
}

/** A speaker's tag in a text. */
export function speakerTag(pattern, speaker) {
  return pattern.replace("{n}", speaker);
}

/**
 * The same of a model that draws.
 * @param {object} limits `images` of /v1/models
 */
export function pictureFacts(limits) {
  const { min_side: least, max_pixels: most, multiple } = limits;
  const { default_steps: steps, max_steps: mostSteps } = limits;
  const { default_guidance: guidance, max_guidance: mostGuidance } = limits;
  const side = Math.floor(Math.sqrt(most));
  const guided = mostGuidance > 1;
  return [
    ["Sizes", `Up to the area of ${side} × ${side} pixels; sides from ${least} in steps of ${multiple}`],
    ["Edits", edits(limits)],
    ["Steps", `${steps} by default, at most ${mostSteps}`],
    ["Guidance", guided ? `${guidance} by default, at most ${mostGuidance}` : "None"],
  ];
}

function edits({ min_references: least, max_references: most }) {
  if (most === 0) return "No: it draws from text only";
  const many = `up to ${counted(most, "picture")} at a time`;
  return least === 0 ? `Yes, ${many}` : `Only edits: needs ${least}, takes ${many}`;
}

function speakers(pattern) {
  const [first, second] = [0, 1].map((speaker) => speakerTag(pattern, speaker));
  return `Several in a text: begin each turn with ${first}, ${second} and so on`;
}

function pace([slowest, fastest]) {
  if (slowest === fastest) return "One; for other speeds, the sound is stretched";
  return `From ${slowest}× to ${fastest}×; beyond that, the sound is stretched`;
}

function languageName(tag) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(tag);
  } catch {
    return tag; // not a BCP 47 tag
  }
}

function listed(words) {
  return new Intl.ListFormat("en-GB").format(words);
}
