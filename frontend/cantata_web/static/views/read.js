// The tab that reads along.

import { SpeechError } from "../api/errors.js";
import { Bookmarks } from "../read/bookmarks.js";
import { makeMp3, makeSrt, makeWav } from "../read/download.js";
import { adviseLonger } from "../read/limits.js";
import { Narrator, Reading } from "../read/narrator.js";
import { bookOf, openFile, TOO_LONG, whyNot } from "../read/open.js";
import { t } from "../texts.js";
import { BooksView } from "./books.js";
import { Leaves } from "./leaves.js";
import { MediaKeys } from "./mediakeys.js";
import { ReadBar } from "./readbar.js";
import { nameFile, save } from "./save.js";
import { statusLine } from "./status.js";

const MARK_EVERY_MS = 2_000;
const SENTENCES = {
  [Reading.IDLE]: "",
  [Reading.WAITING]: t("Waiting for the server…"),
  [Reading.PLAYING]: t("Reading."),
  [Reading.PAUSED]: t("Paused. Your place is kept."),
  [Reading.DONE]: t("This is the end."),
};
const FILES = {
  mp3: { type: "audio/mpeg", make: makeMp3 },
  wav: { type: "audio/wav", make: makeWav },
  srt: { type: "application/x-subrip", make: makeSrt },
};
const CONTROLS = "button, input, select, textarea, summary, a";

/** Dispatches "begin" when it starts to read, and "sound" when that may have changed. */
export class ReadView extends EventTarget {
  narrator;
  #books;
  #panel;
  #server;
  #settings;
  #find;
  #show;
  #leaves;
  #bar;
  #bookmarks;
  #markedAt = 0;
  #unkept = false;
  #saving = null; // AbortController of the download under way

