import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";

import { asSpeechError } from "../cantata_web/static/api/errors.js";
import { readEvents } from "../cantata_web/static/api/events.js";
import { Drawing, DrawingState } from "../cantata_web/static/draw/drawing.js";
import { Painters } from "../cantata_web/static/draw/painters.js";
import { offeredSizes, whyNotSize } from "../cantata_web/static/draw/sizes.js";
import { Catalogue } from "../cantata_web/static/offer/catalogue.js";
import { Studio } from "../cantata_web/static/draw/studio.js";

const LIMITS = { default_size: "1328x1328", multiple: 16, min_side: 64, max_pixels: 4_194_304 };
const REQUEST = { model: "m", prompt: "a hat", size: "64x64", seed: 7, references: [], options: {} };
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

/** Answers each request when the test says so. */
class FakeServer {
  calls = []; // {path, options, send(name, data), refuse(error), end(), lose()}
  open = 0;
  mostOpen = 0;

  request(path, options) {
    this.mostOpen = Math.max(this.mostOpen, ++this.open);
    return new Promise((resolve, reject) => {
      const call = { path, options };
      let controller;
      const body = new ReadableStream({ start: (made) => (controller = made) });
      call.send = (name, data) => {
        resolve({ body });
        const text = `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
        controller.enqueue(new TextEncoder().encode(text));
      };
      const close = (act) => () => {
        this.open -= 1;
        act();
      };
      call.end = close(() => controller.close());
      call.lose = close(() => controller.error(new TypeError("network error")));
      call.refuse = (error, about) => close(() => reject(asSpeechError(error, about)))();
      options.signal.addEventListener("abort", close(() => {
        call.aborted = true;
        const error = new DOMException("aborted", "AbortError");
        controller.error(error);
        reject(error);
      }));
      this.calls.push(call);
    });
  }
}

const fields = { size: "64x64", output_format: "png", image_index: 0 };
const progress = (step) => ({ ...fields, type: "image_generation.progress", step, steps: 4 });

function complete(call, bytes = "done") {
  call.send("image_generation.completed", { ...fields, b64_json: btoa(bytes) });
  call.end();
}

let server, studio;

beforeEach(() => {
  server = new FakeServer();
  studio = new Studio(server);
});

const states = () => studio.drawings.map(({ state }) => state);

async function eventsOf(pieces) {
  const bytes = new TextEncoder().encode(pieces.join(""));
  const cuts = pieces.length > 1 ? null : [...bytes].map((byte) => Uint8Array.of(byte));
  const body = ReadableStream.from(cuts ?? pieces.map((one) => new TextEncoder().encode(one)));
  const events = [];
  for await (const event of readEvents(body)) events.push(event);
  return events;
}

test("events are read however the bytes are cut", async () => {
  const text = 'event: a\nid: 7\ndata: {"x": "é"}\n\n: a comment\n\ndata: [1,\ndata: 2]\n\n';
  const expected = [
    { name: "a", id: "7", data: { x: "é" } },
    { name: "message", id: null, data: [1, 2] },
  ];
  assert.deepEqual(await eventsOf([text]), expected, "byte by byte");
  assert.deepEqual(await eventsOf([text, ""]), expected, "at once");
  assert.deepEqual(await eventsOf([text.replaceAll("\n", "\r\n")]), expected);
  assert.deepEqual(await eventsOf(["data: 1\n"]), [], "an event that was cut off is none");
  assert.deepEqual(await eventsOf(["data: [DONE]\n\n", ""]), [], "the end of OpenAI's streams");
});

test("two streams that are read in turns do not disturb each other", async () => {
  const stream = (name) => ReadableStream.from([
    new TextEncoder().encode(`data: "${name}1"\n\ndata: "${name.repeat(9)}2"\n\n`),
  ]);
  const [one, other] = [readEvents(stream("a")), readEvents(stream("b"))];
  const seen = [];
  for (const events of [one, other, one, other]) seen.push((await events.next()).value.data);
  assert.deepEqual(seen, ["a1", "b1", "aaaaaaaaa2", "bbbbbbbbb2"]);
});

test("offered sizes are all drawn by the model, and near the default's area", () => {
  const [auto, ...sizes] = offeredSizes(LIMITS);
  assert.equal(auto.value, "auto");
  const sides = sizes.map(({ value }) => value.split("x").map(Number));
  for (const [width, height] of sides) assert.equal(whyNotSize(width, height, LIMITS), null);
  assert.deepEqual(sides[0], [1328, 1328]);
  assert.ok(sides.some(([width, height]) => width > 1.7 * height));
  assert.ok(sides.some(([width, height]) => height > 1.7 * width));
  for (const [width, height] of sides.slice(0, -1)) {
    assert.ok(Math.abs((width * height) / 1328 ** 2 - 1) < 0.03);
  }
});

test("a model of one size offers that", () => {
  const limits = { default_size: "64x64", multiple: 64, min_side: 64, max_pixels: 4096 };
  assert.deepEqual(offeredSizes(limits).map(({ value }) => value), ["auto", "64x64"]);
});

test("a size that a model does not draw is refused with what is valid", () => {
  for (const [width, height] of [[100, 128], [48, 128], [4096, 4096], [0, 64], [64.5, 64]]) {
    assert.match(whyNotSize(width, height, LIMITS), /multiples of 16, at least 64, .* 2048 × 2048/);
  }
});

test("a picture shows its steps and previews, and ends with its file", async () => {
  const drawing = new Drawing(server, { ...REQUEST, options: { think: true } });
  const over = drawing.start();
  const [call] = server.calls;
  assert.equal(call.path, "v1/images/generations");
  assert.deepEqual(JSON.parse(call.options.body), {
    model: "m", prompt: "a hat", size: "64x64", seed: 7,
    stream: true, partial_images: 3, stream_progress: true, think: true,
  });
  call.send("image_generation.progress", progress(1));
  const preview = { ...fields, partial_image_index: 0, b64_json: btoa("noise") };
  call.send("image_generation.partial_image", preview);
  await settled();
  assert.deepEqual([drawing.step, drawing.steps, drawing.previews], [1, 4, 1]);
  assert.equal(await drawing.file.text(), "noise");
  assert.equal(drawing.over, false);
  complete(call);
  await over;
  assert.equal(drawing.state, DrawingState.DONE);
  assert.equal(await drawing.file.text(), "done");
  assert.equal(drawing.file.type, "image/png");
  assert.equal(drawing.step, 4);
});

test("pictures that are edited go as a form, without fields that are not set", () => {
  const references = [new File(["x"], "cat.jpg"), new Blob(["y"])];
  const asked = { ...REQUEST, references, negative_prompt: undefined };
  void new Drawing(server, { ...asked, options: { interval: [0.4, 1], ink: "7" } }).start();
  const [{ path, options }] = server.calls;
  assert.equal(path, "v1/images/edits");
  assert.deepEqual(options.body.getAll("image[]").map(({ name }) => name), ["cat.jpg", "picture.png"]);
  assert.equal(options.body.get("stream"), "true");
  assert.equal(options.body.get("seed"), "7");
  const own = ["interval", "ink"].map((name) => JSON.parse(options.body.get(name)));
  assert.deepEqual(own, [[0.4, 1], "7"], "a text that looks like a number stays one");
  assert.equal(options.body.has("negative_prompt"), false);
  assert.equal(options.headers, undefined, "the browser writes the form's boundary");
});

test("a connection that breaks or ends too early is told", async () => {
  for (const [act, sentence] of [["lose", /connection broke\./], ["end", /before the picture/]]) {
    const drawing = new Drawing(server, REQUEST);
    const over = drawing.start();
    server.calls.at(-1).send("image_generation.progress", progress(1));
    await settled();
    server.calls.at(-1)[act]();
    await over;
    assert.equal(drawing.state, DrawingState.FAILED);
    assert.match(drawing.error.message, sentence);
  }
});

test("an error in the stream is told in the server's words", async () => {
  const drawing = new Drawing(server, REQUEST);
  const over = drawing.start();
  const error = { message: "denoise was silent for 120 s", code: "chunk_timeout" };
  server.calls[0].send("error", { error });
  await over;
  assert.equal(drawing.error.message, "Denoise was silent for 120 s.");
});

test("a model that is not ready is told in the server's words", async () => {
  const drawing = new Drawing(server, REQUEST);
  const over = drawing.start();
  const error = { message: "model 'painter' is not ready", code: "stage_died" };
  server.calls[0].refuse(error, { status: 503 });
  await over;
  assert.equal(drawing.error.message, "Model 'painter' is not ready.");
  assert.equal(drawing.error.status, 503);
});

test("four pictures are drawn at a time, in order, with seeds that follow each other", async () => {
  studio.draw(REQUEST, 6);
  assert.deepEqual(studio.drawings.map(({ request }) => request.seed), [7, 8, 9, 10, 11, 12]);
  assert.deepEqual(states().slice(3), ["drawing", "waiting", "waiting"]);
  studio.draw({ ...REQUEST, prompt: "later" });
  for (let done = 0; done < 7; done += 1) {
    complete(server.calls[done]);
    await settled();
  }
  assert.equal(server.mostOpen, 4);
  const asked = server.calls.map(({ options }) => JSON.parse(options.body));
  assert.deepEqual(asked.map(({ seed }) => seed), [7, 8, 9, 10, 11, 12, 7]);
  assert.equal(asked.at(-1).prompt, "later");
  assert.equal(studio.drawings[0].request.prompt, "later", "newest first");
  assert.ok(states().every((state) => state === "done"));
});

test("cancelling closes the request and lets the next one begin", async () => {
  studio.draw(REQUEST, 5);
  studio.drawings[0].cancel();
  await settled();
  assert.equal(server.calls[0].aborted, true);
  assert.deepEqual(states(), ["cancelled", "drawing", "drawing", "drawing", "drawing"]);
  studio.drawings[4].cancel();
  assert.equal(server.calls.length, 5);
});

test("cancelling all starts none of those that wait", async () => {
  studio.draw(REQUEST, 10);
  studio.cancelAll();
  await settled();
  assert.equal(server.calls.length, 4);
  assert.ok(server.calls.every(({ aborted }) => aborted));
  assert.ok(states().every((state) => state === "cancelled"));
});

test("a request that is not valid is told once, and its pictures go", async () => {
  const refused = [];
  studio.addEventListener("refused", ({ detail }) => refused.push(detail.param));
  studio.draw(REQUEST, 6);
  const error = { message: "size is '1x1'", code: "invalid_value", param: "size" };
  server.calls[0].refuse(error, { status: 400 });
  for (const call of server.calls.slice(1)) call.refuse(error, { status: 400 });
  await settled();
  assert.equal(server.calls.length, 4, "those that waited were not asked for");
  assert.deepEqual([...new Set(refused)], ["size"]);
  assert.deepEqual(states(), []);
});

test("a full server's picture stays, to be tried again", async () => {
  studio.draw(REQUEST, 2);
  const error = { message: "every slot is taken", code: "rate_limit_exceeded" };
  server.calls[0].refuse(error, { status: 429, retryAfter: "3" });
  await settled();
  assert.deepEqual(states(), ["failed", "drawing"]);
  const { message } = studio.drawings[0].error;
  assert.equal(message, "The server is full at the moment. Try again in 3 s.");
});

test("of many pictures the oldest are forgotten, and none that is not over", async () => {
  studio.draw(REQUEST, 3);
  const drawn = [...studio.drawings];
  for (let done = 0; done < 70; done += 1) {
    studio.draw(REQUEST);
    complete(server.calls.at(-1));
    await settled();
  }
  assert.equal(studio.drawings.length, 60);
  assert.deepEqual(studio.having(DrawingState.DRAWING), drawn);
});

test("a model that starts later is loading until its stages run", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const data = [{ id: "talks", images: null }, { id: "draws", images: LIMITS }];
  const stages = [{ model: "talks" }];
  const asked = [];
  const json = async (path) => {
    asked.push(path);
    return { "v1/models": { data }, health: { stages } }[path];
  };
  const catalogue = new Catalogue({ json });
  const painters = new Painters({ json }, catalogue);
  await catalogue.load();
  assert.deepEqual(painters.models.map(({ id }) => id), ["draws"]);
  assert.equal(painters.loading("draws"), false, "not known yet");
  await painters.look();
  assert.equal(painters.loading("draws"), true);
  stages.push({ model: "draws" });
  context.mock.timers.tick(1_000);
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  assert.equal(painters.loading("draws"), false);
  context.mock.timers.tick(60_000);
  assert.deepEqual(asked, ["v1/models", "health", "health"], "then it is not asked again");
});
