import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";

import { SpeechSession } from "../cantata_web/static/api/session.js";
import { FakeSocket } from "./fake_socket.js";

globalThis.WebSocket = FakeSocket;

const UNREACHABLE = new Error("the server cannot be reached");
const SERVER = {
  openSocket: () => new FakeSocket(),
  checkAccess: () => Promise.reject(UNREACHABLE),
  reach: () => Promise.reject(UNREACHABLE),
};
const settled = () => new Promise((resolve) => setImmediate(resolve));

const SILENT_MS = 4_000;

beforeEach(() => {
  FakeSocket.made = [];
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
});

function speak(session, config, text, turn) {
  session.begin(config, turn);
  session.write(text);
  session.commit();
}

function listen() {
  const seen = [];
  return {
    seen,
    words: (message) => seen.push(["words", message.words]),
    spoken: () => seen.push(["spoken"]),
    started: (message) => seen.push(["started", message.sample_rate]),
    audio: (samples) => seen.push(["audio", ...samples]),
    finished: (message) => seen.push(["finished", message.samples]),
    failed: (error) => seen.push(["failed", error.message]),
  };
}

const START = { type: "audio.start", sample_rate: 24000 };
const DONE = { type: "audio.done", samples: 2 };
const SPOKEN = { type: "input.spoken" };
const pcm = (...values) => Int16Array.from(values).buffer;

test("configuration, text and flush go out in that order once the socket is open", () => {
  const session = new SpeechSession(SERVER);
  speak(session, { voice: "clara", seed: 3 }, "Hello.", listen());
  const [socket] = FakeSocket.made;
  assert.deepEqual(socket.sent, []);
  socket.connect();
  assert.deepEqual(socket.sent, [
    { type: "session.config", response_format: "pcm", voice: "clara", seed: 3 },
    { type: "input.text", text: "Hello." },
    { type: "input.done" },
  ]);
});

test("an utterance reports its start and its end, and the next one reuses the socket", () => {
  const session = new SpeechSession(SERVER);
  const first = listen();
  speak(session, {}, "One.", first);
  const [socket] = FakeSocket.made;
  socket.connect();
  socket.receive(START);
  socket.receive(pcm(1, -2));
  socket.receive(DONE);
  socket.receive(SPOKEN);
  const told = [["started", 24000], ["audio", 1, -2], ["finished", 2], ["spoken"]];
  assert.deepEqual(first.seen, told);
  speak(session, {}, "Two.", listen());
  assert.equal(FakeSocket.made.length, 1);
  assert.equal(socket.sent.length, 6);
});

test("after a cancel the old utterance reports nothing, and a new one does not wait", () => {
  const session = new SpeechSession(SERVER);
  const first = listen();
  const second = listen();
  speak(session, {}, "One.", first);
  const [old] = FakeSocket.made;
  old.connect();
  old.receive(START);
  session.cancel();
  assert.deepEqual(old.sent.at(-1), { type: "input.cancel" });
  speak(session, {}, "Two.", second);
  old.receive(pcm(9));
  old.receive(DONE);
  assert.deepEqual(first.seen, [["started", 24000]]);
  assert.deepEqual(second.seen, []);
  assert.equal(FakeSocket.made.length, 2);
});

test("a cancelled utterance that has ended leaves the socket for the next one", () => {
  const session = new SpeechSession(SERVER);
  speak(session, {}, "One.", listen());
  const [socket] = FakeSocket.made;
  socket.connect();
  session.cancel();
  socket.receive({ ...DONE, cancelled: true });
  socket.receive({ type: "input.cancelled" });
  speak(session, {}, "Two.", listen());
  assert.equal(FakeSocket.made.length, 1);
});

test("the server's error is shown in its own words, as a sentence", () => {
  const session = new SpeechSession(SERVER);
  const heard = listen();
  speak(session, {}, "One.", heard);
  const [socket] = FakeSocket.made;
  socket.connect();
  socket.receive({ type: "error", error: { message: "too long" } });
  assert.deepEqual(heard.seen, [["failed", "Too long."]]);
  assert.equal(socket.readyState, 3);
});

test("a lost connection and an impossible one give different errors", async () => {
  const session = new SpeechSession(SERVER);
  const heard = listen();
  speak(session, {}, "One.", heard);
  FakeSocket.made[0].close();
  await settled();
  speak(session, {}, "One.", heard);
  FakeSocket.made[1].connect();
  FakeSocket.made[1].close();
  assert.match(heard.seen[0][1], /cannot be reached/);
  assert.match(heard.seen[1][1], /before the speech was complete/);
});