  constructor(panel, { server, settings, store, choices, confirm }) {
    super();
    this.#panel = panel;
    this.#server = server;
    this.#settings = settings;
    this.#find = (role) => panel.querySelector(`[data-role="${role}"]`);
    this.#show = statusLine(this.#find("read-status"));
    this.#bookmarks = new Bookmarks(store);
    this.narrator = new Narrator(server, () => this.#request);
    this.#leaves = new Leaves(this.#find("leaves"));
    this.#bar = new ReadBar(this.#find, {
      narrator: this.narrator,
      settings,
      choices,
      store,
      seek: (place) => this.#go(place),
    });
    this.#listen();
    this.#offerLast();
    const openText = () => this.#openText;
    this.#books = new BooksView(panel, { server, settings, choices, confirm, openText });
  }

  /** Whether the tab is open. */
  watch(watched) {
    this.#books.watch(watched);
  }

  get #openText() {
    const { book } = this.narrator;
    if (book === null || this.#find("book").hidden) return null;
    return { name: this.#title, text: book.markdown };
  }

  get reading() {
    return this.narrator.going;
  }

  pause() {
    this.narrator.pause();
  }

  /** Opens a text that was written elsewhere on the page, and reads it. */
  readText(text) {
    this.#try(() => this.#open(bookOf(text), true));
  }

  /** Opens what was dropped: {file, isFolder}. */
  async takeDrop(dropped) {
    const problem = whyNot(dropped);
    if (problem !== null) {
      this.#show(problem, true);
      return;
    }
    await this.#openFile(dropped.file);
  }

  get #request() {
    return { ...this.#settings.request, speed: this.#bar?.speed ?? 1 };
  }

  #listen() {
    const on = (role, act) => this.#find(role).addEventListener("click", act);
    const { narrator } = this;
    on("read-pasted", () => this.#try(() => this.#open(bookOf(this.#field("pasted").value), false)));
    on("read-on", () => this.#open(this.#bookmarks.last, true));
    on("read-other", () => this.#close());
    on("read-play", () => this.#toggle());
    on("sentence-back", () => this.#step(-1));
    on("sentence-next", () => this.#step(1));
    on("read-follow", () => (this.#leaves.follows = !this.#leaves.follows));
    on("read-save", () => void this.#download());
    const file = this.#field("book");
    file.addEventListener("change", () => {
      if (file.files.length > 0) void this.#openFile(file.files[0]);
      file.value = "";
    });
    this.#leaves.addEventListener("choose", ({ detail }) => this.#play(detail));
    this.#leaves.addEventListener("follow", () => {
      this.#find("read-follow").setAttribute("aria-pressed", String(this.#leaves.follows));
    });
    narrator.addEventListener("state", () => this.#refresh());
    narrator.addEventListener("place", () => this.#mark());
    new MediaKeys(narrator, {
      describe: () => ({ title: this.#title, voice: this.#settings.voiceName }),
      play: () => this.#play(),
      step: (step) => this.#step(step),
    });
    document.addEventListener("keydown", (event) => this.#key(event));
    document.addEventListener("visibilitychange", () => this.#keepPlace());
  }

  #field(name) {
    return this.#panel.querySelector(`#cantata-${name}`);
  }

  get #title() {
    return this.narrator.book?.name || nameFile(this.narrator.book?.text ?? "");
  }

  #try(act) {
    try {
      act();
    } catch (error) {
      void this.#tell(error);
    }
  }

  async #openFile(file) {
    this.#show(t("Opening “{name}”…", file));
    try {
      this.#open(await openFile(file), false);
    } catch (error) {
      await this.#tell(error);
    }
  }

  async #tell(error) {
    if (!(error instanceof SpeechError)) throw error;
    this.#show(error.message, true);
    if (error.code !== TOO_LONG) return;
    const advice = await adviseLonger(this.#server);
    if (this.#find("read-status").textContent !== error.message) return; // another one by now
    this.#show(`${error.message} ${advice}`.trim(), true);
  }

  #open(book, plays) {
    const place = this.#bookmarks.placeIn(book);
    this.#unkept = !this.#bookmarks.keep(book);
    this.narrator.open(book, place);
    this.#find("read-open").hidden = true;
    this.#find("book").hidden = false;
    this.#find("book-name").textContent = this.#title;
    this.#leaves.show(book);
    this.#leaves.follows = true;
    if (place > 0) this.#leaves.goTo(place);
    this.#bar.refresh();
    if (plays) this.#play();
    else this.#refresh();
    this.#find("leaves").focus({ preventScroll: true });
  }

  #close() {
    this.#keepPlace();
    this.narrator.stop();
    this.#saving?.abort();
    this.#find("book").hidden = true;
    this.#find("read-open").hidden = false;
    this.#offerLast();
    this.#show("");
    this.#field("book").focus();
  }

  #offerLast() {
    const book = this.#bookmarks.last;
    this.#find("read-kept").hidden = book === null;
    if (book === null) return;
    const share = Math.round((100 * this.#bookmarks.placeIn(book)) / Math.max(1, book.length));
    const name = book.name || nameFile(book.text);
    this.#find("read-on").textContent = t("Go on with “{name}”, at {share}%", { name, share });
  }

  #toggle() {
    if (this.narrator.going) this.pause();
    else this.#play();
  }

  #play(place) {
    this.dispatchEvent(new Event("begin"));
    this.narrator.play(place);
  }

  #step(step) {
    this.#go(this.narrator.book.stepFrom(this.narrator.place, step));
  }

  #go(place) {
    if (this.narrator.going) this.#play(place);
    else {
      this.narrator.seek(place);
      this.#leaves.goTo(place);
      this.#keepPlace();
    }
  }

  #key(event) {
    const { key, target, ctrlKey, altKey, metaKey } = event;
    if (this.#panel.hidden || this.#find("book").hidden || ctrlKey || altKey || metaKey) return;
    if (document.querySelector("dialog[open]") !== null || target.closest?.(CONTROLS)) return;
    if (key === " ") this.#toggle();
    else if (key === "ArrowLeft") this.#step(-1);
    else if (key === "ArrowRight") this.#step(1);
    else return;
    event.preventDefault();
  }

  #refresh() {
    const { state, error } = this.narrator;
    if (this.#saving === null) this.#show(error ?? this.#sentence(state), error !== null);
    if (state !== Reading.PLAYING && state !== Reading.WAITING) this.#keepPlace();
    this.#mark();
    this.dispatchEvent(new Event("sound"));
  }

  #sentence(state) {
    if (!this.#unkept || state === Reading.PLAYING) return SENTENCES[state];
    return t(
      "This browser's storage is full or off: your place is lost when you close the page. " +
        "Clear the takes under Speak to make room, and open the text again.",
    );
  }

  #mark() {
    const { word, book, state } = this.narrator;
    if (book === null) return;
    const marked = state === Reading.IDLE || state === Reading.DONE ? null : word;
    this.#leaves.mark(marked, marked && book.sentenceAt(marked.from));
    if (performance.now() - this.#markedAt > MARK_EVERY_MS) this.#keepPlace();
  }

  #keepPlace() {
    const { book, place } = this.narrator;
    if (book === null) return;
    this.#markedAt = performance.now();
    if (!this.#bookmarks.mark(book, place)) this.#unkept = true;
  }

  async #download() {
    if (this.#saving !== null) {
      this.#saving.abort();
      return;
    }
    const format = this.#find("read-format").value;
    const { type, make } = FILES[format];
    const { book } = this.narrator;
    const name = nameFile(book.text);
    const saving = new AbortController();
    this.#saving = saving;
    this.#find("read-save").textContent = t("Cancel");
    const progress = (share) =>
      this.#show(t("Making {file}: {share}%…", { file: `${name}.${format}`, share: Math.round(100 * share) }));
    progress(0);
    try {
      const { signal } = saving;
      const order = { server: this.#server, book, request: this.#request, signal, progress };
      save(new Blob(await make(order)), format, type, name);
      this.#show(t("{file} is in your downloads.", { file: `${name}.${format}` }));
    } catch (error) {
      if (error.name === "AbortError") this.#show(t("The download was cancelled."));
      else if (error instanceof SpeechError) this.#show(error.message, true);
      else throw error;
    } finally {
      this.#saving = null;
      this.#find("read-save").textContent = t("Download");
    }
  }
}
