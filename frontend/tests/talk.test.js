import assert from "node:assert/strict";
import test, { beforeEach, mock } from "node:test";

import { SpeechError } from "../cantata_web/static/api/errors.js";
import { encodePcm } from "../cantata_web/static/talk/base64.js";
import { Line } from "../cantata_web/static/talk/line.js";
import { TalkState } from "../cantata_web/static/talk/states.js";
import { Talk } from "../cantata_web/static/talk/talk.js";
import { FakeSocket } from "./fake_socket.js";

const HEARD_MS = 420;

globalThis.WebSocket = FakeSocket;

class FakeVoice extends EventTarget {
  active = false;
  pushed = 0;
  unlock() {}
  begin() {
    this.active = true;
  }
  push(samples) {
    this.pushed += samples.length;
  }
  end() {}
  stop() {
    this.active = false;
    return HEARD_MS;
  }
}

let talk, voice, microphone, chosen, refusal;
const settled = () => new Promise((resolve) => setImmediate(resolve));
const socket = () => FakeSocket.made.at(-1);

beforeEach(async () => {
  FakeSocket.made = [];
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout"] });
  refusal = new SpeechError("The server cannot be reached.");
  chosen = { model: "solo", voice: "clara" };
  voice = new FakeVoice();
  microphone = {
    closed: 0,
    open: async (listener) => {
      microphone.listener = listener;
      return true;
    },
    close: () => (microphone.closed += 1),
  };
  const server = {
    openSocket: (path) => new FakeSocket(path),
    checkAccess: () => Promise.reject(refusal),
  };
  talk = new Talk({ line: new Line(server), microphone, voice, choice: () => chosen });
  await talk.start();
});

function connect() {
  socket().connect();
  socket().deliver("session.updated");
}

function hearTurn(words = "hello there") {
  const s = socket();
  s.deliver("input_audio_buffer.speech_started", { item_id: "u1", audio_start_ms: 0 });
  s.deliver("input_audio_buffer.speech_stopped", { item_id: "u1", audio_end_ms: 500 });
  const completed = "conversation.item.input_audio_transcription.completed";
  s.deliver(completed, { item_id: "u1", transcript: words });
}

function beginAnswer(sound = true) {
  const s = socket();
  s.deliver("response.created", { response: { id: "r1" } });
  s.deliver("response.output_item.added", { response_id: "r1", item: { id: "a1" } });
  const delta = { response_id: "r1", item_id: "a1" };
  s.deliver("response.output_audio_transcript.delta", { ...delta, delta: "You said" });
  if (sound) deliverSound();
}

// The server's answers to the item that was sent last.
function takeItem() {
  socket().deliver("conversation.item.added", { item: socket().sent.at(-1).item });
}

function refuseItem(message) {
  const { event_id } = socket().sent.at(-1);
  socket().deliver("error", { error: { code: "body_too_large", message, event_id } });
}

function deliverSound() {
  const delta = encodePcm(new Int16Array(2400));
  socket().deliver("response.output_audio.delta", { response_id: "r1", item_id: "a1", delta });
}

test("the session is told the voice, and hears nothing before it knows", () => {
  const packet = new Int16Array(960).fill(1000);
  assert.equal(talk.state, TalkState.CONNECTING);
  assert.equal(socket().path, "v1/realtime?model=solo&resumable=true");
  socket().connect();
  microphone.listener.heard(packet);
  assert.deepEqual(socket().types, ["session.update"]);
  const { input, output } = socket().sent[0].session.audio;
  assert.deepEqual(input.format, { type: "audio/pcm", rate: 24_000 });
  assert.deepEqual(output, { format: input.format, voice: "clara" });
  socket().deliver("session.updated");
  assert.equal(talk.state, TalkState.LISTENING);
  microphone.listener.heard(packet);
  assert.deepEqual(socket().sent[1], {
    type: "input_audio_buffer.append",
    audio: encodePcm(packet),
  });
});

test("speech stops the answer at once, and the server is told what was heard", () => {
  connect();
  hearTurn();
  beginAnswer();
  assert.equal(talk.state, TalkState.SPEAKING);
  socket().deliver("input_audio_buffer.speech_started", { item_id: "u2", audio_start_ms: 0 });
  assert.equal(voice.active, false);
  assert.equal(talk.state, TalkState.HEARING);
  assert.deepEqual(socket().sent.at(-1), {
    type: "conversation.item.truncate",
    item_id: "a1",
    content_index: 0,
    audio_end_ms: HEARD_MS,
    event_id: "race",
  });
  const { pushed } = voice;
  deliverSound();
  assert.equal(voice.pushed, pushed, "late sound is not played");
  socket().deliver("response.done", { response: { id: "r1", status: "cancelled" } });
  assert.equal(talk.state, TalkState.HEARING);
});

