import assert from "node:assert/strict";
import test from "node:test";

// As browsers have it, before the module reads it.
globalThis.document = { documentElement: { lang: "de" } };
const { decimal, listed, t } = await import("../cantata_web/static/texts.js");

test("values take their places, once, and numbers are written as the language does", () => {
  assert.equal(t("Nichts zu tun."), "Nichts zu tun.");
  assert.equal(t("{name}: {length} von {most}", { name: "{most}", length: 1234.5, most: "9" }), "{most}: 1.234,5 von 9");
});

test("the number chooses the form, and what a language does not tell apart is `other`", () => {
  const words = { one: "{count} Wort", other: "{count} Wörter" };
  assert.deepEqual([0, 1, 2].map((count) => t(words, { count })), ["0 Wörter", "1 Wort", "2 Wörter"]);
  assert.equal(t({ other: "{count} 語" }, { count: 1 }), "1 語");
});

test("numbers have as many digits as asked for, and lists their last word", () => {
  assert.deepEqual([decimal(0.5, 2), decimal(2), decimal(0.25)], ["0,50", "2", "0,25"]);
  assert.equal(listed(["Ton", "Text", "Bild"]), "Ton, Text und Bild");
});
