import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";

import { asSpeechError } from "../cantata_web/static/api/errors.js";
import { exactClock, shortClock } from "../cantata_web/static/listen/clock.js";
import { cutText } from "../cantata_web/static/listen/pieces.js";
import { writeSrt, writeVtt } from "../cantata_web/static/listen/subtitles.js";
import { Transcription, TranscriptionState } from "../cantata_web/static/listen/transcription.js";

const settled = () => new Promise((resolve) => setTimeout(resolve, 0));
const part = (text, start, end) => ({ text, start, end });
const SOUND = { sound: new Blob(["RIFF"]), name: "talk.wav", model: "ear", language: "" };
const WORDS = [part("Good", 0, 0.5), part("day,", 0.5, 1), part("Ada.", 1.2, 2)];

/** Answers the one request when the test says so. */
class FakeServer {
  request(path, options) {
    this.path = path;
    this.options = options;
    const body = new ReadableStream({ start: (made) => (this.stream = made) });
    return new Promise((resolve, reject) => {
      this.accept = () => resolve({ body });
      this.refuse = (error, about) => reject(asSpeechError(error, about));
      options.signal.addEventListener("abort", () => {
        const error = new DOMException("aborted", "AbortError");
        this.stream.error(error);
        reject(error);
      });
    });
  }

  send(text) {
    this.accept();
    this.stream.enqueue(new TextEncoder().encode(text));
  }

  delta(delta, start, end) {
    this.send(`data: ${JSON.stringify({ type: "transcript.text.delta", delta, start, end })}\n\n`);
  }

  done(fields) {
    const event = { type: "transcript.text.done", usage: { seconds: 9 }, ...fields };
    this.send(`data: ${JSON.stringify(event)}\n\ndata: [DONE]\n\n`);
    this.stream.close();
  }
}

let server, transcription, over;

beforeEach(() => {
  server = new FakeServer();
  transcription = new Transcription(server, SOUND);
  over = transcription.start();
});

test("the recording is sent once, for words and sentences, as they are heard", async () => {
  assert.equal(server.path, "v1/audio/transcriptions");
  const form = server.options.body;
  assert.deepEqual([...form.keys()].filter((name) => name !== "file").map((name) => form.getAll(name)), [
    ["ear"], ["verbose_json"], ["true"], ["word", "segment"], ["word", "segment"],
  ]);
  assert.equal(form.get("file").name, "talk.wav");
  assert.equal(server.options.headers, undefined, "the browser writes the form's boundary");
});

test("the language that was chosen is sent", async () => {
  const other = new FakeServer();
  void new Transcription(other, { ...SOUND, language: "pt" }).start();
  assert.equal(other.options.body.get("language"), "pt");
  assert.equal(server.options.body.has("language"), false);
});

test("the text grows, and ends with the times of its words", async () => {
  server.delta("Good day,", 0, 1);
  await settled();
  assert.deepEqual([transcription.text, transcription.heardSeconds], ["Good day,", 1]);
  assert.deepEqual(transcription.parts, [part("Good day,", 0, 1)]);
  server.send(": 4 s read\n\n");
  server.delta(" Ada.", 1.2, 2);
  const words = WORDS.map(({ text, start, end }) => ({ word: text, start, end, probability: 1 }));
  server.done({ text: "Good day, Ada.", words, segments: [{ id: 0, ...part("Good day, Ada.", 0, 2) }] });
  await over;
  assert.equal(transcription.state, TranscriptionState.DONE);
  assert.deepEqual(transcription.parts, WORDS);
  assert.deepEqual(transcription.passages, [part("Good day, Ada.", 0, 2)]);
  assert.equal(transcription.heardSeconds, 9);
});

test("a model that knows no words' times leaves its passages", async () => {
  server.delta("Good day, Ada.", 0, 2);
  server.done({ text: "Good day, Ada.", words: [], segments: null });
  await over;
  assert.deepEqual(transcription.parts, [part("Good day, Ada.", 0, 2)]);
});

