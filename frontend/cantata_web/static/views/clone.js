// The tab that makes a voice from a recording, and deletes it.

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";
import { Recording } from "./recording.js";
import { SavedVoices } from "./savedvoices.js";
import { statusLine } from "./status.js";

const MAX_BYTES = 10 * 2 ** 20;

export class CloneView {
  #choices;
  #uploads;
  #agreement;
  #confirm;
  #root;
  #show;
  #recording;
  #saved;

  /**
   * @param {UploadedVoices} uploads
   * @param {LateTab} agreement what the server asks for beside the tick
   * @param {(question) => Promise<boolean>} confirm asks before a voice is deleted
   * @param {Preview} preview plays a voice
   * @param {(id) => void} tryVoice goes where the voice can speak
   */
  constructor(root, { choices, uploads, agreement, confirm, preview, tryVoice }) {
    this.#root = root;
    this.#choices = choices;
    this.#uploads = uploads;
    this.#agreement = agreement;
    this.#confirm = confirm;
    this.#show = statusLine(this.#find("clone-status"));
    this.#recording = new Recording(root);
    const act = {
      speakWith: (voice) => tryVoice(voice.id),
      hear: (voice) => void preview.toggle(voice),
      remove: (voice) => void this.#attempt(() => this.#delete(voice)),
    };
    this.#saved = new SavedVoices(root, { choices, uploads, act });
    const form = this.#find("clone-form");
    form.addEventListener("input", () => this.#show(""));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#attempt(() => this.#save());
    });
    choices.addEventListener("change", () => this.#noteReferences());
  }

  /** Shows what the server asks for, as soon as somebody looks. */
  open() {
    return this.#attempt(() => this.#openAgreement());
  }

  // Resolves with null if the tick is enough.
  async #openAgreement() {
    if (this.#agreement.view !== null) return this.#agreement.view;
    const asked = await this.#uploads.askForConsent();
    if (asked.mode === "none") return null;
    const view = await this.#agreement.open();
    view?.show(asked);
    return view;
  }

  #find(role) {
    return this.#root.querySelector(`[data-role="${role}"]`);
  }

  #field(name) {
    return this.#root.querySelector(`#cantata-${name}`);
  }

  async #save() {
    const sample = await this.#checkedRecording();
    const name = this.#field("voice-name").value.trim();
    if (name === "") this.#refuse("voice-name", t("Name the voice."));
    if (!this.#field("consent").checked) {
      this.#refuse("consent", t("Without the speaker's consent the voice cannot be saved."));
    }
    const agreement = await this.#openAgreement();
    const voice = { name, sample, said: this.#recording.said };
    voice.agreement = (await agreement?.fields()) ?? {};
    this.#show(t("Saving…"));
    let kept;
    try {
      kept = await this.#uploads.save(voice);
    } catch (error) {
      if (error.code === "body_too_large") {
        error.message = t("The recording is too large: at most 10 MiB.");
      }
      await agreement?.finish(error);
      throw error;
    }
    this.#find("clone-form").reset();
    this.#recording.clear();
    await agreement?.finish();
    await this.#choices.load();
    this.#show(
      kept
        ? t("{name} is saved.", { name })
        : t(
            "{name} is saved. This browser keeps no data: delete the voice before you close the page.",
            { name },
          ),
    );
  }

  async #checkedRecording() {
    try {
      const sample = await this.#recording.checked();
      if (sample.size <= MAX_BYTES) return sample;
      throw new SpeechError(t("The file is too large: at most 10 MiB."));
    } catch (error) {
      this.#recording.focus();
      throw error;
    }
  }

  #refuse(field, sentence) {
    this.#field(field).focus();
    throw new SpeechError(sentence);
  }

  async #delete(voice) {
    const agreed = await this.#confirm({
      title: t("Delete {name}?", voice),
      text: t("The recording is deleted from the server. This cannot be undone."),
      act: t("Delete"),
    });
    if (!agreed) return;
    await this.#uploads.delete(voice.id);
    await this.#choices.load();
    this.#show(t("{name} is deleted.", voice));
    this.#saved.focus();
  }

  async #attempt(act) {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#show(error.message, true);
    }
  }

  #noteReferences() {
    const notice = this.#find("no-references");
    const names = this.#choices.models.map(({ name }) => name).join(", ");
    notice.hidden = this.#choices.followsReferences;
    notice.textContent = t(
      "This server's model ({names}) speaks with its own voices only: it cannot follow a " +
        "recording. A voice that you save here is kept, and can be spoken with once the server " +
        "runs a model that can.",
      { names },
    );
  }
}
