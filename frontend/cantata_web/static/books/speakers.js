// Who speaks: "Alice=ruby, Bob=ben".

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";

/** Voices by names of speakers; throws a SpeechError if it is written otherwise. */
export function readSpeakers(written) {
  const speakers = {};
  for (const one of written.split(/[,\n]/).map((part) => part.trim()).filter(Boolean)) {
    const [name, voice, ...rest] = one.split("=").map((part) => part.trim());
    if (!name || !voice || rest.length > 0) {
      throw new SpeechError(t("“{one}” is no speaker with a voice. Write them so: {example}.", {
        one,
        example: "Alice=ruby, Bob=ben",
      }));
    }
    speakers[name] = voice;
  }
  return speakers;
}
