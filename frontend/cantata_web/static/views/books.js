// Audiobooks: documents and texts that the server speaks in the background.

import { SpeechError } from "../api/errors.js";
import { KeptBooks } from "../books/keptbooks.js";
import { readSpeakers } from "../books/speakers.js";
import { t } from "../texts.js";
import { BookCard } from "./bookcard.js";
import { fillVoices } from "./choices.js";
import { saveFile } from "./save.js";
import { statusLine } from "./status.js";
import { takeDrops } from "./strays.js";

const WITHOUT_CAPTIONS = "epub"; // it shows its text itself
const SHARED = ["model", "speed", "seed", "instructions"]; // of the settings

export class BooksView {
  #find;
  #file;
  #settings;
  #confirm;
  #openText;
  #show;
  #books;
  #cards = new Map(); // by id

  /** @param {() => {name, text} | null} openText what is open in the reader, as Markdown */
  constructor(panel, { server, settings, choices, confirm, openText }) {
    this.#find = (role) => panel.querySelector(`[data-role="${role}"]`);
    this.#file = panel.querySelector("#cantata-book-file");
    this.#settings = settings;
    this.#confirm = confirm;
    this.#openText = openText;
    this.#show = statusLine(this.#find("books-status"));
    this.#books = new KeptBooks(server);
    this.#books.addEventListener("change", () => this.#refresh());
    this.#find("book-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#begin();
    });
    this.#file.addEventListener("change", () => this.#show(""));
    const form = this.#find("book-format");
    form.addEventListener("change", () => this.#offerCaptions());
    this.#offerCaptions();
    takeDrops(this.#find("book-drop"), ({ file, isFolder }) => {
      if (!file || isFolder) this.#show(t("Drop one file: a document."), true);
      else this.#take(file);
    });
    this.#offerVoices(choices);
  }

  /** Whether the tab is open: only then is the server asked how far it is. */
  watch(watched) {
    this.#books.watch(watched);
  }

  #take(file) {
    const chosen = new DataTransfer();
    chosen.items.add(file);
    this.#file.files = chosen.files;
    this.#show("");
  }

  #offerCaptions() {
    this.#find("captions-control").hidden = this.#find("book-format").value === WITHOUT_CAPTIONS;
  }

  #offerVoices(choices) {
    const menu = this.#find("book-voice");
    const fill = () => fillVoices(menu, this.#settings.voices, [this.#settings.voice?.id]);
    choices.addEventListener("change", fill);
    this.#settings.addEventListener("voice", fill);
    fill();
  }

  async #begin() {
    const [file] = this.#file.files;
    const open = this.#openText();
    if (file === undefined && open === null) {
      this.#show(t("Choose a document, or open a text above."), true);
      this.#file.focus();
      return;
    }
    const submit = this.#find("book-begin");
    submit.disabled = true;
    this.#show(t("The document is being read…"));
    try {
      const source = file === undefined ? { text: open.text } : { file };
      const { title, sentences } = await this.#books.begin(source, this.#orderFor(file, open));
      this.#file.value = "";
      const values = { title: title || t("Without a title"), count: sentences };
      this.#show(t({
        one: "“{title}” has begun: {count} sentence. You may close the page.",
        other: "“{title}” has begun: {count} sentences. You may close the page.",
      }, values));
    } catch (error) {
      this.#tell(error);
    } finally {
      submit.disabled = false;
    }
  }

  #orderFor(file, open) {
    const order = { voice: this.#find("book-voice").value };
    const { request } = this.#settings;
    for (const name of SHARED) if (request[name] !== undefined) order[name] = request[name];
    order.response_format = this.#find("book-format").value;
    const captions = this.#find("book-captions").value;
    if (captions !== "" && order.response_format !== WITHOUT_CAPTIONS) order.captions = captions;
    const title = this.#find("book-title").value.trim() || (file === undefined ? open.name : "");
    if (title !== "") order.title = title;
    const voices = readSpeakers(this.#find("book-speakers").value);
    if (Object.keys(voices).length > 0) order.voices = voices;
    return order;
  }

  async #try(act) {
    try {
      await act();
    } catch (error) {
      this.#tell(error);
    }
  }

  #tell(error) {
    if (!(error instanceof SpeechError)) throw error;
    this.#show(error.message, true);
  }

  #refresh() {
    const { all, error } = this.#books;
    if (error !== null) this.#show(error.message, true);
    const cards = new Map(all.map((book) => [book.id, this.#cards.get(book.id) ?? this.#card(book)]));
    for (const book of all) cards.get(book.id).update(book);
    const same = [...cards.keys()].join() === [...this.#cards.keys()].join();
    this.#cards = cards;
    this.#find("no-books").hidden = all.length > 0 || error !== null;
    if (same) return;
    const list = this.#find("books");
    const focused = list.contains(document.activeElement);
    list.replaceChildren(...[...cards.values()].map((card) => card.element));
    if (focused && !list.contains(document.activeElement)) this.#find("books-title").focus();
  }

  #card(book) {
    return new BookCard(book, this.#books, {
      cancel: ({ id }) => this.#try(() => this.#books.cancel(id)),
      list: ({ id }) => this.#try(() => this.#books.find(id)),
      remove: (chosen) => this.#try(() => this.#remove(chosen)),
      fetch: ({ id }, name) =>
        this.#try(async () => saveFile(await this.#books.fetchFile(id, name), name)),
    });
  }

  async #remove({ id, title }) {
    const values = { title: title || t("Without a title") };
    const sure = await this.#confirm({
      title: t("Delete “{title}”?", values),
      text: t("The server deletes its files. This cannot be undone."),
      act: t("Delete"),
    });
    if (sure) await this.#books.delete(id);
  }
}
