// The browser's microphone, or a sentence that says why there is none.

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";

/** It vanished while it was heard. */
export const GONE = t(
  "The microphone is gone. Connect it again or choose another one, and start again.",
);
const REFUSED = {
  NotAllowedError: t("The browser was not allowed to use the microphone. Allow it and try again."),
  NotFoundError: t("There is no microphone. Connect one and try again."),
  OverconstrainedError: t("That microphone is not there any more. Choose another one."),
  NotReadableError: t("The microphone is in use by another program."),
};

/**
 * Resolves with a MediaStream; rejects with a SpeechError where it may not be used.
 * @param {boolean | object} audio what getUserMedia is asked for
 */
export async function openMicrophone(audio = true) {
  if (navigator.mediaDevices === undefined) {
    throw new SpeechError(
      t("Browsers lend the microphone only to pages that come over HTTPS or from this machine."),
    );
  }
  try {
    return await navigator.mediaDevices.getUserMedia({ audio });
  } catch (error) {
    throw new SpeechError(
      REFUSED[error.name] ??
        t("The microphone cannot be used: {name}. Connect it again or choose another one, and try again.", error),
    );
  }
}
