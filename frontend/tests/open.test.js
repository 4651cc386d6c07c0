import assert from "node:assert/strict";
import test from "node:test";

import { openFile } from "../cantata_web/static/read/open.js";

test("a file of text becomes a book", async () => {
  const book = await openFile(new File(["One.\n\nTwo."], "a.b.txt"));
  assert.equal(book.name, "a.b");
});

test("what cannot be read is refused with the kinds that can", async () => {
  await assert.rejects(openFile(new File(["x"], "a.docx")), /“a\.docx” cannot be read here.*\.epub/);
  await assert.rejects(openFile(new File(["a\0b"], "a.txt")), /is no text/);
});

test("a PDF is sent to the audiobooks, which take it", async () => {
  await assert.rejects(openFile(new File(["%PDF-1.7"], "a.PDF")), /“a\.PDF” is a PDF: “Audiobooks”/);
});
