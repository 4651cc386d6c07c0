// The WebSocket side: text goes out, PCM comes in. Knows the protocol and nothing about sound.

import { t } from "../texts.js";
import { asSpeechError, SpeechError } from "./errors.js";

const SILENCE_MS = 4_000; // a server that owes speech is then asked whether it is there
const ANSWER_MS = 3_000;
const MAX_SILENCES = 15; // longer than any request waits for its turn or for a stage

/**
 * One socket, kept open between turns: the next sentence then starts without the round trips of a
 * new connection. A turn is a configuration and the text that is spoken under it.
 */
export class SpeechSession {
  #server;
  #socket = null;
  #unsent = []; // messages from before the socket was open
  #turn = null; // the callbacks of the current turn
  #owed = 0; // commits of this socket that have not been answered, perhaps of a cancelled turn
  #under = false; // an utterance has started and not ended
  #silence = null; // the timer of the server's silence
  #silences = 0; // that many have passed since its last message

  constructor(server) {
    this.#server = server;
  }

  /**
   * Starts a turn.
   * @param {object} config fields of session.config: model, voice, speed, seed, ...
   * @param {{started(message), audio(samples), words(message), finished(message), spoken(),
   *   failed(error), configured?(), dropped?()}} turn `finished` after each utterance, `spoken`
   *   after everything up to a `commit`, `configured` when the server awaits text. A turn with
   *   `dropped` lasts until `cancel` or `leave`; `dropped` is called when the server has closed the
   *   connection because nothing was written: the next text needs a `begin`.
   */
  begin(config, turn) {
    if (this.#socket === null || this.#owed > 0 || this.#under) this.#open();
    this.#turn = turn;
    this.#send({ type: "session.config", response_format: "pcm", ...config });
  }

  write(text) {
    this.#send({ type: "input.text", text });
  }

  /** Commits everything that was written, so that it is spoken. */
  commit() {
    this.#owed += 1;
    this.#send({ type: "input.done" });
    this.#watch();
  }

  /** Ends a lasting turn after everything has been spoken. */
  leave() {
    this.#turn = null;
  }

  /** Ends the turn at once; no further events. */
  cancel() {
    this.#turn = null;
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      this.#drop();
      return;
    }
    this.#send({ type: "input.cancel" });
    // Sound may still arrive: the socket is free once the server has answered.
    this.#owed = Math.max(1, this.#owed);
  }

  /** Ends everything at once, including the connection. */
  close() {
    this.#turn = null;
    this.#drop();
  }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
    else this.#unsent.push(message);
  }

  #open() {
    this.#drop();
    this.#connect();
  }

  #connect() {
    const socket = this.#server.openSocket();
    socket.binaryType = "arraybuffer";
    let reached = false;
    socket.addEventListener("open", () => {
      reached = true;
      if (socket !== this.#socket) return;
      for (const message of this.#unsent.splice(0)) socket.send(JSON.stringify(message));
    });
    socket.addEventListener("message", ({ data }) => {
      if (socket === this.#socket) this.#receive(data);
    });
    socket.addEventListener("close", () => {
      if (socket !== this.#socket) return;
      if (reached) {
        this.#drop();
        this.#fail(new SpeechError(t("The connection closed before the speech was complete.")));
      } else {
        void this.#refused(socket);
      }
    });
    this.#socket = socket;
  }

  async #refused(socket) {
    try {
      await this.#server.checkAccess();
    } catch (error) {
      if (socket !== this.#socket) return;
      this.#drop();
      this.#fail(error);
      return;
    }
    if (socket === this.#socket) this.#connect();
  }

  // A connection may be lost without a close, and the server be there all the same.
  #watch() {
    clearTimeout(this.#silence);
    if (this.#turn === null || this.#owed === 0) return;
    const silence = setTimeout(() => void this.#ask(silence), SILENCE_MS);
    this.#silence = silence;
  }

  async #ask(silence) {
    const current = () => silence === this.#silence && this.#turn !== null;
    try {
      this.#silences += 1;
      await this.#server.reach(ANSWER_MS);
      if (this.#silences >= MAX_SILENCES) throw new SpeechError(t("The connection was lost."));
      if (current()) this.#watch();
    } catch (error) {
      if (!current()) return;
      this.#drop();
      this.#fail(error);
    }
  }

  #receive(data) {
    this.#silences = 0;
    this.#read(data);
    this.#watch();
  }

  #read(data) {
    if (data instanceof ArrayBuffer) {
      this.#turn?.audio(new Int16Array(data));
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "session.configured") {
      this.#turn?.configured?.();
    } else if (message.type === "audio.start") {
      this.#under = true;
      this.#turn?.started(message);
    } else if (message.type === "audio.timestamps") {
      this.#turn?.words(message);
    } else if (message.type === "audio.done") {
      this.#under = false;
      if (!message.cancelled) this.#turn?.finished(message);
    } else if (message.type === "input.cancelled") {
      this.#owed = 0;
    } else if (message.type === "input.spoken") {
      this.#owed -= 1;
      const turn = this.#turn;
      if (this.#owed === 0 && turn?.dropped === undefined) this.#turn = null;
      turn?.spoken();
    } else if (message.type === "error") {
      // The server's state after a rejection is unknown, so the next turn takes a new socket.
      this.#drop();
      if (message.error.code === "idle_timeout") this.#turn?.dropped?.();
      else this.#fail(asSpeechError(message.error, { retryAfter: message.retry_after_s ?? null }));
    }
  }

  #fail(error) {
    const turn = this.#turn;
    this.#turn = null;
    turn?.failed(error);
  }

  #drop() {
    const socket = this.#socket;
    clearTimeout(this.#silence);
    this.#silence = null;
    this.#silences = 0;
    this.#socket = null;
    this.#unsent = [];
    this.#owed = 0;
    this.#under = false;
    socket?.close();
  }
}