test("a connection that is lost without a close fails once the server does not answer", async () => {
  const session = new SpeechSession(SERVER);
  const heard = listen();
  speak(session, {}, "One.", heard);
  const [socket] = FakeSocket.made;
  socket.connect();
  socket.receive(START);
  mock.timers.tick(SILENT_MS - 1);
  socket.receive(pcm(1));
  mock.timers.tick(SILENT_MS - 1);
  await settled();
  assert.deepEqual(heard.seen.at(-1), ["audio", 1]);
  mock.timers.tick(1);
  await settled();
  assert.deepEqual(heard.seen.at(-1), ["failed", UNREACHABLE.message]);
  assert.equal(socket.readyState, 3);
});

test("a server that is silent for long and answers is waited for", async () => {
  let asked = 0;
  const session = new SpeechSession({ ...SERVER, reach: async () => (asked += 1) });
  const heard = listen();
  speak(session, {}, "One.", heard);
  const [socket] = FakeSocket.made;
  socket.connect();
  for (let silence = 1; silence <= 3; silence += 1) {
    mock.timers.tick(SILENT_MS);
    await settled();
    assert.equal(asked, silence);
  }
  socket.receive(START);
  socket.receive(SPOKEN);
  mock.timers.tick(10 * SILENT_MS);
  await settled();
  assert.equal(asked, 3);
  assert.deepEqual(heard.seen, [["started", 24000], ["spoken"]]);
});

test("a stream that is silent for a minute is lost, although the server answers", async () => {
  const session = new SpeechSession({ ...SERVER, reach: async () => {} });
  const heard = listen();
  speak(session, {}, "One.", heard);
  const [socket] = FakeSocket.made;
  socket.connect();
  const wait = async (silences) => {
    for (let silence = 0; silence < silences; silence += 1) {
      mock.timers.tick(SILENT_MS);
      await settled();
    }
  };
  await wait(14);
  socket.receive(START);
  await wait(14);
  assert.deepEqual(heard.seen, [["started", 24000]]);
  await wait(1);
  assert.deepEqual(heard.seen.at(-1), ["failed", "The connection was lost."]);
  assert.equal(socket.readyState, 3);
});

test("what was found out about a cancelled utterance does not end the next one", async () => {
  let answer;
  const reach = () => new Promise((_, reject) => (answer = reject));
  const session = new SpeechSession({ ...SERVER, reach });
  const second = listen();
  speak(session, {}, "One.", listen());
  FakeSocket.made[0].connect();
  mock.timers.tick(SILENT_MS);
  session.cancel();
  speak(session, {}, "Two.", second);
  answer(UNREACHABLE);
  await settled();
  assert.deepEqual(second.seen, []);
});

test("once a missing key is there, the same words are said on a new connection", async () => {
  const session = new SpeechSession({ ...SERVER, checkAccess: () => Promise.resolve() });
  speak(session, { voice: "ben" }, "One.", listen());
  FakeSocket.made[0].close();
  await settled();
  FakeSocket.made[1].connect();
  const types = FakeSocket.made[1].sent.map(({ type }) => type);
  assert.deepEqual(types, ["session.config", "input.text", "input.done"]);
});

test("a server that disconnects between turns causes no error", () => {
  const session = new SpeechSession(SERVER);
  const heard = listen();
  speak(session, {}, "One.", heard);
  FakeSocket.made[0].connect();
  FakeSocket.made[0].receive(DONE);
  FakeSocket.made[0].receive(SPOKEN);
  FakeSocket.made[0].close();
  assert.deepEqual(heard.seen, [["finished", 2], ["spoken"]]);
});

test("a full server is reported as such, with what to do", () => {
  const session = new SpeechSession(SERVER);
  let told = null;
  const turn = { ...listen(), failed: (error) => (told = error) };
  speak(session, {}, "One.", turn);
  FakeSocket.made[0].connect();
  const error = { message: "16 requests are running", code: "rate_limit_exceeded" };
  FakeSocket.made[0].receive({ type: "error", error, retry_after_s: 3 });
  assert.equal(told.code, "rate_limit_exceeded");
  assert.equal(told.message, "The server is full at the moment. Try again in 3 s.");
});

test("a lasting turn is told that the server has closed the connection, and continues with a new begin", () => {
  const session = new SpeechSession(SERVER);
  let dropped = 0;
  const turn = { ...listen(), dropped: () => (dropped += 1) };
  speak(session, {}, "One.", turn);
  FakeSocket.made[0].connect();
  FakeSocket.made[0].receive(DONE);
  FakeSocket.made[0].receive(SPOKEN);
  const error = { message: "nothing was sent for 30 s", code: "idle_timeout" };
  FakeSocket.made[0].receive({ type: "error", error });
  assert.equal(dropped, 1);
  assert.equal(turn.seen.some(([what]) => what === "failed"), false);
  speak(session, {}, "Two.", turn);
  assert.equal(FakeSocket.made.length, 2);
});
