import assert from "node:assert/strict";
import test from "node:test";

import { Catalogue } from "../cantata_web/static/offer/catalogue.js";
import { fieldOf, textOf, valueOf } from "../cantata_web/static/offer/fields.js";
import {
  modalityWords, pictureFacts, speechFacts, tagline,
} from "../cantata_web/static/offer/words.js";

const CAN = {
  instructions: false,
  references: false,
  languages: [],
  speaker_tag: "",
  paces: [1, 1],
};
const MODEL = { sample_rate: 24_000, channels: 1, max_input_characters: 100_000, capabilities: CAN };
const LIMITS = {
  min_side: 64,
  max_pixels: 2 ** 20,
  multiple: 16,
  default_steps: 50,
  max_steps: 200,
  default_guidance: 4,
  max_guidance: 20,
  min_references: 0,
  max_references: 0,
};
const facts = (changed, voices = []) => {
  const { capabilities, ...model } = changed;
  const whole = { ...MODEL, ...model, capabilities: { ...CAN, ...capabilities } };
  return Object.fromEntries(speechFacts(whole, voices));
};

test("the line under the name says what is served", () => {
  const line = (...kinds) => tagline(Object.fromEntries(kinds.map((kind) => [kind, true])));
  assert.equal(line("speech"), "Speech you hear while it is still being made.");
  assert.equal(line("pictures"), "Pictures you see while they are still being drawn.");
  assert.equal(line("answers"), "Answers that arrive while they are still being made.");
  const listened = "Transcripts you read while a recording is still being heard.";
  assert.equal(line("transcripts"), listened);
  assert.equal(line("speech", "pictures"), "Speech and pictures while they are still being made.");
  const all = line("speech", "answers", "pictures");
  assert.equal(all, "Speech, answers and pictures while they are still being made.");
});

test("a model that speaks is described by what the list tells of it", () => {
  const plain = facts({}, [{ kind: "stock" }, { kind: "uploaded" }]);
  assert.equal(plain.Sound, "24 kHz, mono");
  assert.equal(plain.Voices, "1 of its own");
  assert.equal(plain.Text, "Up to 100,000 characters at a time");
  assert.match(plain.Pace, /stretched/);
  assert.deepEqual(["Languages", "Speakers"].filter((name) => name in plain), []);

  assert.equal(facts({ sample_rate: 44_100, channels: 2 }).Sound, "44.1 kHz, stereo");
  assert.equal(facts({ channels: 6 }).Sound, "24 kHz, 6 channels");
  const able = facts({
    capabilities: {
      instructions: true,
      references: true,
      languages: ["en", "zh", "x-!"],
      speaker_tag: "<{n}>",
      paces: [0.5, 2],
    },
  });
  assert.equal(able.Voices, "0 of its own, and any that you record; follows a description in words");
  assert.equal(able.Languages, "English, Chinese and x-!");
  assert.match(able.Speakers, /with <0>, <1> and so on/);
  assert.match(able.Pace, /From 0.5× to 2×/);
});

test("a model that draws is described by its limits", () => {
  const told = (changed) => Object.fromEntries(pictureFacts({ ...LIMITS, ...changed }));
  const plain = told({});
  assert.equal(plain.Sizes, "Up to the area of 1024 × 1024 pixels; sides from 64 in steps of 16");
  assert.equal(plain.Edits, "No: it draws from text only");
  assert.equal(plain.Guidance, "4 by default, at most 20");
  assert.equal(told({ max_guidance: 1 }).Guidance, "None");
  assert.equal(told({ max_references: 3 }).Edits, "Yes, up to 3 pictures at a time");
  const only = told({ min_references: 1, max_references: 1 }).Edits;
  assert.equal(only, "Only edits: needs 1, takes up to 1 picture at a time");
});

