// How far a turn has been played: between the audio thread's reports it moves on by the clock.

export class Position {
  #seconds; // by the last report
  #bufferedSeconds = 0;
  #reportedAt = null; // null: the sound stands still
  #shownSeconds; // never decreases, even if the clock was ahead of the sound
  #rate = 1;

  constructor(seconds = 0) {
    this.#seconds = seconds;
    this.#shownSeconds = seconds;
  }

  /** @param {number} rate seconds of sound in a second */
  report({ seconds, bufferedSeconds, moving, rate = 1 }) {
    this.#rate = rate;
    this.#seconds = seconds;
    this.#bufferedSeconds = bufferedSeconds;
    this.#reportedAt = moving ? performance.now() / 1000 : null;
  }

  /** The sound stands still until the next report. */
  hold() {
    this.#seconds = this.seconds;
    this.#reportedAt = null;
  }

  get seconds() {
    const since = this.#reportedAt === null ? 0 : performance.now() / 1000 - this.#reportedAt;
    const moved = Math.min(since * this.#rate, this.#bufferedSeconds);
    this.#shownSeconds = Math.max(this.#shownSeconds, this.#seconds + moved);
    return this.#shownSeconds;
  }
}
