// The Gradio component: what it says to the speaker, and what it reports of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Narration } from "../cantata_web/static/component/narration.js";
import { Reports } from "../cantata_web/static/component/reports.js";
import { State } from "../cantata_web/static/speech/states.js";
import { WordTrack } from "../cantata_web/static/speech/words.js";

/** Notes what it is asked for, and enters states as the test says. */
class NotingSpeaker extends EventTarget {
  said = [];
  state = State.IDLE;
  error = null;
  heardSeconds = 0;
  metrics = { ttfpSeconds: null, playedFrames: 0, sampleRate: 24_000, underruns: 0 };
  words = new WordTrack();

  get busy() {
    return ![State.IDLE, State.DONE, State.STOPPED, State.ERROR].includes(this.state);
  }

  speak({ text, ...config }) {
    this.said.push(["speak", text, config]);
    this.enter(State.WAITING);
  }

  listen(config) {
    this.said.push(["listen", config]);
    this.enter(State.LISTENING);
  }

  write(text) {
    this.said.push(["write", text]);
  }

  commit() {
    this.said.push(["commit"]);
  }

  close() {
    this.said.push(["close"]);
  }

  stop() {
    this.said.push(["stop"]);
    if (this.busy) this.enter(State.STOPPED);
  }

  enter(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

function narrated() {
  const speaker = new NotingSpeaker();
  return { speaker, narration: new Narration(speaker) };
}

const growing = (text) => ({ text, complete: false, request: {} });
const whole = (text, request = {}) => ({ text, complete: true, request });

test("a whole text is spoken at once, with its own fields before the component's", () => {
  const { speaker, narration } = narrated();
  narration.follow(whole("Good morning.", { voice: "ben" }), { voice: "clara", seed: 3 });
  assert.deepEqual(speaker.said, [["speak", "Good morning.", { voice: "ben", seed: 3 }]]);
});

test("a growing text is written word by word and ends when it is complete", () => {
  const { speaker, narration } = narrated();
  narration.follow(growing("When it rains, "), { speed: 1.5 });
  narration.follow(growing("When it rains, we st"), {});
  narration.follow(whole("When it rains, we stay."), {});
  assert.deepEqual(speaker.said, [
    ["listen", { speed: 1.5 }],
    ["write", "When "],
    ["write", "it "],
    ["write", "rains, "],
    ["commit"],
    ["write", "we "],
    ["write", "stay."],
    ["commit"],
    ["close"],
  ]);
});

test("another text cuts off the one under way", () => {
  const { speaker, narration } = narrated();
  narration.follow(growing("One thing and "), {});
  narration.follow(growing("Quite another "), {});
  const begun = speaker.said.filter(([what]) => what === "listen");
  assert.equal(begun.length, 2);
  assert.deepEqual(speaker.said.slice(-2), [
    ["write", "Quite "],
    ["write", "another "],
  ]);
  narration.follow(whole("And a third."), {});
  assert.deepEqual(speaker.said.at(-1), ["speak", "And a third.", {}]);
});

for (const ended of [State.STOPPED, State.ERROR]) {
  test(`the rest of a text is not spoken after ${ended}, and the next one is`, () => {
    const { speaker, narration } = narrated();
    narration.follow(growing("One thing and "), {});
    speaker.enter(ended);
    speaker.said = [];
    narration.follow(growing("One thing and then "), {});
    narration.follow(whole("One thing and then no more."), {});
    assert.deepEqual(speaker.said, []);
    narration.follow(whole("One thing and then no more."), {});
    assert.deepEqual(speaker.said, [["speak", "One thing and then no more.", {}]]);
  });
}

test("no value stops the speech", () => {
  const { speaker, narration } = narrated();
  narration.follow(whole("Good morning."), {});
  narration.follow("", {}); // Gradio's form of None
  assert.deepEqual(speaker.said.at(-1), ["stop"]);
});

test("the first packet, each word once and in order, and the end are reported", (t) => {
  const frames = [];
  globalThis.requestAnimationFrame = (frame) => frames.push(frame);
  t.after(() => delete globalThis.requestAnimationFrame);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const draw = () => {
    frames.shift()();
    t.mock.timers.tick(1_000); // until the next frame is asked for
  };
  const speaker = new NotingSpeaker();
  const reported = [];
  new Reports(speaker, (event, data) => reported.push([event, data])).start();
  const word = (text, start, end) => ({ text, start, end });

  speaker.dispatchEvent(new Event("begin"));
  speaker.enter(State.WAITING);
  speaker.metrics.ttfpSeconds = 0.1;
  speaker.dispatchEvent(new Event("metrics"));
  speaker.dispatchEvent(new Event("metrics"));
  const times = [
    { start: 0, end: 0.2, text_start: 0, text_end: 2 },
    { start: 0.3, end: 0.5, text_start: 3, text_end: 5 },
    { start: 0.6, end: 0.9, text_start: 6, text_end: 8 },
  ];
  speaker.words.add(times, { sent: "It is so", base: 0, atSeconds: 0 });
  speaker.heardSeconds = 0.4;
  draw();
  draw();
  speaker.metrics.playedFrames = 24_000;
  speaker.enter(State.DONE);
  draw();
  assert.deepEqual(frames, [], "no frame is asked for after the end");
  assert.deepEqual(reported, [
    ["first_packet", { seconds: 0.1 }],
    ["word", word("It", 0, 0.2)],
    ["word", word("is", 0.3, 0.5)],
    ["word", word("so", 0.6, 0.9)],
    ["done", { seconds: 1, underruns: 0, stopped: false }],
  ]);

  speaker.error = "The server is full at the moment.";
  speaker.enter(State.ERROR);
  assert.deepEqual(reported.at(-1), ["failed", { message: speaker.error }]);
});
