// A connection that comes back by itself after it has broken.

import { RealtimeSession } from "../api/realtime.js";

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 8_000;
const PASSING = new Set([null, 429, 502, 503, 504]); // statuses that may be another one soon

export class Line {
  #server;
  #session = null;
  #timer = null;
  #waitMs = FIRST_WAIT_MS;
  #listener;

  constructor(server) {
    this.#server = server;
  }

  /**
   * Connects, and again whenever the connection breaks, until `close`.
   * @param {() => string} model which speaks; asked for with every connection
   * @param {{opened(), received(event), broken(sentence), failed(error)}} listener `failed` ends
   *   it: the server has refused, and would again
   */
  open(model, listener) {
    this.close();
    this.#listener = listener;
    this.#connect(model, false);
  }

  /** Whether anything can be sent. */
  get connected() {
    return this.#session !== null;
  }

  send(type, fields) {
    this.#session?.send(type, fields);
  }

  close() {
    clearTimeout(this.#timer);
    this.#session?.close();
    this.#session = null;
    this.#waitMs = FIRST_WAIT_MS;
  }

  #connect(model, again) {
    let opened = again;
    this.#session = new RealtimeSession(this.#server, model(), {
      opened: () => {
        opened = true;
        this.#waitMs = FIRST_WAIT_MS;
        this.#listener.opened();
      },
      received: (event) => this.#listener.received(event),
      lost: (error) => {
        this.#session = null;
        // A first connection that fails is a mistake to be told; a later one, an interruption.
        if (opened && PASSING.has(error.status)) this.#wait(model, error);
        else this.#listener.failed(error);
      },
    });
  }

  #wait(model, error) {
    this.#timer = setTimeout(() => this.#connect(model, true), this.#waitMs);
    this.#waitMs = Math.min(MAX_WAIT_MS, 2 * this.#waitMs);
    this.#listener.broken(error.message);
  }
}
