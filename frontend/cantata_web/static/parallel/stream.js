// One of many streams: a turn on a session of its own, timed and not played.
//
// Chromium holds back sockets when more than a dozen are being opened, by up to five seconds each.
// Streams that are to start at the same moment are connected first, a few at a time.

import { SpeechSession } from "../api/session.js";
import { Listener } from "./listener.js";

const CONNECTED_TOGETHER = 6;

export const Outcome = Object.freeze({
  CONNECTING: "connecting",
  WAITING: "waiting",
  SPEAKING: "speaking",
  DONE: "done",
  REFUSED: "refused", // no room: 429 in HTTP
  FAILED: "failed",
  STOPPED: "stopped",
});

export class Stream {
  outcome = Outcome.CONNECTING;
  error = null;
  rtf = null;
  endedAt = null;
  listener = new Listener();
  #session;
  #startedAt = null;
  #connected = () => {};
  #over = () => {};
  #samplesPerSecond = 1;

  constructor(server, number) {
    this.number = number;
    this.#session = new SpeechSession(server);
  }

  /** Resolves once the server awaits its text, or the stream has ended. */
  connect(config) {
    if (this.endedAt !== null) return Promise.resolve();
    return new Promise((resolve) => {
      this.#connected = resolve;
      this.#session.begin(config, {
        configured: resolve,
        started: (message) => {
          this.#samplesPerSecond = message.sample_rate * message.channels;
        },
        audio: (samples) => this.#receive(samples),
        words: () => {},
        finished: (message) => {
          this.rtf = message.rtf;
        },
        spoken: () => this.#end(Outcome.DONE),
        failed: (error) => this.#fail(error),
      });
    });
  }

  /** Resolves when the stream has ended in any way. Times count from here. */
  speak(text) {
    if (this.endedAt !== null) return Promise.resolve();
    this.outcome = Outcome.WAITING;
    this.#startedAt = performance.now() / 1000;
    return new Promise((resolve) => {
      this.#over = resolve;
      this.#session.write(text);
      this.#session.commit();
    });
  }

  stop() {
    if (this.endedAt !== null) return;
    this.#end(Outcome.STOPPED);
  }

  get elapsed() {
    return this.#startedAt === null ? 0 : performance.now() / 1000 - this.#startedAt;
  }

  #receive(samples) {
    this.outcome = Outcome.SPEAKING;
    this.listener.receive(this.elapsed, samples.length / this.#samplesPerSecond);
  }

  #fail(error) {
    this.error = error;
    this.#end(error.code === "rate_limit_exceeded" ? Outcome.REFUSED : Outcome.FAILED);
  }

  #end(outcome) {
    this.outcome = outcome;
    this.endedAt = this.elapsed;
    this.#session.close();
    this.#connected();
    this.#over();
  }
}

/** Resolves once each of `streams` is connected, or over. */
export async function connectAll(streams, config) {
  const rest = streams.values();
  const connectRest = async () => {
    for (const stream of rest) await stream.connect(config);
  };
  await Promise.all(Array.from({ length: CONNECTED_TOGETHER }, connectRest));
}
