import assert from "node:assert/strict";
import test from "node:test";

import { TypedText } from "../cantata_web/static/speech/typing.js";

/** Types character by character, as fast as they come. */
function typing() {
  const sent = [];
  const typed = new TypedText({
    write: (text) => sent.push(text),
    commit: () => sent.push("|"),
    changed: () => sent.push("changed"),
  });
  const type = (text) => {
    for (let end = 1; end <= text.length; end += 1) typed.update(text.slice(0, end));
  };
  return { typed, type, sent };
}

test("words go out when they are finished, and a clause is committed at its end", () => {
  const { type, sent } = typing();
  type("When the rain stops, we go out");
  assert.deepEqual(sent, ["When ", "the ", "rain ", "stops, ", "|", "we ", "go "]);
});

test("a short opening waits for what it belongs to; numbers are not clause ends", () => {
  const { type, sent } = typing();
  type("Well, it cost 3,497 pounds, ");
  assert.equal(sent.join(""), "Well, it cost 3,497 pounds, |");
});

test("a new line speaks however little there is", () => {
  const { type, sent } = typing();
  type("Yes\n");
  assert.deepEqual(sent, ["Yes\n", "|"]);
});

test("full stops are left to the server, which knows abbreviations", () => {
  const { type, sent } = typing();
  type("Dr. Reed has come home. ");
  assert.equal(sent.includes("|"), false);
});

test("a flush sends the unfinished word too, and says nothing twice", () => {
  const { typed, type, sent } = typing();
  type("All of it");
  typed.flush();
  typed.flush();
  assert.deepEqual(sent, ["All ", "of ", "it", "|"]);
  typed.update("All of it and more ");
  assert.equal(sent.slice(4).join(""), " and more ");
});

test("where a commit begins is known, for the words that are heard", () => {
  const { typed, type } = typing();
  type("One two three, four ");
  assert.equal(typed.base, "One two three, ".length);
});

test("an edit of what was sent is not spoken; typing on is", () => {
  const { typed, sent } = typing();
  typed.update("The cat sat ");
  typed.update("The hat sat ");
  typed.update("The hat sat on ");
  assert.deepEqual(sent, ["The ", "cat ", "sat ", "|", "changed", "on "]);
});

test("another text in its place is spoken from its start", () => {
  const { typed, sent } = typing();
  typed.update("The cat ");
  typed.update("A dog ");
  assert.deepEqual(sent, ["The ", "cat ", "|", "A ", "dog "]);
});

test("a correction inside the unfinished word is free", () => {
  const { typed, sent } = typing();
  typed.update("The cta");
  typed.update("The cat ");
  assert.deepEqual(sent, ["The ", "cat "]);
});
