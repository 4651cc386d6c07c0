import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";

import { SpeechSession } from "../cantata_web/static/session.js";

class FakeSocket extends EventTarget {
  static OPEN = 1;
  static made = [];
  readyState = 0;
  sent = [];

  constructor() {
    super();
    FakeSocket.made.push(this);
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.readyState = 3;
    this.dispatchEvent(new Event("close"));
  }

  connect() {
    this.readyState = FakeSocket.OPEN;
    this.dispatchEvent(new Event("open"));
  }

  deliver(data) {
    const wire = data instanceof ArrayBuffer ? data : JSON.stringify(data);
    this.dispatchEvent(new MessageEvent("message", { data: wire }));
  }
}

globalThis.WebSocket = FakeSocket;

beforeEach(() => {
  FakeSocket.made = [];
});

function listen() {
  const seen = [];
  return {
    seen,
    started: (message) => seen.push(["started", message.sample_rate]),
    audio: (samples) => seen.push(["audio", ...samples]),
    finished: (message) => seen.push(["finished", message.samples]),
    failed: (error) => seen.push(["failed", error.message]),
  };
}

const START = { type: "audio.start", sample_rate: 24000 };
const DONE = { type: "audio.done", samples: 2 };
const pcm = (...values) => Int16Array.from(values).buffer;

test("configuration, text and flush go out in that order once the socket is open", () => {
  const session = new SpeechSession("ws://x");
  session.speak({ voice: "clara", seed: 3 }, "Hello.", listen());
  const [socket] = FakeSocket.made;
  assert.deepEqual(socket.sent, []);
  socket.connect();
  assert.deepEqual(socket.sent, [
    { type: "session.config", response_format: "pcm", voice: "clara", seed: 3 },
    { type: "input.text", text: "Hello." },
    { type: "input.done" },
  ]);
});

test("an utterance is told from start to end, and the next one reuses the socket", () => {
  const session = new SpeechSession("ws://x");
  const first = listen();
  session.speak({}, "One.", first);
  const [socket] = FakeSocket.made;
  socket.connect();
  socket.deliver(START);
  socket.deliver(pcm(1, -2));
  socket.deliver(DONE);
  assert.deepEqual(first.seen, [["started", 24000], ["audio", 1, -2], ["finished", 2]]);
  session.speak({}, "Two.", listen());
  assert.equal(FakeSocket.made.length, 1);
  assert.equal(socket.sent.length, 6);
});

test("after a cancel nothing of the old utterance is told, and a new one does not wait", () => {
  const session = new SpeechSession("ws://x");
  const first = listen();
  const second = listen();
  session.speak({}, "One.", first);
  const [old] = FakeSocket.made;
  old.connect();
  old.deliver(START);
  session.cancel();
  assert.deepEqual(old.sent.at(-1), { type: "input.cancel" });
  session.speak({}, "Two.", second);
  old.deliver(pcm(9));
  old.deliver(DONE);
  assert.deepEqual(first.seen, [["started", 24000]]);
  assert.deepEqual(second.seen, []);
  assert.equal(FakeSocket.made.length, 2);
});

test("a cancelled utterance that has ended leaves the socket for the next one", () => {
  const session = new SpeechSession("ws://x");
  session.speak({}, "One.", listen());
  const [socket] = FakeSocket.made;
  socket.connect();
  session.cancel();
  socket.deliver({ ...DONE, cancelled: true });
  session.speak({}, "Two.", listen());
  assert.equal(FakeSocket.made.length, 1);
});

test("the server's refusal is told in its own words, as a sentence", () => {
  const session = new SpeechSession("ws://x");
  const heard = listen();
  session.speak({}, "One.", heard);
  const [socket] = FakeSocket.made;
  socket.connect();
  socket.deliver({ type: "error", error: { message: "too long" } });
  assert.deepEqual(heard.seen, [["failed", "Too long."]]);
  assert.equal(socket.readyState, 3);
});

test("a lost and an impossible connection are told apart", () => {
  const session = new SpeechSession("ws://x");
  const heard = listen();
  session.speak({}, "One.", heard);
  FakeSocket.made[0].close();
  session.speak({}, "One.", heard);
  FakeSocket.made[1].connect();
  FakeSocket.made[1].close();
  assert.match(heard.seen[0][1], /cannot be reached/);
  assert.match(heard.seen[1][1], /before the speech was complete/);
});

test("a server that hangs up between utterances disturbs nobody", () => {
  const session = new SpeechSession("ws://x");
  const heard = listen();
  session.speak({}, "One.", heard);
  FakeSocket.made[0].connect();
  FakeSocket.made[0].deliver(DONE);
  FakeSocket.made[0].close();
  assert.deepEqual(heard.seen, [["finished", 2]]);
});
