// The books that the server speaks in the background: begun, followed, ended. No DOM here.

import { SpeechError } from "../api/errors.js";
import { readEvents } from "../api/events.js";

const MAX_FOLLOWED = 2; // the server speaks as many at a time, and browsers have few connections
const WAITS_MS = [1_000, 2_000, 4_000, 8_000]; // before a connection that broke is tried again
const FINAL = new Set(["completed", "failed", "cancelled"]);

/** Whether nothing changes any more. */
export function isOver({ status }) {
  return FINAL.has(status);
}

/** Dispatches "change" whenever a book has got on, or the list is another one. */
export class KeptBooks extends EventTarget {
  /** As /v1/jobs lists them, the newest first; `files` only of those that were looked for. */
  all = [];
  /** Why the list could not be read: a SpeechError; null if it could. */
  error = null;
  #server;
  #waits;
  #watched = false;
  #following = new Map(); // AbortControllers by id

  /** @param {number[]} waits milliseconds, the last again and again */
  constructor(server, waits = WAITS_MS) {
    super();
    this.#server = server;
    this.#waits = waits;
  }

  /** Whether anybody looks: only then is the server asked. */
  watch(watched) {
    if (watched === this.#watched) return;
    this.#watched = watched;
    for (const ending of this.#following.values()) ending.abort();
    this.#following.clear();
    if (watched) void this.look();
  }

  /** Reads the list. */
  async look() {
    try {
      const { data } = await this.#server.json("v1/jobs");
      const files = new Map(this.all.map(({ id, files }) => [id, files]));
      this.all = data.map((book) => ({ ...book, files: files.get(book.id) ?? null }));
      this.error = null;
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.error = error;
    }
    this.#tell();
    this.#follow();
  }

  /**
   * Begins one; rejects with a SpeechError. `options` are fields of POST /v1/jobs.
   * @param {{file?: File, text?: string}} source
   */
  async begin({ file, text }, options) {
    const order = { method: "POST" };
    if (file === undefined) {
      order.headers = { "Content-Type": "application/json" };
      order.body = JSON.stringify({ ...options, input: text });
    } else {
      order.body = new FormData();
      order.body.append("file", file, file.name);
      for (const [name, value] of Object.entries(options)) {
        order.body.append(name, typeof value === "object" ? JSON.stringify(value) : String(value));
      }
    }
    const book = await this.#server.json("v1/jobs", order);
    await this.look();
    return book;
  }

  /** Ends one early; rejects with a SpeechError. */
  async cancel(id) {
    await this.#server.request(`v1/jobs/${id}/cancel`, { method: "POST" });
    await this.look();
  }

  /** Deletes one with its files; rejects with a SpeechError. */
  async delete(id) {
    await this.#server.request(`v1/jobs/${id}`, { method: "DELETE" });
    await this.look();
  }

  /** Reads one whole, with its files; rejects with a SpeechError. */
  async find(id) {
    const found = await this.#server.json(`v1/jobs/${id}`);
    this.#replace(id, found);
  }

  /** Resolves with a file as a Blob, for servers with keys; rejects with a SpeechError. */
  async fetchFile(id, name) {
    return (await this.#server.request(this.#pathOf(id, name))).blob();
  }

  /** Where a browser can fetch a file by itself; null: it would need the key. */
  addressOf(id, name) {
    return this.#server.hasKey ? null : new URL(this.#pathOf(id, name), this.#server.base).href;
  }

  #pathOf(id, name) {
    return `v1/jobs/${id}/files/${encodeURIComponent(name)}`;
  }

  #follow() {
    if (!this.#watched) return;
    const open = this.all.filter((book) => !isOver(book)).reverse();
    for (const book of open.slice(0, MAX_FOLLOWED)) {
      if (!this.#following.has(book.id)) void this.#followOne(book);
    }
  }

  async #followOne({ id, spoken }) {
    const ending = new AbortController();
    this.#following.set(id, ending);
    const { signal } = ending;
    // A step for each sentence, and one before: what is known already is not sent again.
    let last = spoken;
    for (let tries = 0; !signal.aborted && this.#isOpen(id); tries += 1) {
      if (tries > 0) await wait(this.#waits[Math.min(tries, this.#waits.length) - 1], signal);
      try {
        const headers = last > 0 ? { "Last-Event-ID": String(last) } : {};
        const response = await this.#server.request(`v1/jobs/${id}/events`, { headers, signal });
        if (response.status === 204) break;
        for await (const { id: step, data } of readEvents(response.body)) {
          [last, tries] = [Number(step), 0];
          this.#note(id, data);
        }
      } catch (error) {
        if (error.name === "AbortError" || error.status === 404) break;
        if (!(error instanceof SpeechError)) throw error;
      }
    }
    if (signal.aborted) return; // another may follow it by now
    this.#following.delete(id);
    try {
      await this.find(id);
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
    }
    await this.look();
  }

  #isOpen(id) {
    const book = this.all.find((one) => one.id === id);
    return book !== undefined && !isOver(book);
  }

  #note(id, { type, ...step }) {
    const kind = type.replace("job.", "");
    if (kind !== "progress") this.#replace(id, { status: kind });
    else this.#replace(id, { status: "speaking", spoken: step.spoken, seconds: step.seconds });
  }

  #replace(id, fields) {
    this.all = this.all.map((book) => (book.id === id ? { ...book, ...fields } : book));
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}

function wait(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
