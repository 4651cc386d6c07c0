// The tab that writes down what is said in a recording.

import { GONE } from "../clone/microphone.js";
import { shortClock } from "../listen/clock.js";
import { writeSrt, writeVtt } from "../listen/subtitles.js";
import { Transcription, TranscriptionState as State } from "../listen/transcription.js";
import { language, t } from "../texts.js";
import { fillMenu } from "./choices.js";
import { copyText } from "./clipboard.js";
import { PlayedRecording } from "./playedrecording.js";
import { save } from "./save.js";
import { SoundSource } from "./soundsource.js";
import { statusLine } from "./status.js";
import { WordList } from "./wordlist.js";

const FILES = {
  srt: { type: "application/x-subrip", write: ({ passages }) => writeSrt(passages) },
  vtt: { type: "text/vtt", write: ({ passages }) => writeVtt(passages) },
  txt: { type: "text/plain", write: ({ text }) => `${text}\n` },
};

/** Dispatches "begin" when it plays or records, "sound" when it begins or ceases to play. */
export class ListenView extends EventTarget {
  /** The one that is shown; null before the first. @type {Transcription | null} */
  transcription = null;
  #server;
  #find;
  #menu;
  #languages;
  #models = [];
  #show;
  #played;
  #words;
  #recording = null; // {sound, name}
  #gone = false; // the microphone vanished while it was made

