// Whether a recording can become a voice, before it is uploaded.

import { decimal, t } from "../texts.js";
import { measure } from "./levels.js";

const MIN_SECONDS = 3;
const MAX_SECONDS = 60; // the server's limit
const MIN_SPEECH_SECONDS = 1;
const SILENT_DB = -60;
const QUIET_DB = -42;
const MAX_CLIPPED = 0.001;
const MAX_TONAL = 0.6;
const MAX_STEADY = 0.93; // of speech: up to 0.86
const MIN_OVER_NOISE_DB = 16;
const PAUSELESS_DB = 4; // below: not even a syllable stands out
const DECODED_RATE = 48_000;

/**
 * Resolves with what is wrong with the recording, as a sentence, or null.
 * A file that this browser cannot read is left to the server.
 */
export async function problemOf(recording) {
  const samples = await decoded(recording);
  return samples === null ? null : judged(measure(samples, DECODED_RATE));
}

/** The same of figures from `measure`. */
export function judged({ seconds, soundingSeconds, loudDb, quietDb, clipped, tonal, steady }) {
  const overNoiseDb = loudDb - quietDb;
  if (seconds < MIN_SECONDS) {
    const lasts = decimal(seconds, 1);
    return t("The recording lasts {lasts} s. At least {least} s are needed.", { lasts, least: MIN_SECONDS });
  }
  if (seconds > MAX_SECONDS) {
    const lasts = Math.round(seconds);
    return t("The recording lasts {lasts} s. At most {most} s are accepted.", { lasts, most: MAX_SECONDS });
  }
  if (loudDb < SILENT_DB) return t("The recording is silent. Is the microphone muted?");
  if (loudDb < QUIET_DB) return t("The recording is too quiet. Speak up, or go closer.");
  if (clipped > MAX_CLIPPED) {
    return t("The recording is distorted: it was too loud. Go further away, or turn the level down.");
  }
  const standsOut = overNoiseDb >= PAUSELESS_DB;
  if (standsOut && overNoiseDb < MIN_OVER_NOISE_DB) {
    return t("The background is too loud. Record in a quieter place, or closer to the microphone.");
  }
  if (tonal > MAX_TONAL || steady > MAX_STEADY || !standsOut) {
    return t("There is no speech in it, only a tone or a steady noise.");
  }
  if (soundingSeconds < MIN_SPEECH_SECONDS) {
    return t("There is less than a second of speech in it. Read the whole sentence.");
  }
  return null;
}

async function decoded(recording) {
  const context = new OfflineAudioContext(1, 1, DECODED_RATE);
  let sound;
  try {
    sound = await context.decodeAudioData(await recording.arrayBuffer());
  } catch {
    return null;
  }
  const mixed = new Float32Array(sound.length);
  for (let channel = 0; channel < sound.numberOfChannels; channel += 1) {
    sound.getChannelData(channel).forEach((sample, i) => {
      mixed[i] += sample / sound.numberOfChannels;
    });
  }
  return mixed;
}
