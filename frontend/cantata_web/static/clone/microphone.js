// The browser's microphone, or a sentence that says why there is none.

import { SpeechError } from "../api/errors.js";

const REFUSED = {
  NotAllowedError: "The browser was not allowed to use the microphone. Allow it and try again.",
  NotFoundError: "There is no microphone. Connect one and try again.",
  OverconstrainedError: "That microphone is not there any more. Choose another one.",
  NotReadableError: "The microphone is in use by another program.",
};

/**
 * Resolves with a MediaStream; rejects with a SpeechError where it may not be used.
 * @param {boolean | object} audio what getUserMedia is asked for
 */
export async function openMicrophone(audio = true) {
  if (navigator.mediaDevices === undefined) {
    throw new SpeechError(
      "Browsers lend the microphone only to pages that come over HTTPS or from this machine.",
    );
  }
  try {
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    throw new SpeechError(REFUSED[error.name] ?? `The microphone cannot be used: ${error.name}.`);
  }
}