  /** @param {Catalogue} catalogue lists the models that listen */
  constructor(root, { server, catalogue }) {
    super();
    this.#server = server;
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#menu = root.querySelector("#cantata-listener");
    this.#languages = root.querySelector("#cantata-spoken");
    this.#menu.addEventListener("change", () => this.#offerLanguages());
    this.#show = statusLine(this.#find("listen-status"));
    this.#played = new PlayedRecording(this.#find("listen-audio"));
    this.#words = new WordList(root.querySelector(".heard"));
    this.#listenTo(new SoundSource(root));
    catalogue.addEventListener("change", () => this.#offer(catalogue.listening));
  }

  get playing() {
    return this.#played.playing;
  }

  /** Something else is to be heard. */
  pause() {
    this.#played.pause();
  }

  /** Ends the request, and the sound. */
  stop() {
    this.pause();
    this.transcription?.cancel();
  }

  #listenTo(source) {
    const on = (role, act) => this.#find(role).addEventListener("click", act);
    on("listen-cancel", () => this.transcription.cancel());
    on("listen-again", () => {
      this.#gone = false;
      this.#listen();
    });
    on("copy-transcript", () => void this.#copy());
    for (const extension of Object.keys(FILES)) {
      on(`save-${extension}`, () => this.#save(extension));
    }
    source.addEventListener("take", ({ detail }) => this.#take(detail));
    source.addEventListener("refused", ({ detail }) => this.#show(detail, true));
    source.addEventListener("record", () => {
      this.stop();
      this.#begin();
      this.#show(t("Recording. Its words appear once you stop."));
    });
    this.#words.addEventListener("choose", ({ detail }) => this.#played.playFrom(detail.start));
    const played = this.#played;
    played.addEventListener("play", () => this.#begin());
    played.addEventListener("time", () => {
      this.#words.mark(played.seconds > 0 || played.playing ? played.seconds : null);
      this.dispatchEvent(new Event("sound"));
    });
    played.addEventListener("change", () => this.#refresh());
  }

  #begin() {
    this.dispatchEvent(new Event("begin"));
  }

  /** The one that is chosen; it has limits. */
  get #listener() {
    return this.#models.find(({ id }) => id === this.#menu.value);
  }

  #offer(models) {
    this.#models = models;
    fillMenu(this.#menu, models.map(({ id }) => ({ value: id, label: id })), []);
    this.#find("listener-control").hidden = models.length < 2;
    this.#find("no-listener").hidden = models.length > 0;
    this.#find("listen-form").hidden = models.length === 0;
    if (models.length > 0) this.#offerLanguages();
  }

  #offerLanguages() {
    const { languages } = this.#listener.transcription;
    const names = new Intl.DisplayNames(language, { type: "language" });
    const entries = languages.map((value) => ({ value, label: names.of(value) }));
    entries.sort((one, other) => one.label.localeCompare(other.label));
    fillMenu(this.#languages, [{ value: "", label: t("any language") }, ...entries], [""]);
    this.#find("language-control").hidden = languages.length < 2;
  }

  #take({ sound, name, seconds, gone }) {
    const { max_bytes: most } = this.#listener.transcription;
    if (sound.size > most) {
      const limit = Math.floor(most / 2 ** 20);
      this.#show(t("“{name}” is too large: at most {limit} MiB.", { name, limit }), true);
      return;
    }
    this.#recording = { sound, name };
    this.#gone = gone;
    this.#played.show(sound, seconds);
    this.#find("recording-name").textContent = name;
    this.#listen();
  }

  #listen() {
    this.transcription?.cancel();
    const transcription = new Transcription(this.#server, {
      ...this.#recording,
      model: this.#menu.value,
      language: this.#languages.value,
    });
    this.transcription = transcription;
    this.#words.show("", []);
    transcription.addEventListener("change", () => {
      if (transcription !== this.transcription) return;
      this.#words.show(transcription.text, transcription.parts);
      if (this.#played.seconds > 0) this.#words.mark(this.#played.seconds);
      this.#refresh();
    });
    this.#refresh();
    void transcription.start();
  }

  #refresh() {
    if (this.transcription === null) return;
    const { over, text, state, error } = this.transcription;
    this.#show(this.#gone ? this.#goneSentence : this.#sentence(), this.#gone || error !== null);
    const [cancel, again] = ["listen-cancel", "listen-again"].map(this.#find);
    again.disabled = !over;
    // What has the focus must not vanish under it.
    if (over && cancel === document.activeElement) again.focus();
    cancel.disabled = over;
    for (const extension of Object.keys(FILES)) {
      this.#find(`save-${extension}`).disabled = text === "" || !over;
    }
    this.#find("copy-transcript").disabled = text === "";
    this.#find("no-words").hidden = text !== "";
    const unreadable = this.#played.broken && state !== State.FAILED;
    this.#find("listen-hint").textContent = unreadable
      ? t("This browser cannot play the file.")
      : t("Choose a word to play from it.");
    this.#showProgress();
  }

  // What was heard until then is kept; if that is nothing, this is why.
  get #goneSentence() {
    const { over, text } = this.transcription;
    return over && text !== "" ? `${GONE} ${this.#sentence()}` : GONE;
  }

  #sentence() {
    const { state, error, text, words, seconds } = this.transcription;
    if (state === State.LISTENING) return t("The server is listening…");
    if (state === State.FAILED) return error.message;
    if (state === State.CANCELLED) {
      return text === "" ? t("Cancelled.") : t("Cancelled. What was heard by then is below.");
    }
    if (text === "") return t("Nobody can be heard speaking in it.");
    const values = { count: words.length, time: shortClock(seconds) };
    if (words.length === 0) return t("Done: {time} of sound.", values);
    return t({
      one: "Done: {count} word in {time} of sound.",
      other: "Done: {count} words in {time} of sound.",
    }, values);
  }

  #showProgress() {
    const { over, state, heardSeconds } = this.transcription;
    const { duration } = this.#played;
    const progress = this.#find("listen-progress");
    if (over) Object.assign(progress, { max: 1, value: state === State.DONE ? 1 : 0 });
    else if (duration === null || heardSeconds === 0) progress.removeAttribute("value");
    else Object.assign(progress, { max: duration, value: Math.min(heardSeconds, duration) });
    const heard = shortClock(heardSeconds);
    this.#find("listen-position").textContent = duration === null
      ? heard
      : t("{part} of {whole}", { part: heard, whole: shortClock(duration) });
  }

  async #copy() {
    const copied = await copyText(this.transcription.text);
    this.#show(copied ? t("Copied.") : t("The browser did not allow copying."), !copied);
  }

  #save(extension) {
    const { type, write } = FILES[extension];
    const name = this.#recording.name.replace(/\.[^.]*$/, "");
    save(write(this.transcription), extension, type, name);
    this.#show(t("{file} is in your downloads.", { file: `${name}.${extension}` }));
  }
}
