// A connection that comes back by itself after it has broken.

import { RealtimeSession } from "../api/realtime.js";

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 8_000;
const PASSING = new Set([null, 429, 502, 503, 504]); // statuses that may be another one soon

export class Line {
  /** How a session is opened: another way may be set. */
  opener = (server, model, listener) => new RealtimeSession(server, model, listener);
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
   * @param {{opened(), received(event), sound(samples), interrupted(sentence), resumed(),
   *   broken(sentence), failed(error)}} listener `sound`: of an answer, where the session
   *   `carriesSound`; after `interrupted` the same session may go on, after `broken` another
   *   one begins; `failed` ends it: the server has refused, and would again
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

  /** Whether sound goes beside the events, both ways. */
  get carriesSound() {
    return this.#session?.carriesSound ?? false;
  }

  /** @param {boolean} open whether a session that carries sound lets the server hear the microphone */
  gate(open) {
    this.#session?.gate(open);
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
    this.#session = this.opener(this.#server, model(), {
      opened: () => {
        opened = true;
        this.#waitMs = FIRST_WAIT_MS;
        this.#listener.opened();
      },
      received: (event) => this.#listener.received(event),
      sound: (samples) => this.#listener.sound(samples),
      interrupted: (sentence) => this.#listener.interrupted(sentence),
      resumed: () => this.#listener.resumed(),
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
