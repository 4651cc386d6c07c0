// A talk with its parts, and what can be read of it.

import { Line } from "./line.js";
import { Microphone } from "./microphone.js";
import { Talk } from "./talk.js";
import { AnswerVoice } from "./voice.js";

/** @param {() => {model?, voice?}} choice which model and which voice answer */
export function openTalk(server, choice) {
  const voice = new AnswerVoice();
  const line = new Line(server);
  const microphone = new Microphone();
  const talk = new Talk({ line, microphone, voice, choice });
  return { talk, line, voice, microphone };
}

/** For tests and the browser's console. */
export class TalkReadings {
  #talk;
  #voice;

  constructor(talk, voice) {
    this.#talk = talk;
    this.#voice = voice;
  }

  get state() {
    return this.#talk.state;
  }

  get turns() {
    return this.#talk.transcript.turns;
  }

  get latencies() {
    return this.#talk.latencies;
  }

  /** The samples of the last answer that the audio thread played. */
  capturedPcm() {
    return this.#voice.playedPcm;
  }
}
