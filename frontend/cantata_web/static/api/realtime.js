// A spoken conversation's socket: OpenAI's Realtime events as JSON. Knows nothing about sound.

import { SpeechError } from "./errors.js";

const PATH = "v1/realtime";

export class RealtimeSession {
  #server;
  #path;
  #listener;
  #socket = null;
  #closed = false;

  /**
   * Connects.
   * @param {Server} server
   * @param {string} model which speaks; empty: the server's own choice
   * @param {{opened(), received(event), lost(error)}} listener `lost` is the last call; after
   *   `close` none comes
   */
  constructor(server, model, listener) {
    this.#server = server;
    this.#path = model === "" ? PATH : `${PATH}?model=${encodeURIComponent(model)}`;
    this.#listener = listener;
    this.#connect();
  }

  send(type, fields = {}) {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify({ type, ...fields }));
  }

  close() {
    this.#closed = true;
    this.#socket.close();
  }

  #connect() {
    const socket = this.#server.openSocket(this.#path);
    this.#socket = socket;
    let reached = false;
    socket.addEventListener("open", () => {
      reached = true;
      if (!this.#closed) this.#listener.opened();
    });
    socket.addEventListener("message", ({ data }) => {
      if (!this.#closed) this.#listener.received(JSON.parse(data));
    });
    socket.addEventListener("close", () => {
      if (this.#closed) return;
      if (reached) this.#lose(new SpeechError("The connection broke."));
      else void this.#refused();
    });
  }

  // The same address says over HTTP why a WebSocket is refused.
  async #refused() {
    try {
      await this.#server.checkAccess(this.#path);
    } catch (error) {
      if (!this.#closed) this.#lose(error);
      return;
    }
    if (!this.#closed) this.#connect();
  }

  #lose(error) {
    this.#closed = true;
    this.#listener.lost(error);
  }
}
