// One of many streams: a turn on a session of its own, timed and not played.

import { SpeechSession } from "../api/session.js";
import { Listener } from "./listener.js";

export const Outcome = Object.freeze({
  WAITING: "waiting",
  SPEAKING: "speaking",
  DONE: "done",
  REFUSED: "refused", // no room: what HTTP says with 429
  FAILED: "failed",
  STOPPED: "stopped",
});

export class Stream {
  outcome = Outcome.WAITING;
  error = null;
  rtf = null;
  endedAt = null;
  listener = new Listener();
  #session;
  #startedAt = 0;
  #over = () => {};
  #samplesPerSecond = 1;

  constructor(server, number) {
    this.number = number;
    this.#session = new SpeechSession(server);
  }

  /** Resolves when it is over, however it ended. */
  run(config, text) {
    this.#startedAt = performance.now() / 1000;
    return new Promise((resolve) => {
      this.#over = resolve;
      this.#session.begin(config, {
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
      this.#session.write(text);
      this.#session.commit();
    });
  }

  stop() {
    if (this.endedAt !== null) return;
    this.#end(Outcome.STOPPED);
  }

  get elapsed() {
    return performance.now() / 1000 - this.#startedAt;
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
    this.#over();
  }
}
