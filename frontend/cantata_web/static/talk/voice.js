// Plays answers, and knows how much of one has been heard.

import { nextReserveSeconds, Phase } from "../player/playback.js";
import { Player } from "../player/player.js";
import { Position } from "../speech/position.js";
import { Recording } from "../speech/recording.js";
import { TALK_RATE } from "./capture.js";

const START_RESERVE_SECONDS = 0.08;

/**
 * Dispatches "begin" with each answer, "samples" (detail: the Int16Array), "audible" (detail: when
 * its first sound left the loudspeaker, in seconds on performance.now()'s clock), "silenced" when it
 * was stopped, and "ended" when all of it was played.
 */
export class AnswerVoice extends EventTarget {
  active = false; // an answer is played, or will be as soon as there is enough of it
  sampleRate = TALK_RATE;
  gaps = [];
  #own = new Player();
  #player = this.#own;
  #device = "";
  #reserveSeconds = START_RESERVE_SECONDS;
  #position = new Position();
  #played = new Recording();
  #receivedFrames = 0;

  /** The id of the loudspeaker; empty: the system's choice. */
  set device(id) {
    this.#device = id;
    this.#player.device = id;
  }

  /** Another player plays from now on; null: its own. */
  use(player) {
    this.#player = player ?? this.#own;
    this.#player.device = this.#device;
  }

  /** Prepares the sound device. Call it from the click. */
  unlock() {
    this.#player.unlock(this.sampleRate);
  }

  begin() {
    this.active = true;
    this.gaps = [];
    this.#position = new Position();
    this.#played = new Recording();
    this.#receivedFrames = 0;
    const position = this.#position;
    const current = (handle) => (value) => {
      if (this.active && position === this.#position) handle(value);
    };
    this.#player.begin({
      sampleRate: this.sampleRate,
      channels: 1,
      reserveSeconds: this.#reserveSeconds,
      listener: {
        audible: current((seconds) => this.#dispatch("audible", seconds)),
        report: (report) => {
          if (position === this.#position) this.#note(report);
        },
        ended: current(() => this.#end()),
      },
    });
    this.#dispatch("begin");
  }

  push(samples) {
    this.#receivedFrames += samples.length;
    this.#dispatch("samples", samples);
    this.#player.push(samples);
  }

  /** No more will be pushed: it ends when all has been played. */
  end() {
    this.#player.end();
  }

  /** Silence at once. Returns the milliseconds of the answer that were heard. */
  stop() {
    const most = this.#receivedFrames / this.sampleRate;
    const heard = this.playedSeconds - this.#player.outputLatencySeconds;
    this.active = false;
    this.#position.hold();
    this.#player.stop();
    this.#dispatch("silenced");
    return Math.floor(1000 * Math.min(most, Math.max(0, heard)));
  }

  get playedSeconds() {
    return this.#position.seconds;
  }

  /** Exactly what was played of the last answer. */
  get playedPcm() {
    return this.#played.samples;
  }

  #note({ played, playedFrames, bufferedFrames, gaps, phase }) {
    this.#played.add(played);
    if (!this.active) return;
    this.gaps = gaps.map(({ atFrame, frames }) => ({
      at: atFrame / this.sampleRate,
      seconds: frames / this.sampleRate,
    }));
    this.#position.report({
      seconds: playedFrames / this.sampleRate,
      bufferedSeconds: bufferedFrames / this.sampleRate,
      moving: phase === Phase.PLAYING,
    });
  }

  #end() {
    this.active = false;
    this.#reserveSeconds = nextReserveSeconds(this.#reserveSeconds, this.gaps.length);
    this.#dispatch("ended");
  }

  #dispatch(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
