// A spoken conversation's socket: OpenAI's Realtime events as JSON. Knows nothing about sound.

import { t } from "../texts.js";
import { SpeechError } from "./errors.js";
import { Resumption } from "./resumption.js";

const PATH = "v1/realtime";
const LOST = 1006; // the code of a connection that ended without a close
const RETRY_MS = 1_000;

export class RealtimeSession {
  #server;
  #query;
  #listener;
  #socket = null;
  #resumption = new Resumption();
  #timer = null;
  #closed = false;

  /**
   * Connects, and again when the connection is lost, while the server keeps the session.
   * @param {Server} server
   * @param {string} model which speaks; empty: the server's own choice
   * @param {{opened(), received(event), interrupted(sentence), resumed(), lost(error)}} listener
   *   `interrupted` when the connection is lost and may come back, `resumed` when it has; `lost` is
   *   the last call; after `close` none comes
   */
  constructor(server, model, listener) {
    this.#server = server;
    const chosen = model === "" ? "" : `model=${encodeURIComponent(model)}&`;
    this.#query = `${chosen}resumable=true`;
    this.#listener = listener;
    this.#connect();
  }

  send(type, fields = {}) {
    const { waiting } = this.#resumption;
    if (!waiting && this.#socket.readyState !== WebSocket.OPEN) return;
    const message = JSON.stringify({ type, ...fields });
    this.#resumption.keep(message);
    if (!waiting) this.#socket.send(message);
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket.close();
  }

  get #path() {
    const { waiting, query } = this.#resumption;
    return `${PATH}?${waiting ? query : this.#query}`;
  }

  #connect() {
    const socket = this.#server.openSocket(this.#path);
    this.#socket = socket;
    let reached = false;
    socket.addEventListener("open", () => {
      reached = true;
      if (!this.#closed && !this.#resumption.waiting) this.#listener.opened();
    });
    socket.addEventListener("message", ({ data }) => {
      if (!this.#closed) this.#take(JSON.parse(data));
    });
    socket.addEventListener("close", ({ code }) => {
      if (this.#closed) return;
      if (!reached) void this.#refused();
      else if (code === LOST && this.#resumption.possible) this.#resume();
      else this.#lose(new SpeechError(t("The connection broke.")));
    });
  }

  #take(event) {
    const { waiting } = this.#resumption;
    const missed = this.#resumption.take(event);
    if (event.type !== "session.resumed") {
      this.#listener.received(event);
    } else if (waiting) {
      for (const message of missed) this.#socket.send(message);
      this.#listener.resumed();
    }
  }

  #resume() {
    if (!this.#resumption.waiting) {
      this.#resumption.lose();
      this.#listener.interrupted(t("The connection broke."));
    }
    this.#connect();
  }

  // The same address says over HTTP why a WebSocket is refused.
  async #refused() {
    let error = null;
    try {
      await this.#server.checkAccess(this.#path);
    } catch (reason) {
      error = reason;
    }
    if (this.#closed) return;
    if (error === null) this.#connect();
    else if (!this.#resumption.waiting) this.#lose(error);
    else if (this.#resumption.possible && (error.status ?? null) === null)
      this.#timer = setTimeout(() => this.#connect(), RETRY_MS);
    else this.#lose(new SpeechError(t("The connection broke."))); // another session goes on
  }

  #lose(error) {
    this.#closed = true;
    this.#listener.lost(error);
  }
}