test("cancelling closes the request, and what was heard stays", async () => {
  server.delta("Good day,", 0, 1);
  await settled();
  transcription.cancel();
  await over;
  assert.equal(server.options.signal.aborted, true);
  assert.equal(transcription.state, TranscriptionState.CANCELLED);
  assert.equal(transcription.text, "Good day,");
  assert.equal(transcription.error, null);
});

test("a refusal calls the file by its name, and one of size by the server's limit", async () => {
  server.refuse({ message: "file is not a readable sound file", code: "invalid_audio", param: "file" });
  await over;
  assert.equal(transcription.state, TranscriptionState.FAILED);
  assert.equal(transcription.error.message, "“talk.wav” is not a readable sound file.");

  const large = new Transcription(server, SOUND);
  const refused = large.start();
  server.refuse({ message: "the body is larger than 513 MiB", code: "body_too_large" });
  await refused;
  assert.equal(large.error.message, "The body is larger than 513 MiB.");
});

test("an error in the stream, and an end without an end, are told", async () => {
  server.delta("Good day,", 0, 1);
  server.send('event: error\ndata: {"error": {"message": "file is damaged", "param": "file"}}\n\n');
  await over;
  assert.equal(transcription.error.message, "“talk.wav” is damaged.");
  assert.equal(transcription.text, "Good day,");

  const other = new Transcription(server, SOUND);
  const broken = other.start();
  server.delta("Good", 0, 1);
  server.stream.close();
  await broken;
  assert.match(other.error.message, /broke before the end/);
});

test("pieces are the text, and words are found in it", () => {
  const text = " Good day, Ada.\n";
  const pieces = cutText(text, [part("Good", 0, 1), part("day", 1, 2), part("Ada", 2, 3)]);
  assert.equal(pieces.map((piece) => piece.text).join(""), text);
  assert.deepEqual(pieces.map((piece) => piece.part?.text ?? null), [
    null, "Good", null, "day", null, "Ada", null,
  ]);
  assert.deepEqual(cutText("Good day", []), [{ text: "Good day", part: null }]);
  assert.deepEqual(cutText("", []), []);
});

test("without spaces, words of a text follow each other", () => {
  const words = [part("今日", 0, 1), part("は", 1, 2)];
  assert.deepEqual(cutText("今日は。", words).map(({ text }) => text), ["今日", "は", "。"]);
});

test("no word is lost if the words are not the text's", () => {
  for (const text of ["Good day", "Good Ada.", "Good day, dear Ada.", "Good day, Ada. And more"]) {
    const pieces = cutText(text, WORDS);
    assert.deepEqual(pieces.filter((piece) => piece.part).map((piece) => piece.part), WORDS, text);
    assert.equal(pieces.map((piece) => piece.text).join(""), "Good day, Ada.");
  }
});

test("subtitles have numbers, times and lines", () => {
  const passages = [part("Good\n\nday.", 0, 1.2345), part("a < b & c", 3599.9996, 3661.5)];
  assert.equal(
    writeSrt(passages),
    "1\n00:00:00,000 --> 00:00:01,235\nGood day.\n\n" +
      "2\n01:00:00,000 --> 01:01:01,500\na < b & c\n",
  );
  assert.equal(
    writeVtt(passages),
    "WEBVTT\n\n00:00:00.000 --> 00:00:01.235\nGood day.\n\n" +
      "01:00:00.000 --> 01:01:01.500\na &lt; b &amp; c\n",
  );
  assert.equal(writeVtt([]), "WEBVTT\n");
});

test("times are short for readers and exact for files", () => {
  assert.deepEqual([0, 7.9, 67, 3723].map(shortClock), ["0:00", "0:07", "1:07", "1:02:03"]);
  assert.equal(exactClock(36_000.001, ","), "10:00:00,001");
});
