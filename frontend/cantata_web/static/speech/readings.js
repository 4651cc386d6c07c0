// What can be read of a Speaker: for tests and the browser's console.

export class Readings {
  #speaker;

  constructor(speaker) {
    this.#speaker = speaker;
  }

  get state() {
    return this.#speaker.state;
  }

  get metrics() {
    return this.#speaker.metrics;
  }

  get words() {
    return this.#speaker.words.all;
  }

  get heardSeconds() {
    return this.#speaker.heardSeconds;
  }

  get error() {
    return this.#speaker.error;
  }

  capturedPcm() {
    return this.#speaker.capturedPcm();
  }
}
