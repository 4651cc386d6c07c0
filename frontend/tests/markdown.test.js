import assert from "node:assert/strict";
import test from "node:test";

import { markdownBlocks } from "../cantata_web/static/read/markdown.js";

const read = (source) =>
  markdownBlocks(source).map(({ kind, text }) => (kind === "heading" ? `# ${text}` : text));

test("items have the numbers that Markdown gives them", () => {
  assert.deepEqual(read("1. Mix.\n1. Add:\n   - warm\n   1. a\n   1. b\n\n1. Bake.\n\n3) x\n4) y\n\nEnd.\n\n1. one"), [
    "1. Mix.",
    "2. Add:",
    "warm",
    "1. a",
    "2. b",
    "3. Bake.",
    "3. x",
    "4. y",
    "End.",
    "1. one",
  ]);
});

test("a year at the start of a line is neither an item nor lost", () => {
  assert.deepEqual(read("In the winter of\n1986. What a year!"), ["In the winter of 1986. What a year!"]);
});

test("headings, quotations, rows, footnotes and paragraphs are blocks of their own", () => {
  const source =
    "---\ntitle: x\n---\n# One #\nText\nTwo\n---\n> said\n> more\n> 1) a\n\n| a | b |\n|:--|--:|\n| 1 | |\n" +
    "after[^1]\n\n[^1]: note\n[^2]: note two\n[r]: http://x.y\n\n***\n- [x] done\n  goes on";
  assert.deepEqual(read(source), [
    "# One",
    "# Text Two",
    "said more",
    "1. a",
    "a, b",
    "1",
    "after",
    "note",
    "note two",
    "done goes on",
  ]);
});

test("code is left out, marks are, and addresses stay", () => {
  const source =
    "Before:\n```js\n# no\n\n1. no\n```\n- *a* **b** `c` <b>d</b> [e](http://f)\n  ~~~\n  no\n  ~~~\n> ```\n> no\n> ```\n" +
    "See <https://x.y/z> and <!-- hidden\n--> end";
  assert.deepEqual(read(source), ["Before:", "a b c d e", "See https://x.y/z and end"]);
});

test("files of nothing but marks do not stop the page", () => {
  const marks = ["`", "*", "**a", "_", "_a", "~~", "[", "[a](", "![", "[^", "<a", "<!--", "&#", "> ", "| ", "- ", "# ", " "];
  for (const mark of marks) read(`a ${mark.repeat(200_000 / mark.length)}`);
});

test("emphasis within emphasis and addresses with brackets are marks, too", () => {
  assert.deepEqual(read("***both*** and **a *b* c**, [one](http://x.y/z_(w)) [![i](j)](k)"), [
    "both and a b c, one i",
  ]);
});

test("a line of a play is no definition of a link", () => {
  assert.deepEqual(read("[Bob]: Yes, I do.\n[Ann]: No.\n[^n]: A note."), ["[Bob]: Yes, I do. [Ann]: No.", "A note."]);
});
