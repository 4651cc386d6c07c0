// What the server asks for beside the tick: who answers for a voice, and the speaker's own word.

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";
import { SoundField } from "./soundfield.js";

const MAX_SECONDS = 30;
const MARGIN_MS = 20_000; // an upload takes time, too

export class Agreement {
  #uploads;
  #panel;
  #tick;
  #sound;
  #asked = null; // as the server answered
  #expires = Infinity;

  /** @param {Element} tick the text beside the tick box, which `attest` words itself */
  constructor(panel, { uploads, tick }) {
    this.#uploads = uploads;
    this.#panel = panel;
    this.#tick = tick;
    this.#sound = new SoundField(this.#find("spoken"), MAX_SECONDS);
    this.#find("other-words").addEventListener("click", () => void this.renew());
    this.#sound.addEventListener("recording", ({ detail }) => {
      this.#find("other-words").disabled = detail;
    });
  }

  /** Resolves once it shows another sentence; rejects with a SpeechError. */
  async renew() {
    this.show(await this.#uploads.askForConsent());
  }

  /** @param {object} asked the server's answer */
  show(asked) {
    this.#asked = asked;
    const { mode, statement, valid_s: seconds } = asked;
    this.#expires = seconds === null ? Infinity : performance.now() + seconds * 1000 - MARGIN_MS;
    this.#panel.hidden = false;
    this.#find("spoken").hidden = mode !== "spoken";
    this.#find("by-label").textContent = mode === "spoken" ? t("The speaker's name") : t("Your name");
    if (mode === "attest") this.#tick.textContent = statement;
    if (mode !== "spoken") return;
    this.#find("statement").textContent = statement;
    this.#find("valid").textContent = t({
      one: "(good for {count} minute, once):",
      other: "(good for {count} minutes, once):",
    }, { count: Math.round(seconds / 60) });
    this.#sound.clear();
  }

  /** Resolves with the fields of the upload; rejects with a SpeechError that says what is missing. */
  async fields() {
    const { mode, id } = this.#asked;
    const by = this.#by.value.trim();
    if (by === "") {
      this.#by.focus();
      throw new SpeechError(
        mode === "spoken"
          ? t("Name the speaker.")
          : t("Name the person who answers for the consent."),
      );
    }
    if (mode === "attest") return { attested_by: by };
    if (performance.now() > this.#expires) {
      await this.renew();
      this.#sound.focus();
      throw new SpeechError(t("The sentence of consent was too old. Read the new one."));
    }
    try {
      return { attested_by: by, consent_id: id, consent_audio: await this.#sound.checked() };
    } catch (error) {
      this.#sound.focus();
      throw new SpeechError(t("The sentence of consent: {message}", error));
    }
  }

  /** After an upload: a sentence counts once, whatever became of it. */
  async finish(error = null) {
    if (error === null) this.#by.value = "";
    const used = error === null || error.param?.startsWith("consent_");
    if (this.#asked.mode === "spoken" && used) await this.renew();
  }

  get #by() {
    return this.#panel.querySelector("#cantata-attested-by");
  }

  #find(role) {
    return this.#panel.querySelector(`[data-role="${role}"]`);
  }
}