test("the button cancels an answer that is still being made", () => {
  connect();
  hearTurn();
  beginAnswer();
  talk.interrupt();
  assert.deepEqual(socket().types.slice(-2), ["response.cancel", "conversation.item.truncate"]);
  assert.equal(talk.state, TalkState.LISTENING);
  assert.equal(talk.answering, false);
});

test("the button silences an answer that has been made, without a cancel", () => {
  connect();
  hearTurn();
  beginAnswer();
  socket().deliver("response.done", { response: { id: "r1", status: "completed" } });
  assert.equal(talk.state, TalkState.SPEAKING);
  talk.interrupt();
  assert.deepEqual(socket().types, ["session.update", "conversation.item.truncate"]);
});

test("an answer without any sound yet is cancelled and not truncated", () => {
  connect();
  hearTurn();
  beginAnswer(false);
  talk.interrupt();
  assert.deepEqual(socket().types.slice(1), ["response.cancel"]);
});

test("the words of an interrupted answer become those that the server keeps", () => {
  connect();
  hearTurn();
  beginAnswer();
  talk.interrupt();
  socket().deliver("conversation.item.truncated", { item_id: "a1", audio_end_ms: HEARD_MS });
  assert.equal(socket().sent.at(-1).type, "conversation.item.retrieve");
  const item = { id: "a1", content: [{ type: "output_audio", transcript: "You" }] };
  socket().deliver("conversation.item.retrieved", { item });
  assert.deepEqual(talk.transcript.find("a1"), {
    id: "a1", role: "assistant", text: "You", partial: false, cut: true,
  });
});

test("an answer is over when it was played, not when it was made", () => {
  connect();
  hearTurn();
  beginAnswer();
  socket().deliver("response.done", { response: { id: "r1", status: "completed" } });
  assert.equal(talk.state, TalkState.SPEAKING);
  voice.dispatchEvent(new CustomEvent("ended"));
  assert.equal(talk.state, TalkState.LISTENING);
});

test("an answer that failed says why, until the user speaks", () => {
  connect();
  hearTurn();
  socket().deliver("response.created", { response: { id: "r1" } });
  const error = { type: "server_error", code: "x", message: "the chat was silent" };
  const status_details = { type: "failed", error };
  socket().deliver("response.done", { response: { id: "r1", status: "failed", status_details } });
  assert.equal(talk.state, TalkState.LISTENING);
  assert.equal(talk.error, "The chat was silent.");
  socket().deliver("input_audio_buffer.speech_started", { item_id: "u2", audio_start_ms: 0 });
  assert.equal(talk.error, null);
});

test("an interruption that comes too late is no error", () => {
  connect();
  hearTurn();
  beginAnswer(false);
  talk.interrupt();
  const { event_id } = socket().sent.at(-1);
  socket().deliver("error", { error: { message: "no active response", code: "x", event_id } });
  assert.equal(talk.error, null);
  socket().deliver("error", { error: { message: "not valid", code: "x", event_id: null } });
  assert.equal(talk.error, "Not valid.");
});

test("a connection that breaks is tried again, and told what was said", async () => {
  connect();
  hearTurn("hello there");
  beginAnswer();
  socket().close();
  assert.equal(talk.state, TalkState.LOST);
  assert.equal(voice.active, false);
  for (const [waitMs, count] of [[1_000, 2], [2_000, 3], [4_000, 4]]) {
    mock.timers.tick(waitMs - 1);
    assert.equal(FakeSocket.made.length, count - 1);
    mock.timers.tick(1);
    assert.equal(FakeSocket.made.length, count);
    socket().close();
    await settled();
    assert.equal(talk.error, "The server cannot be reached.");
  }
  mock.timers.tick(8_000);
  connect();
  assert.equal(talk.state, TalkState.LISTENING);
  assert.equal(talk.error, null);
  const items = socket().sent.slice(1).map(({ item: { role, content } }) => [role, content[0]]);
  assert.deepEqual(items, [
    ["user", { type: "input_text", text: "hello there" }],
    ["assistant", { type: "output_text", text: "You said" }],
  ]);
});

const RESUME = { token: "resume_1", seconds: 30 };

function beginResumable() {
  socket().connect();
  socket().deliver("session.created", { event_id: "event_1", resume: RESUME });
  socket().deliver("session.updated", { event_id: "event_2" });
}

