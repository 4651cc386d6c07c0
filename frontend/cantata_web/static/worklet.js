// The audio thread: renders one Playback after another and keeps an exact copy of what it played.
//
// In:  {type: "begin", turn, reserveFrames, fadeFrames}, {type: "pcm", turn, samples},
//      {type: "end", turn}, {type: "stop", turn}
// Out: {type: "audible", turn, contextTime}, {type: "report", turn, played, ended, ...counters}
// `turn` numbers utterances, so that a message which crossed a newer utterance is dropped.

import { Phase, Playback } from "./playback.js";

const REPORT_FRAMES = 2048; // 85 ms at 24 kHz: often enough for meters, rare enough to be free

class CantataPlayer extends AudioWorkletProcessor {
  constructor() {
    super();
    this.playback = null;
    this.turn = 0;
    this.captured = new Int16Array(2 * REPORT_FRAMES); // a report can be one block late
    this.capturedLength = 0;
    this.sinceReport = 0;
    this.port.onmessage = ({ data }) => this.#receive(data);
  }

  process(_inputs, [[block]]) {
    if (this.playback === null) return true;
    const wasAudible = this.playback.audible;
    const played = this.playback.render(block);
    this.#capture(block, played);
    if (this.playback.audible && !wasAudible) {
      this.port.postMessage({ type: "audible", turn: this.turn, contextTime: currentTime });
    }
    this.sinceReport += block.length;
    const ended = this.playback.phase === Phase.ENDED;
    if (ended || this.sinceReport >= REPORT_FRAMES) this.#report(ended);
    return true;
  }

  #receive(message) {
    if (message.type === "begin") {
      const level = this.playback?.level ?? 0;
      this.turn = message.turn;
      this.playback = new Playback(message);
      this.playback.level = level; // what was cut off glides to silence
      this.capturedLength = 0;
      this.sinceReport = 0;
      return;
    }
    if (this.playback === null || message.turn !== this.turn) return;
    if (message.type === "pcm") this.playback.write(message.samples);
    else if (message.type === "end") this.playback.end();
    else if (message.type === "stop") this.playback.stop();
  }

  // Reads back the floats that left for the sound card, not the ring: x / 32768 is exact in a float,
  // so rounding restores each 16-bit sample, and a fault in between would show.
  #capture(block, count) {
    for (let i = 0; i < count; i += 1) {
      this.captured[this.capturedLength + i] = Math.round(block[i] * 32768);
    }
    this.capturedLength += count;
  }

  #report(ended) {
    const { playedFrames, starvedFrames, underruns, ring, phase } = this.playback;
    const played = this.captured.slice(0, this.capturedLength);
    this.port.postMessage(
      {
        type: "report",
        turn: this.turn,
        played,
        ended,
        phase,
        playedFrames,
        starvedFrames,
        underruns,
        bufferedFrames: ring.length,
      },
      [played.buffer],
    );
    this.capturedLength = 0;
    this.sinceReport = 0;
    if (ended) this.playback = null;
  }
}

registerProcessor("cantata-player", CantataPlayer);