test("what models take and make tells which of them draw, answer, hear and listen", async () => {
  const entry = (id, takes, makes, images = null, transcription = null) => {
    return { id, input_modalities: takes, output_modalities: makes, images, transcription };
  };
  const data = [
    entry("speaks", ["text"], ["audio"]),
    entry("reads", ["text", "image"], ["text"]),
    entry("hears", ["text", "audio"], ["text", "audio"]),
    entry("listens", ["audio"], ["text"], null, { languages: ["en"] }),
    entry("draws", ["text"], ["image"], LIMITS),
    entry("does both", ["text", "image"], ["text", "image"], LIMITS),
  ];
  const catalogue = new Catalogue({ json: async () => ({ data }) });
  let changes = 0;
  catalogue.addEventListener("change", () => (changes += 1));
  await catalogue.load();
  assert.equal(changes, 1);
  const ids = (models) => models.map(({ id }) => id);
  assert.deepEqual(ids(catalogue.drawing), ["draws", "does both"]);
  assert.deepEqual(ids(catalogue.answering), ["reads", "hears", "does both"]);
  assert.deepEqual(ids(catalogue.hearing), ["hears"]);
  assert.deepEqual(ids(catalogue.listening), ["listens"]);
  assert.equal(modalityWords(["text", "image", "smell"]), "text, pictures and smell");
});

test("each schema has a control, and what is entered there becomes JSON", () => {
  const field = (schema) => fieldOf("top_p", schema);
  assert.deepEqual(field({ type: "string", description: "Why." }), {
    name: "top_p",
    label: "Top p",
    about: "Why.",
    choices: null,
    number: null,
    hint: "The model's choice",
  });
  const steps = { type: "integer", minimum: 2, maximum: 9, default: 4 };
  assert.deepEqual(field(steps).number, { min: "2", max: "9", step: "1" });
  assert.equal(field(steps).hint, "4");
  assert.deepEqual(valueOf("top_p", steps, "9"), { value: 9 });
  assert.deepEqual(valueOf("top_p", steps, "10"), {
    problem: "Top p must be a whole number, at least 2 and at most 9.",
  });
  assert.ok("problem" in valueOf("top_p", steps, "2.5"));

  const share = { type: "number", exclusiveMinimum: 0, maximum: 1 };
  assert.deepEqual(field(share).number, { min: "0", max: "1", step: "any" });
  assert.deepEqual(valueOf("top_p", share, "0"), {
    problem: "Top p must be a number, above 0 and at most 1.",
  });
  assert.deepEqual(valueOf("top_p", share, "0.5"), { value: 0.5 });

  const pair = { type: "array", prefixItems: [{ minimum: 0 }, { maximum: 1 }] };
  assert.deepEqual(valueOf("top_p", pair, "[0.4, 1]"), { value: [0.4, 1] });
  assert.deepEqual(valueOf("top_p", pair, "0.4, 1"), { problem: "Top p must be JSON, as [0,1]." });
});

test("a choice is left out by its first entry, which is the default if there is one", () => {
  const labels = (schema) => fieldOf("ink", schema).choices.map(({ label }) => label);
  const ink = { type: "string", enum: ["black", "blue"] };
  assert.deepEqual(labels(ink), ["The model's choice", "black", "blue"]);
  assert.deepEqual(labels({ ...ink, default: "blue" }), ["blue", "black"]);
  assert.deepEqual(labels({ type: "boolean", default: false }), ["No", "Yes"]);
  assert.deepEqual(labels({ type: "boolean" }), ["The model's choice", "No", "Yes"]);
  assert.deepEqual(labels({ type: "string", const: "x" }), ["The model's choice", "x"]);
  for (const [schema, value] of [[ink, "blue"], [{ type: "boolean" }, true], [{ enum: [1, 2] }, 2]]) {
    const { choices } = fieldOf("ink", schema);
    const text = textOf(schema, value);
    assert.ok(choices.some((choice) => choice.value === text));
    assert.deepEqual(valueOf("ink", schema, text), { value });
  }
});
