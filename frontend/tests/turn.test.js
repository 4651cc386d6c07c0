import assert from "node:assert/strict";
import test from "node:test";

import { Turn } from "../cantata_web/static/speech/turn.js";

/** Notes what a turn sends. */
function wire() {
  const sent = [];
  return {
    sent,
    begin: (config) => sent.push(config),
    write: (text) => sent.push(text),
    commit: () => sent.push("|"),
  };
}

const frames = (from, to) => Int16Array.from({ length: to - from }, (_, i) => from + i);

test("a whole text is one commit, and complete when it has been spoken", () => {
  const turn = Turn.of("Hello.", { voice: "clara" });
  const session = wire();
  turn.request(session, {});
  assert.deepEqual(session.sent, [{ voice: "clara", timestamps: true }, "Hello.", "|"]);
  assert.equal(turn.complete, false);
  turn.spoken();
  assert.equal(turn.complete, true);
});

test("a broken stream continues at its sample", () => {
  const turn = Turn.of("Hello.", {});
  turn.begin();
  assert.deepEqual(turn.fresh(frames(0, 6), 1), frames(0, 6));
  turn.break();
  assert.equal(turn.resumable, true);
  turn.resume();
  turn.begin();
  assert.equal(turn.fresh(frames(0, 4), 1).length, 0);
  assert.deepEqual(turn.fresh(frames(4, 9), 1), frames(6, 9));
  assert.deepEqual(turn.fresh(frames(9, 11), 1), frames(9, 11));
  assert.deepEqual(turn.place(2), { sent: "Hello.", base: 0, atSeconds: 0 });
});

test("a rest that breaks before anything new is continued at the same sample", () => {
  const turn = Turn.of("Hello.", {});
  turn.fresh(frames(0, 6), 1);
  for (const before of [3, 5]) {
    turn.break();
    turn.resume();
    assert.equal(turn.fresh(frames(0, before), 1).length, 0);
  }
  turn.break();
  turn.resume();
  assert.deepEqual(turn.fresh(frames(0, 8), 1), frames(6, 8));
});

test("samples of two channels are left out in pairs", () => {
  const turn = Turn.of("Hello.", {});
  turn.fresh(frames(0, 6), 2);
  turn.break();
  turn.resume();
  assert.deepEqual(turn.fresh(frames(0, 10), 2), frames(6, 10));
});

test("typed text is asked for again from the first commit that was not spoken whole", () => {
  const turn = new Turn({ voice: "clara" }, true);
  turn.request(wire(), {});
  turn.write("When it rains, ", 0);
  turn.commit();
  turn.write("we ", 15);
  turn.write("stay, ", 18);
  turn.commit();
  turn.write("and ", 24);
  turn.begin();
  turn.fresh(frames(0, 6), 1);
  turn.spoken();
  turn.begin();
  turn.fresh(frames(6, 8), 1);
  turn.break();
  turn.resume();
  const session = wire();
  turn.request(session, {});
  assert.deepEqual(session.sent.slice(1), ["we stay, ", "|", "and ", "|"]);
  assert.equal(turn.resumesAt(2), 3);
  turn.begin();
  assert.deepEqual(turn.fresh(frames(6, 9), 1), frames(8, 9));
  assert.deepEqual(turn.place(2), { sent: "we stay, ", base: 15, atSeconds: 3 });
  turn.spoken();
  turn.spoken();
  assert.equal(turn.complete, true);
});

test("a stream that broke with nothing unspoken has no rest", () => {
  const turn = new Turn({}, true);
  turn.write("That is all, ", 0);
  turn.commit();
  turn.spoken();
  turn.break();
  assert.equal(turn.resumable, false);
});
