// What models can do, in words. No DOM here.

import { decimal, language, listed, t } from "../texts.js";

const MODALITIES = {
  text: t("text"),
  audio: t("sound"),
  image: t("pictures"),
  video: t("video"),
};
const CHANNELS = { 1: t("mono"), 2: t("stereo") };
const ONLY = {
  speech: t("Speech you hear while it is still being made."),
  answers: t("Answers that arrive while they are still being made."),
  transcripts: t("Transcripts you read while a recording is still being heard."),
  pictures: t("Pictures you see while they are still being drawn."),
};
const KINDS = {
  speech: t("speech"),
  answers: t("answers"),
  transcripts: t("transcripts"),
  pictures: t("pictures"),
};

/**
 * The line under the page's name.
 * @param {{speech: boolean, answers: boolean, transcripts: boolean, pictures: boolean}} served
 */
export function tagline(served) {
  const kinds = Object.keys(ONLY).filter((kind) => served[kind]);
  if (kinds.length === 1) return ONLY[kinds[0]];
  const all = t("{kinds} while they are still being made.", {
    kinds: listed(kinds.map((kind) => KINDS[kind])),
  });
  return `${all.charAt(0).toUpperCase()}${all.slice(1)}`;
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
  const many = t({ one: "{count} channel", other: "{count} channels" }, { count: channels });
  const sound = `${decimal(rate / 1000)} kHz, ${CHANNELS[channels] ?? many}`;
  const voice = can.references
    ? t("{number} of its own, and any that you record", { number: own })
    : t("{number} of its own", { number: own });
  return [
    [t("Sound"), sound],
    [t("Voices"), can.instructions ? t("{voice}; follows a description in words", { voice }) : voice],
    ...(can.languages.length > 0 ? [[t("Languages"), listed(can.languages.map(languageName))]] : []),
    ...(can.speaker_tag === "" ? [] : [[t("Speakers"), speakers(can.speaker_tag)]]),
    [t("Pace"), pace(can.paces)],
    [t("Text"), t("Up to {number} characters at a time", {
      number: model.max_input_characters,
    })],
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
    [t("Sizes"), t("Up to the area of {side} × {side} pixels; sides from {least} in steps of {multiple}", {
      side: String(side),
      least: String(least),
      multiple,
    })],
    [t("Edits"), edits(limits)],
    [t("Steps"), t("{usual} by default, at most {most}", { usual: steps, most: mostSteps })],
    [t("Guidance"), guided
      ? t("{usual} by default, at most {most}", { usual: guidance, most: mostGuidance })
      : t("None")],
  ];
}

function edits({ min_references: least, max_references: most }) {
  if (most === 0) return t("No: it draws from text only");
  if (least > 0) {
    return t({
      one: "Only edits: needs {least}, takes up to {count} picture at a time",
      other: "Only edits: needs {least}, takes up to {count} pictures at a time",
    }, { least, count: most });
  }
  return t({
    one: "Yes, up to {count} picture at a time",
    other: "Yes, up to {count} pictures at a time",
  }, { count: most });
}

function speakers(pattern) {
  const [first, second] = [0, 1].map((speaker) => speakerTag(pattern, speaker));
  return t("Several in a text: begin each turn with {first}, {second} and so on", { first, second });
}

function pace([slowest, fastest]) {
  if (slowest === fastest) return t("One; for other speeds, the sound is stretched");
  return t("From {slowest}× to {fastest}×; beyond that, the sound is stretched", {
    slowest,
    fastest,
  });
}

function languageName(tag) {
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(tag);
  } catch {
    return tag; // not a BCP 47 tag
  }
}
