// How long a text may be, and where longer ones go. Small: the tab that speaks needs it, too.

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";

/** A hundred thousand words. */
export const MAX_CHARACTERS = 600_000;

/** Resolves with a sentence that says what takes longer texts; empty if nothing here does. */
export async function adviseLonger(server) {
  try {
    await server.json("v1/jobs");
  } catch (error) {
    if (!(error instanceof SpeechError)) throw error;
    return ""; // this server makes no audiobooks
  }
  return t("Save it as a file: “Audiobooks”, on the tab “Read”, takes longer ones.");
}
