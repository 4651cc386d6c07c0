// Whether the server is there. It is asked once a second while the page is visible, and at once
// when something suggests that the answer has changed.

import { t } from "../texts.js";

const INTERVAL_MS = 1_000;
const LIMIT_MS = 1_500; // of one request; with the interval, a loss shows within 2.5 s
const MAX_INTERVAL_MS = 4_000; // while it is gone: each attempt waits twice as long as the last

/** Dispatches "change" when `ready` or `sentence` has changed. */
export class Connection extends EventTarget {
  ready = false;
  sentence = t("Looking for the server");
  #server;
  #intervalMs = INTERVAL_MS;
  #hurried = false; // ask again without a pause
  #wake = () => {};

  /** @param {Server} server dispatches "trouble" when a request or a socket has failed */
  constructor(server) {
    super();
    this.#server = server;
  }

  /** Watches for as long as the page lives. */
  start() {
    const ask = () => this.ask();
    this.#server.addEventListener("trouble", ask);
    document.addEventListener("visibilitychange", ask);
    for (const change of ["online", "offline"]) window.addEventListener(change, ask);
    void this.#watch();
  }

  /** Asks now, or as soon as the page is visible. */
  ask() {
    this.#hurried = true;
    this.#intervalMs = INTERVAL_MS;
    this.#wake();
  }

  /** Something failed for the reason `sentence`: not ready until the server has said so again. */
  lose(sentence) {
    this.#set(sentence);
    this.ask();
  }

  async #watch() {
    for (;;) {
      this.#hurried = false;
      this.#set(await this.#server.whyNotReady(LIMIT_MS));
      await this.#pause();
    }
  }

  #set(sentence) {
    const ready = sentence === null;
    this.#intervalMs = ready ? INTERVAL_MS : Math.min(MAX_INTERVAL_MS, 2 * this.#intervalMs);
    if (ready === this.ready && sentence === this.sentence) return;
    this.ready = ready;
    this.sentence = sentence;
    this.dispatchEvent(new Event("change"));
  }

  // A hidden page asks nothing.
  async #pause() {
    if (this.#hurried && !document.hidden) return;
    await new Promise((resolve) => {
      this.#wake = () => {
        if (!document.hidden) resolve();
      };
      setTimeout(this.#wake, this.#intervalMs);
    });
    this.#wake = () => {};
  }
}