test("a connection that is lost goes on where it was: no sound twice, none missing", () => {
  beginResumable();
  hearTurn();
  beginAnswer();
  socket().deliver("response.output_audio.done", { response_id: "r1", event_id: "event_9" });
  const { pushed } = voice;
  microphone.listener.heard(new Int16Array(960).fill(1));
  socket().lose();
  assert.deepEqual([talk.state, talk.error], [TalkState.LOST, "The connection broke."]);
  assert.equal(voice.active, true, "what has arrived is played");
  assert.equal(socket().path, "v1/realtime?resume=resume_1&after=event_9");
  microphone.listener.heard(new Int16Array(960).fill(2));
  socket().connect();
  assert.deepEqual(socket().sent, [], "nothing before the server says what has arrived");
  deliverSound();
  assert.equal(voice.pushed, pushed + 2400);
  socket().deliver("session.resumed", { event_id: "event_12", received: 1 });
  const sent = socket().sent.map(({ audio }) => audio);
  assert.deepEqual(sent, [1, 2].map((level) => encodePcm(new Int16Array(960).fill(level))));
  assert.deepEqual([talk.state, talk.error], [TalkState.SPEAKING, null]);
  microphone.listener.heard(new Int16Array(960).fill(3));
  assert.equal(socket().sent.length, 3);
  assert.equal(FakeSocket.made.length, 2);
});

test("without a network it is tried every second while the server keeps the session", async () => {
  const clock = mock.method(performance, "now", () => 0);
  beginResumable();
  socket().lose();
  for (const seconds of [0, 10, 29]) {
    clock.mock.mockImplementation(() => 1_000 * seconds);
    const { length } = FakeSocket.made;
    socket().lose();
    await settled();
    mock.timers.tick(1_000);
    assert.equal(FakeSocket.made.length, length + 1);
    assert.equal(socket().path, "v1/realtime?resume=resume_1&after=event_2");
  }
  clock.mock.mockImplementation(() => 31_000);
  socket().lose();
  await settled();
  mock.timers.tick(1_000);
  assert.equal(socket().path, "v1/realtime?model=solo&resumable=true", "another session");
  clock.mock.restore();
});

test("a session that the server no longer has is followed by another one that knows it", async () => {
  beginResumable();
  hearTurn("hello there");
  refusal = new SpeechError("No session of this token is open.", { status: 404 });
  socket().lose();
  socket().lose();
  await settled();
  assert.equal(talk.state, TalkState.LOST);
  mock.timers.tick(1_000);
  assert.equal(socket().path, "v1/realtime?model=solo&resumable=true");
  beginResumable();
  assert.deepEqual(socket().types, ["session.update", "conversation.item.create"]);
  assert.equal(talk.state, TalkState.LISTENING);
});

test("a talk that is stopped while its connection is lost does not come back", async () => {
  beginResumable();
  socket().lose();
  socket().lose();
  await settled();
  talk.stop();
  mock.timers.tick(60_000);
  assert.equal(FakeSocket.made.length, 2);
});

test("a server that cannot talk says why, and is not asked again", async () => {
  refusal = new SpeechError("Spoken conversations need silero_vad.", { status: 501 });
  socket().close();
  await settled();
  assert.equal(talk.state, TalkState.OFF);
  assert.equal(talk.error, "Spoken conversations need silero_vad.");
  assert.equal(microphone.closed, 1);
  mock.timers.tick(60_000);
  assert.equal(FakeSocket.made.length, 1);
});

test("nor is one that comes back without what a talk needs", async () => {
  connect();
  socket().close();
  mock.timers.tick(1_000);
  refusal = new SpeechError("Spoken conversations need silero_vad.", { status: 501 });
  socket().close();
  await settled();
  assert.equal(talk.state, TalkState.OFF);
  mock.timers.tick(60_000);
  assert.equal(FakeSocket.made.length, 2);
});

test("while it waits to try again it can be stopped", () => {
  connect();
  socket().close();
  talk.stop();
  mock.timers.tick(60_000);
  assert.equal(FakeSocket.made.length, 1);
  assert.equal(talk.state, TalkState.OFF);
});

test("another voice takes another session; the same one does not", () => {
  connect();
  talk.changeVoice();
  assert.equal(FakeSocket.made.length, 1);
  chosen = { model: "solo", voice: "ben" };
  talk.changeVoice();
  connect();
  assert.equal(FakeSocket.made.length, 2);
  assert.equal(socket().sent[0].session.audio.output.voice, "ben");
});

