// How soon a turn was answered, in seconds from the end of what the user said.

export class Latencies {
  noticed = null; // the server knew that the turn was over
  text = null; // the first words of the answer
  sound = null; // its first sound left the loudspeaker
  #spokeUntil;

  /** @param {number} spokeUntil when the user stopped, in seconds on performance.now()'s clock */
  constructor(spokeUntil) {
    this.#spokeUntil = spokeUntil;
  }

  /** Notes the first `what` ("noticed", "text" or "sound"); later ones change nothing. */
  note(what, at) {
    this[what] ??= Math.max(0, at - this.#spokeUntil);
  }
}

const CLOCK_PACKETS = 50; // of which the one that came with the least delay tells the time

/** When the microphone heard what, from the packets that were sent. */
export class HeardClock {
  #seconds = 0; // of sound, in all
  #starts = []; // when the sound began, by each of the last packets

  /** @param {number} at when `seconds` more had come */
  advance(seconds, at) {
    this.#seconds += seconds;
    this.#starts.push(at - this.#seconds);
    if (this.#starts.length > CLOCK_PACKETS) this.#starts.shift();
  }

  /** When the sound's second number `position` was heard. */
  when(position) {
    return Math.min(...this.#starts) + position;
  }
}
