// What goes into a message beside its words: pictures, and the microphone.

import { SpeechError } from "../api/errors.js";
import { readBase64, readPicture } from "../chat/pictures.js";
import { GONE } from "../clone/microphone.js";
import { Recorder } from "../clone/recorder.js";
import { Transcription } from "../listen/transcription.js";
import { t } from "../texts.js";
import { button, element } from "./elements.js";

const MAX_SECONDS = 120;
const MAX_PICTURES = 8;

/**
 * Dispatches "record", "spoken" (detail: {text} or {sound}), "told" and "refused" (details:
 * sentences).
 */
export class ChatSources extends EventTarget {
  /** Data URLs. */
  pictures = [];
  #server;
  #catalogue;
  #settings;
  #find;
  #recorder = new Recorder(MAX_SECONDS);

  constructor(panel, { server, catalogue, settings }) {
    super();
    this.#server = server;
    this.#catalogue = catalogue;
    this.#settings = settings;
    this.#find = (role) => panel.querySelector(`[data-role="${role}"]`);
    const field = panel.querySelector("#cantata-chat-pictures");
    field.addEventListener("change", () => {
      void this.#addAll([...field.files]);
      field.value = "";
    });
    panel.addEventListener("paste", ({ clipboardData }) => {
      if (clipboardData.files.length > 0) void this.#addAll([...clipboardData.files]);
    });
    for (const kind of ["dragover", "drop"]) {
      panel.addEventListener(kind, (event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        if (kind === "drop") void this.#addAll([...event.dataTransfer.files]);
      });
    }
    this.#find("chat-record").addEventListener("click", () => void this.#record());
    settings.addEventListener("change", () => this.#refresh());
    catalogue.addEventListener("change", () => this.#refresh());
    this.#refresh();
  }

  get recording() {
    return this.#recorder.recording;
  }

  clear() {
    this.pictures = [];
    this.#show();
  }

  async #addAll(files) {
    if (!this.#settings.takes("image")) {
      this.#refuse(t("This model takes no pictures. Choose one that does, or describe it in words."));
      return;
    }
    for (const file of files) {
      if (this.pictures.length >= MAX_PICTURES) {
        this.#refuse(t("A message takes up to {most} pictures.", { most: MAX_PICTURES }));
        return;
      }
      try {
        this.pictures = [...this.pictures, await readPicture(file)];
        this.#show();
      } catch (error) {
        if (!(error instanceof SpeechError)) throw error;
        this.#refuse(error.message);
      }
    }
  }

  #show() {
    this.#find("chat-chosen").replaceChildren(
      ...this.pictures.map((url, i) => {
        const entry = element("li");
        const picture = element("img");
        Object.assign(picture, { src: url, alt: t("Picture {number}", { number: i + 1 }) });
        const remove = button(t("Remove"), t("Do not send picture {number}", { number: i + 1 }), () => {
          this.pictures = this.pictures.filter((other) => other !== url);
          this.#show();
        });
        entry.append(picture, remove);
        return entry;
      }),
    );
  }

  async #record() {
    if (this.recording) {
      this.#recorder.stop();
      return;
    }
    const record = this.#find("chat-record");
    try {
      await this.#recorder.start();
      this.dispatchEvent(new Event("record"));
      record.setAttribute("aria-pressed", "true");
      record.querySelector("span").textContent = t("Send what I said");
      this.#tell(t("Recording. Press again when you have said it."));
      await this.#take(await this.#recorder.untilStopped());
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#refuse(error.message);
    } finally {
      record.setAttribute("aria-pressed", "false");
      record.querySelector("span").textContent = t("Speak");
    }
  }

  async #take(sound) {
    if (this.#settings.takes("audio")) {
      this.#dispatch("spoken", { sound: await readBase64(sound), text: "" });
      return;
    }
    this.#tell(t("Listening to what you said…"));
    const [{ id: model }] = this.#catalogue.listening;
    const about = { sound, name: t("what you said"), model, language: "" };
    const heard = new Transcription(this.#server, about);
    await heard.start();
    if (heard.error !== null) throw heard.error;
    if (heard.text.trim() === "") {
      const why = this.#recorder.gone ? GONE : t("Nothing was heard. Speak closer, or type.");
      throw new SpeechError(why);
    }
    this.#dispatch("spoken", { text: heard.text });
  }

  #refresh() {
    const hears = this.#settings.takes("audio") || this.#catalogue.listening.length > 0;
    this.#find("chat-record").hidden = !hears;
    this.#find("chat-picture").hidden = !this.#settings.takes("image");
  }

  #tell(sentence) {
    this.#dispatch("told", sentence);
  }

  #refuse(sentence) {
    this.#dispatch("refused", sentence);
  }

  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