test("a microphone that is refused or taken away ends the talk with a sentence", async () => {
  connect();
  microphone.listener.ended();
  assert.deepEqual([talk.state, talk.error], ["off", "The microphone is gone. Connect it again or choose another one, and start again."]);
  microphone.open = () => Promise.reject(new SpeechError("There is no microphone."));
  await talk.start();
  assert.deepEqual([talk.state, talk.error], ["off", "There is no microphone."]);
});

test("a turn may be typed, also while an answer sounds", () => {
  connect();
  hearTurn();
  beginAnswer();
  talk.say("What time is it?");
  const create = socket().sent.at(-1);
  assert.deepEqual(create.item.content, [{ type: "input_text", text: "What time is it?" }]);
  takeItem();
  assert.equal(socket().types.at(-1), "response.create");
  assert.ok(socket().types.includes("response.cancel"), "the answer is silenced");
  assert.equal(talk.transcript.turns.at(-1).text, "What time is it?");
  assert.equal(talk.state, TalkState.THINKING);
});

test("a call is shown, and what is typed next is its result", () => {
  connect();
  socket().deliver("response.created", { response: { id: "r1" } });
  const item = { id: "f1", type: "function_call", call_id: "c1", name: "clock", arguments: "{}" };
  socket().deliver("response.output_item.added", { response_id: "r1", item });
  socket().deliver("response.output_item.done", { response_id: "r1", item });
  socket().deliver("response.done", { response: { id: "r1", status: "completed" } });
  const { role, text } = talk.transcript.turns.at(-1);
  assert.deepEqual([role, text], ["tool", "clock({})"]);
  const said = () => {
    const { type, call_id: id, output } = socket().sent.at(-1).item;
    return [type, id, output];
  };
  talk.say("12:00, at length");
  refuseItem("item.output has 16 characters; at most 9 are accepted");
  talk.say("12:00");
  assert.deepEqual(said(), ["function_call_output", "c1", "12:00"]);
  takeItem();
  talk.say("Thanks");
  assert.equal(said()[0], "message");
});

test("a typed turn that the server refuses was not said, and nothing answers it", () => {
  connect();
  const unsaid = [];
  talk.addEventListener("unsaid", ({ detail }) => unsaid.push(detail));
  talk.say("A long story");
  refuseItem("item.content has 12 characters; at most 9 are accepted");
  assert.deepEqual(talk.transcript.turns, []);
  assert.deepEqual(unsaid, ["A long story"]);
  const told = "This was not sent: Item.content has 12 characters; at most 9 are accepted.";
  assert.deepEqual([talk.state, talk.error], [TalkState.LISTENING, told]);
  assert.ok(!socket().types.includes("response.create"));
  talk.say("A story");
  assert.equal(talk.error, null);
  takeItem();
  assert.equal(socket().types.at(-1), "response.create");
});

test("with a key, only what is said while it is held is sent, and letting go ends the turn", () => {
  talk.change({ turns: "key" });
  connect();
  assert.equal(socket().sent[0].session.audio.input.turn_detection, null);
  const packet = () => microphone.listener.heard(new Int16Array(960));
  const count = () => socket().types.filter((type) => type.endsWith("append")).length;
  packet();
  assert.equal(count(), 0);
  const clock = mock.method(performance, "now", () => 1_000);
  talk.hold();
  packet();
  assert.equal(count(), 1);
  clock.mock.mockImplementation(() => 2_000);
  talk.release();
  assert.deepEqual(socket().types.slice(-2), ["input_audio_buffer.commit", "response.create"]);
  packet();
  assert.equal(count(), 1);
  clock.mock.restore();
});

test("a server that cannot tell when somebody sounds finished waits for pauses", () => {
  socket().connect();
  const detection = () => socket().sent.at(-1).session.audio.input.turn_detection.type;
  assert.equal(detection(), "semantic_vad");
  let told = 0;
  talk.addEventListener("options", () => (told += 1));
  socket().deliver("error", { error: { event_id: "settings", message: "no", code: "invalid" } });
  assert.equal(detection(), "server_vad");
  assert.deepEqual([told, talk.error], [1, null]);
});

test("a muted microphone sends silence", () => {
  connect();
  talk.muted = true;
  microphone.listener.heard(new Int16Array(960).fill(1_000));
  const { audio } = socket().sent.at(-1);
  assert.equal(audio, encodePcm(new Int16Array(960)));
});

test("another microphone goes on with the conversation", async () => {
  connect();
  await talk.changeMicrophone();
  assert.equal(microphone.closed, 1);
  assert.equal(FakeSocket.made.length, 1);
  assert.equal(talk.state, TalkState.LISTENING);
});
