// Errors as sentences that say what to do.

import { t } from "../texts.js";

const FIXED = {
  not_ready: t("The server is still loading. Try again in a few seconds."),
  stage_died: t("A part of the server failed and is being started again. Try again in a few seconds."),
  chunk_timeout: t("The server fell silent in the middle of the speech. Try again."),
  voices_full: t("The server has no room for more voices. Delete one first."),
  voice_exists: t("There is a voice of this name already. Choose another name."),
};

/** A fault worded as a sentence that can be shown to the listener. */
export class SpeechError extends Error {
  /** @param {{status?, code?, detail?, param?}} about from the server, if it sent them */
  constructor(sentence, { status = null, code = null, detail = null, param = null } = {}) {
    super(sentence);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.param = param; // the field at fault
  }
}

/**
 * @param {{message, code, param?}} error of an error body or message
 * @param {{status?, retryAfter?}} answer the HTTP response's own fields
 */
export function asSpeechError(error, { status = null, retryAfter = null } = {}) {
  const { code, message: detail, param = null } = error;
  let sentence = FIXED[code] ?? asSentence(detail);
  if (code === "rate_limit_exceeded") {
    sentence = retryAfter === null
      ? t("The server is full at the moment. Try again soon.")
      : t("The server is full at the moment. Try again in {seconds} s.", { seconds: retryAfter });
  }
  return new SpeechError(sentence, { status, code, detail, param });
}

export function asSentence(message) {
  const capital = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
