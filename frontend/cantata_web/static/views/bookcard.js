// A book that the server speaks or has spoken, in the list.

import { isOver } from "../books/keptbooks.js";
import { shortClock } from "../listen/clock.js";
import { decimal, language, t } from "../texts.js";
import { button, element } from "./elements.js";

/** Its element stays while the book gets on: what has the focus keeps it. */
export class BookCard {
  element = element("li");
  #book;
  #books;
  #act;
  #about = element("span");
  #progress = element("progress");
  #actions = element("div");
  #files = element("ul");
  #shown = ""; // what the buttons and files were made of

  /** @param {{cancel(book), remove(book), list(book), fetch(book, name)}} act */
  constructor(book, books, act) {
    this.#books = books;
    this.#act = act;
    this.#actions.className = "actions";
    this.#files.className = "files";
    const name = element("strong", book.title || t("Without a title"));
    this.#progress.setAttribute("aria-label", t("Spoken of “{title}”", { title: name.textContent }));
    this.element.append(name, this.#about, this.#progress, this.#actions, this.#files);
    this.update(book);
  }

  update(book) {
    this.#book = book;
    const about = describe(book);
    if (this.#about.textContent !== about) this.#about.textContent = about;
    this.#about.dataset.error = String(book.status === "failed");
    this.#progress.hidden = isOver(book);
    this.#progress.max = Math.max(1, book.sentences);
    this.#progress.value = book.spoken;
    const shown = JSON.stringify([isOver(book), book.status === "completed", book.files]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = this.element.contains(document.activeElement);
    this.#fill();
    // What had the focus is gone: the next thing that can be done with the book gets it.
    if (focused) this.element.querySelector("button, a")?.focus();
  }

  #fill() {
    const book = this.#book;
    const named = { title: book.title || t("Without a title") };
    const actions = [];
    if (!isOver(book)) {
      actions.push(button(t("Cancel"), t("Cancel “{title}”", named), () => this.#act.cancel(this.#book)));
    } else {
      if (book.status === "completed" && book.files === null) {
        actions.push(button(t("Files"), t("Files of “{title}”", named), () => this.#act.list(this.#book)));
      }
      actions.push(button(t("Delete"), t("Delete “{title}”", named), () => this.#act.remove(this.#book)));
    }
    this.#actions.replaceChildren(...actions);
    this.#files.replaceChildren(...(book.files ?? []).map((file) => this.#fileEntry(file)));
  }

  #fileEntry({ name, bytes }) {
    const entry = element("li");
    const address = this.#books.addressOf(this.#book.id, name);
    let link;
    if (address === null) {
      link = button(name, t("Download {file}", { file: name }), () => this.#act.fetch(this.#book, name));
    } else {
      link = element("a", name);
      Object.assign(link, { href: address, download: name });
      link.setAttribute("aria-label", t("Download {file}", { file: name }));
    }
    entry.append(link, element("small", t("{size} MB", { size: decimal(bytes / 1e6, 1) })));
    return entry;
  }
}

function describe({ status, spoken, sentences, skipped, seconds, error, expires_at: expires }) {
  const values = { spoken, sentences, time: shortClock(seconds) };
  if (status === "queued") return t("Waits for its turn.");
  if (status === "speaking") return t("{spoken} of {sentences} sentences, {time} of sound.", values);
  if (status === "writing") return t("All is spoken, and the files are being written…");
  if (status === "cancelled") return t("Cancelled.");
  if (status === "failed") return error?.message ?? t("It could not be spoken.");
  const date = new Date(1_000 * (expires ?? 0)).toLocaleDateString(language);
  const done = t("Done: {time} of sound. Kept until {date}.", { ...values, date });
  if (!skipped) return done;
  const left = t(
    { one: "{count} sentence could not be spoken.", other: "{count} sentences could not be spoken." },
    { count: skipped },
  );
  return `${done} ${left}`;
}
