// A player that can go to another place of the turn that it plays: it keeps a copy of the sound.

import { Recording } from "../speech/recording.js";
import { Player } from "./player.js";

export class SeekablePlayer extends Player {
  /** The frame of the turn from which reports count. */
  baseFrame = 0;
  #begun = null; // the arguments of `begin`
  #kept = new Recording();
  #flow = null; // what was said last of what follows: "rest", "halt" or "end"

  begin(turn) {
    this.#begun = turn;
    this.#kept = new Recording();
    this.#flow = null;
    this.baseFrame = 0;
    super.begin(turn);
  }

  push(samples) {
    this.#kept.add(samples.slice());
    super.push(samples);
  }

  rest() {
    this.#flow = "rest";
    super.rest();
  }

  halt() {
    this.#flow = "halt";
    super.halt();
  }

  end() {
    this.#flow = "end";
    super.end();
  }

  wake() {
    this.#flow = null;
    super.wake();
  }

  /** All of the turn's sound that has come; interleaved. */
  get kept() {
    return this.#kept.samples;
  }

  /** Plays on from a frame of what has come. Call it from the click. */
  seek(frame) {
    this.baseFrame = frame;
    super.begin(this.#begun);
    super.push(this.kept.slice(frame * this.#begun.channels));
    if (this.#flow !== null) super[this.#flow]();
  }
}
